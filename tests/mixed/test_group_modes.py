"""Modes of the effects of many groups at once: they are modes, and only what moves is computed."""

from __future__ import annotations

import numpy as np
import pytest

from corebayes.models.mixed.group_modes import effect_modes
from corebayes.models.mixed.group_rows import GroupRows
from corebayes.samplers.modes.high_places import MOST_POTENTIALS
from corebayes.samplers.posterior import Posterior
from tests.mixed.unit_cases import FAMILIES, bound


@pytest.mark.parametrize("name", FAMILIES)
@pytest.mark.parametrize("effects", [("1",), ("1", "x")])
def test_nothing_around_is_higher(name, effects):
    model, block, *_ = bound(name, 120, 8, effects)
    draws = np.random.default_rng(1).normal(0.0, 0.4, (40, model.dim))
    rows, tau = GroupRows.at(model.mixed, draws, block), np.exp(draws[:, -len(effects) :])
    modes, root = effect_modes(rows, tau)

    def heights(b):
        prior = -0.5 * np.square(b / tau[:, None]).sum(axis=3)
        return rows.heights(b) + prior

    assert np.all(np.isfinite(root))
    # A fifth of a deviation to each side, along the axes of the curvature: nodes need no more.
    sides = 0.2 * np.linalg.inv(root).swapaxes(-1, -2)
    around = np.concatenate([sides, -sides], axis=3).swapaxes(2, 3)
    top = heights(modes[:, :, None])
    assert np.all(heights(modes[:, :, None] + around) <= top + 1e-9 * np.abs(top))


def test_only_groups_that_move_go_on(monkeypatch):
    model, block, *_ = bound("student", 300, 20)
    draws = np.random.default_rng(2).normal(0.0, 0.5, (200, model.dim))
    rows, counted, plain = GroupRows.at(model.mixed, draws, block), [], GroupRows.heights

    def heights(self, effects):
        counted.append(effects[..., 0].size)
        return plain(self, effects)

    monkeypatch.setattr(GroupRows, "heights", heights)
    effect_modes(rows, np.exp(draws[:, -1:]))
    assert sum(counted) < 12 * len(block) * len(draws)


def test_a_value_of_groups_is_known_to_be_dear():
    model, block, *_ = bound("student")
    posterior = Posterior(model, block, np.ones(len(block)))
    assert posterior.num_potentials > 100 * len(block)
    assert MOST_POTENTIALS // posterior.num_potentials < 20_000
