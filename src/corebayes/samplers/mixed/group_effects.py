"""Effects of any group, from draws of the parameters that all groups share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from corebayes.arguments import checked_seed
from corebayes.coreset import GroupCoreset, check_coreset
from corebayes.samplers.parameters import parameters_of
from corebayes.types import Array, Indices


def group_effects(
    coreset: GroupCoreset, draws: Any, *, groups: Sequence[Any] | None = None, seed: int = 0
) -> dict[str, Array]:
    """Draws of b_g | φ and the group's rows of level one, for each draw of φ.

    `draws` is what `sample` gave for this coreset, or an array (…, d) of φ on the scale of the
    model's parameters. `groups` are labels as the mixed model has them, by default all. Returns
    one array (…, groups) for each effect, named as the mixed model names it, whether or not a group
    is among those kept. Cost: some thirty potentials for each row of a group and draw.
    """
    if not isinstance(coreset, GroupCoreset):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise TypeError(
            f'a coreset of groups is needed, as build(..., unit="group") makes it, '
            f"got {type(coreset).__name__}"
        )
    check_coreset(coreset)
    model = coreset.marginal
    phi = parameters_of(model, draws)
    term, labels = model.mixed.terms[0], model.mixed.group_labels[0]
    wanted = _numbers(labels, groups, term.group)
    effects = _drawn(coreset, phi.reshape(-1, model.dim), wanted, seed)
    return {
        term.called(name): np.moveaxis(effects[:, :, place], 0, 1).reshape(
            *phi.shape[:-1], wanted.size
        )
        for place, name in enumerate(term.effects)
    }


def parameters_with_effects(coreset: GroupCoreset, phi: Array, *, seed: int = 0) -> Array:
    """θ of the mixed model, (S, d): φ (S, ·) and effects of every group drawn given it."""
    mixed = coreset.marginal.mixed
    theta = np.empty((len(phi), mixed.dim))
    theta[:, : phi.shape[1]] = phi
    term = mixed.structure.terms[0]
    effects = _drawn(coreset, phi, np.arange(term.num_groups), seed)
    theta[:, term.positions] = np.moveaxis(effects, 0, 1)
    return theta


def _drawn(coreset: GroupCoreset, phi: Array, wanted: Indices, seed: int) -> Array:
    """Effects of these groups at φ (S, ·), (groups, S, q)."""
    model, level_one = coreset.marginal, coreset.level_one
    rng = np.random.default_rng(checked_seed(seed))
    block = model.group_block(level_one.rows, level_one.weights, wanted)
    effects = np.empty((wanted.size, len(phi), model.num_effects))
    step = max(1, (1 << 17) // (len(phi) * block["y"].shape[1]))
    for first in range(0, wanted.size, step):
        part = slice(first, first + step)
        effects[part] = model.draw_effects(rng, phi, block.take(part))
    return effects


def _numbers(labels: tuple[Any, ...], groups: Sequence[Any] | None, column: str) -> Indices:
    if groups is None:
        return np.arange(len(labels))
    places = {label: place for place, label in enumerate(labels)}
    for label in groups:
        if label not in places:
            raise ValueError(f"there is no group {label!r} of {column!r} among the rows")
    return np.array([places[label] for label in groups], dtype=np.int64)
