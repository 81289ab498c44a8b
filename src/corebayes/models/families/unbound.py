"""The methods of a model that a family has before it knows its rows."""

from __future__ import annotations

from typing import Any, NoReturn

from corebayes.types import Array, Block


class Unbound:
    """A model by its methods, which all say that `bind` comes first."""

    def _no_rows(self) -> NoReturn:
        raise ValueError(
            f"{type(self).__name__} does not know its data yet: call model.bind(data), which gives "
            "the regression of all coefficients and unknown constants"
        )

    def potentials(self, draws: Array, block: Block, out: Array | None = None) -> Array:
        self._no_rows()

    def sum_potentials(self, draws: Array, block: Block, weights: Array | None = None) -> Array:
        self._no_rows()

    def gradient(self, theta: Array, block: Block, weights: Array) -> Array:
        self._no_rows()

    def gradient_and_hessian(self, theta: Array, block: Block, weights: Array) -> Any:
        self._no_rows()

    def log_base(self, block: Block) -> Array:
        self._no_rows()
