"""The prior of coefficients in other libraries.

All Normal priors are one multivariate normal. Where other priors stand beside it, coefficients are
declared without a prior, and all of it is added as one term,

    −½ (β − m)ᵀ Q (β − m) + constant + Σ_k log p_k(β_k).

A horseshoe is a mixture of normals for each of its coefficients, with variables for τ and 1/c².
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import numpy as np

from corebayes.adapters.exports import prior_forms
from corebayes.adapters.exports.mixed_parts import MixedParts, Single
from corebayes.models.priors.coefficient import (
    Flat,
)
from corebayes.models.priors.shrinkage import HorseshoePrior
from corebayes.models.priors.stated import PartialGaussian


def in_numpyro(
    numpyro: Any, parts: MixedParts, name: str, variable: Callable[[Single], Any]
) -> Any:
    """The coefficients as a sample of NumPyro; `variable` makes one of a single number."""
    jax: Any = importlib.import_module("jax")
    prior, distributions = parts.model.fixed_prior, numpyro.distributions
    if not isinstance(prior, PartialGaussian):
        normal = distributions.MultivariateNormal(prior.mean, covariance_matrix=prior.covariance)
        return numpyro.sample(name, normal)
    anywhere = distributions.ImproperUniform(
        distributions.constraints.real_vector, (), (prior.dim,)
    )
    beta = numpyro.sample(name, anywhere)
    off = beta - prior.mean
    total = prior.constant - 0.5 * off @ (prior.precision @ off)
    for place, other in parts.model.prior.others:
        if not isinstance(other, Flat):
            total += prior_forms.in_numpyro(distributions, other).log_prob(beta[place])
    for of, tau, slab in parts.shrinkages:
        logs = _mixture(of, beta, variable(tau), variable(slab), jax.numpy.log)
        total += jax.scipy.special.logsumexp(logs, axis=1).sum()
    numpyro.factor(f"{name}_prior", total)
    return beta


def in_pymc(
    pymc: Any, parts: MixedParts, name: str, dims: str, variable: Callable[[Single], Any]
) -> Any:
    """The coefficients as a variable of the PyMC model that is being made."""
    prior = parts.model.fixed_prior
    if not isinstance(prior, PartialGaussian):
        return pymc.MvNormal(name, prior.mean, cov=prior.covariance, dims=dims)
    beta = pymc.Flat(name, dims=dims)
    off = beta - prior.mean
    total = prior.constant - 0.5 * pymc.math.dot(off, pymc.math.dot(prior.precision, off))
    for place, other in parts.model.prior.others:
        if not isinstance(other, Flat):
            total += pymc.logp(prior_forms.in_pymc(pymc, other), beta[place])
    for of, tau, slab in parts.shrinkages:
        logs = _mixture(of, beta, variable(tau), variable(slab), pymc.math.log)
        total += pymc.math.logsumexp(logs, axis=1).sum()
    pymc.Potential(f"{name}_prior", total)
    return beta


def _mixture(
    of: HorseshoePrior, beta: Any, tau: Any, slab_inverse: Any, log: Callable[[Any], Any]
) -> Any:
    """Logs of the normals that a horseshoe is a mixture of, (coefficients, nodes)."""
    precision = np.exp(-2.0 * of.nodes) * tau**-2.0 + slab_inverse
    squares = (beta[of.places] / of.units) ** 2.0
    return of.log_weights + 0.5 * log(precision) - 0.5 * squares[:, None] * precision


def in_stan(parts: MixedParts) -> tuple[dict[str, Any], list[str], list[str]]:
    """Data, their declarations, and the statements about `beta`."""
    prior = parts.model.fixed_prior
    data: dict[str, Any] = {"prior_mean": prior.mean.tolist()}
    if not isinstance(prior, PartialGaussian):
        data["prior_covariance"] = prior.covariance.tolist()
        declared = ["vector[D] prior_mean;", "cov_matrix[D] prior_covariance;"]
        return data, declared, ["beta ~ multi_normal(prior_mean, prior_covariance);"]
    data["prior_precision"] = prior.precision.tolist()
    declared = ["vector[D] prior_mean;", "matrix[D, D] prior_precision;"]
    lines = ["target += -0.5 * quad_form(prior_precision, beta - prior_mean);"]
    for place, other in parts.model.prior.others:
        if not isinstance(other, Flat):
            lines.append(f"beta[{place + 1}] ~ {prior_forms.in_stan(other)};")
    for number, (of, tau, slab) in enumerate(parts.shrinkages, 1):
        data |= {
            f"K_{number}": of.nodes.size,
            f"S_{number}": of.places.size,
            f"shrunk_{number}": (of.places + 1).tolist(),
            f"unit_{number}": of.units.tolist(),
            f"local_{number}": np.exp(of.nodes).tolist(),
            f"log_weight_{number}": of.log_weights.tolist(),
        }
        declared += [
            f"int<lower=1> K_{number};",
            f"int<lower=1> S_{number};",
            f"array[S_{number}] int<lower=1> shrunk_{number};",
            f"vector<lower=0>[S_{number}] unit_{number};",
            f"vector<lower=0>[K_{number}] local_{number};  // scales of single coefficients",
            f"vector[K_{number}] log_weight_{number};",
        ]
        lines += [
            "{",
            f"  vector[K_{number}] q = inv_square({tau.name} * local_{number}) + {slab.name};",
            f"  for (j in 1:S_{number})",
            f"    target += log_sum_exp(log_weight_{number} + 0.5 * log(q)",
            f"      - 0.5 * square(beta[shrunk_{number}[j]] / unit_{number}[j]) * q);",
            "}",
        ]
    return data, declared, lines
