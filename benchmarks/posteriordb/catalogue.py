"""The posteriors of posteriordb whose likelihood is a product over rows, by name.

Each is a function from the data to a model. Names are `DATA-MODEL` as there; parameters are named
as in the reference draws. Hierarchical models have one entry: centred and non-centred versions are
the same posterior.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from benchmarks.posteriordb.mixture import Mixture
from benchmarks.posteriordb.regression import Regression, Scale, Term

Columns = dict[str, np.ndarray]
Make = Callable[[dict[str, Any]], Any]
FLAT = Scale("flat")


def betas(*columns: np.ndarray) -> tuple[np.ndarray, tuple[str, ...]]:
    """An intercept and the columns, called beta[1], beta[2], …"""
    X = np.column_stack([np.ones(len(columns[0])), *columns]).astype(float)
    return X, tuple(f"beta[{k + 1}]" for k in range(X.shape[1]))


def alpha_betas(*columns: np.ndarray) -> tuple[np.ndarray, tuple[str, ...]]:
    """The same, called alpha, beta[1], …; a lone slope is beta."""
    X, _ = betas(*columns)
    slopes = [f"beta[{k + 1}]" for k in range(len(columns))]
    return X, ("alpha", *(slopes if len(slopes) > 1 else ["beta"]))


def linear(
    design: Callable[[Columns], list[np.ndarray]],
    target: Callable[[Columns], np.ndarray],
    sigma: Scale = FLAT,
) -> Make:
    def make(data: dict[str, Any]) -> Regression:
        columns = as_columns(data)
        X, names = betas(*design(columns))
        return Regression(X=X, y=target(columns).astype(float), names=names, sigma=sigma)

    return make


def as_columns(data: dict[str, Any]) -> Columns:
    return {name: np.array(values) for name, values in data.items() if isinstance(values, list)}


def centred(x: np.ndarray) -> np.ndarray:
    return x - x.mean()


def halved(x: np.ndarray) -> np.ndarray:
    """In units of two standard deviations."""
    return centred(x) / (2.0 * x.std(ddof=1))


def with_product(a: np.ndarray, b: np.ndarray) -> list[np.ndarray]:
    return [a, b, a * b]


def kidiq() -> dict[str, Make]:
    cauchy = Scale("cauchy", 2.5)

    def score(c: Columns) -> np.ndarray:
        return c["kid_score"]

    both = ("mom_hs", "mom_iq")
    return {
        "kidscore_momhs": linear(lambda c: [c["mom_hs"]], score, cauchy),
        "kidscore_momiq": linear(lambda c: [c["mom_iq"]], score, cauchy),
        "kidscore_momhsiq": linear(lambda c: [c[k] for k in both], score, cauchy),
        "kidscore_interaction": linear(
            lambda c: with_product(*(c[k] for k in both)), score, cauchy
        ),
        "kidscore_interaction_c": linear(
            lambda c: with_product(*(centred(c[k]) for k in both)), score
        ),
        "kidscore_interaction_c2": linear(
            lambda c: with_product(c["mom_hs"] - 0.5, c["mom_iq"] - 100.0), score
        ),
        "kidscore_interaction_z": linear(
            lambda c: with_product(*(halved(c[k]) for k in both)), score
        ),
    }


def earnings() -> dict[str, Make]:
    def log_earn(c: Columns) -> np.ndarray:
        return np.log(c["earn"])

    def z_height(c: Columns) -> np.ndarray:
        return centred(c["height"]) / c["height"].std(ddof=1)

    return {
        "earn_height": linear(lambda c: [c["height"]], lambda c: c["earn"]),
        "log10earn_height": linear(lambda c: [c["height"]], lambda c: np.log10(c["earn"])),
        "logearn_height": linear(lambda c: [c["height"]], log_earn),
        "logearn_height_male": linear(lambda c: [c["height"], c["male"]], log_earn),
        "logearn_logheight_male": linear(lambda c: [np.log(c["height"]), c["male"]], log_earn),
        "logearn_interaction": linear(lambda c: with_product(c["height"], c["male"]), log_earn),
        "logearn_interaction_z": linear(lambda c: with_product(z_height(c), c["male"]), log_earn),
    }


def mesquite() -> dict[str, Make]:
    raw = ("diam1", "diam2", "canopy_height", "total_height", "density", "group")

    def log_weight(c: Columns) -> np.ndarray:
        return np.log(c["weight"])

    def volume(c: Columns) -> np.ndarray:
        return np.log(c["diam1"] * c["diam2"] * c["canopy_height"])

    def area(c: Columns) -> np.ndarray:
        return np.log(c["diam1"] * c["diam2"])

    def shape(c: Columns) -> np.ndarray:
        return np.log(c["diam1"] / c["diam2"])

    def sizes(c: Columns) -> list[np.ndarray]:
        return [volume(c), area(c), shape(c), np.log(c["total_height"])]

    return {
        "mesquite": linear(lambda c: [c[k] for k in raw], lambda c: c["weight"]),
        "logmesquite": linear(lambda c: [*(np.log(c[k]) for k in raw[:5]), c["group"]], log_weight),
        "logmesquite_logvolume": linear(lambda c: [volume(c)], log_weight),
        "logmesquite_logva": linear(lambda c: [volume(c), area(c), c["group"]], log_weight),
        "logmesquite_logvash": linear(lambda c: [*sizes(c), c["group"]], log_weight),
        "logmesquite_logvas": linear(
            lambda c: [*sizes(c), np.log(c["density"]), c["group"]], log_weight
        ),
    }


def nes(data: dict[str, Any]) -> Regression:
    c = as_columns(data)
    ages = [c["age_discrete"] == k for k in (2, 3, 4)]
    others = [c[k] for k in ("educ1", "gender", "income")]
    X, names = betas(c["real_ideo"], c["race_adj"], *ages, *others)
    return Regression(X=X, y=c["partyid7"].astype(float), names=names, sigma=FLAT)


def blr(data: dict[str, Any]) -> Regression:
    X = np.array(data["X"], float)
    names = tuple(f"beta[{k + 1}]" for k in range(X.shape[1]))
    sigma = Scale("normal", 10.0)
    return Regression(X=X, y=np.array(data["y"]), names=names, sigma=sigma, beta_sd=10.0)


def wells() -> dict[str, Make]:
    def model(
        design: Callable[[Columns], list[np.ndarray]],
        called: Callable[..., tuple[np.ndarray, tuple[str, ...]]] = alpha_betas,
    ) -> Make:
        def make(data: dict[str, Any]) -> Regression:
            c = as_columns(data)
            c["dist100"], c["educ4"] = c["dist"] / 100.0, c["educ"] / 4.0
            c["c_dist100"], c["c_arsenic"] = centred(c["dist100"]), centred(c["arsenic"])
            c["c_educ4"] = centred(c["educ4"])
            X, names = called(*design(c))
            return Regression(X=X, y=c["switched"].astype(float), names=names)

        return make

    def pair(c: Columns) -> list[np.ndarray]:
        return with_product(c["c_dist100"], c["c_arsenic"])

    def all_pairs(c: Columns) -> list[np.ndarray]:
        d, a, e = (c[k] for k in ("c_dist100", "c_arsenic", "c_educ4"))
        return [d, a, e, d * a, d * e, a * e]

    return {
        "wells_dist": model(lambda c: [c["dist"]], betas),
        "wells_dist100_model": model(lambda c: [c["dist100"]]),
        "wells_dist100ars_model": model(lambda c: [c["dist100"], c["arsenic"]]),
        "wells_interaction_model": model(lambda c: with_product(c["dist100"], c["arsenic"])),
        "wells_interaction_c_model": model(pair),
        "wells_dae_model": model(lambda c: [c["dist100"], c["arsenic"], c["educ4"]]),
        "wells_dae_c_model": model(lambda c: [*pair(c), c["educ4"]]),
        "wells_daae_c_model": model(lambda c: [*pair(c), c["assoc"], c["educ4"]]),
        "wells_dae_inter_model": model(all_pairs),
    }


def radon() -> dict[str, Make]:
    unit = Scale("normal", 1.0)

    def model(columns: tuple[str, ...], effects: dict[str, int | None], *names: str) -> Make:
        def make(data: dict[str, Any]) -> Regression:
            c = as_columns(data)
            X, _ = betas(*(c[k] for k in columns)) if columns else betas(c["log_radon"])
            X = X[:, : len(names)]
            county = c["county_idx"] - 1
            terms = [Term(name, "county", county, unit, at) for name, at in effects.items()]
            return Regression(
                X=X,
                y=c["log_radon"].astype(float),
                names=names,
                sigma=unit,
                sigma_name="sigma_y",
                beta_sd=10.0,
                terms=tuple(terms),
            )

        return make

    floor, both = ("floor_measure",), ("log_uppm", "floor_measure")
    intercept, slope = {"alpha": None}, {"beta": 1}
    return {
        "radon_pooled": model(floor, {}, "alpha", "beta"),
        "radon_partially_pooled": model((), intercept, "mu_alpha"),
        "radon_variable_intercept": model(floor, intercept, "mu_alpha", "beta"),
        "radon_variable_slope": model(floor, slope, "alpha", "mu_beta"),
        "radon_variable_intercept_slope": model(
            floor, {**intercept, **slope}, "mu_alpha", "mu_beta"
        ),
        "radon_hierarchical_intercept": model(both, intercept, "mu_alpha", "beta[1]", "beta[2]"),
    }


def election(data: dict[str, Any]) -> Regression:
    c = as_columns(data)
    X, names = betas(c["black"], c["female"], c["v_prev_full"], c["female"] * c["black"])
    groups = {"a": "age", "b": "edu", "c": "age_edu", "d": "state", "e": "region_full"}
    wide = Scale("uniform", 100.0)
    terms = tuple(Term(name, group, c[group] - 1, wide) for name, group in groups.items())
    return Regression(X=X, y=c["y"].astype(float), names=names, beta_sd=100.0, terms=terms)


def diamonds(data: dict[str, Any]) -> Regression:
    """The intercept is that at the mean of the columns, and its prior is t₃(8, 10) there: as flat
    to so many rows as the one here."""
    X = np.array(data["X"], float)[:, 1:]
    X = np.column_stack([X - X.mean(axis=0), np.ones(len(X))])
    names = (*(f"b[{k + 1}]" for k in range(X.shape[1] - 1)), "Intercept")
    y, widths = np.array(data["Y"], float), (*(1.0 for _ in names[1:]), 1e3)
    return Regression(X=X, y=y, names=names, sigma=Scale("t3", 10.0), beta_sd=widths)


def catalogue() -> dict[str, tuple[str, Make]]:
    """{posterior: (data set, model of its data)}."""
    families: dict[str, dict[str, Make]] = {
        "kidiq": kidiq(),
        "earnings": earnings(),
        "mesquite": mesquite(),
        "wells_data": wells(),
        "radon_mn": radon(),
        "radon_all": radon(),
        "election88": {"election88_full": election},
        "diamonds": {"diamonds": diamonds},
        "sblrc": {"blr": blr},
        "sblri": {"blr": blr},
        "low_dim_gauss_mix": {"low_dim_gauss_mix": Mixture.of},
    }
    families |= {f"nes{year}": {"nes": nes} for year in range(1972, 2001, 4)}
    return {
        f"{data}-{model}": (data, make)
        for data, models in families.items()
        for model, make in models.items()
    }
