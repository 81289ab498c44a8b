"""Whether a coreset is worth it, and what is said when it is not, or when `tol` is not reached."""

import json
import logging
import time

import numpy as np
import pandas as pd
import pytest

import corebayes as cb
from corebayes.build.need import Need, advice, need_of
from corebayes.cli.app import run
from corebayes.problem import Problem


def logistic(num_rows, dim=3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(num_rows, dim))
    return X, (rng.random(num_rows) < 1.0 / (1.0 + np.exp(-X[:, 0]))).astype(float)


def problem(rows, model=None):
    rows = cb.open(rows)
    return Problem((model or cb.LogisticRegression(prior=cb.Normal())).bind(rows), rows)


def test_a_million_rows_need_one_and_a_hundred_do_not():
    assert need_of(problem(logistic(100)), 9).is_doubtful
    many = need_of(problem(logistic(300_000)), 10)
    assert not many.is_doubtful
    assert many.all_rows > 5.0 * many.coreset


def test_the_question_costs_nothing_beside_a_build():
    asked = problem(logistic(200_000))
    need_of(asked, 10)
    began = time.process_time()
    need_of(asked, 10)
    assert time.process_time() - began < 0.05


@pytest.mark.parametrize(("seconds", "times"), [(0.03, 2), (0.25, 1)])
def test_a_slow_model_is_asked_twice_at_most(seconds, times):
    calls = []

    def density(draws, block):
        calls.append(len(block))
        time.sleep(seconds)
        return -np.abs(block.y[:, None] - block.X @ draws.T)

    asked = problem(
        logistic(5000), cb.CustomModel(density, lambda draws: -0.5 * np.sum(draws**2, axis=1), 3)
    )
    calls.clear()
    found = need_of(asked, 10)
    assert len(calls) <= times and found.all_rows > 60.0


def test_a_first_call_that_takes_long_says_nothing_about_the_others():
    class Importing(cb.LogisticRegression):
        waited = False

        def gradient(self, theta, rows, weights):
            if not Importing.waited:
                Importing.waited = True
                time.sleep(0.05)
            return super().gradient(theta, rows, weights)

    asked = problem(logistic(100), Importing(prior=cb.Normal()))
    Importing.waited = False
    assert need_of(asked, 9).is_doubtful and Importing.waited


def test_one_line_is_said_and_the_build_goes_on(caplog):
    with caplog.at_level(logging.INFO, logger="corebayes"):
        coreset = cb.build(cb.LogisticRegression(prior=cb.Normal()), logistic(80), size=9)
    (line,) = [r.getMessage() for r in caplog.records if r.fields["event"] == "need"]
    assert coreset.size and line.startswith("80 rows and 3 parameters: NUTS on all rows")
    caplog.clear()
    with caplog.at_level(logging.INFO, logger="corebayes"):
        cb.build(cb.LogisticRegression(prior=cb.Normal()), logistic(60_000), size=9)
    assert not [r for r in caplog.records if r.fields["event"] == "need"]


def test_laplace_is_named_where_it_would_do():
    assert "corebayes.laplace" in advice(problem(logistic(5000)), Need(1.0, 9.0))
    assert "more than once" in advice(problem(logistic(80)), Need(1.0, 300.0))


def test_certificates_of_a_tolerance_count():
    """Of 333 penguins NUTS takes seconds, and a build to a tolerance draws three times."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(333, 8)), columns=list("abcdefgh"))
    frame["y"] = rng.choice(["Adelie", "Chinstrap", "Gentoo"], 333)
    model, rows = cb.from_formula("y ~ .", frame, family="categorical")
    asked = Problem(model.bind(rows), rows)
    assert need_of(asked, None).is_doubtful
    assert need_of(asked, None).coreset > 1.5 * need_of(asked, 190).coreset


def test_short_times_are_told_apart():
    text = advice(problem(logistic(80)), Need(0.17, 0.69))
    assert "would take about 0.2 s" in text and "sampling it about 0.7 s" in text
    assert "about 12 s" in advice(problem(logistic(80)), Need(12.3, 300.0))


def test_a_tolerance_that_is_not_reached_warns():
    with pytest.warns(cb.ToleranceWarning, match=r"tol=1e-12 was not reached: the 5 rows"):
        coreset = cb.build(
            cb.LogisticRegression(prior=cb.Normal()), logistic(2000), size=5, tol=1e-12
        )
    assert coreset.size == 5


def test_the_command_exits_with_one(tmp_path, capsys):
    X, y = logistic(2000)
    np.savez(tmp_path / "rows.npz", X=X, y=y)
    codes = []
    for tol in ("1e-12", "0.5"):
        line = f"build {tmp_path}/rows.npz --model logistic --size 8 --tol {tol} --json"
        with pytest.raises(SystemExit) as ended:
            run([*line.split(), "--out", str(tmp_path / "c.parquet")])
        codes.append(ended.value.code)
        told = capsys.readouterr()
        assert ("was not reached" in told.err) == (tol == "1e-12")
        assert json.loads(told.out)["size"] <= 8
    assert codes == [1, 0]
