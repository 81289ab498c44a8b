"""How many rows does it take? Ask for a distance instead of a size, and for a whole curve."""

import os

import numpy as np

import corebayes as cb

NUM_ROWS = int(os.environ.get("ROWS", 200_000))

rng = np.random.default_rng(1)
X = rng.normal(size=(NUM_ROWS, 5))
counts = rng.poisson(np.log1p(np.exp(X @ [0.5, -0.3, 0.2, 0.1, 0.4] + 1.0)))
model = cb.PoissonRegression(intercept=True)

coreset = cb.build(model, (X, counts), tol=0.01, seed=0)
print(f"{coreset.size} of {NUM_ROWS:,} rows are enough: {coreset.reason}.\n")

print("rows   KL to the full posterior, in nats")
for smaller in cb.build_path(model, (X, counts), sizes=[8, 14, 27], seed=0):
    kl = cb.certify(smaller, (X, counts)).reverse_kl
    print(f"{smaller.size:4d}   " + ("too far to measure" if kl is None else f"{kl.value:.2g}"))
