"""The columns of a mixed model: which are fixed effects, which say the group, which have slopes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from corebayes.files.markup import model_html
from corebayes.models.families.family import Column, Constant, Family, Row
from corebayes.models.mixed.groups import ONE, GroupTerm, group_numbers
from corebayes.models.mixed.statement import described, mixed_priors, mixed_statement
from corebayes.models.priors.given import Given
from corebayes.models.priors.learned import given_learned, learned_priors
from corebayes.models.priors.normal import GaussianPrior
from corebayes.models.priors.scale import ScalePrior
from corebayes.models.priors.shrinkage import HorseshoePrior, horseshoe_names, horseshoe_priors
from corebayes.models.priors.stated import PartialGaussian, StatedPriors
from corebayes.models.structure import Effects, Structure, Touch
from corebayes.models.variables import Variables
from corebayes.types import Array, Block, Indices


class BoundMixed(NamedTuple):
    """What the model learns from its data."""

    columns: tuple[str, ...]
    """Names of the columns of X."""
    values: tuple[Array, ...]
    """The numbers of the groups of each term, sorted."""
    prior: GaussianPrior | PartialGaussian
    """Of the fixed effects, as far as it is Gaussian."""
    stated: StatedPriors | None = None
    """The prior of each of them by name, where it is not one Normal for all."""
    learned: tuple[Learned, ...] = ()
    """The priors of the constants that are learned."""
    given: Given = None
    """The family's `prior` that this was made of: with another one it does not count."""
    target: str = "y"
    """What y is called in the data."""


class Learned(NamedTuple):
    """The prior of one constant."""

    name: str
    prior: ScalePrior
    source: str
    """default or given."""


class TermEffect(NamedTuple):
    """One effect of a group term in one linear predictor."""

    name: str
    """A column of X, or "1"."""
    predictor: int
    called: str
    prior: ScalePrior
    """Of its standard deviation."""


def column_name(column: Column, columns: tuple[str, ...]) -> str:
    """The name of a column that is given by name or by position."""
    if isinstance(column, str):
        if column not in columns:
            raise ValueError(
                f"the data has no column {column!r}, which the model needs for its rows; it has "
                f"{', '.join(map(repr, columns[:10]))}"
            )
        return column
    if not -len(columns) <= column < len(columns):
        raise ValueError(f"the data has {len(columns):,} columns, and none at position {column}")
    return columns[column]


@dataclass(frozen=True, kw_only=True, eq=False)
class MixedDesign:
    """What a mixed model is made of, and what its rows touch; see `MixedRegression`."""

    family: Family
    terms: Sequence[GroupTerm] = ()
    learned: Mapping[str, ScalePrior] | ScalePrior | None = None
    slopes_only: Sequence[str] = ()
    shown: Variables | None = None
    """Other names for the variables that people see than those of the terms."""
    bound: BoundMixed | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.family, Family):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError(
                f"family must be a regression such as LogisticRegression(), got {self.family!r}"
            )
        terms = (self.terms,) if isinstance(self.terms, GroupTerm) else tuple(self.terms)
        for term in terms:
            if not isinstance(term, GroupTerm):  # pyright: ignore[reportUnnecessaryIsInstance]
                raise TypeError(f"terms must be GroupTerm objects, got {term!r}")
        called = [term.called(effect) for term in terms for effect in term.effects]
        if len(set(called)) < len(called):
            raise ValueError(f"an effect is in two group terms: {', '.join(sorted(called))}")
        object.__setattr__(self, "learned", given_learned(self.family, self.learned))
        object.__setattr__(self, "terms", terms)
        object.__setattr__(self, "slopes_only", tuple(self.slopes_only))

    def __repr__(self) -> str:
        return described(self)

    @property
    def title(self) -> str:
        """What people call the model: without group terms it is its family."""
        return "MixedRegression" if self.terms else type(self.family).__name__

    def statement(self) -> str:
        """The bound model as one would write it: the likelihood, and a table of priors."""
        return mixed_statement(self)

    def priors(self) -> list[tuple[str, str, str]]:
        """Parameter, prior, and from where it is."""
        return mixed_priors(self)

    def _repr_html_(self) -> str:
        return model_html(self)

    @property
    def known(self) -> BoundMixed:
        """What was learned from the data, or an error that says how."""
        if self.bound is None:
            raise ValueError("a mixed model does not know its data yet: call model.bind(data)")
        return self.bound

    @cached_property
    def constants(self) -> tuple[Constant, ...]:
        """The family's constants that are learned, with the priors that they have here."""
        priors = learned_priors(self.family, self.learned)
        if self.bound is not None:
            priors |= {one.name: one.prior for one in self.bound.learned}
        return tuple(
            one._replace(prior=priors[one.name])
            for one in self.family.learnable
            if one.name in priors
        )

    @cached_property
    def known_constants(self) -> dict[int, Array]:
        """u of the constants that are known, by their number among the family's."""
        learned = {one.name for one in self.constants}
        return {
            number: np.full((1, 1), one.on_line(value))
            for number, one in enumerate(self.family.learnable)
            if one.name not in learned and (value := self.family.known(one)) is not None
        }

    def slopes(self) -> list[str]:
        """Columns that effects are multiplied with."""
        return [name for term in self.terms for name in term.effects if name != ONE]

    def fixed_places(self, columns: tuple[str, ...]) -> list[int]:
        """Where the fixed effects are among these columns."""
        apart = {*self.slopes_only, *(term.group for term in self.terms)}
        apart |= {column_name(column, columns) for column in self.family.row_columns.values()}
        return [place for place, name in enumerate(columns) if name not in apart]

    @property
    def column_names(self) -> tuple[str, ...]:
        """Of X."""
        return self.known.columns

    @cached_property
    def fixed_columns(self) -> Indices:
        return np.array(self.fixed_places(self.known.columns), dtype=np.int64)

    @property
    def num_fixed(self) -> int:
        """Coefficients of all linear predictors: θ begins with those of the first."""
        return self.known.prior.dim

    @property
    def num_columns(self) -> int:
        """Of the design of each linear predictor."""
        return self.num_fixed // len(self.family.linear)

    def coefficients(self, number: int) -> slice:
        """Where those of a linear predictor are in θ."""
        return slice(number * self.num_columns, (number + 1) * self.num_columns)

    @property
    def fixed_prior(self) -> GaussianPrior | PartialGaussian:
        """Of the fixed effects."""
        return self.known.prior

    @property
    def num_predictors(self) -> int:
        return len(self.family.linear) + len(self.constants)

    @cached_property
    def structure(self) -> Structure:
        num_shared = self.num_fixed + len(self.constants)
        num_scales = sum(len(self.effects_of(term)) for term in self.terms)
        num_scales += 2 * len(self.horseshoes)
        start, terms = num_shared + num_scales, list[Effects]()
        for term, values in zip(self.terms, self.known.values, strict=True):
            terms.append(Effects(term.group, start, values.size, len(self.effects_of(term))))
            start += terms[-1].size
        scales = np.arange(num_shared, num_shared + num_scales)
        return Structure(np.arange(num_shared), scales, tuple(terms))

    @cached_property
    def horseshoes(self) -> tuple[HorseshoePrior, ...]:
        """Of coefficients; their τ and c are the last of the scales."""
        stated = self.known.stated
        if stated is None:
            return ()
        of_terms = sum(len(self.effects_of(term)) for term in self.terms)
        return horseshoe_priors(stated.shares, self.num_fixed + len(self.constants) + of_terms)

    @property
    def horseshoe_names(self) -> list[str]:
        return horseshoe_names(len(self.horseshoes))

    @property
    def dim(self) -> int:
        shared, scales, terms, _ = self.structure
        return shared.size + scales.size + sum(term.size for term in terms)

    @property
    def parameter_names(self) -> tuple[str, ...]:
        return self._names

    @cached_property
    def _names(self) -> tuple[str, ...]:
        names = [*self.fixed_names, *(one.label for one in self.constants)]
        for term in self.terms:
            names.extend(f"log {effect.called}_sigma" for effect in self.effects_of(term))
        names.extend(f"log {name}" for name in self.horseshoe_names)
        for term, labels in zip(self.terms, self.group_labels, strict=True):
            effects = self.effects_of(term)
            names.extend(f"{effect.called}[{label}]" for label in labels for effect in effects)
        return tuple(names)

    @property
    def design_names(self) -> tuple[str, ...]:
        """Of the columns that every linear predictor has."""
        columns = self.known.columns
        names = tuple(columns[place] for place in self.fixed_places(columns))
        return (*names, "intercept") if self.family.intercept else names

    @property
    def fixed_names(self) -> tuple[str, ...]:
        return tuple(
            f"{name}[{predictor}]" if predictor else name
            for predictor in self.family.linear
            for name in self.design_names
        )

    def effects_of(self, term: GroupTerm) -> list[TermEffect]:
        """The effects of a term: its own in each of the linear predictors."""
        return [
            TermEffect(effect, number, term.called(effect) + (f"[{name}]" if name else ""), prior)
            for number, name in enumerate(self.family.linear)
            for effect, prior in zip(term.effects, term.scales, strict=True)
        ]

    @property
    def group_labels(self) -> tuple[tuple[Any, ...], ...]:
        """What the groups of each term are called."""
        return tuple(
            tuple(int(value) for value in values) if term.labels is None else tuple(term.labels)
            for term, values in zip(self.terms, self.known.values, strict=True)
        )

    def fixed_design(self, block: Block) -> Array:
        """The columns of the fixed effects, (n, p)."""
        X = block.X[:, self.fixed_columns]
        return np.column_stack([X, np.ones(len(X))]) if self.family.intercept else X

    def groups(self, block: Block) -> Indices:
        """(n, terms)."""
        bound = self.known
        numbers = np.empty((len(block), len(self.terms)), dtype=np.int64)
        for place, (term, values) in enumerate(zip(self.terms, bound.values, strict=True)):
            codes = block.X[:, bound.columns.index(term.group)]
            numbers[:, place] = group_numbers(codes, values, term.group)
        return numbers

    def row(self, block: Block) -> Row:
        """What the family sees of rows beside their predictors, (n, 1) each."""
        columns = {name: block.X[:, place, None] for name, place in self.row_places.items()}
        # Rows that are to be predicted have no target.
        targets = {"y": block.y[:, None]} if "y" in block.fields else {}
        return {**targets, **columns}

    @cached_property
    def row_names(self) -> dict[str, str]:
        """The columns of `family.row_columns` by name."""
        named, columns = self.family.row_columns, self.known.columns
        return {name: column_name(column, columns) for name, column in named.items()}

    @cached_property
    def row_places(self) -> dict[str, int]:
        return {name: self.known.columns.index(one) for name, one in self.row_names.items()}

    def offset(self, block: Block) -> Array | None:
        """What is added to η with no coefficient, (n,): the offset, and the log of the exposure."""
        places, total = self.row_places, None
        if "offset" in places:
            total = block.X[:, places["offset"]]
        if "exposure" in places:
            # Rows that cannot be are named by the check, which may come after a look at them.
            with np.errstate(divide="ignore", invalid="ignore"):
                logs = np.log(block.X[:, places["exposure"]])
            total = logs if total is None else total + logs
        return total

    def effect_columns(self, block: Block) -> list[Array]:
        """What the effects of each term are multiplied with, (n, effects)."""
        columns, one = self.known.columns, np.ones(len(block))
        return [
            np.column_stack(
                [
                    one if effect.name == ONE else block.X[:, columns.index(effect.name)]
                    for effect in self.effects_of(term)
                ]
            )
            for term in self.terms
        ]

    def touch(self, block: Block) -> Touch:
        fixed, effects = self.fixed_design(block), self.effect_columns(block)
        linear, p = len(self.family.linear), self.structure.shared.size
        width = p + sum(part.shape[1] for part in effects)
        designs = np.zeros((len(block), self.num_predictors, width))
        for number in range(linear):
            designs[:, number, self.coefficients(number)] = fixed
        for number in range(len(self.constants)):
            designs[:, linear + number, self.num_fixed + number] = 1.0
        start = p
        for term, part in zip(self.terms, effects, strict=True):
            for place, effect in enumerate(self.effects_of(term)):
                designs[:, effect.predictor, start + place] = part[:, place]
            start += part.shape[1]
        return Touch(designs, self.groups(block))

    def places(self, groups: Indices) -> Indices:
        """Positions in θ of the parameters that each row touches, (n, m)."""
        shared = np.broadcast_to(self.structure.shared, (len(groups), self.structure.shared.size))
        own = [term.positions[groups[:, place]] for place, term in enumerate(self.structure.terms)]
        return np.concatenate([shared, *own], axis=1)
