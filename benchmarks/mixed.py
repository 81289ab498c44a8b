"""Coresets of mixed models against their bars, each beside NUTS on all rows.

    python -m benchmarks.mixed                       every model
    python -m benchmarks.mixed intercepts slopes     some of them
    python -m benchmarks.mixed --posteriordb DIR     radon_all and election88 too, from a folder
    python -m benchmarks.mixed --no-full             without NUTS on all rows

KL is measured at NUTS draws of the coreset with all rows, scales free. Times are CPU seconds of
this process. NUTS on all rows is nutpie on the PyMC model of all rows, in the same run. Where it
takes more than `--full-seconds`, the seconds of a gradient on all rows are multiplied by how many
it took on the coreset's rows for the same draws, which the line says.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

import numpy as np  # noqa: E402
from benchmarks.full_nuts import nutpie_on_all_rows  # noqa: E402
from benchmarks.posteriordb.checkout import data_of  # noqa: E402

import corebayes as cb  # noqa: E402
from corebayes.build.groups import all_rows  # noqa: E402
from corebayes.rows import open_rows  # noqa: E402
from corebayes.samplers.nuts import NUTS  # noqa: E402
from corebayes.samplers.posterior import Posterior  # noqa: E402

DRAWS, CHAINS, TUNE = 500, 4, 400
# Draws at which all rows are evaluated.
EVALUATED = 250


class Bar(NamedTuple):
    """What must hold."""

    size: int
    kl: float
    seconds: float
    shared_kl: float | None = None


class Case(NamedTuple):
    model: cb.MixedRegression
    X: np.ndarray
    names: tuple[str, ...]
    y: np.ndarray
    bar: Bar

    def rows(self) -> cb.Rows:
        import pandas

        frame = pandas.DataFrame(self.X, columns=list(self.names), copy=False)
        frame["y"] = self.y
        return open_rows(frame, target="y")


def groups(rng: np.random.Generator, num_rows: int, num_groups: int) -> np.ndarray:
    """Unbalanced: some groups have ten times the rows of others."""
    shares = rng.gamma(2.0, size=num_groups)
    return rng.choice(num_groups, size=num_rows, p=shares / shares.sum())


def labels(rng: np.random.Generator, eta: np.ndarray) -> np.ndarray:
    return (rng.uniform(size=eta.size) < 1.0 / (1.0 + np.exp(-eta))).astype(float)


def design(rng: np.random.Generator, num_rows: int, p: int) -> tuple[np.ndarray, tuple[str, ...]]:
    X = rng.normal(size=(num_rows, p))
    X[:, 0] = 1.0
    return X, ("one", *(f"x{k}" for k in range(1, p)))


def intercepts(
    num_rows: int, num_groups: int, p: int, bar: Bar, family: str = "logistic"
) -> Callable[[int], Case]:
    """(1 | g)."""

    def make(seed: int) -> Case:
        rng = np.random.default_rng(seed)
        X, names = design(rng, num_rows, p)
        g = groups(rng, num_rows, num_groups)
        eta = X @ (0.5 * rng.normal(size=p)) + 0.8 * rng.normal(size=num_groups)[g]
        learned: Any = None
        model: Any = cb.LogisticRegression(prior=cb.Normal())
        if family == "poisson":
            model, y = (
                cb.PoissonRegression(link="log", prior=cb.Normal()),
                rng.poisson(np.exp(0.4 * eta)) + 0.0,
            )
        elif family == "gaussian":
            model, learned = (
                cb.LinearRegression(noise_sd=1.0, prior=cb.Normal()),
                cb.HalfNormal(1.0),
            )
            y = eta + 1.7 * rng.normal(size=num_rows)
        else:
            y = labels(rng, eta)
        terms = [cb.GroupTerm(group="g")]
        mixed = cb.MixedRegression(family=model, terms=terms, learned=learned)
        return Case(mixed, np.column_stack([X, g]), (*names, "g"), y, bar)

    return make


def slopes(seed: int) -> Case:
    """(1 + x | g)."""
    rng = np.random.default_rng(seed)
    X, names = design(rng, 100_000, 3)
    g = groups(rng, len(X), 100)
    eta = X @ [-0.5, 0.4, 0.3] + 0.7 * rng.normal(size=100)[g]
    eta += 0.4 * rng.normal(size=100)[g] * X[:, 1]
    terms = [cb.GroupTerm(group="g", effects=("1", "x1"))]
    model = cb.MixedRegression(family=cb.LogisticRegression(prior=cb.Normal()), terms=terms)
    X = np.column_stack([X, g])
    return Case(model, X, (*names, "g"), labels(rng, eta), Bar(900, 0.05, 30.0))


def crossed(seed: int) -> Case:
    """(1 | g) + (1 | h), 40 × 40."""
    rng = np.random.default_rng(seed)
    X, names = design(rng, 100_000, 3)
    g, h = groups(rng, len(X), 40), groups(rng, len(X), 40)
    eta = X @ [-0.5, 0.4, 0.3] + 0.7 * rng.normal(size=40)[g] + 0.5 * rng.normal(size=40)[h]
    terms = [cb.GroupTerm(group="g"), cb.GroupTerm(group="h")]
    model = cb.MixedRegression(family=cb.LogisticRegression(prior=cb.Normal()), terms=terms)
    X = np.column_stack([X, g, h])
    return Case(model, X, (*names, "g", "h"), labels(rng, eta), Bar(2000, 0.1, 60.0))


def radon(folder: Path) -> Case:
    data = posteriordb(folder, "radon_all")
    columns = (np.ones(data["N"]), data["log_uppm"], data["floor_measure"], data["county_idx"])
    model = cb.MixedRegression(
        family=cb.LinearRegression(prior=cb.Normal(0.0, 10.0)),
        terms=[cb.GroupTerm(group="county")],
        learned=cb.HalfNormal(1.0),
    )
    names = ("one", "log_uppm", "floor", "county")
    X = np.column_stack(columns).astype(float)
    return Case(model, X, names, np.array(data["log_radon"]), Bar(len(X) // 3, 0.1, 60.0))


def election(folder: Path) -> Case:
    data = posteriordb(folder, "election88")
    terms = ("age", "edu", "age_edu", "state", "region_full")
    black, female = np.array(data["black"]), np.array(data["female"])
    columns = [np.ones(data["N"]), black, female, data["v_prev_full"], black * female]
    columns.extend(data[name] for name in terms)
    X = np.column_stack(columns).astype(float)
    model = cb.MixedRegression(
        family=cb.LogisticRegression(prior=cb.Normal(0.0, 100.0)),
        terms=[cb.GroupTerm(group=name) for name in terms],
    )
    names = ("one", "black", "female", "v_prev", "black_female", *terms)
    return Case(model, X, names, np.array(data["y"], float), Bar(len(X) // 3, 0.1, 60.0))


def posteriordb(folder: Path, name: str) -> dict[str, Any]:
    data = data_of(folder, name)
    if data is None:
        raise SystemExit(f"there is no {name}.json.zip in {folder}")
    return data


CASES: dict[str, Callable[[int], Case]] = {
    "few-groups": intercepts(10_000, 5, 5, Bar(60, 0.02, 10.0)),
    "intercepts": intercepts(100_000, 100, 5, Bar(500, 0.01, 15.0)),
    "poisson": intercepts(100_000, 100, 5, Bar(600, 0.02, 20.0), "poisson"),
    "gaussian": intercepts(100_000, 100, 5, Bar(600, 0.02, 20.0), "gaussian"),
    "slopes": slopes,
    "crossed": crossed,
    "large": intercepts(1_000_000, 1_000, 10, Bar(8_000, 0.1, 120.0, 0.001)),
}


def measure(name: str, case: Case, seed: int, full_seconds: float) -> bool:
    rows, bar = case.rows(), case.bar
    began = time.process_time()
    coreset = cb.build(case.model, rows, size=bar.size, seed=seed, progress=False)
    built = time.process_time() - began
    tol = 2.0 * bar.kl
    began = time.process_time()
    found = cb.certify(coreset, rows, draws=4 * EVALUATED, tol=tol, seed=seed + 1)
    certified = time.process_time() - began
    kl = found.reverse_kl
    shared = None if found.marginals is None else found.marginals.shared_kl
    began = time.process_time()
    drawn = sample(coreset, seed)
    sampled = time.process_time() - began
    good = kl is not None and kl.value <= bar.kl and built <= bar.seconds
    good &= coreset.size <= bar.size and drawn.num_divergences == 0
    if bar.shared_kl is not None:
        good &= shared is not None and shared.value <= bar.shared_kl
    words = "withheld" if kl is None else f"{kl.value:.1e} ± {kl.standard_error:.0e}"
    of_shared = (
        "" if shared is None else f", shared {shared.value:.0e} ± {shared.standard_error:.0e}"
    )
    print(
        f"{'pass' if good else 'FAIL'}  {name}: {coreset.size:,} of {coreset.num_rows:,} rows (at "
        f"most {bar.size:,}), {coreset.model.dim:,} parameters; KL {words}{of_shared} (at most "
        f"{bar.kl:g}); build {built:.1f} s (at most {bar.seconds:g}), certify {certified:.1f} s, "
        f"{CHAINS} × {DRAWS} draws {sampled:.1f} s, {drawn.num_divergences} divergences, "
        f"R̂ {drawn.max_rhat:.3f}",
        flush=True,
    )
    if full_seconds > 0.0:
        compare_with_all_rows(coreset, rows, sampled, full_seconds, seed)
    return bool(good)


def sample(coreset: Any, seed: int) -> Any:
    sampler = NUTS(chains=CHAINS, num_tune=TUNE)
    posterior = Posterior.of(coreset)
    return sampler.draw(np.random.default_rng(seed), posterior, CHAINS * DRAWS).diagnosed()


def compare_with_all_rows(coreset: Any, rows: Any, sampled: float, limit: float, seed: int) -> None:
    """nutpie on all rows, or an estimate of what it would take that says what was measured."""
    everything = all_rows(coreset.model, rows)
    run = nutpie_on_all_rows(
        everything, seed=seed, tune=TUNE, draws=DRAWS, chains=CHAINS, limit=limit
    )
    estimate, how = run.seconds, f"{run.num_gradients:,} gradients, measured"
    if run.stopped:
        few = nutpie_on_all_rows(coreset, seed=seed, tune=TUNE, draws=DRAWS, chains=1, limit=np.inf)
        number = CHAINS * few.num_gradients
        estimate = run.seconds - run.sampling + number * run.gradient
        how = (
            f"extrapolated to {number:,} gradients, {CHAINS} times those of one chain of nutpie on "
            f"the coreset's {coreset.size:,} rows"
        )
    print(
        f"      all rows: nutpie on the PyMC model, {1e3 * run.gradient:.1f} ms a gradient, "
        f"{CHAINS} × {DRAWS} draws in {estimate:,.0f} s ({how}), "
        f"{estimate / sampled:,.0f} times as long as on the coreset",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help=", ".join(CASES))
    parser.add_argument("--posteriordb", type=Path)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--full-seconds", type=float, default=20.0)
    parser.add_argument("--no-full", action="store_true")
    arguments = parser.parse_args()
    every = dict(CASES)
    if arguments.posteriordb is not None:
        every["radon_all"] = lambda _: radon(arguments.posteriordb)
        every["election88"] = lambda _: election(arguments.posteriordb)
    if unknown := [name for name in arguments.names if name not in every]:
        parser.error(
            f"there is no model {unknown[0]!r}; there are {', '.join(every)}, and with "
            "--posteriordb radon_all and election88"
        )
    cases = {name: every[name] for name in arguments.names or every}
    full_seconds = 0.0 if arguments.no_full else arguments.full_seconds
    results = [
        measure(name, make(arguments.seed), arguments.seed, full_seconds)
        for name, make in cases.items()
    ]
    print(f"{sum(results)} of {len(results)} pass")


if __name__ == "__main__":
    main()
