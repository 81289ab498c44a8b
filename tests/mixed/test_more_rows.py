"""More rows than quadratics lower KL, and what a build says of KL is what a certificate finds."""

import numpy as np
import pandas as pd
import pytest

import corebayes as cb
from corebayes.arrow.fit import Fitting

FAMILIES = {
    "negative-binomial": cb.NegativeBinomialRegression(dispersion=1.0, prior=cb.Normal()),
    "student-t": cb.StudentTRegression(df=4.0, scale=1.0, prior=cb.Normal()),
    "gaussian": cb.LinearRegression(noise_sd=1.0, prior=cb.Normal()),
}


def rows_of(name: str, num_rows: int, seed: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    x = rng.gamma(1.5, size=num_rows) - 1.0
    eta = 0.4 - 0.6 * x
    if name == "negative-binomial":
        y = rng.poisson(np.exp(eta) * rng.gamma(1.3, 1.0 / 1.3, size=num_rows))
    else:
        noise = (
            rng.standard_t(4, size=num_rows) if name == "student-t" else rng.normal(size=num_rows)
        )
        y = eta + 0.7 * noise
    return pd.DataFrame({"one": 1.0, "x": x, "y": y.astype(float)})


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=() if n == "gaussian" else pytest.mark.slow) for n in FAMILIES]
)
@pytest.mark.parametrize("num_rows", [pytest.param(90, marks=pytest.mark.slow), 3000])
def test_asking_for_more_rows_gives_a_lower_kl(name, num_rows):
    frame = rows_of(name, num_rows, seed=num_rows)
    mixed = cb.MixedRegression(family=FAMILIES[name], terms=(), learned=cb.HalfNormal(5.0))
    levels = []
    for size in (10, 20, 45):
        coreset = cb.build(mixed, frame, target="y", size=size, progress=False, seed=3)
        found = cb.certify(coreset, frame, target="y", tol=0.02, seed=7)
        assert found.certified, found
        said, exact = coreset.trace[-1]["kl"], found.reverse_kl
        if exact.value > 1e-7 and exact.value > 3.0 * exact.standard_error:
            assert said / 3.0 < exact.value < 3.0 * said
        if coreset.size < size:
            assert "more would not lower KL" in coreset.reason and said < 1e-6
        levels.append(said)
    assert levels[1] < 1e-4
    assert levels[1] < 0.1 * levels[0] or levels[1] < 1e-10
    assert levels[2] < levels[1] or levels[1] < 1e-10


def test_every_coreset_of_a_path_has_its_own_trace():
    frame = rows_of("gaussian", 3000, seed=1)
    frame["g"] = np.arange(3000) % 7
    model, rows = cb.from_formula("y ~ x + (1 | g)", frame, family="gaussian")
    path = cb.build_path(model, rows, sizes=[15, 25, 40], progress=False)
    assert [coreset.trace[-1]["size"] for coreset in path] == [one.size for one in path]
    kls = [coreset.trace[-1]["kl"] for coreset in path]
    assert kls[0] > kls[1] > kls[2]


def test_small_effects_in_dollars_are_found_as_in_other_units():
    # Scales start at one and grow by steps: nothing has settled before they have.
    frame = rows_of("gaussian", 1000, seed=2)
    frame["g"] = np.arange(1000) % 8
    coresets = []
    for unit in (1.0, 1e5):
        scaled = frame.assign(y=unit * frame.y)
        model, rows = cb.from_formula("y ~ x + (1 + x | g)", scaled, family="gaussian")
        coresets.append(cb.build(model, rows, size=120, reserve=0, progress=False))
    assert abs(coresets[0].size - coresets[1].size) <= 2
    found = cb.certify(coresets[1], rows)
    assert found.certified and found.reverse_kl.value < 1e-3, found


def test_scale_and_degrees_of_freedom_are_found_in_few_steps(monkeypatch):
    # Cut short one by one, they led down from here, and a step was halved twenty times.
    rng, number = np.random.default_rng(1), 60_000
    X, groups = rng.normal(size=(number, 8)), rng.integers(0, 300, number)
    y = 0.3 * X @ rng.normal(size=8) + rng.normal(size=300)[groups] + rng.standard_t(3, number)
    frame = pd.DataFrame(X, columns=list("abcdefgh")).assign(y=y)
    taken, step = [], Fitting.step

    def counted(self, fitted):
        taken.append(step(self, fitted))
        return taken[-1]

    monkeypatch.setattr(Fitting, "step", counted)
    model, rows = cb.from_formula("y ~ . - g", frame, family="t")
    cb.build(model, rows, size=20, reserve=0, progress=False)
    assert len(taken) < 25 and all(one.decrement >= 0.0 for one in taken)
