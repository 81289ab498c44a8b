"""Mixed regressions: a GLM whose coefficients partly differ from group to group.

    η_n = x_nᵀβ + Σ_t z_{n,t}ᵀ b_{t,g_t(n)},    b_{t,g} ~ N(0, diag τ_t²),    f_n = ℓ(η_n, y_n; σ)

The parameters are θ = (β, log σ, log τ, effects group by group): the centred form, in which a row
touches β, σ and its own groups' effects, and τ is in the prior alone. σ is a constant of the family
(noise, scale, dispersion) that is learned when it has a prior.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy as np

from corebayes.models.default_prior import by_name, stated_priors
from corebayes.models.design import Targets, coefficient_names
from corebayes.models.glm import GLM
from corebayes.models.groups import ONE, Groups, GroupTerm
from corebayes.models.mixed_design import BoundMixed, MixedDesign
from corebayes.models.mixed_prior import MixedPrior, ScaledEffects
from corebayes.models.prior import GaussianPrior, Normal
from corebayes.models.scale_prior import scale_prior_from_config
from corebayes.models.stated_prior import StatedPriors
from corebayes.models.structure import Jets, Touch
from corebayes.models.variables import Variable, Variables
from corebayes.types import Array, Block, Data, Indices


@dataclass(frozen=True, kw_only=True, eq=False)
class MixedRegression(MixedDesign):
    """A GLM `family` with `terms` that differ from group to group.

    Fixed effects are all columns of X but the group columns and those in `slopes_only`; their prior
    is the family's. `learned` is the prior of the family's constant (`noise_sd` of linear
    regression, `scale` of Student-t, `dispersion` of negative-binomial regression), which is then a
    parameter; without it the constant is as the family says.
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
        given, stated = self.family.prior, None
        num_fixed = len(self.fixed_places(columns)) + self.family.intercept
        # Names and design do not depend on the prior, which may depend on the rows.
        prior = (given if isinstance(given, Normal) else Normal()).bind(num_fixed)
        ready = replace(self, bound=BoundMixed(columns, (), prior))
        chosen = by_name(given, ready.fixed_names) if isinstance(given, Mapping) else given
        question = Groups(
            tuple(columns.index(term.group) for term in self.terms),
            tuple(term.group for term in self.terms),
            Targets(FixedPart(ready)),
        )
        moments = data.learn(question)
        if not isinstance(chosen, Normal):
            names = ready.fixed_names
            stated = stated_priors(self.family, chosen, names, moments, self.known_priors)
            prior = _all_normal(stated)
        for term, values in zip(self.terms, question.values, strict=True):
            _check_labels(term, values)
        values = tuple(
            found if term.labels is None else np.arange(float(len(term.labels)))
            for term, found in zip(self.terms, question.values, strict=True)
        )
        return replace(self, bound=BoundMixed(columns, values, prior, stated, given))

    @property
    def known_priors(self) -> StatedPriors | None:
        """The priors that this model was bound with before, which stay."""
        bound = self.bound
        return None if bound is None or bound.given is not self.family.prior else bound.stated

    def row_check(self) -> Targets:
        """The question whether every row has a target of the family."""
        return Targets(FixedPart(self), rank=False)

    @property
    def log_concave(self) -> bool:
        """Given τ, where the family is. (Over τ too a density has no modes worth the name.)"""
        return self.family.log_concave and self.learned is None

    def jets(self, predictors: Array, block: Block) -> Jets:
        eta, y = predictors[:, 0], self.family.target(block)[:, None]
        if self.learned is None:
            first, second = self.family.derivatives(eta, y, 2)
            value = self.family.log_density(eta.copy(), y, np.empty_like(eta))
            return Jets(value, first[:, None], second[:, None, None])
        jet = self.family.learned_jet(eta, predictors[:, 1], block.y[:, None])
        f, f_eta, f_u, f_eta_eta, f_eta_u, f_u_u = jet
        second = np.stack([f_eta_eta, f_eta_u, f_eta_u, f_u_u], axis=1)
        shape = (len(eta), 2, 2, eta.shape[1])
        return Jets(f, np.stack([f_eta, f_u], axis=1), second.reshape(shape))

    def predictors(self, draws: Array, block: Block) -> Array:
        """η at draws (S, d), (n, S). Cost: n·S·(p + effects of a row)."""
        eta = self.fixed_design(block) @ draws[:, : self.num_fixed].T
        groups = self.groups(block)
        for place, (term, columns) in enumerate(
            zip(self.structure.terms, self.effect_columns(block), strict=True)
        ):
            for effect in range(term.num_effects):
                own = draws[:, term.positions[:, effect]].T[groups[:, place]]
                if self.terms[place].effects[effect] != ONE:
                    own *= columns[:, effect, None]
                eta += own
        return eta

    def potentials(self, draws: Array, block: Block, out: Array | None = None) -> Array:
        eta = self.predictors(draws, block)
        if self.learned is None:
            result = self.family.transform(eta, self.family.target(block))
        else:
            logs = draws[None, :, self.num_fixed]
            result = self.family.learned_log_density(eta, logs, block.y[:, None])
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
        if self.learned is None:
            return self.family.log_base(block)
        return self.family.learned_log_base(block.y)

    @cached_property
    def prior(self) -> MixedPrior:
        """log π_0 on θ."""
        priors = [prior for term in self.terms for prior in term.scales]
        effects = [
            term.positions[:, effect]
            for term in self.structure.terms
            for effect in range(term.num_effects)
        ]
        scales = tuple(map(ScaledEffects, priors, self.structure.scales.tolist(), effects))
        return MixedPrior(self.dim, self.known.prior, self.learned, scales)

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
        if self.learned is not None:
            entries.append(Variable(str(self.family.learnable), np.array(self.num_fixed), "exp"))
        scales = iter(self.structure.scales)
        for term, effects in zip(self.terms, self.structure.terms, strict=True):
            axis = (f"{term.group}__factor_dim",)
            for effect, name in enumerate(term.effects):
                called, places = term.called(name), effects.positions[:, effect]
                entries.append(Variable(f"{called}_sigma", np.array(next(scales)), "exp"))
                entries.append(Variable(called, places, dims=axis))
        labels = zip(self.terms, self.group_labels, strict=True)
        return Variables(tuple(entries), {f"{term.group}__factor_dim": own for term, own in labels})

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
            "learned": None if self.learned is None else self.learned.config(),
            "slopes_only": list(self.slopes_only),
            "columns": None if bound is None else list(bound.columns),
            "priors": None if bound is None or bound.stated is None else bound.stated.config(),
            "values": None if bound is None else [values.tolist() for values in bound.values],
            "shown": None if self.shown is None else self.shown.config(),
        }

    @classmethod
    def from_config(cls, config: Mapping[str, Any], family: GLM) -> Self:
        """The model that `config` describes, with its family made."""
        learned = config["learned"]
        model = cls(
            family=family,
            terms=tuple(GroupTerm.from_config(term) for term in config["terms"]),
            learned=None if learned is None else scale_prior_from_config(learned),
            slopes_only=tuple(map(str, config["slopes_only"])),
        )
        if config["columns"] is None:
            return model
        columns = tuple(map(str, config["columns"]))
        num_fixed, stated = len(model.fixed_places(columns)) + family.intercept, None
        if config.get("priors") is not None:
            stated = StatedPriors.from_config(config["priors"])
            prior = _all_normal(stated)
            if prior.dim != num_fixed:
                raise ValueError("its priors are not of its fixed effects")
        else:
            prior = (family.prior if isinstance(family.prior, Normal) else Normal()).bind(num_fixed)
        values = tuple(np.asarray(one, dtype=np.float64) for one in config["values"])
        for term, numbers in zip(model.terms, values, strict=True):
            if term.group not in columns or numbers.ndim != 1 or not np.all(np.diff(numbers) > 0.0):
                raise ValueError("the groups of a term are not numbers of a column, in order")
            if term.labels is not None and len(term.labels) != numbers.size:
                raise ValueError("a term has not as many labels as groups")
        made = replace(model, bound=BoundMixed(columns, values, prior, stated, family.prior))
        shown = config["shown"]
        return (
            made if shown is None else replace(made, shown=Variables.from_config(shown, made.dim))
        )


@dataclass(frozen=True)
class FixedPart:
    """The fixed effects of a mixed model, for the check of its rows."""

    model: MixedRegression

    @property
    def family(self) -> GLM:
        return self.model.family

    @property
    def dim(self) -> int:
        return self.model.num_fixed

    @property
    def parameter_names(self) -> tuple[str, ...]:
        return self.model.fixed_names

    def design(self, block: Block) -> Array:
        return self.model.fixed_design(block)

    def target(self, block: Block) -> Array:
        return self.model.family.target(block)

    def check_target(self, y: Array, lowest: float) -> Any:
        return self.model.family.check_target(y, lowest)


def _all_normal(stated: StatedPriors) -> GaussianPrior:
    normal = stated.normal
    assert isinstance(normal, GaussianPrior)
    return normal


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
