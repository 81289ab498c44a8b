"""Mixed regressions: a family whose coefficients partly differ from group to group.

    η_n = x_nᵀβ + Σ_t z_{n,t}ᵀ b_{t,g_t(n)},    b_{t,g} ~ N(0, diag τ_t²),    f_n = ℓ(η_n, u; y_n)

The parameters are θ = (β, u, log τ, effects group by group): the centred form, in which a row
touches β, u and its own groups' effects, and τ is in the prior alone. u are the constants of the
family that are learned (log noise, log dispersion, …). Families of several linear predictors have a
β and effects for each. With no terms it is the regression of a family with unknown constants.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy as np

from corebayes.models.design import SeenRows, Targets, coefficient_names
from corebayes.models.families.family import Family, Jet
from corebayes.models.families.glm import GLM
from corebayes.models.mixed.design import BoundMixed, MixedDesign
from corebayes.models.mixed.fixed_part import FixedPart
from corebayes.models.mixed.groups import ONE, Groups, GroupTerm
from corebayes.models.mixed.prior import MixedPrior, ScaledEffects
from corebayes.models.priors.improper import check_proper
from corebayes.models.priors.learned import given_learned
from corebayes.models.priors.normal import GaussianPrior, Normal
from corebayes.models.priors.scale import scale_prior_from_config
from corebayes.models.priors.settled import settle, settled_config, settled_from_config
from corebayes.models.structure import Jets, Touch
from corebayes.models.variables import Variable, Variables
from corebayes.types import Array, Block, Data, Indices


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class MixedRegression(MixedDesign):
    """A `family` with `terms` that differ from group to group.

    Fixed effects are all columns of X but the group columns, those in `slopes_only` and those that
    the family has for its rows (offset, exposure, trials, event); their prior is the family's.
    `learned` has the priors of the family's constants that are parameters, by name:
    {"scale": HalfNormal(2.0), "df": Gamma(2.0, 0.1)} for Student-t; a prior alone is that of the
    first constant (`noise_sd` of linear, `scale` of Student-t, `dispersion` of negative-binomial
    regression). Other constants are what the family says, or learned if it has no number for them.
    """

    def bind(self, data: Data) -> Self:
        """This model for these rows. Cost: a pass over the rows, N·p² flops."""
        columns = coefficient_names(data, intercept=False)
        for name in (*(term.group for term in self.terms), *self.slopes_only, *self.slopes()):
            if name not in columns:
                raise ValueError(
                    f"the data has no column {name!r}, which a group term needs; "
                    f"it has {', '.join(map(repr, columns[:10]))}"
                )
        ready = replace(self, bound=BoundMixed(columns, (), self.unsettled(columns)))
        targets = Targets(FixedPart(ready))
        question = Groups(
            tuple(columns.index(term.group) for term in self.terms),
            tuple(term.group for term in self.terms),
            targets,
        )
        seen: SeenRows = data.learn(question)
        model = replace(self, family=self.family.settled(seen.kinds))
        for term, values in zip(self.terms, question.values, strict=True):
            _check_labels(term, values)
        values = tuple(
            found if term.labels is None else np.arange(float(len(term.labels)))
            for term, found in zip(self.terms, question.values, strict=True)
        )
        ready = replace(model, bound=BoundMixed(columns, values, model.unsettled(columns)))
        settled = settle(ready, seen.moments, self.bound)
        bound = replace(model, bound=BoundMixed(columns, values, *settled, data.target_name))
        check_proper(bound, data, seen)
        return bound

    def with_target(self, target: str) -> Self:
        """This bound model, y under the name that it has in the data."""
        return replace(self, bound=self.known._replace(target=target))

    def unsettled(self, columns: tuple[str, ...]) -> GaussianPrior:
        """A prior of as many fixed effects as data with these columns have: names and design do
        not depend on it, and it may depend on the rows."""
        family = self.family
        given = family.prior if isinstance(family.prior, Normal) else Normal()
        num_columns = len(self.fixed_places(columns)) + family.intercept
        return given.bind(len(family.linear) * num_columns)

    def row_check(self) -> Targets:
        """The question whether every row has a target of the family."""
        return Targets(FixedPart(self), rank=False)

    @property
    def log_concave(self) -> bool:
        """Given τ, where the family is. (Over τ too a density has no modes worth the name.)"""
        return self.family.log_concave and not self.constants

    @property
    def as_glm(self) -> GLM | None:
        """The family where nothing but η is unknown: then it has quicker ways."""
        return self.family if isinstance(self.family, GLM) and not self.constants else None

    def jets(self, predictors: Array, block: Block) -> Jets:
        """Of rows whose predictors (n, k, R) are those of `touch`, without the offset."""
        linear, k = len(self.family.linear), self.num_predictors
        offset = self.offset(block)
        etas = [predictors[:, number] for number in range(linear)]
        if offset is not None:
            etas = [eta + offset[:, None] for eta in etas]
        if (glm := self.as_glm) is not None:
            y = glm.target(block)[:, None]
            first, second = glm.derivatives(etas[0], y, 2)
            value = glm.log_density(etas[0].copy(), y, np.empty_like(etas[0]))
            return Jets(value, first[:, None], second[:, None, None])
        at = self.complete(etas, [predictors[:, number] for number in range(linear, k)])
        jet = self.family.jet(at, self.row(block))
        return self._stacked(jet, etas[0].shape)

    def _stacked(self, jet: Jet, shape: tuple[int, ...]) -> Jets:
        """The family's jet in the predictors that are parameters."""
        wanted, k = self.wanted, self.num_predictors
        value = np.array(np.broadcast_to(jet.value, shape))
        first, second = np.empty((shape[0], k, shape[1])), np.empty((shape[0], k, k, shape[1]))
        for i, own in enumerate(wanted):
            first[:, i] = jet.first[own]
            for j, other in enumerate(wanted[: i + 1]):
                second[:, i, j] = second[:, j, i] = jet.second[own][other]
        return Jets(value, first, second)

    @cached_property
    def wanted(self) -> tuple[int, ...]:
        """Which of the family's predictors are parameters."""
        linear, learned = len(self.family.linear), {one.name for one in self.constants}
        constants = enumerate(self.family.learnable, linear)
        return (*range(linear), *(place for place, one in constants if one.name in learned))

    def complete(self, etas: Sequence[Array], learned: Sequence[Array]) -> tuple[Array, ...]:
        """All predictors of the family, with the constants that are known."""
        given = iter(learned)
        known, number = self.known_constants, len(self.family.learnable)
        constants = (known[k] if k in known else next(given) for k in range(number))
        return (*etas, *constants)

    def predictors(self, draws: Array, block: Block) -> tuple[Array, ...]:
        """All predictors of the family at draws (S, d): the linear ones (n, S), with the offset,
        and the constants (1, S) or (1, 1). Cost: n·S·(p + effects of a row)."""
        groups, etas = self.groups(block), self.fixed_predictors(draws, block)
        parts = zip(self.terms, self.structure.terms, self.effect_columns(block), strict=True)
        for place, (term, effects, columns) in enumerate(parts):
            for number, effect in enumerate(self.effects_of(term)):
                own = draws[:, effects.positions[:, number]].T[groups[:, place]]
                if effect.name != ONE:
                    own *= columns[:, number, None]
                etas[effect.predictor] += own
        return self.complete(etas, self.learned_at(draws))

    def fixed_predictors(self, draws: Array, block: Block) -> list[Array]:
        """The linear predictors without effects, with the offset, (n, S) each."""
        fixed, offset = self.fixed_design(block), self.offset(block)
        slices = map(self.coefficients, range(len(self.family.linear)))
        etas = [fixed @ draws[:, own].T for own in slices]
        return etas if offset is None else [eta + offset[:, None] for eta in etas]

    def learned_at(self, draws: Array) -> list[Array]:
        """The learned constants at draws, (1, S) each."""
        return [draws[None, :, self.num_fixed + number] for number in range(len(self.constants))]

    def potentials(self, draws: Array, block: Block, out: Array | None = None) -> Array:
        at = self.predictors(draws, block)
        if (glm := self.as_glm) is not None:
            result = glm.transform(at[0], glm.target(block))
        else:
            result = self.family.log_likelihood(at, self.row(block))
        if out is None:
            return result
        out[...] = result
        return out

    def sum_potentials(self, draws: Array, block: Block, weights: Array | None = None) -> Array:
        total = np.zeros(len(draws))
        step = max(1, (1 << 20) // len(draws))
        for start in range(0, len(block), step):
            part = slice(start, start + step)
            values = self.potentials(draws, block.take(part))
            total += values.sum(axis=0) if weights is None else weights[part] @ values
        return total

    def _row_derivatives(self, theta: Array, block: Block) -> tuple[Touch, Jets]:
        touch = self.touch(block)
        places = self.places(touch.groups)
        predictors = np.einsum("nkm,nm->nk", touch.designs, theta[places])
        return touch, self.jets(predictors[:, :, None], block)

    def gradient(self, theta: Array, block: Block, weights: Array) -> Array:
        touch, jets = self._row_derivatives(theta, block)
        own = np.einsum("n,nk,nkm->nm", weights, jets.first[:, :, 0], touch.designs)
        places = self.places(touch.groups)
        return _scattered(places, own, self.dim)

    def gradient_and_hessian(
        self, theta: Array, block: Block, weights: Array
    ) -> tuple[Array, Array]:
        """Cost: n·m² flops for m touched parameters, and d² numbers."""
        touch, jets = self._row_derivatives(theta, block)
        places, designs, dim = self.places(touch.groups), touch.designs, self.dim
        own = np.einsum("n,nk,nkm->nm", weights, jets.first[:, :, 0], designs)
        second = weights[:, None, None] * jets.second[:, :, :, 0]
        local = np.einsum("nkm,nkj,njl->nml", designs, second, designs)
        flat = places[:, :, None] * dim + places[:, None, :]
        hessian = _scattered(flat, local, dim * dim).reshape(dim, dim)
        return _scattered(places, own, dim), hessian

    def log_base(self, block: Block) -> Array:
        if (glm := self.as_glm) is not None:
            return glm.log_base(block)
        return self.family.row_base(self.row(block))[:, 0]

    @cached_property
    def prior(self) -> MixedPrior:
        """log π_0 on θ."""
        priors = [effect.prior for term in self.terms for effect in self.effects_of(term)]
        effects = [
            term.positions[:, effect]
            for term in self.structure.terms
            for effect in range(term.num_effects)
        ]
        places = self.structure.scales[: len(priors)].tolist()
        scales = tuple(map(ScaledEffects, priors, places, effects))
        learned = tuple(one.prior for one in self.constants)
        stated = self.known.stated
        others = () if stated is None else stated.others
        usual = {one.name: one.prior for one in self.family.learnable}
        begins = tuple(one.begins(usual[one.name]) for one in self.constants)
        return MixedPrior(
            self.dim, self.known.prior, learned, scales, others, self.horseshoes, begins
        )

    def log_prior(self, draws: Array) -> Array:
        return self.prior.log_density(draws)

    def log_prior_gradient(self, theta: Array) -> Array:
        return self.prior.gradient(theta)

    def log_prior_hessian(self, theta: Array) -> Array:
        return self.prior.hessian(theta)

    @cached_property
    def variables(self) -> Variables:
        """What people see: coefficients, standard deviations, effects."""
        if self.shown is not None:
            return self.shown
        entries = [Variable(name, np.array(place)) for place, name in enumerate(self.fixed_names)]
        entries += self.family.shown(self.constants, self.num_fixed)
        scales = iter(self.structure.scales)
        for term, effects in zip(self.terms, self.structure.terms, strict=True):
            axis = (f"{term.group}__factor_dim",)
            for number, effect in enumerate(self.effects_of(term)):
                places = effects.positions[:, number]
                entries.append(Variable(f"{effect.called}_sigma", np.array(next(scales)), "exp"))
                entries.append(Variable(effect.called, places, dims=axis))
        entries += [
            Variable(name, np.array(place), "exp")
            for name, place in zip(self.horseshoe_names, scales, strict=True)
        ]
        labels = zip(self.terms, self.group_labels, strict=True)
        axes = {f"{term.group}__factor_dim": own for term, own in labels}
        return Variables(tuple(entries), axes | self.family.shown_axes())

    def constrain(self, draws: Array) -> dict[str, Array]:
        """The variables as people have them."""
        return self.variables.constrain(draws)

    @property
    def dims(self) -> Mapping[str, tuple[str, ...]]:
        return self.variables.dims

    @property
    def coords(self) -> Mapping[str, tuple[Any, ...]]:
        return self.variables.coords

    def config(self) -> dict[str, Any]:
        """Constructor arguments and what was learned from the data, as JSON has them."""
        bound = self.bound
        return {
            "family": {"name": type(self.family).__name__, "config": self.family.config()},
            "terms": [term.config() for term in self.terms],
            "learned": {k: v.config() for k, v in given_learned(self.family, self.learned).items()},
            "slopes_only": list(self.slopes_only),
            "columns": None if bound is None else list(bound.columns),
            "settled": None if bound is None else settled_config(bound),
            "values": None if bound is None else [values.tolist() for values in bound.values],
            "shown": None if self.shown is None else self.shown.config(),
        }

    @classmethod
    def from_config(cls, config: Mapping[str, Any], family: Family) -> Self:
        """The model that `config` describes, with its family made."""
        learned: Mapping[str, Any] = config["learned"] or {}
        if "kind" in learned:
            # As it was when a family had one constant at most.
            learned = {next((one.name for one in family.learnable), ""): learned}
        model = cls(
            family=family,
            terms=tuple(GroupTerm.from_config(term) for term in config["terms"]),
            learned={name: scale_prior_from_config(one) for name, one in learned.items()},
            slopes_only=tuple(map(str, config["slopes_only"])),
        )
        if config["columns"] is None:
            return model
        columns = tuple(map(str, config["columns"]))
        values = tuple(np.asarray(one, dtype=np.float64) for one in config["values"])
        for term, numbers in zip(model.terms, values, strict=True):
            if term.group not in columns or numbers.ndim != 1 or not np.all(np.diff(numbers) > 0.0):
                raise ValueError("the groups of a term are not numbers of a column, in order")
            if term.labels is not None and len(term.labels) != numbers.size:
                raise ValueError("a term has not as many labels as groups")
        ready = replace(model, bound=BoundMixed(columns, values, model.unsettled(columns)))
        settled = settled_from_config(ready, config.get("settled"))
        made = replace(model, bound=BoundMixed(columns, values, *settled))
        shown = config["shown"]
        return (
            made if shown is None else replace(made, shown=Variables.from_config(shown, made.dim))
        )


Family.made_by = MixedRegression


def _check_labels(term: GroupTerm, values: Array) -> None:
    if term.labels is None or values.size == 0:
        return
    if values[0] < 0.0 or values[-1] >= len(term.labels):
        raise ValueError(
            f"column {term.group!r} has the group {values[-1]:g}, but the term has "
            f"{len(term.labels):,} labels: groups are numbered 0, 1, …"
        )


def _scattered(places: Indices, values: Array, length: int) -> Array:
    """Sums of the values at their places."""
    return np.bincount(places.ravel(), values.ravel(), minlength=length).astype(np.float64)
