"""What a method gives back, and the clock it is measured with."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from benchmarks.summaries import summaries

if TYPE_CHECKING:
    from benchmarks.peers.problems import Problem

ENOUGH = 1000
CHAINS, DRAWS = 4, 1000


class Clock:
    """CPU seconds of this process since it was made, all threads."""

    def __init__(self) -> None:
        self._began = time.process_time()

    @property
    def seconds(self) -> float:
        return time.process_time() - self._began


class Result(NamedTuple):
    draws: dict[str, np.ndarray]
    """{variable: (chains, draws)}."""
    seconds: float
    note: str = ""
    pareto_k: float | None = None
    ess: int | None = None
    """Where the draws do not say it themselves."""

    def row(self) -> dict[str, Any]:
        found = summaries(self.draws)
        smallest = min(one["ess"] for one in found.values())
        return {
            "seconds": round(self.seconds, 2),
            "ess": smallest if self.ess is None else self.ess,
            "pareto_k": self.pareto_k,
            "note": self.note,
            "parameters": found,
        }


def independent(problem: Problem, fit: Any, seconds: float, seed: int) -> Result:
    """Draws of a Gaussian, whose effective size is what one asks for."""
    draws = fit.draw_matched(np.random.default_rng(seed), CHAINS * DRAWS)
    values = draws.reshape(CHAINS, DRAWS, -1)
    return Result(problem.named(values), seconds, "", ess=CHAINS * DRAWS)


def smallest_ess(draws: dict[str, np.ndarray]) -> float:
    from arviz_stats.base import array_stats

    return min(
        float(array_stats.ess(own, chain_axis=0, draw_axis=1, method="bulk"))
        for own in draws.values()
    )
