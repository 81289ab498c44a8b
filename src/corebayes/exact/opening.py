"""The rows that a coreset stands for, opened and compared with it."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any

from corebayes.certify.measure import check_same_data
from corebayes.coreset import Coreset, check_coreset
from corebayes.formula.rows import as_built
from corebayes.rows import Rows
from corebayes.samplers.exact import is_conjugate
from corebayes.scan.inline import one_blas_thread
from corebayes.watch.progress import show_steps


@contextmanager
def opened(
    coreset: Coreset, data: Any, *, stage: str, progress: bool | None, **opening: Any
) -> Generator[tuple[Rows, Callable[[str], None]]]:
    """The rows, metered under this stage, and a function that says what is being done.

    Refused are coresets that nothing could have built and rows that are not what this one stands
    for. Cost: one pass, unless the rows were checked before.
    """
    check_coreset(coreset)
    rows = as_built(coreset, data, **opening)
    if not is_conjugate(coreset.model):
        rows = rows.with_sampling()
    with one_blas_thread(), show_steps(progress) as steps:
        steps.begin("checking the rows")
        rows.executor = steps.watch(rows.executor)
        check_same_data(coreset, rows)
        with rows.stage(stage):
            yield rows, steps.begin
