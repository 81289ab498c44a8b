"""The same work by this source and by that of 0.1.0, each in a process of its own.

`python -m benchmarks.before NAME` does the work of that name with whatever corebayes it finds and
prints what it took, in CPU seconds, as one line of JSON; `compare` runs it for both. Only what both
versions have is used here.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np

import corebayes as cb

RELEASED = "78bd7d1"
"""The last commit of 0.1.0."""
CHAINS, TUNE, DRAWS = 4, 500, 1000
HERE = Path(__file__).resolve().parents[1]


def logistic_rows(num_rows: int, dim: int = 10) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(num_rows, dim))
    theta = rng.normal(size=dim)
    return X, (rng.random(num_rows) < 1.0 / (1.0 + np.exp(-X @ theta))).astype(float)


def logistic() -> Any:
    """65 rows, d = 10, of 200,000."""
    return cb.build(
        cb.LogisticRegression(prior=cb.Normal()), logistic_rows(200_000), size=65, seed=0
    )


def grouped(num_rows: int = 3000, num_groups: int = 27) -> tuple[Any, ...]:
    """x, groups, labels and the number of groups."""
    rng = np.random.default_rng(1)
    groups, x = rng.integers(0, num_groups, num_rows), rng.normal(size=num_rows)
    eta = 0.5 + 0.7 * rng.normal(size=num_groups)[groups] + 0.8 * x
    y = (rng.random(num_rows) < 1.0 / (1.0 + np.exp(-eta))).astype(np.int64)
    return x, groups, y, num_groups


def subset(model: Any, data: Any, size: int = 500) -> Any:
    """Every so many rows, which is all that a benchmark of draws needs."""
    rows = np.linspace(0, data.num_rows - 1, size).astype(np.int64)
    return cb.Coreset(
        model=model.bind(data),
        rows=data.take(rows),
        indices=rows,
        weights=np.full(size, data.num_rows / size),
        num_rows=data.num_rows,
        total_count=data.total_count,
        reason="every so many rows",
    )


def numpyro_groups(x: Any, groups: Any, y: Any, num_groups: int) -> None:
    import numpyro
    from numpyro import distributions

    mean = numpyro.sample("mean", distributions.Normal(0.0, 2.0))
    slope = numpyro.sample("slope", distributions.Normal(0.0, 1.0))
    scale = numpyro.sample("scale", distributions.HalfNormal(1.0))
    with numpyro.plate("groups", num_groups):
        offset = numpyro.sample("offset", distributions.Normal(0.0, 1.0))
    with numpyro.plate("rows", len(y)):
        logits = mean + scale * offset[groups] + slope * x
        numpyro.sample("y", distributions.Bernoulli(logits=logits), obs=y)


def numpyro() -> Any:
    """Random intercepts: 30 parameters, 500 rows."""
    return subset(*cb.from_numpyro(numpyro_groups, *grouped()))


def pymc() -> Any:
    """The same in PyMC."""
    import pymc as pm

    x, groups, y, num_groups = grouped()
    with pm.Model() as model:
        mean, slope = pm.Normal("mean", 0.0, 2.0), pm.Normal("slope", 0.0, 1.0)
        scale = pm.HalfNormal("scale", 1.0)
        offset = pm.Normal("offset", 0.0, 1.0, shape=num_groups)
        pm.Bernoulli("y", logit_p=mean + scale * offset[groups] + slope * x, observed=y)
    return subset(*cb.from_pymc(model))


def draws_of(make: Callable[[], Any]) -> Callable[[int, int], dict[str, Any]]:
    """4 × 1,000 draws, ArviZ data and diagnostics included: the first time, and the best after.

    Chains take as long one as the other, so that 0.1.0 may do with one: later times four.
    """

    def work(repeats: int, chains: int) -> dict[str, Any]:
        coreset, seconds, draws = make(), list[float](), list[np.ndarray]()
        trace: Any = None
        for seed in range(1 + repeats):
            began = time.process_time()
            trace = cb.sample(coreset, tune=TUNE, chains=chains, seed=seed, progress=False)
            seconds.append(time.process_time() - began)
            values = [
                v.values.reshape(-1, *v.shape[2:]) for v in trace.posterior.data_vars.values()
            ]
            draws.append(np.concatenate([v.reshape(len(v), -1) for v in values], axis=1))
        flat = np.concatenate(draws)
        return {
            "first": seconds[0],
            "later": min(seconds[1:]) * CHAINS / chains,
            "mean": flat.mean(axis=0).tolist(),
            "sd": flat.std(axis=0).tolist(),
            "ess": float(trace.attrs.get("min_ess_bulk", np.nan)),
            "how": str(trace.attrs.get("sampler", "NUTS")),
        }

    return work


def certify(repeats: int, chains: int) -> dict[str, Any]:
    """The default certificate of 65 rows of a million, d = 10, built by this version."""
    rows = logistic_rows(1_000_000)
    coreset = cb.build(cb.LogisticRegression(prior=cb.Normal()), rows, size=65, seed=0)
    seconds, found = list[float](), None
    for seed in range(1 + repeats):
        began = time.process_time()
        found = cb.certify(coreset, rows, seed=1 + seed)
        seconds.append(time.process_time() - began)
    assert found is not None
    kl = None if found.reverse_kl is None else found.reverse_kl.value
    return {
        "first": seconds[0],
        "later": min(seconds),
        "kl": kl,
        "num_draws": int(found.num_draws),
        "certified": bool(found.certified),
    }


WORK: dict[str, Callable[[int, int], dict[str, Any]]] = {
    "logistic": draws_of(logistic),
    "numpyro": draws_of(numpyro),
    "pymc": draws_of(pymc),
    "certify": certify,
}


def compare(name: str, repeats: int = 3) -> tuple[dict[str, Any], dict[str, Any]]:
    """What 0.1.0 took, and this source."""
    with tempfile.TemporaryDirectory() as folder:
        archive = subprocess.run(
            ["git", "archive", RELEASED, "src"], cwd=HERE, check=True, capture_output=True
        )
        with tarfile.open(fileobj=BytesIO(archive.stdout)) as tar:
            tar.extractall(folder, filter="data")
        before = _run(name, Path(folder) / "src", 1, 1)
    return before, _run(name, HERE / "src", repeats, CHAINS)


def _run(name: str, source: Path, repeats: int, chains: int) -> dict[str, Any]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(source), str(HERE)])}
    numbers = [str(repeats), str(chains)]
    command = [sys.executable, "-W", "ignore", "-m", "benchmarks.before", name, *numbers]
    done = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    return json.loads(done.stdout.splitlines()[-1])


if __name__ == "__main__":
    repeats, chains = (int(number) for number in (sys.argv[2:] or [1, CHAINS]))
    print(json.dumps(WORK[sys.argv[1]](repeats, chains)))
