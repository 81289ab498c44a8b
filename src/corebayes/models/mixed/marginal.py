"""A mixed regression with one group term whose effects are integrated out: groups are the rows.

    f_g(φ) = log ∫ Π_n p(y_n | x_nᵀβ + z_nᵀb)^{w_n} N(b; 0, diag τ²) db,    φ = (β, log σ, log τ)

The w_n rows of a group are those of a coreset of rows (level one), so that a group costs its few
rows, and the integral is adaptive Gauss–Hermite quadrature around the mode of b (Pinheiro and Bates
1995). Derivatives are expectations over the nodes: the gradient by Fisher's identity and the
Hessian by Louis', E[∇² log p(y, b)] + Cov[∇ log p(y, b)].
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy.special import logsumexp

from corebayes.models.mixed.group_modes import effect_modes
from corebayes.models.mixed.group_rows import GroupRows, group_base
from corebayes.models.mixed.nodes import Nodes
from corebayes.models.mixed.prior import LOG_2PI, MixedPrior, ScaledEffects
from corebayes.models.mixed.regression import MixedRegression
from corebayes.models.quadrature import product_rule
from corebayes.models.variables import Variable, Variables
from corebayes.types import Array, Block, Data, Indices

# Nodes for each effect. Adaptive nodes of a group of n rows miss its integral by about n^{−K/2}.
NUM_NODES = 9
MOST_EFFECTS = 2
# Rows of level one that a group has as a rule, and potentials of each to find its nodes.
ROWS_OF_A_GROUP, SEARCHED = 6, 20
# Numbers of a part of a call: groups × draws × rows × nodes.
AT_ONCE = 1 << 21
# Effects are drawn from so many tries of a Gaussian that is wider by a factor.
TRIES, WIDER = 20, 1.2


@dataclass(frozen=True, eq=False)
class MarginalRegression:
    """The model of φ = (β, log σ, log τ) whose rows are groups; see `group_block`."""

    mixed: MixedRegression
    """Bound to the rows, with one group term of at most two effects."""
    num_nodes: int = NUM_NODES

    def __post_init__(self) -> None:
        terms = self.mixed.terms
        if len(terms) != 1:
            raise ValueError(
                f"groups can be units where there is one group term, and this model has "
                f"{len(terms)}: leave the others out, or build a coreset of rows"
            )
        if len(terms[0].effects) > MOST_EFFECTS:
            raise ValueError(
                f"groups can be units with at most {MOST_EFFECTS} effects each, and "
                f"({' + '.join(terms[0].effects)} | {terms[0].group}) has "
                f"{len(terms[0].effects)}: leave some out, or build a coreset of rows"
            )
        # Known once priors are on the scale of the data; this is asked before and after.
        if self.mixed.bound is not None and self.mixed.horseshoes:
            raise ValueError(
                "groups cannot be units under a horseshoe prior: build a coreset of rows, or give "
                "coefficients another prior"
            )
        if len(self.mixed.family.linear) > 1:
            raise ValueError(
                f"groups can be units with one linear predictor, and "
                f"{type(self.mixed.family).__name__} has several: build a coreset of rows"
            )

    def bind(self, data: Data) -> MarginalRegression:
        return self

    @property
    def log_concave(self) -> bool:
        """As the mixed model says it: given τ."""
        return self.mixed.log_concave

    @property
    def num_effects(self) -> int:
        return len(self.mixed.terms[0].effects)

    @property
    def _scales(self) -> slice:
        return slice(self.dim - self.num_effects, self.dim)

    @property
    def dim(self) -> int:
        return self.mixed.structure.shared.size + self.num_effects

    @property
    def potentials_each(self) -> int:
        """Potentials of single rows that one of a group costs."""
        return ROWS_OF_A_GROUP * (self.num_nodes**self.num_effects + SEARCHED)

    @property
    def parameter_names(self) -> tuple[str, ...]:
        return self.mixed.parameter_names[: self.dim]

    @cached_property
    def variables(self) -> Variables:
        entries = [
            Variable(entry.name, entry.places, entry.scale)
            for entry in self.mixed.variables.entries
            if entry.places.ndim == 0 and int(entry.places) < self.dim
        ]
        return Variables(tuple(entries), {})

    def constrain(self, draws: Array) -> dict[str, Array]:
        return self.variables.constrain(draws)

    @property
    def dims(self) -> dict[str, tuple[str, ...]]:
        return {}

    @property
    def coords(self) -> dict[str, tuple[Any, ...]]:
        return {}

    # Rows of groups.

    def group_block(self, rows: Block, weights: Array, groups: Indices | None = None) -> Block:
        """Weighted rows as groups: fields X (G, m, p), Z (G, m, q), y and w (G, m), `group` (G,).

        A group with fewer than m rows has some of weight zero, copies of its first (or, without any
        row, of the first of all). `groups` are the numbers of those wanted, by default all.
        """
        numbers = self.mixed.groups(rows)[:, 0]
        order = np.argsort(numbers, kind="stable")
        num_groups = self.mixed.structure.terms[0].num_groups
        counts = np.bincount(numbers, minlength=num_groups)
        starts = np.cumsum(counts) - counts
        wanted = np.arange(num_groups) if groups is None else groups
        slots = np.arange(max(1, int(counts[wanted].max(initial=1))))
        inside = slots < counts[wanted, None]
        first = np.minimum(starts, numbers.size - 1)[wanted, None]
        at = order[np.where(inside, first + slots, first)]
        # What the family sees of a row beside η: y, and trials or censoring where it has these.
        row = {name: values[:, 0][at] for name, values in self.mixed.row(rows).items()}
        offset = self.mixed.offset(rows)
        if offset is not None:
            row["offset"] = offset[at]
        return Block(
            {
                "X": self.mixed.fixed_design(rows)[at],
                "Z": self.mixed.effect_columns(rows)[0][at],
                **row,
                "w": np.where(inside, weights[at], 0.0),
                "group": wanted.astype(np.float64),
            }
        )

    # The integral.

    def nodes(self, draws: Array, block: Block) -> Nodes:
        """Nodes around the mode of every group's effects at draws (S, d) of φ."""
        return self._nodes(GroupRows.at(self.mixed, draws, block), draws)

    def _nodes(self, rows: GroupRows, draws: Array) -> Nodes:
        mode, root = effect_modes(rows, np.exp(draws[:, self._scales]))
        points, log_rule = product_rule(self.num_nodes, self.num_effects)
        # b = mode + R⁻ᵀ x with x standard normal under the rule
        return Nodes(mode, _inverse_transposed(root), points, log_rule)

    def log_prior_of_effects(self, draws: Array, effects: Array) -> Array:
        """log N(b; 0, τ²) at effects (n, S, K, q), (n, S, K)."""
        v = draws[:, self._scales]
        squares = np.square(effects * np.exp(-v)[None, :, None])
        return -0.5 * squares.sum(axis=-1) - (v + 0.5 * LOG_2PI).sum(axis=1)[None, :, None]

    def _parts(self, draws: Array, block: Block) -> list[tuple[slice, slice]]:
        """Groups and draws that are computed at once."""
        each = block["y"].shape[1] * self.num_nodes**self.num_effects
        groups = max(1, min(len(block), AT_ONCE // each))
        step = max(1, AT_ONCE // (each * groups))
        return [
            (slice(g, g + groups), slice(s, s + step))
            for g in range(0, len(block), groups)
            for s in range(0, len(draws), step)
        ]

    def potentials(self, draws: Array, block: Block, out: Array | None = None) -> Array:
        """Cost: n·S·m·(K^q + 20) potentials for groups of m rows."""
        result = np.empty((len(block), len(draws))) if out is None else out
        for groups, some in self._parts(draws, block):
            part, own = block.take(groups), draws[some]
            rows = GroupRows.at(self.mixed, own, part)
            nodes = self._nodes(rows, own)
            effects = nodes.effects
            logs = rows.heights(effects) + nodes.log_weights
            logs += self.log_prior_of_effects(own, effects)
            result[groups, some] = logsumexp(logs, axis=2)
        return result

    def sum_potentials(self, draws: Array, block: Block, weights: Array | None = None) -> Array:
        values = self.potentials(draws, block)
        return values.sum(axis=0) if weights is None else weights @ values

    def gradient(self, theta: Array, block: Block, weights: Array) -> Array:
        gradients, _, shares = self._at_nodes(theta, block, second=False)
        return np.einsum("g,gk,gkd->d", weights, shares, gradients)

    def gradient_and_hessian(
        self, theta: Array, block: Block, weights: Array
    ) -> tuple[Array, Array]:
        gradients, hessian, shares = self._at_nodes(theta, block, second=True)
        means = np.einsum("gk,gkd->gd", shares, gradients)
        off = gradients - means[:, None]
        spread = np.einsum("g,gk,gkd,gke->de", weights, shares, off, off, optimize=True)
        return weights @ means, np.einsum("g,gde->de", weights, hessian) + spread

    def _at_nodes(self, theta: Array, block: Block, *, second: bool) -> tuple[Array, Array, Array]:
        """∇ log p(y, b | φ) at the nodes (n, K, d), its expected Hessian (n, d, d), and the nodes'
        shares of the integral (n, K)."""
        draws, p, d = theta[None], self.mixed.num_fixed, self.dim
        rows = GroupRows.at(self.mixed, draws, block)
        nodes = self._nodes(rows, draws)
        effects = nodes.effects
        logs = rows.heights(effects) + nodes.log_weights
        logs = (logs + self.log_prior_of_effects(draws, effects))[:, 0]
        shares = np.exp(logs - logsumexp(logs, axis=1, keepdims=True))
        X, w = block["X"], block["w"]
        gradients = np.zeros((*shares.shape, d))
        hessian = np.zeros((len(block), d, d))
        first, bends = rows.predictor_slopes(effects)
        for i in range(1, len(first)):
            place = p + i - 1
            gradients[:, :, place] = np.einsum("gm,gmk->gk", w, first[i])
            mixed = np.einsum("gm,gk,gmk,gmp->gp", w, shares, bends[i][0], X, optimize=True)
            hessian[:, place, :p] = hessian[:, :p, place] = mixed
            for j in range(1, i + 1):
                bent = np.einsum("gm,gk,gmk->g", w, shares, bends[i][j])
                hessian[:, place, p + j - 1] = hessian[:, p + j - 1, place] = bent
        gradients[:, :, :p] = np.einsum("gm,gmk,gmp->gkp", w, first[0], X, optimize=True)
        squares = np.square(effects[:, 0] * np.exp(-theta[self._scales]))
        gradients[:, :, self._scales] = squares - 1.0
        if second:
            pull = w * np.einsum("gk,gmk->gm", shares, bends[0][0])
            hessian[:, :p, :p] = np.einsum("gm,gmp,gmr->gpr", pull, X, X, optimize=True)
            places = np.arange(d)[self._scales]
            hessian[:, places, places] = -2.0 * np.einsum("gk,gkq->gq", shares, squares)
        return gradients, hessian, shares

    def draw_effects(self, rng: np.random.Generator, draws: Array, block: Block) -> Array:
        """b_g | φ_s and the group's rows, one for every draw, (n, S, q).

        Of the adaptive Gaussian, weighted and resampled from some tries: exact as these grow.
        """
        rows = GroupRows.at(self.mixed, draws, block)
        mode, root = effect_modes(rows, np.exp(draws[:, self._scales]))
        # A little wider, so that weights are bounded where the density is like a Gaussian.
        spread = WIDER * _inverse_transposed(root)
        noise = rng.standard_normal((len(block), len(draws), TRIES, self.num_effects))
        effects = mode[:, :, None] + np.einsum("gsij,gskj->gski", spread, noise)
        logs: Array = rows.heights(effects)
        logs = logs + self.log_prior_of_effects(draws, effects)
        logs = logs + 0.5 * np.einsum("gskq,gskq->gsk", noise, noise)
        # The largest weight over a standard exponential is a draw in proportion to the weights.
        chosen = np.argmax(logs - np.log(rng.standard_exponential(logs.shape)), axis=2)
        return effects[np.arange(len(block))[:, None], np.arange(len(draws)), chosen]

    def log_base(self, block: Block) -> Array:
        """What the rows' potentials leave out, weighted as they are."""
        return group_base(self.mixed, block)

    @cached_property
    def prior(self) -> MixedPrior:
        """Of φ: the mixed model's without effects."""
        scales = tuple(
            ScaledEffects(scaled.prior, scaled.place, np.empty(0, dtype=np.int64))
            for scaled in self.mixed.prior.scales
        )
        return replace(self.mixed.prior, dim=self.dim, scales=scales)

    def log_prior(self, draws: Array) -> Array:
        return self.prior.log_density(draws)

    def log_prior_gradient(self, theta: Array) -> Array:
        return self.prior.gradient(theta)

    def log_prior_hessian(self, theta: Array) -> Array:
        return self.prior.hessian(theta)


def _inverse_transposed(root: Array) -> Array:
    inverse: Array = np.asarray(np.linalg.inv(root), dtype=np.float64)
    return inverse.swapaxes(-1, -2)
