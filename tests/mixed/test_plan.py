"""Rows that groups need, said before the work starts."""

from __future__ import annotations

import logging

import numpy as np
import pandas as pd
import pytest

import corebayes as cb
from corebayes.constructions import grouped_pursuit

NUM_ROWS, G = 1200, 30


@pytest.fixture
def frame():
    rng = np.random.default_rng(6)
    g, x = rng.integers(G, size=NUM_ROWS), rng.normal(size=NUM_ROWS)
    y = 0.4 * x + 0.5 * rng.normal(size=G)[g] + rng.normal(size=NUM_ROWS)
    return pd.DataFrame({"x": x, "g": g, "y": y})


def few_rows(frame, **options):
    model, rows = cb.from_formula("y ~ x + (1 | g)", frame, family="gaussian")
    return lambda: cb.build(model, rows, progress=False, **options)


def test_fewer_rows_than_groups_is_warned_about_before_the_work(frame, monkeypatch):
    def begin(*_, **__):
        raise RuntimeError("work")

    monkeypatch.setattr(grouped_pursuit, "GroupLook", begin)
    build = few_rows(frame, size=12)
    said = (
        r"size=12 is less than the 30 groups of 'g': groups without rows keep the prior.*rows match"
    )
    with pytest.raises(RuntimeError, match="work"), pytest.warns(UserWarning, match=said):
        build()
    with pytest.raises(RuntimeError, match="work"):
        few_rows(frame, size=G)()


def test_a_path_is_warned_about_its_smallest_size(frame):
    model, rows = cb.from_formula("y ~ x + (1 | g)", frame, family="gaussian")
    with pytest.warns(UserWarning, match="size=20 is less than the 30 groups"):
        found = cb.build_path(model, rows, sizes=[20, 60], progress=False)
    assert [coreset.size for coreset in found][-1] <= 60


def test_the_rows_that_match_everything_are_said(frame, caplog):
    with caplog.at_level(logging.INFO, logger="corebayes"):
        few_rows(frame, size=60)()
    # p = 3 with log σ: 30 (1 + 1 + 3) + 9 + 1
    said = [record for record in caplog.records if record.fields["event"] == "plan"]
    assert len(said) == 1 and "160 rows match all their quadratics" in said[0].getMessage()
    assert said[0].fields["num_matched"] == 160
