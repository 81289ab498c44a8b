"""A million rows of logistic regression become a few dozen, with a proof and a page about them."""

import os

import numpy as np

import corebayes as cb

NUM_ROWS = int(os.environ.get("ROWS", 1_000_000))

rng = np.random.default_rng(0)
truth = np.array([1.5, -0.8, 0.4, 0.0])
X = rng.normal(size=(NUM_ROWS, 4))
y = rng.random(NUM_ROWS) < 1 / (1 + np.exp(-(X @ truth - 1.0)))

coreset = cb.build(cb.LogisticRegression(intercept=True), (X, y), size=25, seed=0)
print(f"{coreset.num_rows:,} rows became {coreset.size} weighted rows.\n")

certificate = cb.certify(coreset, (X, y))
print(certificate, "\n")

posterior = cb.sample(coreset, draws=500, chains=4, seed=0).posterior
for k, value in enumerate(truth):
    draws = posterior["beta"].values[..., k]
    print(f"beta[{k}] = {draws.mean():+.4f} ± {draws.std():.4f}, generated with {value:+.1f}")

cb.report(coreset, (X, y), out="report.html", certificate=certificate)
print("\nreport.html shows all of it.")
