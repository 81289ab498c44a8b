"""Rows that a mixed model needs, said before the work starts."""

from __future__ import annotations

from collections.abc import Sequence

from corebayes.constructions import Construction, GroupedPursuit
from corebayes.models.structure import is_structured
from corebayes.problem import Problem
from corebayes.watch.logs import say
from corebayes.watch.progress import Progress


def say_plan(
    problem: Problem, method: Construction, sizes: Sequence[int] | None, bar: Progress
) -> None:
    """One line with what matches everything."""
    model = problem.model
    if not isinstance(method, GroupedPursuit) or not is_structured(model):
        return
    matched = min(model.structure.num_matched, problem.data.num_rows)
    asked = "" if sizes is None else f"; asked for {sizes[-1]:,}"
    text = (
        f"{model.structure.describe()}. {matched:,} rows match all their quadratics, some two "
        f"thirds of them come close{asked}"
    )
    say("plan", text, num_matched=matched)
    bar.note(text)
