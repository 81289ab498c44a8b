"""How often certificates are right.

    python -m benchmarks.certificates level [1.0001 0.5 2 8] [--runs 1800] [--minutes 8]
    python -m benchmarks.certificates modes [family …] [--runs 420] [--seed 0]
    python -m benchmarks.certificates built [6 8 …] [--runs 360] [--seed 0]

`level`: a Gaussian mean whose conjugacy is hidden, all weights scaled so that KL(π_w ‖ π) is known
exactly: how often a KL of 1.0001 times the tolerance is certified (at most 2.5 % may be), one of
half the tolerance is not, and how often value ± two errors covers the truth.

`modes`: posteriors of several modes (`several_modes.py`), KL from a grid: how many coresets above
the tolerance are certified (none may be), and how many at half of it and less are not.

`built`: the frequency model, built by default at three sizes or those named: whether the coreset is
at the right alias, and if not, whether `build` says so, by a warning of modes or, where there is
only one, by its own KL, and the certificate is refused.

Every result is kept (`kept.py`), so that runs of a few minutes add up.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Iterator
from functools import cache
from itertools import product, zip_longest
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from benchmarks.kept import Kept, Row
from benchmarks.several_modes import FAMILIES, frequency_problem
from scipy.optimize import brentq

import corebayes as cb
from corebayes.certify.measure import measure
from corebayes.coreset import Coreset
from corebayes.diagnostics import gaussian_kl
from corebayes.rows import open_rows

MODES_TOL = 0.05
# Right by as much as this, and every how many of such builds is certified.
RIGHT, CERTIFIED_EACH = 0.5 * MODES_TOL, 4
SHARES = (1.0001, 0.5, 2.0, 8.0)
TOLERANCES, DIMS = (0.001, 0.005, 0.02, 0.1, 0.5), (1, 5, 20)


class Hidden(cb.GaussianMean):
    """A Gaussian mean that no closed form knows of."""

    statistics = None
    posterior = None


class Scaled(NamedTuple):
    """All rows of a Gaussian mean; KL at weights of `scale`."""

    rows: Any
    model: Any
    hidden: Any

    def coreset(self, scale: float) -> Coreset:
        number = self.rows.num_rows
        indices = np.arange(number)
        block = self.rows.take(indices)
        return Coreset(indices, np.full(number, scale), block, self.hidden, number, float(number))

    def kl(self, scale: float) -> float:
        block = self.rows.take(np.arange(self.rows.num_rows))
        ours = self.model.posterior(self.model.statistics(block, np.full(len(block), scale)))
        return gaussian_kl(ours, self.model.posterior(self.model.statistics(block)))

    def scale_of(self, kl: float, *, large: bool) -> float:
        ends = (0.0, 14.0) if large else (-14.0, 0.0)
        return float(np.exp(brentq(lambda log: self.kl(np.exp(log)) - kl, *ends)))


@cache
def scaled(dim: int) -> Scaled:
    rows = open_rows(np.random.default_rng(dim).normal(size=(20, dim)) + 1.0)
    prior = cb.Normal(0.0, 10.0)
    model = cb.GaussianMean(prior=prior).bind(rows)
    return Scaled(rows, model, Hidden(prior=prior).bind(rows))


class Job(NamedTuple):
    """A coreset of known KL, and the tolerance to certify it at."""

    share: float
    dim: int
    tol: float
    large: bool
    seed: int


def level_jobs(share: float, repeats: int, first: int) -> Iterator[tuple[str, Job]]:
    """At KL = share · tol, over dimensions, tolerances and both signs of the error."""
    for seed, dim, tol, large in product(
        range(first, first + repeats), DIMS, TOLERANCES, (False, True)
    ):
        yield f"{share:g} {dim} {tol:g} {large} {seed}", Job(share, dim, tol, large, seed)


def level_of(job: Job) -> Row:
    problem, kl = scaled(job.dim), job.share * job.tol
    coreset = problem.coreset(problem.scale_of(kl, large=job.large))
    found = measure(coreset, problem.rows, tol=job.tol, seed=job.seed)
    covered = None
    if found.reverse_kl is not None:
        value, error = found.reverse_kl
        covered = bool(abs(value - kl) <= 2.0 * error)
    return {"certified": found.certified, "covered": covered, "draws": found.num_draws}


def level(kept: Kept, runs: int, *shares: str, seed: int = 0) -> None:
    repeats = max(1, runs // (len(DIMS) * len(TOLERANCES) * 2))
    for share in [float(share) for share in shares] or SHARES:
        found = list(kept.each(level_jobs(share, repeats, seed), level_of))
        if not found:
            continue
        certified = np.mean([row["certified"] for row in found])
        printed = [row["covered"] for row in found if row["covered"] is not None]
        print(
            f"KL = {share:g} tol: {len(found)} runs, certified {100 * certified:.2f} %, printed "
            f"{len(printed)}, of these covered {100 * np.mean(printed):.2f} %, "
            f"{np.mean([row['draws'] for row in found]):.0f} draws, {cpu(found)}",
            flush=True,
        )
        worst: dict[str, list[bool]] = {}
        for row in found:
            worst.setdefault(row["key"].rsplit(" ", 1)[0], []).append(row["certified"])
        extreme = sorted((round(float(np.mean(v)), 3), k) for k, v in worst.items())
        print("   least and most certified:", extreme[:2], extreme[-2:], flush=True)


def mode_jobs(name: str, number: int, first: int) -> Iterator[tuple[str, tuple[Any, int]]]:
    """So many cases of a family, from this seed on."""
    given = 0
    for seed in range(first, first + 10_000):
        for place, case in enumerate(FAMILIES[name](seed)):
            if given < number:
                given += 1
                yield f"{name} {seed} {place}", (case, seed)
        if given >= number:
            return


def mode_of(job: tuple[Any, int]) -> Row:
    case, seed = job
    result = measure(case.coreset, case.rows, tol=MODES_TOL, seed=seed + 1)
    return judged(case.kl, result, case.name)


def judged(kl: float, result: Any, name: str) -> Row:
    return {"name": name, "kl": kl, "certified": result.certified, "verdict": result.verdict}


def counted(found: list[Row]) -> tuple[int, int, int, int]:
    """Wrong ones, those of them that are certified, right ones, and those that are not."""
    wrong = [row for row in found if row["kl"] > MODES_TOL]
    right = [row for row in found if row["kl"] <= RIGHT and row["certified"] is not None]
    for row in found:
        if (row in right and not row["certified"]) or (row in wrong and row["certified"]):
            print(f"   {row['key']} ({row['name']}): KL {row['kl']:.3g}, {row['verdict']}")
    return (
        len(wrong),
        sum(row["certified"] for row in wrong),
        len(right),
        sum(not row["certified"] for row in right),
    )


def modes(kept: Kept, runs: int, *names: str, seed: int = 0) -> None:
    """Over posteriors of several modes: how many are certified and wrong, or right and not."""
    print(
        *(f"{name:>12}" for name in ("family", "runs", "wrong", "certified", "right", "withheld"))
    )
    # 60 of each family of the first seven; one of each after the other, so that a run that is cut
    # short has looked at all of them.
    jobs = [mode_jobs(name, -(-runs // 7), seed) for name in names or FAMILIES]
    turns = (job for turn in zip_longest(*jobs) for job in turn if job is not None)
    everything = list(kept.each(turns, mode_of))
    for name in names or FAMILIES:
        found = [row for row in everything if row["key"].startswith(f"{name} ")]
        if found:
            counts = (len(found), *counted(found))
            print(f"{name:>12}", *(f"{count:>12}" for count in counts), f"  {cpu(found)}")
    print(f"{'all':>12}", *(f"{count:>12}" for count in (len(everything), *counted(everything))))


def built_of(job: tuple[int, int, int]) -> Row:
    number, size, seed = job
    rows, model, truth = frequency_problem(seed, number)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", cb.ModeWarning)
        coreset = cb.build(model, rows, size=size, seed=seed, progress=False)
    warned = any(issubclass(one.category, cb.ModeWarning) for one in caught)
    kl, name = truth.kl(coreset), f"{number} rows, size {size}"
    # What `build` says itself, which is of the modes that it knows.
    said = {"warned": warned, "own": float(coreset.trace[-1]["kl"])}
    if kl <= RIGHT and seed % CERTIFIED_EACH:
        # Certificates of what is right are counted on some; they take half of the time.
        return {"name": name, "kl": kl, "certified": None, "verdict": "", **said}
    result = measure(coreset, rows, tol=MODES_TOL, seed=seed + 1)
    return {**judged(kl, result, name), **said}


def built(kept: Kept, runs: int, *sizes: str, seed: int = 0) -> None:
    """Default builds of the frequency model at three sizes: true KL, and what is certified."""
    cells = list(product((400, 5000), [int(size) for size in sizes] or (15, 25, 40)))
    # Seed by seed over all cells, so that a run that is cut short has looked at all of them.
    jobs = [
        (f"built {number} {size} {one}", (number, size, one))
        for one in range(seed, seed + -(-runs // len(cells)))
        for number, size in cells
    ]
    everything = list(kept.each(jobs, built_of))
    for number, size in cells:
        found = [row for row in everything if row["key"].startswith(f"built {number} {size} ")]
        if not found:
            continue
        wrong, certified, right, withheld = counted(found)
        kls = [row["kl"] for row in found]
        unwarned = [row for row in found if row["kl"] > MODES_TOL and not row["warned"]]
        silent = sum(row["own"] <= MODES_TOL for row in unwarned)
        needless = sum(row["kl"] <= RIGHT and row["warned"] for row in found)
        print(
            f"N = {number}, size {size}: {len(kls)} builds, KL median {np.median(kls):.1e}, "
            f"largest {max(kls):.1e}, above {MODES_TOL}: {wrong}, of these without a warning "
            f"{len(unwarned)}, nor by the build's own KL {silent}, certified {certified}; right "
            f"and warned of {needless}, "
            f"right and withheld {withheld} of {right}; {cpu(found)}",
            flush=True,
        )


def cpu(found: list[Row]) -> str:
    return f"{np.mean([row['seconds'] for row in found]):.2f} CPU s each"


BENCHMARKS: dict[str, Any] = {"level": level, "modes": modes, "built": built}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("benchmark", choices=list(BENCHMARKS))
    parser.add_argument("names", nargs="*", help="families, shares or sizes")
    parser.add_argument("--runs", type=int, help="1800 of each level, 420 of modes, 360 builds")
    parser.add_argument("--seed", type=int, help="the first seed")
    parser.add_argument("--minutes", type=float, default=8.0)
    arguments = parser.parse_args()
    runs = arguments.runs or {"level": 1800, "modes": 420, "built": 360}[arguments.benchmark]
    kept = Kept(Path("results") / f"certificates-{arguments.benchmark}.jsonl", arguments.minutes)
    seeds = {} if arguments.seed is None else {"seed": arguments.seed}
    BENCHMARKS[arguments.benchmark](kept, runs, *arguments.names, **seeds)


if __name__ == "__main__":
    main()
