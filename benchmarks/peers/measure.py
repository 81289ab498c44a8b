"""One method on one problem, in a process of its own.

python -m benchmarks.peers.measure PROBLEM METHOD --seed 0 --limit 60
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from importlib import import_module

from benchmarks.peers import priors
from benchmarks.peers.problems import PROBLEMS
from benchmarks.peers.result import Result
from benchmarks.rowwise import hand_back

# Where each method is, and what people call it.
METHODS: dict[str, tuple[str, str]] = {
    "truth": ("ours", "truth"),
    "coreset": ("ours", "corebayes"),
    "laplace": ("ours", "Laplace"),
    "laplace_is": ("ours", "Laplace with importance sampling"),
    "quadratic": ("ours", "quadratic likelihood"),
    "uniform": ("ours", "uniform subsample"),
    "nutpie": ("others", "nutpie, all rows"),
    "nuts": ("numpyro_methods", "NumPyro NUTS, all rows"),
    "hmcecs": ("numpyro_methods", "HMCECS"),
    "sgld": ("others", "SGLD with control variates"),
    "mean_field": ("numpyro_methods", "ADVI, mean field"),
    "full_rank": ("numpyro_methods", "ADVI, full rank"),
    "pathfinder": ("numpyro_methods", "pathfinder"),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("problem", choices=[*PROBLEMS, "priors"])
    parser.add_argument("method")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--limit", type=float, default=60.0)
    asked = parser.parse_args()
    if asked.problem == "priors":
        hand_back(priors.measure(asked.method, asked.seed))
        return
    module, _ = METHODS[asked.method]
    run: Callable[..., Result] = getattr(import_module(f"benchmarks.peers.{module}"), asked.method)
    hand_back(run(PROBLEMS[asked.problem](asked.seed), asked.seed, asked.limit).row())


if __name__ == "__main__":
    main()
