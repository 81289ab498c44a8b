"""Families: the density of y given k predictors of its row, each a linear function of θ.

    f_n(θ) = ℓ(η_n, u; row_n),   η_n = x_nᵀβ + offset_n,   u = the family's constants

The first predictors have all columns of X (one for most families, K − 1 for K categories); the
others are constants that the rows share, each on the whole line (a logarithm, log odds, or as it
is). Constants that are given a number are known; the others are parameters like β. This family is
complete:

    @dataclass(frozen=True, kw_only=True, eq=False)
    class LogisticNoiseRegression(Family):
        '''y = η + width·z, z logistic: ℓ = −log width + z − 2 log(1 + eᶻ).'''

        command_line = {"logistic-noise": {}}

        width: float | None = None

        @property
        def learnable(self):
            return (Constant("width", HalfStudentT(4.0, 1.0)),)

        def log_likelihood(self, at, row):
            eta, u = at
            z = (row["y"] - eta) * np.exp(-u)
            return z - u - 2.0 * np.logaddexp(0.0, z)

        def jet(self, at, row, order=2):
            eta, u = at
            inverse = np.exp(-u)
            z = (row["y"] - eta) * inverse
            slope, bend = -np.tanh(0.5 * z), -0.5 / np.cosh(0.5 * z) ** 2
            second = (
                (bend * inverse**2,),
                ((slope + z * bend) * inverse, z * (slope + z * bend)),
            )
            return Jet(self.log_likelihood(at, row), (-slope * inverse, -1.0 - z * slope), second)

        def check_target(self, y, lowest):
            return ~np.isfinite(y), "targets must be finite numbers"
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from corebayes.models.base import NormalPriorModel
from corebayes.models.compiled.jit import Kernels
from corebayes.models.families.constant import Constant as Constant
from corebayes.models.families.constant import Transform
from corebayes.models.families.unbound import Unbound
from corebayes.models.priors.learned import constants_given
from corebayes.models.priors.table import statement
from corebayes.models.special import log_mean, log_odds
from corebayes.models.variables import Scale, Variable
from corebayes.types import Array, Block, Data

Row = Mapping[str, Array]
"""What a family sees of rows beside the predictors: "y" and the columns of `row_columns`."""
Column = str | int
"""A column of X by name, or by position where columns have no names."""

BadEntries = tuple[str, NDArray[np.bool_], str]
"""A column of `row_columns`, which of its entries are impossible, and what they must be."""

SHOWN: dict[Transform, Scale] = {"log": "exp", "logit": "expit", "identity": "as it is"}


class Jet(NamedTuple):
    """ℓ and its derivatives in all predictors, arrays that broadcast with these."""

    value: Array
    first: tuple[Array, ...]
    second: tuple[tuple[Array, ...], ...] = ()
    """The lower triangle: entry (i, j) with j ≤ i."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Family(Unbound, NormalPriorModel):
    """A regression known by the density of y given its predictors.

    `intercept` appends a column of ones to X, as the last coefficient. `offset` names a column of
    X that is added to η with no coefficient (for arrays without names: its position).
    """

    made_by: ClassVar[Callable[..., Any] | None] = None
    """What makes a model of a family: `MixedRegression` says so when it is imported, since it is
    made of families and not the other way round."""

    mean_link: ClassVar[Literal["log", "logit", ""]] = ""
    """Of the mean of y, about: where the default prior of an intercept has its middle."""

    log_concave = True
    """Whether ℓ is concave in all predictors; a family that is not says so."""
    location_family = False
    """Whether ℓ depends on y − η alone; then targets are real numbers and can be learned."""
    measured = False
    """Whether targets are real numbers, and not labels or counts."""
    of_labels = False
    """Whether targets are yes and no."""
    has_cutpoints = False
    """Whether cutpoints are its intercepts, so that η has none."""
    of_trials: ClassVar[Callable[..., Any] | None] = None
    """What makes the family of successes of trials, where this one is of single ones."""
    stan_line: ClassVar[str | None] = None
    """The log density of row i in Stan, a function of y[i], eta[i] and the constants."""

    intercept: bool = False
    offset: Column | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        for one in self.learnable:
            one.check(getattr(self, one.name, None))

    # What a family says of itself.

    @property
    def learnable(self) -> tuple[Constant, ...]:
        """The constants, in the order of the predictors that come after the linear ones."""
        return ()

    def may_learn(self, name: str) -> bool:
        """Whether there may be a constant of this name once the rows are known."""
        return False

    @property
    def linear(self) -> tuple[str, ...]:
        """What the predictors that have all columns are called; one without a name by default."""
        return ("",)

    @property
    def row_columns(self) -> dict[str, Column]:
        """Columns of X that are no features, by what they mean: offset, exposure, trials, event."""
        names = ("offset", "exposure", "trials", "event")
        found = {name: getattr(self, name, None) for name in names}
        return {name: column for name, column in found.items() if column is not None}

    @abstractmethod
    def log_likelihood(self, at: Sequence[Array], row: Row) -> Array:
        """ℓ at all predictors (linear ones, then constants), without terms free of all of them."""

    @abstractmethod
    def jet(self, at: Sequence[Array], row: Row, order: int = 2) -> Jet:
        """The same with its first `order` derivatives."""

    def slopes(self, at: Sequence[Array], row: Row) -> tuple[Array, Array]:
        """∂ and ∂² in the first predictor alone, where these are all that is asked for."""
        jet = self.jet(at, row)
        return jet.first[0], jet.second[0][0]

    @property
    def jet_kernels(self) -> Kernels:
        """The compiled form of `jet` to first order, where there is one, then the functions of
        kernels that it calls: NUTS of mixed models then runs without Python."""
        return ()

    def compiled_row(self, row: Row) -> Array:
        """What the compiled form sees of rows beside their predictors, (columns, n)."""
        return row["y"][None]

    def row_base(self, row: Row) -> Array:
        """The terms free of all predictors that these leave out."""
        return np.zeros_like(row["y"])

    def mean(self, at: Sequence[Array], row: Row) -> Array:
        """E y given all predictors; for categories P(y = k), along a last axis."""
        raise NotImplementedError

    def draw(self, rng: np.random.Generator, at: Sequence[Array], row: Row) -> Array:
        """y given all predictors, one for each place where they broadcast to."""
        raise NotImplementedError

    @abstractmethod
    def check_target(self, y: Array, lowest: float) -> tuple[NDArray[np.bool_], str]:
        """Which targets the family has no density for, and what they must be.

        `lowest` is the smallest target of all earlier rows, infinite at the first.
        """

    def check_row(self, row: Row) -> list[BadEntries]:
        """What is wrong with the columns of `row_columns`."""
        if "exposure" not in row:
            return []
        bad = ~((row["exposure"] > 0.0) & np.isfinite(row["exposure"]))
        return [("exposure", bad, "an exposure must be positive")]

    def survey(self, row: Row) -> Array:
        """Numbers of which the different ones of all rows are collected, for `settled`."""
        return np.empty(0)

    def settled(self, values: Array) -> Self:
        """The family once the different values of `survey` are known."""
        return self

    def level(self, row: Row) -> Array:
        """What `predictor_of_mean` gets the mean of: the targets, or shares of trials."""
        return row["y"]

    def predictor_of_mean(self, mean: float, count: float) -> float:
        """The η that goes with a mean of `level`, of `count` rows; finite for any mean."""
        if self.mean_link == "log":
            return log_mean(mean, count)
        if self.mean_link == "logit":
            return log_odds(mean, count)
        return mean if self.location_family else 0.0

    # In other libraries.

    def in_arrays(self, xp: Any, eta: Any, row: Row) -> Any:
        """The log density with the functions of another library's arrays, up to a constant; `eta`
        is a list where there are several linear predictors, and learned constants are symbols."""
        raise NotImplementedError

    @property
    def stan(self) -> str | None:
        """`stan_line`, where it does not depend on how the family was made."""
        return self.stan_line

    def in_numpyro(self, numpyro: Any, jax: Any, eta: Any) -> Any:
        """The distribution of y in NumPyro."""
        raise NotImplementedError

    def in_pymc(self, pymc: Any, eta: Any) -> Any:
        """The distribution of y in PyMC."""
        raise NotImplementedError

    @property
    def has_distribution(self) -> bool:
        """Whether other libraries have a distribution of y, or else `in_arrays` only."""
        return type(self).in_numpyro is not Family.in_numpyro

    def exported_target(self, block: Block) -> NDArray[Any]:
        """y as other libraries take it: labels and counts are whole numbers."""
        return block.y if self.measured or self.location_family else block.y.astype(np.int64)

    @property
    def written(self) -> str:
        """The distribution of y as people write it, with constants by name in braces."""
        constants = "".join(f", {{{one.name}}}" for one in self.learnable)
        inside = {"log": "exp(η)", "logit": "1 / (1 + exp(-η))"}.get(self.mean_link, "η")
        return f"{type(self).__name__.removesuffix('Regression')}({inside}{constants})"

    @property
    def likelihood(self) -> str:
        known = {name: f"{value:g}" for name, value in self.constants.items()}
        unknown = {one.name: one.name for one in self.learnable if one.name not in known}
        return self.written.format(**known, **unknown)

    def statement(self) -> str:
        target, names = self._bound().target, self.parameter_names
        return statement(target, self.likelihood, names, self.priors())

    # What follows.

    @property
    def constants(self) -> dict[str, float]:
        """The known constants, under the names of `stan`, in the order of the kernel."""
        return {one.name: value for one in self.learnable if (value := self.known(one)) is not None}

    def known(self, constant: Constant) -> float | None:
        """Its value; None where it is to be learned."""
        value = getattr(self, constant.name, None)
        return None if value is None else float(value)

    @property
    def several(self) -> bool:
        """Whether `bind` makes a model of several predictors, or of more columns than features."""
        return True

    @property
    def unknown(self) -> tuple[Constant, ...]:
        named = constants_given(self.prior, self.learnable)
        return tuple(one for one in self.learnable if self.known(one) is None or one.name in named)

    def shown(self, learned: Sequence[Constant], start: int) -> list[Variable]:
        """What people see of learned constants whose u are at θ[start], θ[start + 1], …"""
        return [
            Variable(one.name, np.array(place), SHOWN[one.transform])
            for place, one in enumerate(learned, start)
        ]

    @property
    def stan_transformed(self) -> list[str]:
        """What Stan makes of the constants before they stand in `stan`."""
        return []

    def shown_axes(self) -> dict[str, tuple[Any, ...]]:
        """The labels along the axes of what `shown` gives."""
        return {}

    # For the check of all rows: see `design.Regression`.

    @property
    def kind(self) -> str:
        """What messages call it."""
        return type(self).__name__

    def check_columns(self, block: Block) -> list[tuple[str, Array, NDArray[np.bool_], str]]:
        """Of columns beside features and target: name, entries, which are bad, and the rule."""
        return []

    def survey_of(self, block: Block) -> Array:
        return self.survey({"y": block.y[:, None]}).ravel()

    def bind(self, data: Data) -> Any:
        """The regression for these rows: a model of all coefficients and unknown constants."""
        assert Family.made_by is not None
        return Family.made_by(family=self).bind(data)
