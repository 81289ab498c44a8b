"""The second half of the demonstration: a mixed model, and NUTS on all its rows beside it."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np

import corebayes as cb
from corebayes.build.groups import all_rows
from corebayes.data.frames import import_pyarrow
from corebayes.figures.plots import draw_effects, save_figure
from corebayes.files.outputs import write_or_keep
from corebayes.rows import Rows
from corebayes.samplers.draws import Draws
from corebayes.samplers.posterior import Posterior
from corebayes.samplers.worth import worth
from corebayes.types import Array
from corebayes.watch.progress import show_steps

FORMULA = "late ~ distance + (1 | carrier)"
ROWS_PER_CARRIER, MOST_CARRIERS = 1_000, 50
ROWS_KEPT = 4
# NUTS on all rows is what the coreset spares: as few draws as make intervals, and of the coreset
# no more, so that the two times can be compared.
DRAWS, TUNE, CHAINS = 400, 200, 2


class Compared(NamedTuple):
    """The carriers' effects from both, and how far they are apart."""

    labels: tuple[str, ...]
    coreset: Array
    full: Array

    def numbers(self) -> dict[str, float]:
        sd = self.full.std(axis=0, ddof=1)
        shifts = np.abs(self.coreset.mean(axis=0) - self.full.mean(axis=0)) / sd
        ratios = self.coreset.std(axis=0, ddof=1) / sd
        return {
            "largest_mean_difference_in_sd": float(shifts.max()),
            "median_sd_ratio": float(np.median(ratios)),
        }


def run_mixed(*, num_rows: int, seed: int, out: Path, steps: DemoSteps) -> dict[str, Any]:
    """Build, sample and certify, NUTS on all rows, and `demo-mixed.png` with every carrier.

    Cost: the build, a pass or two to certify, some 5,000 gradients of all rows.
    """
    table = import_pyarrow().table(generate_flights(num_rows, seed))
    model, rows = cb.from_formula(FORMULA, table, family="bernoulli")
    coreset = steps.timed(
        "mixed build",
        lambda: cb.build(model, rows, rows_per_group=ROWS_KEPT, seed=seed),
        shown=False,
    )
    number = len(_carriers(coreset.model))
    steps.say(f"\n{num_rows:,} flights of {number} carriers: {FORMULA}\n")
    steps.tell("mixed build", f"build     {num_rows:,} rows became {coreset.size} weighted rows")
    # Once for both: whoever is first would pay for it.
    few = cb.NUTS(chains=1, num_tune=10)
    posterior = Posterior.of(coreset)
    steps.timed("mixed compile", lambda: few.draw(np.random.default_rng(seed), posterior, 10))
    steps.tell("mixed compile", "compile   the density, for NUTS on any rows")
    drawn = steps.timed("mixed sample", lambda: _draws(posterior, seed))
    steps.tell_cpu("mixed sample", f"sample    NUTS on the coreset: {_settings(drawn)}")
    certificate = steps.timed("mixed certify", lambda: cb.certify(coreset, rows, seed=seed + 1))
    steps.tell("mixed certify", "certify   all rows at fresh draws")
    full = steps.timed("mixed full", lambda: _full_draws(coreset, rows, seed))
    steps.tell_cpu("mixed full", f"compare   NUTS on all rows: {_settings(full)}")
    steps.say(f"\n{certificate.verdict}\n")
    compared = _compared(coreset.model, drawn.flat, full.flat)
    found = compared.numbers()
    found["times_the_cpu_seconds"] = steps.cpu_seconds["mixed full"] / max(
        steps.cpu_seconds["mixed sample"], 1e-3
    )
    steps.say(
        f"carriers' effects  means differ by at most "
        f"{found['largest_mean_difference_in_sd']:.2f} posterior sd from those of all rows "
        f"and sds are {found['median_sd_ratio']:.2f} times theirs in the median, both with a noise "
        f"of about {DRAWS**-0.5:.2f}; all rows took {found['times_the_cpu_seconds']:.0f} times the "
        "CPU seconds"
    )
    path = _draw(out, compared, num_rows, coreset.size)
    steps.say(f"\nThe figure is {path}")
    return {
        "num_rows": num_rows,
        "num_carriers": number,
        "size": coreset.size,
        "certificate": certificate.to_dict(),
        "comparison": found,
        "figure": str(path),
    }


def generate_flights(num_rows: int, seed: int) -> dict[str, Any]:
    """Columns late, distance and carrier; some carriers have fifty times the flights of others."""
    rng = np.random.default_rng(seed)
    number = int(np.clip(num_rows // ROWS_PER_CARRIER, 4, MOST_CARRIERS))
    shares = rng.gamma(1.0, size=number) + 0.05
    carrier = rng.choice(number, size=num_rows, p=shares / shares.sum())
    distance = rng.standard_normal(num_rows)
    eta = 0.4 * distance + rng.normal(0.0, 0.7, size=number)[carrier] - 1.0
    late = rng.random(num_rows) < 1.0 / (1.0 + np.exp(-eta))
    names = np.array([f"c{k:02}" for k in range(number)])
    return {"late": late.astype(np.float64), "distance": distance, "carrier": names[carrier]}


def _draws(posterior: Posterior, seed: int) -> Draws:
    return cb.NUTS(chains=CHAINS, num_tune=TUNE).draw(np.random.default_rng(seed), posterior, DRAWS)


def _full_draws(coreset: Any, rows: Rows, seed: int) -> Draws:
    return _draws(Posterior.of(all_rows(coreset.model, rows)), seed + 2)


def _settings(drawn: Draws) -> str:
    effective = int(worth(drawn.values).min_ess_bulk)
    return f"{DRAWS} draws ({effective} effective) after {TUNE} to tune in each of {CHAINS} chains"


def _carriers(model: Any) -> tuple[str, ...]:
    return tuple(map(str, model.coords["carrier__factor_dim"]))


def _compared(model: Any, drawn: Array, full: Array) -> Compared:
    labels = _carriers(model)
    ours, theirs = (model.constrain(draws)["1|carrier"] for draws in (drawn, full))
    return Compared(labels, ours, theirs)


def _draw(out: Path, compared: Compared, num_rows: int, size: int) -> Path:
    names = (f"coreset of {size} rows", f"NUTS on all {num_rows:,} rows")

    def draw(figure: Any) -> None:
        draw_effects(figure.subplots(), compared.labels, compared.coreset, compared.full, names)

    path = out / "demo-mixed.png"
    write_or_keep(
        lambda place: save_figure((place,), (11.5, 3.4), draw, dpi=110), path, "the figure"
    )
    return path


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
