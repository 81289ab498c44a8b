"""The steps of the demonstration: what runs, how long it took, and what is said about it."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

from corebayes.watch.steps import show_steps

# What is shown while a step runs; builds show how far they are by themselves.
WORDS = {
    "generate": "generating the rows",
    "sample": "sampling the coreset posterior",
    "certify": "certifying",
    "full": "fitting the posterior of all rows",
    "uniform": "fitting uniform subsamples",
    "mixed compile": "compiling the mixed model's density",
    "mixed sample": "sampling the coreset posterior of the mixed model",
    "mixed certify": "certifying",
    "mixed full": "NUTS on all rows of the mixed model",
}

Result = TypeVar("Result")


class DemoSteps:
    """Runs steps by name and remembers their seconds, on the wall and of the processor."""

    def __init__(self, say: Callable[[str], None]):
        self.say = say
        self.seconds: dict[str, float] = {}
        self.cpu_seconds: dict[str, float] = {}

    def timed(self, name: str, step: Callable[[], Result], *, shown: bool = True) -> Result:
        began, worked = time.perf_counter(), time.process_time()
        with show_steps(None if shown else False) as steps:
            steps.begin(WORDS.get(name, name))
            result = step()
        self.seconds[name] = time.perf_counter() - began
        self.cpu_seconds[name] = time.process_time() - worked
        return result

    def tell(self, name: str, words: str) -> None:
        self.say(f"{words}, {self.seconds[name]:.1f} s")

    def tell_cpu(self, name: str, words: str) -> None:
        """Where two samplers are compared."""
        self.say(f"{words}, {self.cpu_seconds[name]:.2f} CPU s")
