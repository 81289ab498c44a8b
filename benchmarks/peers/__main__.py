"""What users would pick instead, on the same data: tables and a figure in docs/peers.md.

    python -m benchmarks.peers                          what is not measured yet
    python -m benchmarks.peers phishing counts          some problems
    python -m benchmarks.peers --methods coreset nuts   some methods
    python -m benchmarks.peers --page                   the page and the figure only

Every row runs in a process of its own, on one thread, for at most `--limit` CPU seconds, with
compilation, without imports, the making of the data and the kernels of corebayes, which are
compiled once for an installation (so run a row twice in a new clone). It is kept in
`benchmarks/results/peers.jsonl`, and what is there is not measured again. Methods that draw stop at
1,000 effective draws. A method that fails is a row that says how. Needs the extra `peers` and, for
`phishing`, the paper's data sets.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from benchmarks.peers import page, priors
from benchmarks.peers.measure import METHODS
from benchmarks.peers.problems import PROBLEMS
from benchmarks.rowwise import Table, run_alone, versions

HERE = Path(__file__).resolve().parents[1]
RESULTS = HERE / "results" / "peers.jsonl"
# Imports, the data and the hand-over of the model are not the method's.
AROUND = 60.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("problems", nargs="*")
    parser.add_argument("--methods", nargs="*", default=None)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--limit", type=float, default=60.0)
    parser.add_argument("--again", action="store_true")
    parser.add_argument("--page", action="store_true")
    parser.add_argument("--results", type=Path, default=RESULTS)
    asked = parser.parse_intermixed_args()
    table = Table(asked.results)
    todo = [(problem, method) for problem in PROBLEMS for method in METHODS]
    todo += [("priors", method) for method in priors.METHODS]
    for problem, method in todo:
        key = f"{problem} {method}"
        unwanted = (asked.problems and problem not in asked.problems) or (
            asked.methods and method not in asked.methods
        )
        if asked.page or unwanted or (key in table and not asked.again):
            continue
        # What everything is compared with takes what it takes.
        limit = asked.limit if method not in ("truth", "laplace-is") else 5 * asked.limit
        arguments = [problem, method, "--seed", str(asked.seed), "--limit", str(limit)]
        found = run_alone("benchmarks.peers.measure", arguments, limit + AROUND)
        more = {"seed": asked.seed, "limit": limit, "versions": versions("blackjax")}
        row = table.add(key, {**found, **more})
        print(page.line(problem, method, row, table.rows), flush=True)
    page.write(table.rows, HERE.parent / "docs")


if __name__ == "__main__":
    main()
