"""What a model taken from another library has in common with all the others of its kind.

Its parameters θ are the library's unconstrained ones, laid end to end, so that the prior
includes the Jacobians: log π_0(θ) + Σ_n f_n(θ) is the library's own log density. `constrain`
maps draws of θ back to the names, shapes and ranges of the model as it was written.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from corebayes.data.arrays import ArrayData
from corebayes.files.markup import model_html
from corebayes.models.structure import Structure
from corebayes.rows import Rows, open_rows
from corebayes.types import Array, Block, Data

# Rows of one call to a kernel; more are taken in parts, so that the shapes stay few.
MOST_ROWS = 512
# Blocks whose parts are kept: about as many as threads of a pass.
KEPT_BLOCKS = 4


class RowField(NamedTuple):
    """One array with an entry for each row: its name, type, and the shape of a row's entry."""

    name: str
    dtype: np.dtype[Any]
    shape: tuple[int, ...]


class Parameter(NamedTuple):
    """One latent variable: its name, what its unconstrained form is called, and its shape."""

    name: str
    unconstrained: str
    shape: tuple[int, ...]

    @property
    def size(self) -> int:
        return int(np.prod(self.shape, dtype=np.int64))

    def entries(self, labels: Sequence[Sequence[Any] | None] = ()) -> list[str]:
        """beta[0], beta[1], … or beta[age], beta[height], … ; the bare name of a scalar."""
        if self.shape == ():
            return [self.unconstrained]
        axes: list[Sequence[Any]] = [range(length) for length in self.shape]
        # A transform such as a simplex's has an axis of another length.
        if [len(axis) if axis else 0 for axis in labels] == list(self.shape):
            axes = [axis for axis in labels if axis]
        return [f"{self.unconstrained}[{','.join(map(str, place))}]" for place in product(*axes)]


class Terms(NamedTuple):
    """The log density at one θ, site by site: numbers that no row changes, and one per row."""

    prior: dict[str, float]
    rows: dict[str, Array]


class RowPart(NamedTuple):
    """Some rows of a block in the form the library takes: `rows` says which, `size` how many
    entries they were padded to."""

    rows: slice
    size: int
    arrays: Any


class Answer(NamedTuple):
    """A value and its gradient, remembered with what was asked."""

    question: tuple[Any, ...]
    value: float
    gradient: Array


class AdaptedModel(ABC):
    """A `Model` whose mathematics is another library's.

    A library gives the kernels (the abstract methods below, for one part of the rows and already
    compiled); taking parts, adding up and remembering the last answer is done here. A sampler asks
    for the value and then for the gradient at the same θ: both are computed at the first question.
    """

    library: str

    # What is remembered is swapped as a whole, so that any thread may use it. It is not kept by
    # thread: a sampler that is not written in Python calls from what looks like another each time.
    _kept: tuple[tuple[Block, list[RowPart]], ...] = ()
    _answer: Answer | None = None
    _prior_answer: Answer | None = None

    def __init__(self, fields: Sequence[RowField], parameters: Sequence[Parameter]):
        self.fields = tuple(fields)
        self.parameters = tuple(parameters)
        self.dim = sum(parameter.size for parameter in self.parameters)

    def __getstate__(self) -> dict[str, Any]:
        # What is compiled or remembered begins with an underscore, and is made again elsewhere.
        return {name: value for name, value in vars(self).items() if not name.startswith("_")}

    def __repr__(self) -> str:
        names = ", ".join(parameter.name for parameter in self.parameters)
        structure: Structure | None = getattr(self, "structure", None)
        found = f"{self.dim:,} unconstrained parameters"
        found = found if structure is None else structure.describe()
        return f"{type(self).__name__}({names}; {found})"

    def _repr_html_(self) -> str:
        return model_html(self)

    @property
    def parameter_names(self) -> tuple[str, ...]:
        """The names of the unconstrained parameters, by the labels of their axes where the axes
        have some."""
        dims, coords = self.dims, self.coords
        return tuple(
            entry
            for parameter in self.parameters
            for entry in parameter.entries([coords.get(d) for d in dims.get(parameter.name, ())])
        )

    @property
    def log_concave(self) -> bool:
        """Nothing is known of the shape, so other modes are always looked for."""
        return False

    @property
    def dims(self) -> Mapping[str, tuple[str, ...]]:
        """Names of the axes of variables, where the model has given them some."""
        return {}

    @property
    def coords(self) -> Mapping[str, Sequence[Any]]:
        """Labels along the named axes."""
        return {}

    def bind(self, data: Data) -> Self:
        """This model, if the rows have the arrays it was made with."""
        first = data.template
        for field in self.fields:
            values = first.fields.get(field.name)
            if values is None or values.shape[1:] != field.shape:
                found = "missing" if values is None else f"of shape {values.shape[1:]} in a row"
                raise ValueError(
                    f"the {self.library} model takes {field.name!r} with the shape {field.shape} "
                    f"in a row, which in this data is {found}: pass the data that came with it"
                )
        return self

    def split(self, theta: Any) -> dict[str, Any]:
        """Unconstrained values by the name of their variable."""
        values: dict[str, Any] = {}
        start = 0
        for parameter in self.parameters:
            values[parameter.name] = theta[start : start + parameter.size].reshape(parameter.shape)
            start += parameter.size
        return values

    def potentials(self, draws: Array, block: Block, out: Array | None = None) -> Array:
        out = np.empty((len(block), len(draws))) if out is None else out
        for part in self._parts(block):
            out[part.rows] = self.part_potentials(draws, part)
        return out

    def sum_potentials(self, draws: Array, block: Block, weights: Array | None = None) -> Array:
        weights = np.ones(len(block)) if weights is None else weights
        if len(draws) == 1:
            return np.array([self._value_gradient(draws[0], block, weights)[0]])
        total = np.zeros(len(draws))
        for part in self._parts(block):
            total += self.part_sums(draws, part, weights[part.rows])
        return total

    def gradient(self, theta: Array, block: Block, weights: Array) -> Array:
        return self._value_gradient(theta, block, weights)[1].copy()

    def gradient_and_hessian(
        self, theta: Array, block: Block, weights: Array
    ) -> tuple[Array, Array]:
        gradient, hessian = np.zeros(self.dim), np.zeros((self.dim, self.dim))
        for part in self._parts(block):
            first, second = self.part_gradient_and_hessian(theta, part, weights[part.rows])
            gradient += first
            hessian += second
        return gradient, hessian

    def log_base(self, block: Block) -> Array:
        return np.zeros(len(block))

    def log_prior(self, draws: Array) -> Array:
        if len(draws) == 1:
            return np.array([self._prior_value_gradient(draws[0])[0]])
        return self.prior_values(draws)

    def log_prior_gradient(self, theta: Array) -> Array:
        return self._prior_value_gradient(theta)[1].copy()

    @abstractmethod
    def log_prior_hessian(self, theta: Array) -> Array: ...

    @abstractmethod
    def constrain(self, draws: Array) -> dict[str, Array]:
        """Draws (S, d) as the model's own variables, each (S, …), with what derives from them."""

    @abstractmethod
    def terms(self, theta: Array, block: Block) -> Terms:
        """The log density at one θ, site by site."""

    @abstractmethod
    def part(self, block: Block, rows: slice) -> RowPart:
        """Some rows in the library's own form."""

    @abstractmethod
    def part_potentials(self, draws: Array, part: RowPart) -> Array:
        """f_n(θ_s), (n, S)."""

    @abstractmethod
    def part_sums(self, draws: Array, part: RowPart, weights: Array) -> Array:
        """Σ_n w_n f_n(θ_s), (S,)."""

    @abstractmethod
    def part_value_gradient(
        self, theta: Array, part: RowPart, weights: Array
    ) -> tuple[float, Array]:
        """Σ_n w_n f_n(θ) and its gradient."""

    @abstractmethod
    def part_gradient_and_hessian(
        self, theta: Array, part: RowPart, weights: Array
    ) -> tuple[Array, Array]:
        """Gradient and Hessian of Σ_n w_n f_n(θ)."""

    @abstractmethod
    def prior_values(self, draws: Array) -> Array:
        """log π_0(θ_s), (S,)."""

    @abstractmethod
    def prior_value_gradient(self, theta: Array) -> tuple[float, Array]:
        """log π_0(θ) and its gradient."""

    def _parts(self, block: Block) -> list[RowPart]:
        """The rows in parts; those of the last blocks asked for are kept, since a sampler asks for
        the same thousands of times."""
        for known, parts in self._kept:
            if known is block:
                return parts
        starts = range(0, len(block), MOST_ROWS)
        parts = [self.part(block, slice(k, min(k + MOST_ROWS, len(block)))) for k in starts]
        self._kept = ((block, parts), *self._kept[: KEPT_BLOCKS - 1])
        return parts

    def _value_gradient(self, theta: Array, block: Block, weights: Array) -> tuple[float, Array]:
        question = block, theta.tobytes(), weights.tobytes()
        last = self._answer
        if last is not None and last.question[0] is block and last.question[1:] == question[1:]:
            return last.value, last.gradient
        value, gradient = 0.0, np.zeros(self.dim)
        for part in self._parts(block):
            more, slope = self.part_value_gradient(theta, part, weights[part.rows])
            value += more
            gradient += slope
        self._answer = Answer(question, value, gradient)
        return value, gradient

    def _prior_value_gradient(self, theta: Array) -> tuple[float, Array]:
        last = self._prior_answer
        if last is None or last.question != (theta.tobytes(),):
            last = self._prior_answer = Answer(
                (theta.tobytes(),), *self.prior_value_gradient(theta)
            )
        return last.value, last.gradient


def as_rows(arrays: Mapping[str, NDArray[Any]], column_names: Sequence[str] = ()) -> Rows:
    """The rows of an adapted model, checked; every shape stays as it is."""
    return open_rows(ArrayData(fields=dict(arrays), column_names=tuple(column_names))).check()


def fields_of(arrays: Mapping[str, NDArray[Any]]) -> tuple[RowField, ...]:
    """Names, types and shapes of the arrays of a row."""
    return tuple(RowField(name, a.dtype, a.shape[1:]) for name, a in arrays.items())
