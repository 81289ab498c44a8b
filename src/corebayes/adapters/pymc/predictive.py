"""New observations of a PyMC model: its observed variable drawn from its own graph, for any rows.

The free variables become inputs, the data in the graph too, and the random variable stays what it
is, so that PyTensor draws it as PyMC itself would.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from corebayes.adapters.pymc.adapter import PymcModel
from corebayes.adapters.pymc.graph import rebuild
from corebayes.types import Array, Block, Rng

Drawn = Callable[[Rng, Mapping[str, Array], Block], tuple[Array, Array]]


def compile_draws(model: PymcModel) -> Drawn:
    """A function of a generator, draws of the free variables (S, …) and rows: means and draws of
    the observed variable, each (n, S). Where PyTensor knows no mean, the draws stand for it."""
    pytensor: Any = importlib.import_module("pytensor")
    own = model.model
    observed = [rv for rv in own.observed_RVs if rv.name in model.likelihood_names]
    if len(observed) != 1:
        names = ", ".join(rv.name for rv in own.observed_RVs)
        raise TypeError(f"predict is for models with one observed variable, not {names}")
    free = {rv: rv.type() for rv in own.free_RVs}
    variable = _follow_rows(rebuild(observed, free, model.row_inputs)[0])
    outputs = [variable, _mean(variable)]
    inputs = [*free.values(), *(model.row_inputs.inputs[field.name] for field in model.fields)]
    # Every call leaves the random states where the next begins.
    generators = _next_states(outputs)
    function = pytensor.function(
        inputs, outputs, mode="FAST_COMPILE", on_unused_input="ignore", updates=generators
    )

    def drawn(rng: Rng, values: Mapping[str, Array], block: Block) -> tuple[Array, Array]:
        for generator in generators:
            generator.set_value(rng.spawn(1)[0], borrow=True)
        rows = [block[field.name].astype(field.dtype) for field in model.fields]
        number = len(next(iter(values.values())))
        means, draws = np.empty((2, len(block), number))
        for s in range(number):
            one = [np.asarray(values[rv.name][s], dtype=rv.type.dtype) for rv in own.free_RVs]
            draws[:, s], means[:, s] = function(*one, *rows)
        return means, draws

    return drawn


def _follow_rows(variable: Any) -> Any:
    """The random variable with the size that its parameters have."""
    node = variable.owner
    op, inputs = node.op, list(node.inputs)
    if not hasattr(op, "rng_param"):
        return variable
    none: Any = importlib.import_module("pytensor.tensor.type_other").NoneConst
    inputs[1] = none.clone() if hasattr(none, "clone") else none
    return op.make_node(*inputs).outputs[1]


def _mean(variable: Any) -> Any:
    try:
        moments: Any = importlib.import_module("pymc.distributions.moments")
        return moments.mean(variable)
    except (NotImplementedError, ImportError, AttributeError, TypeError):
        return variable


def _next_states(outputs: list[Any]) -> dict[Any, Any]:
    """The shared random states of a graph, each with the state after its variable was drawn."""
    ancestors: Any = importlib.import_module("pytensor.graph.traversal").ancestors
    nodes = {v.owner for v in ancestors(outputs) if v.owner is not None}
    random = [node for node in nodes if hasattr(node.op, "rng_param")]
    return {node.op.rng_param(node): node.outputs[0] for node in random}
