"""What is foreseen of a certificate decides whether chains are run for it."""

import importlib

import numpy as np
import pytest
from benchmarks.mixed_families import FAMILIES, made

import corebayes as cb
from corebayes.certify.foreseen import foreseen_kl
from corebayes.rows import open_rows
from corebayes.types import Estimate

tolerance = importlib.import_module("corebayes.build.tolerance")


class Asked:
    rows, groups, seed = 3_000, 8, 2


@pytest.fixture(scope="module")
def problem():
    return made(FAMILIES["poisson"], ("1",), Asked)


@pytest.mark.parametrize("size", [pytest.param(22, marks=pytest.mark.slow), 30])
def test_it_is_what_the_certificate_says(problem, size):
    model, table = problem
    coreset = cb.build(model, table, target="y", size=size, progress=False)
    said = foreseen_kl(np.random.default_rng(0), coreset, open_rows(table, target="y"))
    found = cb.certify(coreset, table, target="y", tol=0.5).reverse_kl
    assert found is not None and found.value > 1e-5
    assert found.value / 3.0 < said.value < 3.0 * found.value


@pytest.mark.parametrize(("said", "early"), [(0.1, False), (0.02, True)])
def test_chains_are_run_where_it_is_near_the_tolerance(monkeypatch, problem, said, early):
    model, table = problem
    asked, done = [], []
    monkeypatch.setattr(tolerance, "foreseen_kl", lambda *_: Estimate(said, 0.01))
    holds, measure = tolerance.Tolerance.holds, tolerance.measure

    def noted(self, run, info, *, last=False):
        done.append(last)
        return holds(self, run, info, last=last)

    def counted(coreset, rows, **options):
        asked.append(done[-1])
        return measure(coreset, rows, **options)

    monkeypatch.setattr(tolerance.Tolerance, "holds", noted)
    monkeypatch.setattr(tolerance, "measure", counted)
    coreset = cb.build(model, table, target="y", tol=0.05, progress=False)
    # What is certified in the end is measured in any case.
    assert coreset.reason.startswith("certified") and len(asked) >= 2
    assert all(asked) != early


@pytest.mark.parametrize("size", [300, pytest.param(600, marks=pytest.mark.slow)])
def test_rows_beyond_the_quadratics_take_spikes_away(size):
    """Of 272 and 276 rows, where quadratics were all that was matched: 64 and .016 nats."""

    class Many:
        rows, groups, seed = 6_000, 30, 1

    model, table = made(FAMILIES["student-t"], ("1", "x1"), Many)
    coreset = cb.build(model, table, target="y", size=size, progress=False, seed=1)
    said = foreseen_kl(np.random.default_rng(0), coreset, open_rows(table, target="y"))
    assert said.value < 0.008
