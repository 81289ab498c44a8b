"""From a coreset, and the rows it stands for, to a page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from os import PathLike
from typing import Any

from corebayes.arguments import checked_positive, checked_seed, checked_whole
from corebayes.certify.certificate import Certificate
from corebayes.coreset import Coreset, check_coreset
from corebayes.files.atomic import write_atomically
from corebayes.files.outputs import probe_output, write_or_keep
from corebayes.formula.rows import as_built
from corebayes.report.findings import Findings, find_out
from corebayes.report.html import escape
from corebayes.report.page import page
from corebayes.scan.passes import Executor
from corebayes.watch.progress import show_steps


@dataclass(frozen=True, kw_only=True)
class Report:
    """A page of HTML and the numbers it was written from. A notebook shows the page."""

    html: str = field(repr=False)
    findings: Findings = field(repr=False)

    def save(self, path: str | PathLike[str]) -> None:
        """Write the page, whole or not at all."""
        write_atomically(path, self.html.encode())

    def _repr_html_(self) -> str:
        return (
            f'<iframe title="coreset report" sandbox="" srcdoc="{escape(self.html)}" '
            'style="width:100%;height:40rem;border:0"></iframe>'
        )


def report(
    coreset: Coreset,
    data: Any = None,
    *,
    out: str | PathLike[str] | None = None,
    title: str = "Coreset report",
    draws: int = 1000,
    tol: float = 0.02,
    seed: int = 1,
    certificate: Certificate | None = None,
    progress: bool | None = None,
    memory: str | int | None = None,
    executor: Executor | None = None,
    target: str | None = None,
    features: Sequence[str] | None = None,
    counts: Any = None,
    on_bad: str = "raise",
) -> Report:
    """One self-contained page about a coreset: verdict, posterior, rows, cost, how to reproduce.

    `data` must be what the coreset was built from (`target`, `features`, `counts` and `on_bad` as
    there); without it the page says what it could not measure. `out` is where to write the page,
    which loads nothing from elsewhere and reads on a phone, in the dark and on paper. A
    `certificate` that is there already is shown as it is. Other arguments are those of `certify`.
    Cost: see `findings.find_out`; about as much as building and certifying once more.
    """
    check_coreset(coreset)
    checked_whole("draws", draws, 100)
    checked_positive("tol", tol)
    checked_seed(seed)
    if out is not None:
        probe_output(out)
    rows = None
    if data is not None:
        rows = as_built(
            coreset,
            data,
            target=target,
            features=features,
            counts=counts,
            on_bad=on_bad,
            memory=memory,
            executor=executor,
        ).with_sampling()
    with show_steps(progress) as steps:
        asked = (int(draws), tol, seed, certificate)
        findings = find_out(coreset, rows, *asked, steps)
    written = Report(html=page(findings, title), findings=findings)
    if out is not None:
        write_or_keep(written.save, out, "the page")
    return written
