"""posteriordb's mixture of two normals: a model of one's own, from plain functions.

    y ~ θ N(μ1, σ1) + (1 − θ) N(μ2, σ2),   μ1 < μ2, μ ~ N(0, 2²), σ half-normal(2), θ ~ Beta(5, 5)

on the unconstrained parameters (μ1, log(μ2 − μ1), log σ1, log σ2, logit θ).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

import corebayes as cb

NAMES = ("mu[1]", "mu[2]", "sigma[1]", "sigma[2]", "theta")


def constrained(draws: Any) -> tuple[Any, ...]:
    import jax.numpy as jnp

    first, gap, log_one, log_two, logit = (draws[..., k] for k in range(5))
    second = first + jnp.exp(gap)
    return first, second, jnp.exp(log_one), jnp.exp(log_two), 1.0 / (1.0 + jnp.exp(-logit))


def log_likelihood(draws: Any, block: Any) -> Any:
    import jax.numpy as jnp

    low, high, s, t, share = constrained(draws)
    y = block.y[:, None]
    one = jnp.log(share) - jnp.log(s) - 0.5 * ((y - low) / s) ** 2
    two = jnp.log1p(-share) - jnp.log(t) - 0.5 * ((y - high) / t) ** 2
    return jnp.logaddexp(one, two)


def log_prior(draws: Any) -> Any:
    import jax.numpy as jnp

    low, high, s, t, share = constrained(draws)
    squares = low**2 + high**2 + s**2 + t**2
    # Of log(μ2 − μ1), log σ and logit θ, and Beta(5, 5).
    volume = draws[..., 1] + draws[..., 2] + draws[..., 3]
    return -squares / 8.0 + volume + 5.0 * (jnp.log(share) + jnp.log1p(-share))


@dataclass(frozen=True)
class Mixture:
    y: np.ndarray

    shared = NAMES
    size = None

    @classmethod
    def of(cls, data: dict[str, Any]) -> Mixture:
        return cls(np.array(data["y"], float))

    @property
    def num_rows(self) -> int:
        return len(self.y)

    def in_corebayes(self) -> tuple[Any, Any]:
        return cb.CustomModel(log_likelihood, log_prior, 5), cb.open({"y": self.y})

    def named(self, model: Any, draws: np.ndarray) -> dict[str, np.ndarray]:
        return dict(zip(NAMES, map(np.asarray, constrained(draws)), strict=True))

    def in_numpyro(self) -> Any:
        import jax.numpy as jnp
        import numpyro
        from numpyro import distributions as dist

        y = jnp.asarray(self.y)

        def model() -> None:
            flat = dist.ImproperUniform(dist.constraints.ordered_vector, (), (2,))
            mu = numpyro.sample("mu", flat)
            numpyro.factor("prior of mu", dist.Normal(0.0, 2.0).log_prob(mu).sum())
            sigma = numpyro.sample("sigma", dist.HalfNormal(2.0).expand([2]).to_event(1))
            theta = numpyro.sample("theta", dist.Beta(5.0, 5.0))
            parts = dist.Normal(mu, sigma).log_prob(y[:, None])
            shares = jnp.log(jnp.stack([theta, 1.0 - theta]))
            numpyro.factor("rows", jnp.logaddexp(*(parts + shares).T).sum())

        return model

    def named_from_numpyro(self, values: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        found = {
            f"{name}[{k + 1}]": np.asarray(values[name])[..., k]
            for name in ("mu", "sigma")
            for k in range(2)
        }
        return {**found, "theta": np.asarray(values["theta"])}
