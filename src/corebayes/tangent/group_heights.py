"""Marginal likelihoods of groups over all rows, in one pass.

The nodes of a group's quadrature at a draw are placed by its rows of level one. There the sum of
the potentials of all its rows is a plain sum, which adds up over blocks,

    f_g(φ_s) = log Σ_k ω_gsk N(b_gsk; 0, τ_s²) exp Σ_{n ∈ g} c_n f_n(β_s, b_gsk),

so the integral over the effects of a group with any number of rows costs its rows once.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy.special import logsumexp

from corebayes.models.families.family import Row
from corebayes.models.mixed.marginal import MarginalRegression
from corebayes.models.mixed.nodes import Nodes
from corebayes.rows import Rows
from corebayes.types import Array, Block, Indices

# Numbers held of all groups' nodes in a pass: 320 MB with their sums.
MOST_NUMBERS = 20_000_000
# Where all rows lead to a mean or a standard deviation that differs by more, in units of the nodes'
# own spread, the nodes are placed again and the pass is repeated.
WELL_PLACED, MOST_ROUNDS = 0.3, 4
# Few sums of whole tables of nodes: rows of a block are worked off group by group.
BLOCK_ROWS = 16_384


@dataclass(frozen=True, eq=False)
class NodeSums:
    """Σ_{n ∈ g} c_n f_n at every node, (G, S, K). Cost: N·S·K potentials."""

    model: MarginalRegression
    draws: Array
    effects: Array
    """(G, S, K, q)."""

    @property
    def block_rows(self) -> int:
        return BLOCK_ROWS

    def answer(self, block: Block, numbers: Indices) -> Array:
        mixed = self.model.mixed
        groups = mixed.groups(block)[:, 0]
        order = np.argsort(groups, kind="stable")
        edges = np.flatnonzero(np.diff(groups[order])) + 1
        fixed = mixed.fixed_design(block) @ self.draws[:, : mixed.num_fixed].T
        columns, counts = mixed.effect_columns(block)[0], block.multiplicity()
        row, offset = mixed.row(block), mixed.offset(block)
        if offset is not None:
            fixed += offset[:, None]
        sums = np.zeros(self.effects.shape[:3])
        for rows in np.split(order, edges):
            group = int(groups[rows[0]])
            eta = np.einsum("nq,skq->nsk", columns[rows], self.effects[group])
            eta += fixed[rows][:, :, None]
            values = self._heights(eta, {name: one[rows] for name, one in row.items()})
            sums[group] += np.tensordot(counts[rows], values, axes=1)
        return sums

    def _heights(self, eta: Array, row: Row) -> Array:
        """At η (n, S, K), for a row (n, 1)."""
        mixed, shape = self.model.mixed, eta.shape
        if (glm := mixed.as_glm) is not None:
            flat = eta.reshape(len(eta), -1)
            return glm.transform(flat, glm.own_target(row["y"][:, 0])).reshape(shape)
        eta, *others = mixed.complete([eta], mixed.learned_at(self.draws))
        at = [eta, *(one[..., None] for one in others)]
        return mixed.family.log_likelihood(at, {k: one[..., None] for k, one in row.items()})

    def merge(self, first: Array, second: Array) -> Array:
        return first + second


def group_heights(model: MarginalRegression, rows: Rows, groups: Block, draws: Array) -> Array:
    """Σ_g f_g(φ_s) over all rows of all groups, (S,).

    `groups` are all groups with their rows of level one. Cost: N·S·K potentials, in as many passes
    as the nodes take memory.
    """
    total = np.empty(len(draws))
    for some in _parts(model, groups, len(draws)):
        nodes = nodes_of(model, groups, draws[some])
        for _ in range(MOST_ROUNDS):
            effects = nodes.effects
            logs = rows.ask(NodeSums(model, draws[some], effects)) + nodes.log_weights
            logs += model.log_prior_of_effects(draws[some], effects)
            nodes, differ = nodes.moved(logs)
            total[some] = logsumexp(logs, axis=2).sum(axis=0)
            if differ <= WELL_PLACED:
                break
    return total


def nodes_of(model: MarginalRegression, groups: Block, draws: Array) -> Nodes:
    """The nodes of all groups, some groups at a time."""
    step = max(1, (1 << 21) // (len(draws) * groups["y"].shape[1]))
    parts = [
        model.nodes(draws, groups.take(slice(first, first + step)))
        for first in range(0, len(groups), step)
    ]
    first = parts[0]
    centre = np.concatenate([part.centre for part in parts])
    spread = np.concatenate([part.spread for part in parts])
    return Nodes(centre, spread, first.points, first.log_rule)


def _parts(model: MarginalRegression, groups: Block, num_draws: int) -> Iterator[slice]:
    each = len(groups) * model.num_nodes**model.num_effects * (model.num_effects + 1)
    step = max(1, MOST_NUMBERS // each)
    for first in range(0, num_draws, step):
        yield slice(first, min(first + step, num_draws))
