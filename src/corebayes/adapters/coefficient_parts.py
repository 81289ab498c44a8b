"""The prior of coefficients in other libraries.

All Normal priors are one multivariate normal. Where other priors stand beside it, coefficients are
declared without a prior, and all of it is added as one term,

    −½ (β − m)ᵀ Q (β − m) + constant + Σ_k log p_k(β_k).
"""

from __future__ import annotations

from typing import Any

from corebayes.models.coefficient_prior import (
    CoefficientPrior,
    DoubleExponential,
    Flat,
    StudentT,
)
from corebayes.models.mixed import MixedRegression
from corebayes.models.stated_prior import PartialGaussian


def in_numpyro(numpyro: Any, model: MixedRegression, name: str) -> Any:
    """The coefficients as a sample of NumPyro."""
    prior, distributions = model.fixed_prior, numpyro.distributions
    if not isinstance(prior, PartialGaussian):
        normal = distributions.MultivariateNormal(prior.mean, covariance_matrix=prior.covariance)
        return numpyro.sample(name, normal)
    anywhere = distributions.ImproperUniform(
        distributions.constraints.real_vector, (), (prior.dim,)
    )
    beta = numpyro.sample(name, anywhere)
    off = beta - prior.mean
    total = prior.constant - 0.5 * off @ (prior.precision @ off)
    for place, other in model.prior.others:
        match other:
            case StudentT(df, mean, scale):
                total += distributions.StudentT(df, mean, scale).log_prob(beta[place])
            case DoubleExponential(mean, scale):
                total += distributions.Laplace(mean, scale).log_prob(beta[place])
            case Flat():
                pass
            case _:
                raise _no_form("NumPyro", other)
    numpyro.factor(f"{name}_prior", total)
    return beta


def in_pymc(pymc: Any, model: MixedRegression, name: str, dims: str) -> Any:
    """The coefficients as a variable of the PyMC model that is being made."""
    prior = model.fixed_prior
    if not isinstance(prior, PartialGaussian):
        return pymc.MvNormal(name, prior.mean, cov=prior.covariance, dims=dims)
    beta = pymc.Flat(name, dims=dims)
    off = beta - prior.mean
    total = prior.constant - 0.5 * pymc.math.dot(off, pymc.math.dot(prior.precision, off))
    for place, other in model.prior.others:
        match other:
            case StudentT(df, mean, scale):
                own = pymc.StudentT.dist(nu=df, mu=mean, sigma=scale)
            case DoubleExponential(mean, scale):
                own = pymc.Laplace.dist(mu=mean, b=scale)
            case Flat():
                continue
            case _:
                raise _no_form("PyMC", other)
        total += pymc.logp(own, beta[place])
    pymc.Potential(f"{name}_prior", total)
    return beta


def in_stan(model: MixedRegression) -> tuple[dict[str, Any], list[str], list[str]]:
    """Data, their declarations, and the statements about `beta`."""
    prior = model.fixed_prior
    data: dict[str, Any] = {"prior_mean": prior.mean.tolist()}
    if not isinstance(prior, PartialGaussian):
        data["prior_covariance"] = prior.covariance.tolist()
        declared = ["vector[D] prior_mean;", "cov_matrix[D] prior_covariance;"]
        return data, declared, ["beta ~ multi_normal(prior_mean, prior_covariance);"]
    data["prior_precision"] = prior.precision.tolist()
    declared = ["vector[D] prior_mean;", "matrix[D, D] prior_precision;"]
    lines = ["target += -0.5 * quad_form(prior_precision, beta - prior_mean);"]
    for place, other in model.prior.others:
        match other:
            case StudentT(df, mean, scale):
                lines.append(f"beta[{place + 1}] ~ student_t({df!r}, {mean!r}, {scale!r});")
            case DoubleExponential(mean, scale):
                lines.append(f"beta[{place + 1}] ~ double_exponential({mean!r}, {scale!r});")
            case Flat():
                pass
            case _:
                raise _no_form("Stan", other)
    return data, declared, lines


def _no_form(library: str, prior: CoefficientPrior) -> TypeError:
    return TypeError(f"{library} has no form of the prior {prior}")
