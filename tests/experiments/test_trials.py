"""Trials are kept, found again, and run again only when what they depend on has changed."""

import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from corebayes.experiments import measure, trials
from corebayes.experiments.catalogue import DataFiles, make_experiment
from corebayes.experiments.measure import Yardstick, coresets_of, run_trial
from corebayes.experiments.trials import Trial, TrialStore, plan, run_missing
from corebayes.rows import open_rows

NOTHING = DataFiles(files={})


@pytest.fixture(scope="module")
def gaussian():
    return make_experiment("gaussian", quick=True, housing_set="uk_prices")


def test_plan_covers_everything_once_and_slow_methods_first(data_folder):
    files = {name: data_folder / f"{name}.npz" for name in ("synth_lr", "ds1", "phishing")}
    planned = plan(["gaussian", "logistic"], 2, DataFiles(files=files), quick=True)
    assert len(planned) == len(set(planned)) == 4 * 5 * 2
    assert [trial.method for trial in planned[:8]] == ["SparseVI"] * 8
    assert [trial.number for trial in planned[:8]] == [0] * 4 + [1] * 4


def test_a_trial_is_the_same_every_time(gaussian):
    first, second = (run_trial(gaussian, "gaussian", None, "GIGA", 1) for _ in range(2))

    def without_time(outcome):
        return [{k: v for k, v in row.items() if k != "cpu_seconds"} for row in outcome.rows]

    assert without_time(first) == without_time(second)
    other = run_trial(gaussian, "gaussian", None, "GIGA", 2)
    assert without_time(other)[3]["kl"] != without_time(first)[3]["kl"]


@pytest.mark.parametrize("method", ["GIGA", "Uniform", "AnnealedSparseVI"])
def test_rows_are_what_the_kept_coresets_give(gaussian, method):
    outcome = run_trial(gaussian, "gaussian", None, method, 0)
    model, rows = gaussian.load("gaussian", None, 0)
    data = open_rows(rows)
    full = rows.sum(axis=0) / (1 + len(rows))
    coresets = coresets_of(outcome._asdict())
    assert [row["size_asked"] for row in outcome.rows] == [0, *gaussian.sizes] == sorted(coresets)
    for row in outcome.rows:
        indices, weights = coresets[row["size_asked"]]
        assert row["size"] == indices.size <= row["size_asked"]
        # KL(N(m, s I) ‖ N(m₁, s₁ I)) in closed form
        s, s_full = 1 / (1 + weights.sum()), 1 / (1 + len(rows))
        shift = weights @ rows[indices] * s - full
        ratio = s / s_full
        kl = 0.5 * (rows.shape[1] * (ratio - 1 - np.log(ratio)) + shift @ shift / s_full)
        assert row["kl"] == pytest.approx(kl, rel=1e-6, abs=1e-9)
    assert outcome.rows[0]["kl_normalised"] == 1.0
    assert Yardstick.of(model, data).prior_kl == outcome.rows[0]["kl"]


def test_time_of_greedy_methods_grows_with_the_size(gaussian):
    seconds = [r["cpu_seconds"] for r in run_trial(gaussian, "gaussian", None, "GIGA", 0).rows]
    assert seconds[0] == 0.0 and seconds == sorted(seconds) and seconds[-1] > 0.0


def test_a_method_that_is_done_early_keeps_its_coreset(gaussian, monkeypatch):
    class Stops:
        def init(self, rng, problem, size):
            self.problem = problem
            return None

        def step(self, rng, problem, state):
            from types import SimpleNamespace

            from corebayes.constructions.construction import Info

            state = SimpleNamespace(points=problem.points(np.array([3]), np.array([2.0])))
            return state, Info(None, "done")

    monkeypatch.setattr(measure, "_warm_up", lambda *_: None)
    experiment = measure.Experiment(**{**vars(gaussian), "methods": {"GIGA": Stops()}})
    outcome = run_trial(experiment, "gaussian", None, "GIGA", 0)
    assert [row["size_asked"] for row in outcome.rows] == [0, *gaussian.sizes]
    assert len({row["kl"] for row in outcome.rows[1:]}) == 1


def test_kept_trials_are_not_run_again(tmp_path, monkeypatch):
    ran = []

    def run(self):
        ran.append(self)
        return {"rows": [{"kl": 1.0}], "coresets": {}}

    monkeypatch.setattr(Trial, "run", run)
    planned = plan(["gaussian"], 2, NOTHING, quick=True)
    store = TrialStore(tmp_path)
    run_missing(planned[:4], store, workers=1)
    run_missing(planned, store, workers=1)
    assert ran == planned
    # A file that was cut short is as good as none.
    path = store.path(planned[5])
    path.write_bytes(path.read_bytes()[:-5])
    run_missing(planned, store, workers=1)
    assert ran == [*planned, planned[5]]
    assert json.loads(path.read_text())["rows"]


def test_other_settings_or_data_are_another_file(tmp_path, monkeypatch, data_folder):
    store = TrialStore(tmp_path)
    quick, full = (plan(["gaussian"], 1, NOTHING, quick=quick)[0] for quick in (True, False))
    assert store.path(quick) != store.path(full)
    trial = Trial("logistic", "synth_lr", "GIGA", 0, True, None, "uk_prices")
    stored = trial._replace(path=str(data_folder / "synth_lr.npz"))
    assert store.path(trial) != store.path(stored)
    # The same file in another folder is the same data.
    assert store.path(stored) == store.path(stored._replace(path="elsewhere/synth_lr.npz"))
    before = store.path(trial)
    monkeypatch.setattr(trials, "FORMAT", 2)
    assert store.path(trial) != before


def test_a_trial_that_fails_is_named(tmp_path):
    planned = [
        Trial("rbf", "uk_prices", method, 0, True, str(tmp_path / "none.npy"), "uk_prices")
        for method in ("GIGA", "Uniform")
    ]
    with pytest.raises(FileNotFoundError) as failed:
        run_missing(planned, TrialStore(tmp_path / "kept"), workers=2)
    assert "in the trial: rbf uk_prices" in failed.value.__notes__[0]


@pytest.mark.slow
def test_interrupted_runs_go_on(tmp_path):
    """Ctrl-C keeps what is finished, leaves no process, and the same command completes the rest."""
    words = ["reproduce", "gaussian", "--quick", "--trials", "2", "--workers", "2"]
    command = [sys.executable, "-m", "corebayes", *words, "--out", "kept"]
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
    running = subprocess.Popen(
        command, cwd=tmp_path, env=environment, stderr=subprocess.PIPE, text=True
    )
    kept = tmp_path / "kept" / "trials"
    deadline = time.monotonic() + 120
    while not list(kept.glob("*.json")) and time.monotonic() < deadline:
        time.sleep(0.02)
    running.send_signal(signal.SIGINT)
    _, said = running.communicate(timeout=60)
    assert running.returncode == 130, said
    assert "the same command goes on from there" in said
    before = {path.name: path.stat().st_mtime_ns for path in kept.glob("*.json")}
    assert 0 < len(before) < 10
    assert not list(kept.glob("*.tmp"))
    again = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert again.returncode == 0, again.stderr
    assert f"{len(before)} of 10 trials are kept from before" in again.stderr
    after = {path.name: path.stat().st_mtime_ns for path in kept.glob("*.json")}
    assert len(after) == 10 and before.items() <= after.items()
    assert (tmp_path / "kept" / "report.html").is_file()
