"""docs/peers.md and its figure, from the rows that were measured."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks.peers import priors
from benchmarks.peers.figures import draw_errors, draw_priors, numbers
from benchmarks.peers.measure import METHODS
from benchmarks.peers.problems import TITLES
from benchmarks.rowwise import commits

Rows = Mapping[str, Mapping[str, Any]]

SHORT = {
    "counts": "counts, 1e5 × 10",
    "flights": "flights, 3e5 × 12",
    "million": "1e6 × 10",
    "rare": "rare, 1e5 × 60",
    "intercepts": "(1 \\| g), 1e5",
}
NOT_RUN = "not run"
# What ends by itself, whatever the limit.
OWN = ("truth", "coreset", "laplace", "laplace_is", "quadratic", "uniform")
BEGIN, END = "<!-- peers -->", "<!-- end of peers -->"
PICTURE = """![Largest error of a posterior mean against CPU seconds, of all methods that ended, in
a panel for each problem](images/peers.svg)

The axes are the same in all panels; what is beyond them is drawn at their ends. Methods without a
mark failed or had no draws in time: the tables say how.

"""
PRIORS_PICTURE = """![For each of the fifty priors the error of the coreset, of the stored quadratic
and of reweighted draws](images/priors.svg)

"""
COLUMNS = ("method", "CPU s", "ESS", "largest mean error", "sd ratio", "k̂", "")
HEAD = """# What you would pick instead

Every method on the same data, each in a process of its own on one thread. CPU seconds include
compilation, and leave out imports, the making of the data, and the compiling of corebayes' own
kernels, which happens once for an installation (with groups some 15 s). Methods that draw stop at
1,000 effective draws (the smallest of all parameters), or at the limit that is named. Errors are
the largest over all parameters: of a posterior mean in posterior standard deviations, and the ratio
of standard deviations that is furthest from one. Draws alone make an error of about
√(2 log d) / √ESS; the truth has that noise too. HMCECS and SGLD start at the mode with Laplace's
covariance, which is in their favour and in their time.

`python -m benchmarks.peers` renews this page, row by row, and goes on where it was stopped. A row
of another method is not measured again while nothing of that method changed: below each table stand
the commits that its rows were measured at (those before 5882902e: that recorded them), with how
many there are of each. Beside other work a CPU second does less, by two times or more, so the load
of the machine is named where it is known. Slopes of groups, (1 + x | g), are not here but in
`benchmarks.mixed`: nutpie on all rows did not end in time, so there is no truth to compare with.

"""
FRANK = """## The frank answer

For one posterior of one GLM with many rows, Laplace's fit with importance weights of all rows
(`cb.laplace`) is as exact, and Laplace alone, the cheapest of all, is often enough. Full-data
NUTS and uniform subsamples, which coresets beat by far, are the weak peers. A coreset is the better
tool for models with groups, where there is no Laplace fit to lean on; to fit again and again, as
below; and for the sampler that you have.

"""


def cells(method: str, row: Mapping[str, Any], truth: Mapping[str, Any]) -> list[str]:
    name = METHODS[method][1]
    if "failed" in row:
        return [name, "–", "–", "–", "–", "–", f"failed: {row['failed']}"]
    off = numbers(row, truth) if method != "truth" else None
    shape = row.get("pareto_k")
    return [
        name,
        f"{row['seconds']:.1f}",
        f"{row['ess']:,}",
        "" if off is None else f"{off['mean']:.3f}",
        "" if off is None else f"{off['sd']:.2f}",
        "" if shape is None else f"{shape:.2f}",
        row["note"],
    ]


def line(problem: str, method: str, row: Mapping[str, Any], rows: Rows) -> str:
    if problem == "priors":
        return f"priors {method}: {row.get('failed') or format(row['seconds'], '.1f') + ' CPU s'}"
    truth = rows.get(f"{problem} truth", {})
    return f"{problem}: " + " | ".join(cells(method, row, truth))


def glance(rows: Rows) -> str:
    """CPU seconds and the largest error of a mean, of the methods and problems of the README."""
    shown = [problem for problem in SHORT if f"{problem} truth" in rows]
    head = ["CPU s, largest mean error in sd", *(SHORT[problem] for problem in shown)]
    table = [f"| {' | '.join(head)} |", "|" + "---|" * len(head)]
    for method, (_, name) in METHODS.items():
        if method == "truth":
            continue
        found = [_short(rows, problem, method) for problem in shown]
        if set(found) != {NOT_RUN}:
            table.append(f"| {' | '.join([name, *found])} |")
    return "\n".join(table) + "\n"


def _short(rows: Rows, problem: str, method: str) -> str:
    row = rows.get(f"{problem} {method}")
    if row is None:
        return NOT_RUN
    off = numbers(row, rows.get(f"{problem} truth", {}))
    if off is None:
        words = row.get("failed", "")
        if "CPU s" in words:
            return "no draws in time"
        return "not for groups" if "groups" in words else "failed"
    return f"{row['seconds']:.1f}, {off['mean']:.2f}"


def section(problem: str, rows: Rows) -> str:
    truth = rows.get(f"{problem} truth", {})
    table = [f"| {' | '.join(COLUMNS)} |", "|" + "---|" * len(COLUMNS)]
    missing: list[str] = []
    for method, (_, name) in METHODS.items():
        row = rows.get(f"{problem} {method}")
        if row is None:
            missing.append(name)
        else:
            table.append(f"| {' | '.join(cells(method, row, truth))} |")
    if len(table) == 2:
        return ""
    foot = f"\nNot run: {', '.join(missing)}.\n" if missing else ""
    measured = [method for method in METHODS if f"{problem} {method}" in rows]
    limits = {rows[f"{problem} {method}"]["limit"] for method in measured if method not in OWN}
    title = TITLES[problem][0].upper() + TITLES[problem][1:]
    ends = sorted({min(limits), max(limits)}) if limits else []
    limit = f"\nLimit {' to '.join(f'{end:g}' for end in ends)} CPU s a row.\n" if ends else ""
    others = [rows[f"{problem} {method}"] for method in measured if method != "coreset"]
    ours = rows.get(f"{problem} coreset", {})
    beside = f" at a load of {ours['load']}" if "load" in ours else ""
    ours = f"corebayes {ours.get('commit', 'unknown')}{beside}"
    code = f"\nMeasured at commits: {ours}; the others {commits(others)}.\n"
    return f"## {title}\n\n" + "\n".join(table) + "\n" + limit + code + foot + "\n"


def of_priors(rows: Rows) -> str:
    truth = rows.get("priors laplace-is", {})
    if "moments" not in truth:
        return ""
    named = {
        "laplace-is": "Laplace with importance sampling, each time (the truth)",
        "coreset": f"one coreset of {priors.SIZE} rows",
        "quadratic": "stored quadratic of the likelihood",
        "reweighted": "4,000 stored draws, reweighted",
    }
    table = [
        "| | first fit, CPU s | the other 49, CPU s | median mean error | largest | sd ratios |",
        "|---|---|---|---|---|---|",
    ]
    for method, name in named.items():
        row = rows.get(f"priors {method}", {})
        if "moments" not in row:
            table.append(f"| {name} | {row.get('failed', 'not run')} | | | | |")
            continue
        median, largest, low, high = priors.compared(dict(row), dict(truth))
        errors = "| | |" if row is truth else f"| {median:.4f} | {largest:.4f} "
        ratios = " |" if row is truth else f"| {low:.3f} to {high:.3f} |"
        table.append(
            f"| {name} | {row['first']:.1f} | {row['seconds'] - row['first']:.1f} {errors}{ratios}"
        )
    return (
        "## Fifty priors on the counts\n\nOne data set, fifty priors (20 scales, 15 shifts, 15 of "
        "both). The coreset's posteriors and the truth are evaluated with the same random numbers, "
        "so what differs is not noise; that of reweighted draws has it, about 0.03.\n\n"
        + "\n".join(table)
        + "\n\n"
    )


def write(rows: Rows, docs: Path) -> None:
    """The page, its figures, and the short table in the README."""
    shown = [problem for problem in TITLES if f"{problem} truth" in rows]
    if not shown:
        return
    draw_errors(rows, shown, docs / "images" / "peers.svg")
    used = sorted({row["versions"] for row in rows.values()})
    seeds = sorted({row["seed"] for row in rows.values()})
    table = glance(rows)
    text = HEAD + FRANK + f"{BEGIN}\n{table}{END}\n\n" + PICTURE
    text += "".join(section(problem, rows) for problem in shown) + of_priors(rows)
    if "priors laplace-is" in rows:
        draw_priors(rows, docs / "images" / "priors.svg")
        text += PRIORS_PICTURE
    text += f"Seeds {', '.join(map(str, seeds))}; {'; '.join(used)}.\n"
    (docs / "peers.md").write_text(text, encoding="utf-8")
    readme = docs.parent / "README.md"
    before, _, rest = readme.read_text(encoding="utf-8").partition(BEGIN)
    _, end, after = rest.partition(END)
    if end:
        readme.write_text(f"{before}{BEGIN}\n{table}{END}{after}", encoding="utf-8")
