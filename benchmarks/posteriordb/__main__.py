"""Coresets of posteriordb's posteriors against its reference draws, beside NUTS on all rows.

    python -m benchmarks.posteriordb DIR                      what is not measured yet
    python -m benchmarks.posteriordb DIR radon wells_dist     posteriors whose name has one of these
    python -m benchmarks.posteriordb DIR --page               write docs/posteriordb.md only

DIR is a checkout of posteriordb, or a folder with its `data` and `draws`. Results go to
`benchmarks/results/posteriordb.jsonl` as they come; what is there is not measured again.
The reference is posteriordb's where it has draws; else exact draws of linear regressions, weighted
draws of logistic ones, and NUTS on all rows for what remains. CPU seconds of one thread, with
compilation, without imports.
"""

from __future__ import annotations

import argparse
import os
import warnings
from pathlib import Path
from typing import Any

from benchmarks.rowwise import ONE_THREAD, Table, versions

os.environ.update(ONE_THREAD)

from benchmarks.posteriordb import page
from benchmarks.posteriordb.catalogue import catalogue
from benchmarks.posteriordb.checkout import data_of, reference_of
from benchmarks.posteriordb.exact import exact_draws
from benchmarks.posteriordb.measure import by_coreset, by_importance, by_numpyro_model, by_nuts
from benchmarks.posteriordb.regression import Regression
from benchmarks.summaries import apart, smallest_ess, summaries

HERE = Path(__file__).resolve().parents[1]
RESULTS = HERE / "results" / "posteriordb.jsonl"
PAGE = HERE.parent / "docs" / "posteriordb.md"
# Weighted draws are a reference if their weights have no tail to speak of.
GOOD_PARETO_K = 0.3


def measure(folder: Path, name: str, posterior: Any, seed: int, table: Table) -> dict[str, Any]:
    """The row of one posterior; NUTS, which does not change with the library, is kept apart."""
    ours = by_coreset(posterior, seed)
    truth, how = _reference(folder, name, posterior, seed)
    key = f"nuts {name}"
    if key not in table:
        table.add(key, by_nuts(posterior, seed + 7, long=truth is None))
    nuts = table.rows[key]
    truth = nuts["parameters"] if truth is None else truth
    of_shared = apart(ours["parameters"], truth, posterior.shared)
    of_all = apart(ours["parameters"], truth, truth)
    return {
        "seed": seed,
        "versions": versions(),
        "reference": how,
        "coreset": {k: v for k, v in ours.items() if k != "parameters"},
        "ess": smallest_ess(ours["parameters"], posterior.shared),
        "nuts": {k: v for k, v in nuts.items() if k != "parameters"},
        "nuts_ess": smallest_ess(nuts["parameters"], posterior.shared),
        "nuts_apart": apart(nuts["parameters"], truth, posterior.shared),
        "shared": of_shared,
        "all": of_all,
        "numpyro": _by_numpyro(posterior, seed, truth),
    }


def _by_numpyro(posterior: Any, seed: int, truth: dict[str, Any]) -> dict[str, Any] | None:
    """Of regressions without groups, which `from_numpyro` takes as they are."""
    if not isinstance(posterior, Regression) or posterior.terms:
        return None
    found = by_numpyro_model(posterior, seed)
    off = apart(found.pop("parameters"), truth, posterior.shared)
    return {**found, "mean": off["mean"]}


def _reference(
    folder: Path, name: str, posterior: Any, seed: int
) -> tuple[dict[str, Any] | None, str]:
    """Summaries and where they are from; None for NUTS on all rows."""
    given = reference_of(folder, name)
    if given is not None:
        return summaries(given), "posteriordb"
    if isinstance(posterior, Regression) and not posterior.terms:
        if posterior.sigma is not None:
            return summaries(exact_draws(posterior, seed + 5)), "exact draws"
        found, pareto_k = by_importance(posterior, seed + 5)
        if pareto_k < GOOD_PARETO_K:
            return found, "importance weights of all rows"
    return None, "NUTS beside it"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("names", nargs="*", help="parts of names; all when there are none")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--again", action="store_true", help="measure what is there once more")
    parser.add_argument("--page", action="store_true", help="write the page only")
    parser.add_argument("--results", type=Path, default=RESULTS)
    asked = parser.parse_intermixed_args()
    warnings.simplefilter("ignore")
    table = Table(asked.results)
    for name, (data, make) in catalogue().items():
        chosen = not asked.names or any(part in name for part in asked.names)
        if asked.page or not chosen or (name in table and not asked.again):
            continue
        found = data_of(asked.folder, data)
        if found is None:
            continue
        row = table.add(name, measure(asked.folder, name, make(found), asked.seed, table))
        print(page.line(name, row), flush=True)
    PAGE.write_text(page.page(table.rows), encoding="utf-8")
    print(page.verdict(table.rows))


if __name__ == "__main__":
    main()
