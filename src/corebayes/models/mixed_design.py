"""The columns of a mixed model: which are fixed effects, which say the group, which have slopes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from corebayes.models.given_prior import Given
from corebayes.models.glm import GLM
from corebayes.models.groups import ONE, GroupTerm, group_numbers
from corebayes.models.prior import GaussianPrior
from corebayes.models.scale_prior import ScalePrior
from corebayes.models.stated_prior import StatedPriors
from corebayes.models.structure import Effects, Structure, Touch
from corebayes.models.variables import Variables
from corebayes.types import Array, Block, Indices


class BoundMixed(NamedTuple):
    """What the model learns from its data."""

    columns: tuple[str, ...]
    """Names of the columns of X."""
    values: tuple[Array, ...]
    """The numbers of the groups of each term, sorted."""
    prior: GaussianPrior
    """Of the fixed effects."""
    stated: StatedPriors | None = None
    """The prior of each of them by name, where it is not one Normal for all."""
    given: Given = None
    """The family's `prior` that this was made of."""


@dataclass(frozen=True, kw_only=True, eq=False)
class MixedDesign:
    """What a mixed model is made of, and what its rows touch; see `MixedRegression`."""

    family: GLM
    terms: Sequence[GroupTerm] = ()
    learned: ScalePrior | None = None
    slopes_only: Sequence[str] = ()
    shown: Variables | None = None
    """Other names for the variables that people see than those of the terms."""
    bound: BoundMixed | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.family, GLM):  # pyright: ignore[reportUnnecessaryIsInstance]
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
        if self.learned is not None and self.family.learnable is None:
            raise ValueError(f"{type(self.family).__name__} has no constant that could be learned")
        object.__setattr__(self, "terms", terms)
        object.__setattr__(self, "slopes_only", tuple(self.slopes_only))

    def __repr__(self) -> str:
        terms = " + ".join(f"({' + '.join(term.effects)} | {term.group})" for term in self.terms)
        inside = f"{type(self.family).__name__}, {terms or 'no group terms'}"
        if self.bound is not None:
            inside += f"; {self.structure.describe()}"
        return f"MixedRegression({inside})"

    @property
    def known(self) -> BoundMixed:
        """What was learned from the data, or an error that says how."""
        if self.bound is None:
            raise ValueError("a mixed model does not know its data yet: call model.bind(data)")
        return self.bound

    def slopes(self) -> list[str]:
        """Columns that effects are multiplied with."""
        return [name for term in self.terms for name in term.effects if name != ONE]

    def fixed_places(self, columns: tuple[str, ...]) -> list[int]:
        """Where the fixed effects are among these columns."""
        apart = {*self.slopes_only, *(term.group for term in self.terms)}
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
        return self.known.prior.dim

    @property
    def fixed_prior(self) -> GaussianPrior:
        """Of the fixed effects."""
        return self.known.prior

    @property
    def num_predictors(self) -> int:
        return 1 if self.learned is None else 2

    @cached_property
    def structure(self) -> Structure:
        num_shared = self.num_fixed + self.num_predictors - 1
        num_scales = sum(len(term.effects) for term in self.terms)
        start, terms = num_shared + num_scales, list[Effects]()
        for term, values in zip(self.terms, self.known.values, strict=True):
            terms.append(Effects(term.group, start, values.size, len(term.effects)))
            start += terms[-1].size
        scales = np.arange(num_shared, num_shared + num_scales)
        return Structure(np.arange(num_shared), scales, tuple(terms))

    @property
    def dim(self) -> int:
        last = self.structure.terms[-1:]
        return last[0].start + last[0].size if last else self.structure.shared.size

    @property
    def parameter_names(self) -> tuple[str, ...]:
        return self._names

    @cached_property
    def _names(self) -> tuple[str, ...]:
        names = list(self.fixed_names)
        if self.learned is not None:
            names.append(f"log {self.family.learnable}")
        for term in self.terms:
            names.extend(f"log {term.called(effect)}_sigma" for effect in term.effects)
        for term, labels in zip(self.terms, self.group_labels, strict=True):
            names.extend(
                f"{term.called(effect)}[{label}]" for label in labels for effect in term.effects
            )
        return tuple(names)

    @property
    def fixed_names(self) -> tuple[str, ...]:
        columns = self.known.columns
        names = tuple(columns[place] for place in self.fixed_places(columns))
        return (*names, "intercept") if self.family.intercept else names

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

    def effect_columns(self, block: Block) -> list[Array]:
        """What the effects of each term are multiplied with, (n, effects)."""
        columns, one = self.known.columns, np.ones(len(block))
        return [
            np.column_stack(
                [one if name == ONE else block.X[:, columns.index(name)] for name in term.effects]
            )
            for term in self.terms
        ]

    def touch(self, block: Block) -> Touch:
        fixed, effects = self.fixed_design(block), self.effect_columns(block)
        k, p = self.num_predictors, self.structure.shared.size
        designs = np.zeros((len(block), k, p + sum(part.shape[1] for part in effects)))
        designs[:, 0, : fixed.shape[1]] = fixed
        if k == 2:
            designs[:, 1, p - 1] = 1.0
        start = p
        for part in effects:
            designs[:, 0, start : start + part.shape[1]] = part
            start += part.shape[1]
        return Touch(designs, self.groups(block))

    def places(self, groups: Indices) -> Indices:
        """Positions in θ of the parameters that each row touches, (n, m)."""
        shared = np.broadcast_to(self.structure.shared, (len(groups), self.structure.shared.size))
        own = [term.positions[groups[:, place]] for place, term in enumerate(self.structure.terms)]
        return np.concatenate([shared, *own], axis=1)
