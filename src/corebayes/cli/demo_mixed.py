"""The second half of the demonstration: a mixed model, and NUTS on all its rows beside it."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import corebayes as cb
from corebayes.build.groups import all_rows
from corebayes.cli.demo_steps import DemoSteps
from corebayes.data.frames import import_pyarrow
from corebayes.figures.effects import draw_effects
from corebayes.figures.plots import save_figure
from corebayes.files.outputs import write_or_keep
from corebayes.rows import Rows
from corebayes.samplers.posterior import Posterior
from corebayes.types import Array

FORMULA = "late ~ distance + (1 | carrier)"
ROWS_PER_CARRIER, MOST_CARRIERS = 1_000, 50
ROWS_KEPT = 4
DRAWS, TUNE, CHAINS = 2_000, 300, 4
# NUTS on all rows is what the coreset spares: as few draws as make intervals.
FULL_DRAWS, FULL_TUNE, FULL_CHAINS = 400, 200, 2


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
    drawn = steps.timed("mixed sample", lambda: _draws(Posterior.of(coreset), seed, full=False))
    steps.tell(
        "mixed sample", f"sample    NUTS on the coreset: {DRAWS:,} draws, compiling included"
    )
    certificate = steps.timed("mixed certify", lambda: cb.certify(coreset, rows, seed=seed + 1))
    steps.tell("mixed certify", "certify   all rows at fresh draws")
    full = steps.timed("mixed full", lambda: _full_draws(coreset, rows, seed))
    steps.tell("mixed full", f"compare   NUTS on all rows: {FULL_DRAWS:,} draws")
    steps.say(f"\n{certificate.verdict}\n")
    compared = _compared(coreset.model, drawn, full)
    found = compared.numbers()
    steps.say(
        f"carriers' effects  means differ by at most "
        f"{found['largest_mean_difference_in_sd']:.2f} posterior sd from those of all rows "
        f"({FULL_DRAWS} draws, noise about {FULL_DRAWS**-0.5:.2f} each), sds are "
        f"{found['median_sd_ratio']:.2f} times those of all rows (median)"
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


def _draws(posterior: Posterior, seed: int, *, full: bool) -> Array:
    chains, tune = (FULL_CHAINS, FULL_TUNE) if full else (CHAINS, TUNE)
    sampler = cb.NUTS(chains=chains, num_tune=tune)
    number = FULL_DRAWS if full else DRAWS
    return sampler.draw(np.random.default_rng(seed), posterior, number).flat


def _full_draws(coreset: Any, rows: Rows, seed: int) -> Array:
    return _draws(Posterior.of(all_rows(coreset.model, rows)), seed + 2, full=True)


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
