"""What a construction knows before the work starts, said to whoever waits."""

from __future__ import annotations

from collections.abc import Sequence

from corebayes.constructions import Construction
from corebayes.problem import Problem
from corebayes.watch.logs import say
from corebayes.watch.progress import Progress


def say_plan(
    problem: Problem, method: Construction, sizes: Sequence[int] | None, bar: Progress
) -> None:
    """One line, if it has one to say."""
    plan = method.plan(problem)
    if plan is None:
        return
    text = plan.text if sizes is None else f"{plan.text}; asked for {sizes[-1]:,}"
    say("plan", text, num_matched=plan.num_matched)
    bar.note(text)
