"""A NumPyro model as it is: compressed, sampled on the coreset, and handed back to NumPyro."""

import os

import jax
import numpy as np
import numpyro
import numpyro.distributions as dist

import corebayes as cb

numpyro.enable_x64()
NUM_ROWS = int(os.environ.get("ROWS", 50_000))


def model(x, y):
    slope = numpyro.sample("slope", dist.Normal(0.0, 2.0))
    level = numpyro.sample("level", dist.Normal(0.0, 2.0))
    scale = numpyro.sample("scale", dist.HalfNormal(1.0))
    with numpyro.plate("rows", x.shape[0]):
        numpyro.sample("y", dist.StudentT(5.0, level + slope * x, scale), obs=y)


rng = np.random.default_rng(3)
x = rng.normal(size=NUM_ROWS)
y = 1.0 - 0.5 * x + 0.3 * rng.standard_t(5.0, size=NUM_ROWS)

adapted, data = cb.from_numpyro(model, x, y)
coreset = cb.build(adapted, data, size=40, seed=0)
print(cb.certify(coreset, data).verdict, "\n")

small = cb.to_numpyro(coreset)
mcmc = numpyro.infer.MCMC(
    numpyro.infer.NUTS(small), num_warmup=300, num_samples=500, progress_bar=False
)
mcmc.run(jax.random.PRNGKey(0))
for name, draws in mcmc.get_samples().items():
    print(f"{name:<6}{draws.mean():+.4f} ± {draws.std():.4f}")
