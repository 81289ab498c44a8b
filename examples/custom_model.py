"""Any log-likelihood: exponential waiting times of which some were cut off (censored)."""

import os

import numpy as np

import corebayes as cb

NUM_ROWS = int(os.environ.get("ROWS", 100_000))


def log_likelihood(draws, block):
    """log p(time | θ) = θ·x − t exp(θ·x), and without the first term where time was cut off."""
    log_rate = block["features"] @ draws.T
    return block["seen"][:, None] * log_rate - block["time"][:, None] * np.exp(log_rate)


def log_prior(draws):
    return -0.5 * np.sum(draws**2, axis=1)


rng = np.random.default_rng(2)
features = np.column_stack([np.ones(NUM_ROWS), rng.normal(size=(NUM_ROWS, 2))])
times = rng.exponential(np.exp(-features @ [-0.5, 0.7, -0.2]))
rows = {"features": features, "time": np.minimum(times, 3.0), "seen": times < 3.0}

names = ["baseline", "treatment", "age"]
model = cb.CustomModel(log_likelihood, log_prior, dim=3, names=names, log_concave=True)
coreset = cb.build(model, rows, size=20, seed=0)
print(cb.certify(coreset, rows).verdict, "\n")

posterior = cb.sample(coreset, draws=500, chains=4, seed=0).posterior
for name in names:
    print(f"{name:<10}{posterior[name].values.mean():+.3f} ± {posterior[name].values.std():.3f}")
