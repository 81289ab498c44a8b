"""Coresets of groups: a few whole groups, weighted, for the parameters that all groups share.

With the effects of a mixed model integrated out, a group is one potential of φ = (β, log σ, log τ)
(`models.marginal`), and as few groups as φ has quadratics, d(d + 3)/2 + 1, stand for any number of
groups and rows. Three steps: a coreset of rows of every group; the exact sum of all groups'
potentials over all rows at draws of φ; and a pursuit of groups, each as its few rows have it, for
that sum. So what the rows of level one miss of a group that is kept is made up for by the weights.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from corebayes.arguments import checked_whole
from corebayes.constructions.construction import no_direction
from corebayes.coreset import Coreset, GroupCoreset, grouped
from corebayes.models.marginal import MarginalRegression
from corebayes.models.mixed import MixedRegression
from corebayes.rows import Rows, open_rows
from corebayes.samplers.mixed_frame import fit_of
from corebayes.samplers.posterior import Posterior
from corebayes.tangent.group_heights import group_heights
from corebayes.tangent.monte_carlo import MonteCarloSpace
from corebayes.types import Array, Model
from corebayes.weights.pursuit import orthogonal_pursuit

# Draws of φ for each of its quadratics, and the least.
DRAWS_EACH, LEAST_DRAWS = 8, 300
# Where every group has so many rows, so few nodes are as exact as nine.
MANY_ROWS, FEW_NODES = 100, 5


def check_unit(unit: Any, model: Model, **others: Any) -> None:
    """Whether `unit` means groups, and the model has them; `others` must not be given."""
    if not isinstance(model, MixedRegression):
        raise ValueError(
            "unit is for mixed models here; where rows are independent given the parameters, open "
            "the data with units"
        )
    names = [term.group for term in model.terms]
    if unit != "group" and unit not in names:
        raise ValueError(f'unit must be "group" or the column of the groups {names}, got {unit!r}')
    # The same sentences as when it is bound, but before any row is read.
    MarginalRegression(model)
    for name, value in others.items():
        if value is not None:
            raise ValueError(f"{name} is for coresets of rows; with unit give a size of groups")


def checked_groups(size: Any) -> int | None:
    return None if size is None or size == "auto" else checked_whole("size", size, of="groups")


def level_one_size(model: Model, rows: Rows) -> tuple[MixedRegression, int | None]:
    """The model for these rows, and how many of them stand for every group: those that match all
    quadratics. None where there are hardly more."""
    bound = model.bind(rows)
    assert isinstance(bound, MixedRegression)
    matched = bound.structure.num_matched
    return bound, matched if 2 * matched <= rows.num_rows else None


def all_rows(model: MixedRegression, rows: Rows) -> Coreset:
    """Every row that counts, as a coreset of itself."""
    block = rows.check().take(np.arange(rows.num_rows))
    counted = np.flatnonzero(block.multiplicity() > 0.0)
    return Coreset(
        indices=counted,
        weights=block.multiplicity()[counted],
        rows=block.take(counted),
        model=model,
        num_rows=rows.num_rows,
        total_count=rows.total_count,
        reason="all rows",
        provenance={
            "data": rows.fingerprint(),
            "column_names": list(rows.column_names),
            "target_name": rows.target_name,
            **({} if rows.design is None else {"design": rows.design}),
        },
    )


def choose_groups(
    level_one: Coreset, data: Any, *, size: int | None = None, seed: int = 0
) -> GroupCoreset:
    """Some `size` groups for the shared parameters, from a coreset of rows of every group.

    Without a size as many as match all quadratics of φ. `data` are the rows that `level_one` was
    built from. Cost: N·S·K potentials in one pass, S ≥ 300 draws and K = 5 or 9 nodes.
    """
    if not isinstance(level_one.model, MixedRegression):
        raise TypeError(
            f"groups are chosen from a coreset of rows of a MixedRegression, got one of "
            f"{type(level_one.model).__name__}"
        )
    rows = data if isinstance(data, Rows) else open_rows(data)
    model = _marginal(level_one)
    groups = model.group_block(level_one.rows, level_one.weights)
    matched = model.dim * (model.dim + 3) // 2 + 1
    size = min(size or matched, len(groups))
    rng = np.random.default_rng(seed)
    num_draws = max(LEAST_DRAWS, DRAWS_EACH * matched)
    draws = _draws(rng, level_one, num_draws)
    space = MonteCarloSpace(model, draws, draws.mean(axis=0))
    total = group_heights(model, rows, groups, draws)
    element = (total - total.mean()) / np.sqrt(num_draws)
    (choice,) = orthogonal_pursuit(space, groups, element, [size], overshoot=2.0)
    if choice.taken.size == 0:
        raise no_direction()
    order = np.argsort(choice.taken)
    kept, weights = choice.taken[order], choice.weights[order]
    return grouped(level_one, model, kept, weights, f"chosen at size {kept.size}")


def _marginal(level_one: Coreset) -> MarginalRegression:
    mixed = level_one.model
    assert isinstance(mixed, MixedRegression)
    num_groups = mixed.structure.terms[0].num_groups if mixed.terms else 0
    model = MarginalRegression(mixed)
    known = np.bincount(mixed.groups(level_one.rows)[:, 0], level_one.weights, num_groups)
    return MarginalRegression(mixed, FEW_NODES) if known.min() >= MANY_ROWS else model


def _draws(rng: np.random.Generator, level_one: Coreset, num_draws: int) -> Array:
    """φ around the posterior: of the Gaussian fit, with its moments."""
    fitted = fit_of(Posterior.of(level_one))
    noise = rng.standard_normal((num_draws, fitted.wide_mean.size))
    noise -= noise.mean(axis=0)
    noise = np.linalg.qr(noise)[0] * np.sqrt(num_draws)
    return fitted.wide_mean + noise @ fitted.factor.T
