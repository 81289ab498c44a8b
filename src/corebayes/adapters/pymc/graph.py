"""A PyMC model's log density as graphs of (θ, rows) for any rows.

PyMC puts the data into the graph as constants and shared variables as long as the observations.
Here each of them becomes an input that may have any length, and so does every size that was
computed from that length. Graphs are rebuilt node by node, since a node knows its static shapes.
"""

from __future__ import annotations

import importlib
import sys
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from corebayes.adapters.pymc.rows import RowInputs, is_constant, value_of
from corebayes.adapters.tracing import one_at_a_time

DISPATCH = "pytensor.link.jax.dispatch"


def leaves(outputs: Sequence[Any]) -> list[Any]:
    """The constants, shared variables and inputs a graph ends in."""
    ancestors: Any = importlib.import_module("pytensor.graph.traversal").ancestors
    return [variable for variable in ancestors(outputs) if variable.owner is None]


def rebuild(outputs: Sequence[Any], replaced: Mapping[Any, Any], rows: RowInputs) -> list[Any]:
    """The graphs with leaves replaced, for any number of rows.

    Sizes equal to the number of rows follow the rows. Checks of parameters become nothing: they
    ask about all rows at once, and a bad parameter shows in its row as NaN.
    """
    toposort: Any = importlib.import_module("pytensor.graph.traversal").io_toposort
    renewed: dict[Any, Any] = dict(replaced)
    # Those that say nothing come last: they are filled up to the length of the others.
    for leaf in sorted(leaves(outputs), key=rows.says_nothing):
        tensor = None if leaf in renewed else rows.input_of(leaf)
        if tensor is not None:
            renewed[leaf] = tensor
    for leaf in leaves(outputs):
        if leaf not in renewed and not is_constant(leaf) and value_of(leaf) is not None:
            renewed[leaf] = _frozen(leaf, rows)
    for node in toposort([], outputs):
        _renew(node, renewed, rows)
    return [renewed.get(output, output) for output in outputs]


@one_at_a_time
def import_dispatch() -> Any:
    """PyTensor's translation to JAX, and the user's JAX as it was: importing the first switches
    float64 on for everybody, which is not ours to decide."""
    if DISPATCH in sys.modules:
        return sys.modules[DISPATCH]
    jax: Any = importlib.import_module("jax")
    flag = bool(jax.config.jax_enable_x64)
    dispatch = importlib.import_module(DISPATCH)
    jax.config.update("jax_enable_x64", flag)
    return dispatch


@one_at_a_time
def to_jax(inputs: Sequence[Any], outputs: Sequence[Any]) -> Any:
    """The graphs as one function of JAX arrays that returns a tuple, PyTensor's algebra applied."""
    jax: Any = importlib.import_module("jax")
    dispatch: Any = importlib.import_module(DISPATCH)
    graphs: Any = importlib.import_module("pytensor.graph.fg")
    modes: Any = importlib.import_module("pytensor.compile.mode")
    graph = graphs.FunctionGraph(inputs=list(inputs), outputs=list(outputs), clone=True)
    with warnings.catch_warnings():
        # C code would miss a BLAS; there is none here.
        warnings.filterwarnings("ignore", message="PyTensor could not link to a BLAS")
        # JAX broadcasts by itself, or says that it cannot.
        warnings.filterwarnings("ignore", message="Skipping Assert.*Could not broadcast")
        modes.JAX.optimizer.rewrite(graph)
        # Constants become arrays here and now, also when another function is being compiled.
        with jax.enable_x64(True), jax.ensure_compile_time_eval():
            return dispatch.jax_funcify(graph)


def _renew(node: Any, renewed: dict[Any, Any], rows: RowInputs) -> None:
    if any(output in renewed for output in node.outputs):
        return
    inputs = [renewed.get(variable, variable) for variable in node.inputs]
    kind = type(node.op).__name__
    if kind in ("CheckParameterValue", "SpecifyShape") or _repeats_nothing(kind, node):
        renewed[node.outputs[0]] = inputs[0]
        return
    if kind == "ARange" and _counts_rows(node, inputs, rows):
        renewed[node.outputs[0]] = rows.count()
        return
    _resize(kind, node, inputs, rows)
    if all(new is old for new, old in zip(inputs, node.inputs, strict=True)):
        return
    fresh = node.clone_with_new_inputs(inputs, strict=False)
    renewed.update(zip(node.outputs, fresh.outputs, strict=True))


def _repeats_nothing(kind: str, node: Any) -> bool:
    """Whether a node that should repeat entries leaves its first input as it is."""
    if kind not in ("Alloc", "BroadcastTo"):
        return False
    shape = node.outputs[0].type.shape
    return None not in shape and node.inputs[0].type.shape == shape


def _counts_rows(node: Any, inputs: Sequence[Any], rows: RowInputs) -> bool:
    """Whether a range is 0, 1, … for each row: up to their number, or to what is computed of it."""
    first, stop, step = map(_number, node.inputs)
    if not rows.inputs or first != 0 or step != 1:
        return False
    if stop is not None:
        return stop == rows.num_rows
    own = set(rows.inputs.values())
    ends = [leaf for leaf in leaves([_lengths_only(inputs[1])]) if not is_constant(leaf)]
    return bool(ends) and all(leaf in own for leaf in ends)


def _lengths_only(size: Any) -> Any:
    """The same size without the values of what it is the size of: that of f(θ, rows) is computed
    from θ as it stands, and from the lengths of rows alone where it is carried through f."""
    rewriting: Any = importlib.import_module("pytensor.graph.rewriting.utils")
    return rewriting.rewrite_graph(size, include=("ShapeOpt", "canonicalize"))


def _number(variable: Any) -> int | None:
    """A number that the graph has as a constant, or as the static size of something."""
    basic: Any = importlib.import_module("pytensor.tensor.basic")
    try:
        return int(basic.get_scalar_constant_value(variable))
    except basic.NotScalarConstantError:
        return None


def _resize(kind: str, node: Any, inputs: list[Any], rows: RowInputs) -> None:
    """Let the sizes among a node's inputs follow the number of rows, as its static shape says."""
    tensor: Any = importlib.import_module("pytensor.tensor")
    if not rows.inputs:
        return
    shape = getattr(node.outputs[0].type, "shape", ())
    if kind in ("Alloc", "BroadcastTo"):
        for axis, length in enumerate(shape):
            if length == rows.num_rows:
                inputs[1 + axis] = rows.length
    elif kind == "Reshape" and shape.count(rows.num_rows) == 1 and None not in shape:
        # −1 is "what is left", which is known when JAX compiles.
        sizes = [-1 if length == rows.num_rows else length for length in shape]
        inputs[1] = tensor.constant(np.array(sizes, dtype=np.int64))


def _frozen(leaf: Any, rows: RowInputs) -> Any:
    """A shared variable as the number it holds now; as the number of rows, if it is a length."""
    tensor: Any = importlib.import_module("pytensor.tensor")
    values = np.asarray(value_of(leaf))
    if values.ndim == 0 and values.dtype.kind in "iu" and values == rows.num_rows and rows.inputs:
        return rows.length
    return tensor.constant(values, dtype=leaf.type.dtype)
