"""Do you need a coreset? What NUTS on all rows would take, beside building and sampling one.

    all rows:  gradients · N · t,      t: a row's share of a gradient, measured on a few rows
    coreset:   passes · N · h + choosing M rows of a pool + gradients · M · t,
               three times the last where two certificates by NUTS come before the draws

Both are rough, within a factor of two or three, so it is said only where all rows are far quicker.
"""

from __future__ import annotations

import time
from typing import Any, NamedTuple

import numpy as np

from corebayes.models.structure import is_structured
from corebayes.problem import Problem
from corebayes.types import Block, Model
from corebayes.watch.logs import say
from corebayes.watch.progress import Progress

# Gradients of four chains of 500 + 1,000 steps, a few to a step; more where groups have effects.
GRADIENTS, GRADIENTS_OF_GROUPS = 42_000, 120_000
# Rows that are tried, and seconds that may take: nothing beside a build.
TRIED_ROWS, FEW_ROWS, MOST_SECONDS = 2048, 16, 0.02
# Samplers compile models of other libraries and those with groups, which takes longer than the
# answer is worth: seconds for a row and for each of its numbers, as such code takes.
COMPILED_ROW, COMPILED_NUMBER = 10e-9, 1e-9
# Passes of a build, what a row costs in one beside its gradient, and the pool that rows are
# chosen from.
PASSES, DEARER, POOL_ROWS = 8.0, 10.0, 4000
# Seconds that building and sampling take at least: of built-in models, of those with unknown scales
# or groups, and where code is compiled; and those of compiling for all rows.
LEAST, LEAST_STRUCTURED, LEAST_COMPILED, COMPILING = 0.5, 1.0, 8.0, 3.0
# Certificates that a tolerance asks for, each of which such models draw by NUTS.
CERTIFICATES = 2
# It is worth a line where all rows take less than this share of the time.
QUICKER = 0.5


class Need(NamedTuple):
    """Seconds, roughly."""

    all_rows: float
    coreset: float

    @property
    def is_doubtful(self) -> bool:
        return self.all_rows < QUICKER * self.coreset


def need_of(problem: Problem, size: int | None) -> Need:
    """What both ways would take. Cost: two gradients of some rows, 50 ms at most as a rule."""
    model, num_rows = problem.model, problem.data.num_rows
    kept = min(size or quadratics(model), num_rows)
    row, compiled = _seconds_of_a_row(problem)
    gradients = GRADIENTS_OF_GROUPS if is_structured(model) else GRADIENTS
    choosing = 1e-9 * POOL_ROWS * kept * (kept + model.dim)
    least, chains = LEAST_COMPILED if compiled else LEAST, 1
    if is_structured(model):
        least = max(least, LEAST_STRUCTURED)
        chains += CERTIFICATES * (size is None)
    ours = least + PASSES * DEARER * num_rows * row + choosing + chains * gradients * kept * row
    return Need(gradients * num_rows * row + COMPILING * compiled, ours)


def say_if_doubtful(problem: Problem, size: int | None, bar: Progress) -> None:
    """One line where all rows would be quicker; the build goes on."""
    need = need_of(problem, size)
    if need.is_doubtful:
        text = advice(problem, need)
        say("need", text, all_rows_seconds=need.all_rows, coreset_seconds=need.coreset)
        bar.note(text)


def quadratics(model: Model) -> int:
    """Rows of a coreset that matches every quadratic of the shared parameters."""
    dim = min(model.dim, 60)
    return dim * (dim + 3) // 2 + 1


def advice(problem: Problem, need: Need) -> str:
    """One line, and what else would do."""
    model, rows = problem.model, problem.data.num_rows
    text = (
        f"{rows:,} rows and {model.dim:,} parameters: NUTS on all rows would take about "
        f"{_about(need.all_rows)}, building a coreset and sampling it about {_about(need.coreset)}"
    )
    if model.log_concave and not is_structured(model) and rows > 100 * model.dim:
        return f"{text}; for one fit corebayes.laplace is quicker still"
    return f"{text}; a coreset pays if it is used more than once"


def _seconds_of_a_row(problem: Problem) -> tuple[float, bool]:
    """A row's share of a gradient, and whether the model's code is compiled first."""
    model: Any = problem.model
    compiled = getattr(model, "jax_log_density", None) is not None
    if compiled or is_structured(model):
        return COMPILED_ROW + COMPILED_NUMBER * _numbers(problem.data.template), compiled
    data = problem.data
    rows = data.take(data.some(np.random.default_rng(0), min(TRIED_ROWS, data.num_rows)))
    theta, weights = np.zeros(model.dim), np.ones(len(rows))
    few = rows.take(slice(0, FEW_ROWS))
    with np.errstate(all="ignore"):
        spent = _seconds(model, theta, few, weights[:FEW_ROWS])
        if MOST_SECONDS < spent < 10.0 * MOST_SECONDS:
            # The first call may have imported something, or the machine was busy.
            spent = _seconds(model, theta, few, weights[:FEW_ROWS])
        if spent > MOST_SECONDS:
            return spent / len(few), False
        # What a call takes by itself is none of the rows'.
        spent = min(_seconds(model, theta, few, weights[:FEW_ROWS]) for _ in range(3))
        whole = min(_seconds(model, theta, rows, weights) for _ in range(3))
    return max((whole - spent) / max(len(rows) - len(few), 1), COMPILED_ROW), False


def _seconds(model: Model, theta: Any, rows: Block, weights: Any) -> float:
    began = time.perf_counter()
    model.gradient(theta, rows, weights)
    return time.perf_counter() - began


def _numbers(rows: Block) -> int:
    return sum(int(np.prod(values.shape[1:])) for values in rows.fields.values())


def _about(seconds: float) -> str:
    if seconds < 100.0:
        return f"{seconds:.0f} s" if seconds >= 9.5 else f"{max(seconds, 0.1):.1f} s"
    return f"{seconds / 60.0:,.0f} min"
