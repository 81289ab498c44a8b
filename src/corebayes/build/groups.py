"""Coresets of groups: a few whole groups, weighted, for the parameters that all groups share.

With the effects of a mixed model integrated out, a group is one potential of φ = (β, log σ, log τ)
(`models.marginal`), and as few groups as φ has quadratics, d(d + 3)/2 + 1, stand for any number of
groups and rows. Three steps: a coreset of rows of every group; the exact sum of all groups'
potentials over all rows at draws of φ; and a pursuit of groups, each as its few rows have it, for
that sum. So what the rows of level one miss of a group that is kept is made up for by the weights.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from corebayes.arguments import checked_whole
from corebayes.certify.measure import measure
from corebayes.constructions.construction import no_direction
from corebayes.coreset import Coreset, GroupCoreset, grouped
from corebayes.models.mixed.marginal import MarginalRegression
from corebayes.models.mixed.regression import MixedRegression
from corebayes.rows import Rows, open_rows
from corebayes.samplers.mixed.frame import fit_of
from corebayes.samplers.posterior import Posterior
from corebayes.tangent.group_heights import group_heights
from corebayes.tangent.monte_carlo import MonteCarloSpace
from corebayes.types import Array, Model
from corebayes.weights.pursuit import orthogonal_pursuit

# Draws of φ for each of its quadratics, and the least.
DRAWS_EACH, LEAST_DRAWS = 8, 300
# Sizes that an open one is looked for among, in units of the groups that match all quadratics.
SHARES = (0.5, 0.75, 1.0, 1.5, 2.0, 3.0)
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
    return _chosen(level_one, model, rows, [size or _num_matched(model)], seed)[0]


def grown_groups(level_one: Coreset, rows: Rows, *, tol: float, seed: int) -> GroupCoreset:
    """As few groups as two certificates on fresh draws say KL(π_w ‖ π) ≤ `tol` of, of some sizes
    around what matches all quadratics of φ. Cost: a pass, and two for each size that may do."""
    model = _marginal(level_one)
    matched, num_groups = _num_matched(model), model.mixed.structure.terms[0].num_groups
    sizes = sorted({min(max(1, int(share * matched)), num_groups) for share in SHARES})
    coresets = _chosen(level_one, model, rows, sizes, seed)
    for coreset in coresets:
        found = [measure(coreset, rows, seed=seed + k, tol=tol) for k in (1, 2)]
        if all(one.certified for one in found):
            reason = f"certified KL(π_w ‖ π) ≤ {tol:g}, twice, with {coreset.size} groups"
            return replace(coreset, reason=reason)
    last = coresets[-1]
    return replace(last, reason=f"no more groups than {last.size} could be certified to {tol:g}")


def _num_matched(model: MarginalRegression) -> int:
    """Groups that match every quadratic of φ."""
    return model.dim * (model.dim + 3) // 2 + 1


def _chosen(
    level_one: Coreset, model: MarginalRegression, rows: Rows, sizes: Sequence[int], seed: int
) -> list[GroupCoreset]:
    groups = model.group_block(level_one.rows, level_one.weights)
    rng = np.random.default_rng(seed)
    num_draws = max(LEAST_DRAWS, DRAWS_EACH * _num_matched(model))
    draws = _draws(rng, level_one, num_draws)
    space = MonteCarloSpace(model, draws, draws.mean(axis=0))
    total = group_heights(model, rows, groups, draws)
    element = (total - total.mean()) / np.sqrt(num_draws)
    sizes = [min(size, len(groups)) for size in sizes]
    coresets = list[GroupCoreset]()
    for taken, found in orthogonal_pursuit(space, groups, element, sizes, overshoot=2.0):
        if taken.size == 0:
            raise no_direction()
        order = np.argsort(taken)
        kept, weights = taken[order], found[order]
        coresets.append(grouped(level_one, model, kept, weights, f"chosen at size {kept.size}"))
    return coresets


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
