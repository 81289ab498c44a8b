"""How often certificates are right: `python -m benchmarks.certificates NAME [runs]`.

`level`: a Gaussian mean whose conjugacy is hidden, all weights scaled so that KL(π_w ‖ π) is known
exactly: how often a KL of 1.0001 times the tolerance is certified (at most 2.5 % may be), one of
half the tolerance is not, and how often value ± two errors covers the truth.

`modes`: posteriors of several modes (`several_modes.py`), KL from a grid: how many coresets above
the tolerance are certified (none may be), and how many at half of it and less are not.

`built`: the frequency model, built by default: whether the coreset is at the right alias.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from benchmarks.several_modes import FAMILIES, frequency_problem
from scipy.optimize import brentq

import corebayes as cb
from corebayes.certify.measure import measure
from corebayes.coreset import Coreset
from corebayes.diagnostics import gaussian_kl
from corebayes.rows import open_rows

MODES_TOL = 0.05
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


def scaled(dim: int, seed: int) -> Scaled:
    rows = open_rows(np.random.default_rng(seed).normal(size=(20, dim)) + 1.0)
    prior = cb.Normal(0.0, 10.0)
    model = cb.GaussianMean(prior=prior).bind(rows)
    return Scaled(rows, model, Hidden(prior=prior).bind(rows))


class Outcome(NamedTuple):
    certified: bool
    covered: bool | None
    num_draws: int


def outcome(problem: Scaled, kl: float, tol: float, *, large: bool, seed: int) -> Outcome:
    coreset = problem.coreset(problem.scale_of(kl, large=large))
    found = measure(coreset, problem.rows, tol=tol, seed=seed)
    covered = None
    if found.reverse_kl is not None:
        value, error = found.reverse_kl
        covered = abs(value - kl) <= 2.0 * error
    return Outcome(found.certified, covered, found.num_draws)


def outcomes(share: float, repeats: int) -> Iterator[tuple[tuple[Any, ...], Outcome]]:
    """At KL = share · tol, over dimensions, tolerances and both signs of the error."""
    for dim in DIMS:
        problem = scaled(dim, dim)
        for tol, large in product(TOLERANCES, (False, True)):
            for seed in range(repeats):
                yield (
                    (dim, tol, large),
                    outcome(problem, share * tol, tol, large=large, seed=seed),
                )


def level(runs: int) -> None:
    repeats = max(1, runs // (len(DIMS) * len(TOLERANCES) * 2))
    for share in (1.0001, 0.5, 2.0, 8.0):
        began = time.process_time()
        found = list(outcomes(share, repeats))
        certified = np.mean([one.certified for _, one in found])
        printed = [one.covered for _, one in found if one.covered is not None]
        draws = np.mean([one.num_draws for _, one in found])
        print(
            f"KL = {share:g} tol: {len(found)} runs, certified {100 * certified:.2f} %, printed "
            f"{len(printed)}, of these covered {100 * np.mean(printed):.2f} %, "
            f"{draws:.0f} draws, {time.process_time() - began:.0f} CPU s",
            flush=True,
        )
        worst: dict[Any, list[bool]] = {}
        for key, one in found:
            worst.setdefault(key, []).append(one.certified)
        extreme = sorted((float(np.mean(v)), k) for k, v in worst.items())
        print("   least and most certified:", extreme[:2], extreme[-2:], flush=True)


def modes(runs: int, *names: str) -> None:
    """Over posteriors of several modes: how many are certified and wrong, or right and not."""
    print(
        *(f"{name:>12}" for name in ("family", "runs", "wrong", "certified", "right", "withheld"))
    )
    for name in names or FAMILIES:
        cases = FAMILIES[name]
        began, found = time.process_time(), list[tuple[float, Any]]()
        for seed in range(10_000):
            for case in cases(seed):
                result = measure(case.coreset, case.rows, tol=MODES_TOL, seed=seed + 1)
                found.append((case.kl, result))
                right = case.kl <= 0.5 * MODES_TOL
                if (right and not result.certified) or (case.kl > MODES_TOL and result.certified):
                    print(f"   {case.name} seed {seed}: KL {case.kl:.3g}, {result.verdict}")
            if len(found) >= runs / len(FAMILIES):
                break
        wrong = [result for kl, result in found if kl > MODES_TOL]
        right = [result for kl, result in found if kl <= 0.5 * MODES_TOL]
        counts = (
            len(found),
            len(wrong),
            sum(result.certified for result in wrong),
            len(right),
            sum(not result.certified for result in right),
        )
        print(
            f"{name:>12}",
            *(f"{count:>12}" for count in counts),
            f"  {(time.process_time() - began) / len(found):.2f} CPU s each",
            flush=True,
        )


def built(runs: int) -> None:
    """Default builds of the frequency model at three sizes: true KL, and what is certified."""
    for number, size in product((400, 5000), (15, 25, 40)):
        began, kls, certified = time.process_time(), list[float](), list[bool]()
        for seed in range(max(1, runs // 6)):
            rows, model, truth = frequency_problem(seed, number)
            coreset = cb.build(model, rows, size=size, seed=seed, progress=False)
            kls.append(truth.kl(coreset))
            certified.append(measure(coreset, rows, tol=MODES_TOL, seed=seed + 1).certified)
        wrong = np.array(kls) > MODES_TOL
        right = np.array(kls) <= 0.5 * MODES_TOL
        withheld = right & ~np.array(certified)
        print(
            f"N = {number}, size {size}: {len(kls)} builds, KL median {np.median(kls):.1e}, "
            f"largest {max(kls):.1e}, above {MODES_TOL}: {wrong.sum()}, of these certified "
            f"{np.sum(wrong & certified)}; right and withheld {withheld.sum()} of {right.sum()}; "
            f"{(time.process_time() - began) / len(kls):.1f} CPU s each",
            flush=True,
        )


BENCHMARKS: dict[str, Any] = {"level": level, "modes": modes, "built": built}


if __name__ == "__main__":
    BENCHMARKS[sys.argv[1]](int(sys.argv[2]) if len(sys.argv) > 2 else 1800, *sys.argv[3:])
