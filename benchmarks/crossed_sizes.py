"""How fast KL falls with the rows of crossed group terms, (1 | g) + (1 | h).

    python -m benchmarks.crossed_sizes [--groups 60 50] [--rows 30000] [--seed 0]

Each pair of groups that meets in a row is a quadratic of its own, so rows are counted in shares of
the pairs. Printed is KL by the certificate, jointly and of what all groups share, which is matched
long before.
"""

from __future__ import annotations

import argparse
import os
import time

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

import numpy as np  # noqa: E402
import pandas  # noqa: E402
from benchmarks.mixed import groups, labels  # noqa: E402

import corebayes as cb  # noqa: E402

# Of the number of pairs.
SHARES = (0.1, 0.2, 0.4, 0.7)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--groups", type=int, nargs=2, default=(60, 50))
    parser.add_argument("--rows", type=int, default=30_000)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    rng = np.random.default_rng(asked.seed)
    g, h = (groups(rng, asked.rows, number) for number in asked.groups)
    x = rng.normal(size=asked.rows)
    effects = [0.6 * rng.normal(size=number) for number in asked.groups]
    y = labels(rng, 0.4 * x - 0.3 + effects[0][g] + effects[1][h])
    frame = pandas.DataFrame({"y": y, "x": x, "g": g, "h": h})
    model, rows = cb.from_formula("y ~ x + (1 | g) + (1 | h)", frame, family="bernoulli")
    pairs = len(frame.groupby(["g", "h"]))
    print(f"{asked.groups[0]} × {asked.groups[1]} groups, {pairs:,} pairs in {asked.rows:,} rows")
    began = time.process_time()
    sizes = [int(share * pairs) for share in SHARES]
    coresets = cb.build_path(model, rows, sizes=sizes, seed=asked.seed, progress=False)
    print(f"all sizes in {time.process_time() - began:.1f} CPU s")
    for coreset in coresets:
        found = cb.certify(coreset, rows, tol=1.0, seed=asked.seed + 1)
        kl, marginals = found.reverse_kl, found.marginals
        words = "withheld" if kl is None else f"{kl.value:.2g} ± {kl.standard_error:.1g}"
        shared = "" if marginals is None else f", shared {marginals.shared_kl.value:.1g}"
        share = coreset.size / pairs
        print(f"{coreset.size:6,} rows, {share:.0%} of the pairs: KL {words}{shared}", flush=True)


if __name__ == "__main__":
    main()
