"""A PyMC model's log density as graphs of (θ, rows) for any rows.

PyMC puts the data into the graph as constants and shared variables as long as the observations.
Here each of them becomes an input that may have any length, and so does every size that was
computed from that length. Graphs are rebuilt node by node, since a node knows its static shapes.
"""

from __future__ import annotations

import hashlib
import importlib
import warnings
from collections.abc import Mapping, Sequence
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray


class RowInputs:
    """The arrays in a model's graph that are as long as the observations, as symbolic inputs."""

    def __init__(self, num_rows: int, names: Mapping[Any, str]):
        self.num_rows = num_rows
        self.arrays: dict[str, NDArray[Any]] = {}
        self.inputs: dict[str, Any] = {}
        self.names = names
        self._of_leaf: dict[Any, Any] = {}
        self.contents: dict[str, str] = {}
        """The name of an array by the digest of its content: the same array twice is one field."""

    def input_of(self, leaf: Any) -> Any | None:
        """The input that stands for a constant or shared variable; None if it holds no rows."""
        if leaf in self._of_leaf:
            return self._of_leaf[leaf]
        values = value_of(leaf)
        if values is None or values.ndim == 0 or values.shape[0] != self.num_rows:
            return None
        name = self._name(leaf, values)
        if name not in self.inputs:
            tensor: Any = importlib.import_module("pytensor.tensor")
            self.inputs[name] = tensor.tensor(
                name, dtype=leaf.type.dtype, shape=(None, *values.shape[1:])
            )
            self.arrays[name] = values
        self._of_leaf[leaf] = self.inputs[name]
        return self.inputs[name]

    @property
    def length(self) -> Any:
        """The number of rows, symbolically."""
        return next(iter(self.inputs.values())).shape[0]

    def _name(self, leaf: Any, values: NDArray[Any]) -> str:
        if leaf in self.names:
            return self.names[leaf]
        digest = hashlib.blake2b(f"{values.dtype.str}{values.shape}".encode())
        digest.update(np.ascontiguousarray(values).data)
        content = digest.hexdigest()
        if content not in self.contents:
            number = len(self.contents)
            self.contents[content] = leaf.name or f"constant{number}"
        return self.contents[content]


def value_of(leaf: Any) -> NDArray[Any] | None:
    """The numbers of a constant or a shared variable."""
    shared: Any = importlib.import_module("pytensor.compile.sharedvalue").SharedVariable
    data: Any = None
    if _is_constant(leaf):
        data = leaf.data
    elif isinstance(leaf, shared):
        data = leaf.get_value(borrow=True)
    return cast("NDArray[Any]", data) if isinstance(data, np.ndarray) else None


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
    for leaf in leaves(outputs):
        tensor = None if leaf in renewed else rows.input_of(leaf)
        if tensor is not None:
            renewed[leaf] = tensor
    for leaf in leaves(outputs):
        if leaf not in renewed and not _is_constant(leaf) and value_of(leaf) is not None:
            renewed[leaf] = _frozen(leaf, rows)
    for node in toposort([], outputs):
        _renew(node, renewed, rows)
    return [renewed.get(output, output) for output in outputs]


def import_dispatch() -> Any:
    """PyTensor's translation to JAX, and the user's JAX as it was: importing the first switches
    float64 on for everybody, which is not ours to decide."""
    jax: Any = importlib.import_module("jax")
    flag = bool(jax.config.jax_enable_x64)
    dispatch = importlib.import_module("pytensor.link.jax.dispatch")
    jax.config.update("jax_enable_x64", flag)
    return dispatch


def to_jax(inputs: Sequence[Any], outputs: Sequence[Any]) -> Any:
    """The graphs as one function of JAX arrays that returns a tuple, PyTensor's algebra applied."""
    jax: Any = importlib.import_module("jax")
    dispatch: Any = importlib.import_module("pytensor.link.jax.dispatch")
    graphs: Any = importlib.import_module("pytensor.graph.fg")
    modes: Any = importlib.import_module("pytensor.compile.mode")
    graph = graphs.FunctionGraph(inputs=list(inputs), outputs=list(outputs), clone=True)
    with warnings.catch_warnings():
        # C code would miss a BLAS; there is none here.
        warnings.filterwarnings("ignore", message="PyTensor could not link to a BLAS")
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
    elif kind == "ARange":
        stop = value_of(node.inputs[1])
        if stop is not None and stop.ndim == 0 and int(stop) == rows.num_rows:
            inputs[1] = rows.length


def _is_constant(leaf: Any) -> bool:
    constant: Any = importlib.import_module("pytensor.graph.basic").Constant
    return isinstance(leaf, constant)


def _frozen(leaf: Any, rows: RowInputs) -> Any:
    """A shared variable as the number it holds now; as the number of rows, if it is a length."""
    tensor: Any = importlib.import_module("pytensor.tensor")
    values = np.asarray(value_of(leaf))
    if values.ndim == 0 and values.dtype.kind in "iu" and values == rows.num_rows and rows.inputs:
        return rows.length
    return tensor.constant(values, dtype=leaf.type.dtype)
