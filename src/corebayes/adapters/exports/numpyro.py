"""A coreset as a NumPyro model for NumPyro's own samplers."""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from corebayes.adapters.exports import coefficient_parts, prior_forms
from corebayes.adapters.exports.density_check import check_density
from corebayes.adapters.exports.glm_parts import GlmParts, glm_parts
from corebayes.adapters.exports.marginal_numpyro import marginal_factor
from corebayes.adapters.exports.mixed_parts import MixedParts, Single, mixed_parts
from corebayes.adapters.exports.symbols import of_jax
from corebayes.adapters.jax_model import float64
from corebayes.adapters.numpyro.adapter import NumpyroModel, import_numpyro, typed_rows
from corebayes.adapters.tracing import one_at_a_time
from corebayes.coreset import Coreset, GroupCoreset, as_rows
from corebayes.models.families.family import Family
from corebayes.types import Array, Block


@one_at_a_time
def to_numpyro(coreset: Coreset) -> Callable[[], None]:
    """A NumPyro model without arguments whose posterior is the coreset's.

    For a coreset of `from_numpyro` it is the user's own model on the coreset's rows, every observed
    term times its row's weight; for a built-in regression, mixed or not, it is that regression;
    for a coreset of groups, the regression with the effects integrated out by quadrature.
    Its log density is compared with ours before it is handed over, in float64. NumPyro's default
    is float32, which loses the digits of large weights: call `numpyro.enable_x64()` first, or the
    model warns when it is run.

    >>> import jax, numpy as np, numpyro, corebayes as cb
    >>> from numpyro.infer import MCMC, NUTS
    >>> X = np.random.default_rng(0).normal(size=(500, 2))
    >>> coreset = cb.build(cb.LinearRegression(noise_sd=1.0), (X, X @ [1.0, -2.0]), size=5)
    >>> numpyro.enable_x64()
    >>> mcmc = MCMC(NUTS(cb.to_numpyro(coreset)), num_warmup=200, num_samples=200,
    ...             progress_bar=False)
    >>> mcmc.run(jax.random.PRNGKey(0))
    >>> mcmc.get_samples()["beta"].mean(axis=0).round(1).tolist()
    [1.0, -2.0]
    >>> numpyro.enable_x64(False)
    """
    import_numpyro()
    coreset = as_rows(coreset)
    model = coreset.model
    # NumPyro refuses a scale of zero, and such a row says nothing.
    kept = np.flatnonzero(coreset.weights > 0.0)
    rows, weights = coreset.rows.take(kept), coreset.weights[kept]
    if isinstance(model, NumpyroModel):
        exported = _weighted(model, rows, weights)
        values_of: Callable[[Any], dict[str, Any]] = model.split
    elif isinstance(coreset, GroupCoreset):
        exported, values_of = _marginal(coreset)
    elif mixed := mixed_parts(coreset):
        exported = _mixed(mixed, rows, weights)
        values_of = mixed.unconstrained
    else:
        parts = glm_parts(coreset, "to_numpyro")
        exported = _regression(parts, rows, weights)
        values_of = lambda theta: {parts.name: theta}  # noqa: E731
    check_density(coreset, _density(exported, values_of), "NumPyro")
    return exported


def _density(
    exported: Callable[[], None], values_of: Callable[[Any], dict[str, Any]]
) -> Callable[[Array], float]:
    jax: Any = importlib.import_module("jax")
    inference: Any = importlib.import_module("numpyro.infer.util")

    def energy(theta: Any) -> Any:
        return inference.potential_energy(exported, (), {}, values_of(theta))

    compiled = jax.jit(energy)

    def density(theta: Array) -> float:
        with float64():
            return -float(compiled(theta))

    return density


def _weighted(model: NumpyroModel, rows: Block, weights: Array) -> Callable[[], None]:
    messenger: Any = importlib.import_module("numpyro.primitives").Messenger
    axes = model.sites.row_axes

    class WeightRows(messenger):
        """Multiplies the observed terms of a row by its weight, along the site's axis of rows."""

        def process_message(self, msg: Any) -> None:
            axis = axes.get(msg["name"])
            if msg["type"] == "sample" and axis is not None:
                scale = weights.reshape(-1, *[1] * (-axis - 1))
                msg["scale"] = scale if msg["scale"] is None else msg["scale"] * scale

    def weighted_model() -> None:
        _warn_of_float32(weights)
        args, kwargs = model.arguments.with_rows(
            typed_rows(rows.fields, model.fields), weights.size
        )
        with WeightRows():
            model.function(*args, **kwargs)

    return weighted_model


def _regression(parts: GlmParts, rows: Block, weights: Array) -> Callable[[], None]:
    numpyro = import_numpyro()
    model, prior = parts.model, parts.model.gaussian_prior
    X, y = model.design(rows), model.exported_target(rows)
    normal = numpyro.distributions.MultivariateNormal

    def weighted_regression() -> None:
        _warn_of_float32(weights)
        distribution = normal(prior.mean, covariance_matrix=prior.covariance)
        coefficients = numpyro.sample(parts.name, distribution)
        for position, name in enumerate(parts.columns):
            numpyro.deterministic(name, coefficients[position])
        _observe(model, [X @ coefficients], y, {"y": rows.y}, weights)

    return weighted_regression


def _observe(
    family: Family, etas: list[Any], y: Any, row: Mapping[str, Array], weights: Array
) -> None:
    """The weighted rows: a distribution of y where the library has one, else their log density."""
    numpyro, jax = import_numpyro(), importlib.import_module("jax")
    eta = etas[0] if len(etas) == 1 else etas
    if family.has_distribution:
        with numpyro.plate("rows", weights.size), numpyro.handlers.scale(scale=weights):
            numpyro.sample("y", family.in_numpyro(numpyro, jax, eta), obs=y)
    else:
        terms = family.in_arrays(of_jax(), eta, row)
        numpyro.factor("y", (weights * terms).sum())


def _mixed(parts: MixedParts, rows: Block, weights: Array) -> Callable[[], None]:
    numpyro = import_numpyro()
    model = parts.model
    X, y, groups = model.fixed_design(rows), model.family.exported_target(rows), model.groups(rows)
    columns, offset, row = parts.columns(rows), model.offset(rows), parts.row(rows)
    distributions = numpyro.distributions

    def weighted_mixed_regression() -> None:
        _warn_of_float32(weights)
        coefficients = coefficient_parts.in_numpyro(numpyro, parts, "coefficients", _variable)
        for position, name in enumerate(model.fixed_names):
            numpyro.deterministic(name, coefficients[position])
        constants = [_variable(one) for one in parts.learned]
        etas = parts.etas(X, coefficients, offset)
        for effect, column in zip(parts.effects, columns, strict=True):
            tau = _variable(effect.scale)
            many = distributions.Normal(0.0, tau).expand([effect.places.size]).to_event(1)
            own = column * numpyro.sample(effect.name, many)[groups[:, effect.term]]
            etas[effect.predictor] = etas[effect.predictor] + own
        _observe(parts.family(constants), etas, y, row, weights)

    return weighted_mixed_regression


def _marginal(
    coreset: GroupCoreset,
) -> tuple[Callable[[], None], Callable[[Any], dict[str, Any]]]:
    """The model of what all groups share, and θ by its variables."""
    numpyro = import_numpyro()
    jax: Any = importlib.import_module("jax")
    parts = mixed_parts(coreset.level_one)
    assert parts is not None
    model, weights = parts.model, coreset.weights
    factor = marginal_factor(coreset, parts, numpyro)

    def weighted_groups() -> None:
        _warn_of_float32(weights)
        coefficients = coefficient_parts.in_numpyro(numpyro, parts, "coefficients", _variable)
        for position, name in enumerate(model.fixed_names):
            numpyro.deterministic(name, coefficients[position])
        values = [_variable(one) for one in parts.scales()]
        constants, scales = values[: len(parts.learned)], values[len(parts.learned) :]
        numpyro.factor("groups", factor(coefficients, constants, jax.numpy.stack(scales)))

    return weighted_groups, parts.unconstrained_shared


def _variable(one: Single) -> Any:
    """A sample of one number."""
    numpyro = import_numpyro()
    return numpyro.sample(one.name, prior_forms.in_numpyro(numpyro.distributions, one.prior))


def _warn_of_float32(weights: Array) -> None:
    """Where the model is run, since what JAX is set to then is what counts."""
    if not importlib.import_module("jax").config.jax_enable_x64:
        warnings.warn(
            f"a model with weights that add up to {weights.sum():,.0f} is run in float32, which "
            "rounds its log density: call numpyro.enable_x64() before it is sampled from",
            UserWarning,
            stacklevel=3,
        )
