"""The models of `benchmarks.first_tries` that are written in other libraries, and their draws."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
from benchmarks.teaching_data import from_r

import corebayes as cb

DRAWS, TUNE, CHAINS = 600, 400, 2


def bambi_posterior(
    formula: Any, frame: Any = None, *, middle: float | None = None, **options: Any
) -> dict[str, np.ndarray]:
    """All rows by Bambi; a model instead of a formula is taken as it is.

    With a `middle` the priors are rstanarm's, which are corebayes' defaults, in place of Bambi's
    own (of 0 and 1 these are narrower): N(0, 2.5 / sd(x)), and N(middle, 2.5) for the intercept at
    the means of the columns.

    Columns of dollars beside shares make NUTS take a thousand steps a draw, so columns are given in
    units of their deviation, and coefficients turned back: Bambi's priors are in these units, too.
    """
    bambi: Any = importlib.import_module("bambi")
    if isinstance(formula, str):
        units = _units(bambi.Model(formula, frame, **options), frame)
        scaled = frame.assign(**{name: frame[name] / unit for name, unit in units.items()})
        model = bambi.Model(formula, scaled, **options)
        if middle is not None:
            model.set_priors(_rstanarm(bambi, model, middle))
    else:
        units, model = {}, formula
    drawn = model.fit(
        inference_method="nutpie",
        draws=DRAWS,
        tune=TUNE,
        chains=CHAINS,
        random_seed=2,
        progressbar=False,
        nuts_sampler_kwargs={"low_rank_modified_mass_matrix": True},
    )
    found = flat(drawn.posterior)
    return {name: values / units.get(name, 1.0) for name, values in found.items()}


def _rstanarm(bambi: Any, model: Any, middle: float) -> dict[str, Any]:
    """Priors of all terms, on the scale of their columns."""
    terms = model.components[model.family.likelihood.parent].common_terms
    slopes = {
        name: bambi.Prior("Normal", mu=0.0, sigma=2.5 / np.asarray(term.data).std(axis=0, ddof=0))
        for name, term in terms.items()
    }
    return {**slopes, "Intercept": bambi.Prior("Normal", mu=middle, sigma=2.5)}


def _units(model: Any, frame: Any) -> dict[str, float]:
    """The deviation of each column that is a term of its own."""
    terms = model.components[model.family.likelihood.parent].common_terms
    return {
        name: float(frame[name].std())
        for name, term in terms.items()
        if name in frame.columns and term.categorical is False
    }


def pymc_posterior(model: Any) -> dict[str, np.ndarray]:
    pymc: Any = importlib.import_module("pymc")
    with model:
        drawn = pymc.sample(
            draws=DRAWS, chains=CHAINS, nuts_sampler="nutpie", random_seed=2, progressbar=False
        )
    return flat(drawn.posterior)


def pymc_hierarchy(frame: Any) -> Any:
    """Of every item how easily people say yes, and what the person adds."""
    pymc: Any = importlib.import_module("pymc")
    codes, items = frame["item"].factorize(sort=True)
    anger = (frame["Anger"] - frame["Anger"].mean()).to_numpy() / frame["Anger"].std()
    with pymc.Model(coords={"item": list(items)}) as model:
        mean = pymc.Normal("mean", 0.0, 1.5)
        spread = pymc.HalfNormal("spread", 1.0)
        item = pymc.Normal("easiness", mean, spread, dims="item")
        slope = pymc.Normal("anger", 0.0, 1.0)
        male = pymc.Normal("male", 0.0, 1.0)
        eta = item[codes] + slope * anger + male * (frame["Gender"] == "M").to_numpy(dtype=float)
        pymc.Bernoulli("yes", logit_p=eta, observed=(frame["r2"] == "Y").to_numpy(dtype=int))
    return model


def _ordinal(service: Any, level: Any, num_levels: int) -> None:
    numpyro: Any = importlib.import_module("numpyro")
    distributions: Any = importlib.import_module("numpyro.distributions")
    slope = numpyro.sample("service", distributions.Normal(0.0, 1.0))
    ordered = distributions.transforms.OrderedTransform()
    normal = distributions.Normal(0.0, 2.0).expand([num_levels - 1]).to_event(1)
    cuts = numpyro.sample("cuts", distributions.TransformedDistribution(normal, ordered))
    with numpyro.plate("rows", level.shape[0]):
        numpyro.sample("y", distributions.OrderedLogistic(slope * service, cuts), obs=level)


def _ratings(frame: Any) -> tuple[np.ndarray, np.ndarray, int]:
    return frame["service"].to_numpy(dtype=float), frame["y"].to_numpy() - 1, 5


def numpyro_ordinal(frame: Any, tol: float) -> Any:
    model, data = cb.from_numpyro(_ordinal, *_ratings(frame))
    return cb.build(model, data, tol=tol, seed=0, progress=False), data


def numpyro_posterior(frame: Any) -> dict[str, np.ndarray]:
    numpyro: Any = importlib.import_module("numpyro")
    inference: Any = importlib.import_module("numpyro.infer")
    jax: Any = importlib.import_module("jax")
    numpyro.enable_x64()
    kernel = inference.NUTS(_ordinal)
    chains = inference.MCMC(
        kernel, num_warmup=500, num_samples=DRAWS, num_chains=1, progress_bar=False
    )
    chains.run(jax.random.key(2), *_ratings(frame))
    drawn = {name: np.asarray(values) for name, values in chains.get_samples().items()}
    numpyro.enable_x64(False)
    return {
        "service": drawn["service"][None],
        **{f"cuts[{k}]": drawn["cuts"][None, :, k] for k in range(drawn["cuts"].shape[1])},
    }


def bambi_ordinal(frame: Any) -> Any:
    bambi: Any = importlib.import_module("bambi")
    pandas: Any = importlib.import_module("pandas")
    frame = frame.assign(y=pandas.Categorical(frame["y"], ordered=True))
    return bambi.Model("y ~ service", frame, family="cumulative")


def _times() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Columns, years and whether the event was seen."""
    frame = from_r("survival", "colon").dropna()
    columns = [np.ones(len(frame)), frame["rx"] == "Lev+5FU", frame["age"] / 10.0 - 6.0]
    X = np.column_stack([np.asarray(column, dtype=float) for column in columns])
    years = frame["time"].to_numpy() / 365.25
    return X, years, frame["status"].to_numpy(dtype=float)


def _log_likelihood(draws: Any, block: Any) -> Any:
    """log h(t) at an event, and log S(t) in every row; θ is (β, log shape)."""
    eta = block.X @ draws[:, :-1].T
    shape = np.exp(draws[:, -1])
    scaled = np.log(block.y)[:, None] - eta
    hazard = draws[:, -1] + (shape - 1.0) * scaled - eta
    return block["event"][:, None] * hazard - np.exp(shape * scaled)


def _log_prior(draws: Any) -> Any:
    return -0.5 * np.sum((draws / 5.0) ** 2, axis=1)


def weibull(tol: float) -> Any:
    """A model of one's own, with wide priors."""
    X, years, event = _times()
    model = cb.CustomModel(_log_likelihood, _log_prior, dim=4)
    data = cb.open({"X": X, "y": years, "event": event})
    return cb.build(model, data, tol=tol, seed=0, progress=False), data


def weibull_posterior() -> dict[str, np.ndarray]:
    """The same density in JAX, all rows, by NumPyro's NUTS."""
    inference: Any = importlib.import_module("numpyro.infer")
    jax: Any = importlib.import_module("jax")
    X, years, event = _times()

    def energy(theta: Any) -> Any:
        eta, shape = X @ theta[:-1], jax.numpy.exp(theta[-1])
        scaled = np.log(years) - eta
        rows = event * (theta[-1] + (shape - 1.0) * scaled - eta) - jax.numpy.exp(shape * scaled)
        return 0.5 * jax.numpy.sum((theta / 5.0) ** 2) - rows.sum()

    chains = inference.MCMC(
        inference.NUTS(potential_fn=energy), num_warmup=500, num_samples=DRAWS, progress_bar=False
    )
    with jax.enable_x64(True):
        chains.run(jax.random.key(2), init_params=np.zeros(4))
        drawn = np.asarray(chains.get_samples())
    return {f"theta[{k}]": drawn[None, :, k] for k in range(4)}


def flat(posterior: Any) -> dict[str, np.ndarray]:
    """Every number of a posterior with its draws (chains, draws), by name."""
    found: dict[str, np.ndarray] = {}
    for name, variable in posterior.data_vars.items():
        values = variable.to_numpy()
        values = values.reshape(*values.shape[:2], -1)
        if variable.ndim == 2:
            found[str(name)] = values[:, :, 0]
        else:
            entries = variable[variable.dims[2]].to_numpy() if variable.ndim == 3 else None
            labels = range(values.shape[2]) if entries is None else entries
            found.update({f"{name}[{k}]": values[:, :, j] for j, k in enumerate(labels)})
    return found
