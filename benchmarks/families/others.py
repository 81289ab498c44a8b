"""Maximum likelihood of all rows by statsmodels and lifelines, in the parameters of ours.

θ has the coefficients in the order of the design (of one level after the other for categories),
then the constants on the line: logarithms, and log odds of shares. Each function takes the target
and the design, which formulaic makes, and hands back what the other library finds.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from benchmarks.teaching_data import NotInstalled
from scipy import optimize, stats

UNKNOWN = np.nan


class Rows(NamedTuple):
    y: np.ndarray
    X: np.ndarray
    beside: np.ndarray | None = None
    """Whatever else a row has: an offset, the number of trials, whether the event was seen."""


class Other(NamedTuple):
    called: str
    log_likelihood: Callable[[np.ndarray], float]
    estimate: np.ndarray
    error: np.ndarray
    """Standard errors; nothing where the other library has none of maximum likelihood."""


def statsmodels(name: str = "api") -> Any:
    try:
        return importlib.import_module(f"statsmodels.{name}")
    except ImportError:
        raise NotInstalled("pip install statsmodels") from None


def gaussian(rows: Rows) -> Other:
    sm = statsmodels()
    fit = sm.OLS(rows.y, rows.X).fit()
    model = sm.GLM(rows.y, rows.X)
    return Other(
        "statsmodels OLS",
        lambda theta: model.loglike(theta[:-1], scale=np.exp(2.0 * theta[-1])),
        np.append(fit.params, 0.5 * np.log(fit.scale)),
        np.append(fit.bse, UNKNOWN),
    )


def student(rows: Rows) -> Other:
    tmodel = statsmodels("miscmodels.tmodel")
    model = tmodel.TLinearModel(rows.y, rows.X)
    spread = np.std(rows.y - rows.X @ np.linalg.lstsq(rows.X, rows.y)[0])
    start = np.append(np.linalg.lstsq(rows.X, rows.y)[0], [5.0, spread])
    fit = model.fit(start_params=start, method="bfgs", maxiter=500, disp=0)
    *slopes, df, scale = fit.params
    *errors, of_df, of_scale = fit.bse

    def height(theta: np.ndarray) -> float:
        return model.loglike(np.r_[theta[:-2], np.exp(theta[-1]), np.exp(theta[-2])])

    return Other(
        "statsmodels TLinearModel",
        height,
        np.r_[slopes, np.log(scale), np.log(df)],
        np.r_[errors, of_scale / scale, of_df / df],
    )


def discrete(name: str, **fixed: Any) -> Callable[[Rows], Other]:
    """Logit, Probit: nothing but coefficients."""

    def of(rows: Rows) -> Other:
        model = getattr(statsmodels(), name)(rows.y, rows.X, **fixed)
        fit = model.fit(disp=0)
        return Other(f"statsmodels {name}", model.loglike, fit.params, fit.bse)

    return of


def glm(family: str, link: str) -> Callable[[Rows], Other]:
    """A generalised linear model without constants; of binomial counts `beside` are the trials,
    of others the offset."""

    def of(rows: Rows) -> Other:
        sm = statsmodels()
        kind = getattr(sm.families, family)(link=getattr(sm.families.links, link)())
        counted = family == "Binomial" and rows.beside is not None
        y = np.column_stack([rows.y, rows.beside - rows.y]) if counted else rows.y
        offset = None if counted else rows.beside
        model = sm.GLM(y, rows.X, kind, offset=offset)
        # Standard errors of the curvature, and not of its expectation.
        fit = model.fit(method="newton")
        called = f"statsmodels GLM {family}, {link}"
        return Other(called, lambda theta: model.loglike(theta, scale=1.0), fit.params, fit.bse)

    return of


def gamma(rows: Rows) -> Other:
    """With the shape that makes its likelihood largest: its own is one of moments."""
    sm = statsmodels()
    model = sm.GLM(rows.y, rows.X, sm.families.Gamma(sm.families.links.Log()))
    slopes = model.fit().params
    best = optimize.minimize_scalar(lambda u: -model.loglike(slopes, scale=np.exp(-u)))
    fit = model.fit(scale=np.exp(-best.x))
    return Other(
        "statsmodels GLM Gamma, Log",
        lambda theta: model.loglike(theta[:-1], scale=np.exp(-theta[-1])),
        np.append(fit.params, best.x),
        np.append(fit.bse, UNKNOWN),
    )


def negative_binomial(rows: Rows) -> Other:
    model = statsmodels().NegativeBinomial(rows.y, rows.X, offset=rows.beside)
    fit = model.fit(method="bfgs", maxiter=500, disp=0)
    return Other(
        "statsmodels NegativeBinomial",
        lambda theta: model.loglike(np.append(theta[:-1], np.exp(theta[-1]))),
        np.append(fit.params[:-1], np.log(fit.params[-1])),
        np.append(fit.bse[:-1], fit.bse[-1] / fit.params[-1]),
    )


def beta(rows: Rows) -> Other:
    model = statsmodels("othermod.betareg").BetaModel(rows.y, rows.X)
    fit = model.fit(disp=0)
    return Other("statsmodels BetaModel", model.loglike, fit.params, fit.bse)


def ordered(distribution: str) -> Callable[[Rows], Other]:
    """The first cutpoint, then logarithms of the gaps: theirs are as ours."""

    def of(rows: Rows) -> Other:
        kind = statsmodels("miscmodels.ordinal_model").OrderedModel
        model = kind(rows.y.astype(int), rows.X, distr=distribution)
        fit = model.fit(method="bfgs", maxiter=500, disp=0)
        return Other(
            f"statsmodels OrderedModel, {distribution}", model.loglike, fit.params, fit.bse
        )

    return of


def categorical(rows: Rows) -> Other:
    model = statsmodels().MNLogit(rows.y.astype(int), rows.X)
    fit = model.fit(disp=0)
    shape = (fit.params.shape[1], rows.X.shape[1])
    return Other(
        "statsmodels MNLogit",
        lambda theta: model.loglike(theta.reshape(shape).T.ravel("F")),
        fit.params.T.ravel(),
        fit.bse.T.ravel(),
    )


def zero_inflated(dispersed: bool) -> Callable[[Rows], Other]:
    """The log odds of a zero that counts nothing stand first in theirs, and the dispersion last."""

    def of(rows: Rows) -> Other:
        sm = statsmodels()
        kind = sm.ZeroInflatedNegativeBinomialP if dispersed else sm.ZeroInflatedPoisson
        model = kind(rows.y, rows.X, exog_infl=np.ones((rows.y.size, 1)))
        fit = model.fit(method="bfgs", maxiter=1000, disp=0)
        share, *slopes = fit.params
        of_share, *errors = fit.bse
        if dispersed:
            slopes[-1], errors[-1] = np.log(slopes[-1]), errors[-1] / slopes[-1]

        def height(theta: np.ndarray) -> float:
            rest = theta[:-1].copy()
            if dispersed:
                rest[-1] = np.exp(rest[-1])
            return model.loglike(np.r_[theta[-1], rest])

        called = f"statsmodels {kind.__name__}"
        return Other(called, height, np.r_[slopes, share], np.r_[errors, of_share])

    return of


def hurdle(dispersed: bool) -> Callable[[Rows], Other]:
    """Counts above zero, and whether there is one: the likelihood is a product of the two."""

    def of(rows: Rows) -> Other:
        module = statsmodels("discrete.truncated_model")
        kind = module.TruncatedLFNegativeBinomialP if dispersed else module.TruncatedLFPoisson
        some = rows.y > 0.0
        counts = kind(rows.y[some], rows.X[some])
        empty = statsmodels().Logit(1.0 * ~some, np.ones((rows.y.size, 1)))
        fit, zero = counts.fit(method="bfgs", maxiter=1000, disp=0), empty.fit(disp=0)
        estimate, error = fit.params.copy(), fit.bse.copy()
        if dispersed:
            estimate[-1], error[-1] = np.log(estimate[-1]), error[-1] / estimate[-1]

        def height(theta: np.ndarray) -> float:
            rest = theta[:-1].copy()
            if dispersed:
                rest[-1] = np.exp(rest[-1])
            return counts.loglike(rest) + empty.loglike(theta[-1:])

        called = f"statsmodels {kind.__name__} and Logit"
        return Other(called, height, np.r_[estimate, zero.params], np.r_[error, zero.bse])

    return of


def exponential(rows: Rows) -> Other:
    """Events are Poisson counts with the time as exposure; η is the logarithm of a mean time."""
    sm = statsmodels()
    family = sm.families.Poisson()
    model = sm.GLM(rows.beside, -rows.X, family, offset=np.log(rows.y))
    fit = model.fit()
    called = "statsmodels GLM Poisson of events, exposure of times"
    return Other(called, lambda theta: model.loglike(theta, scale=1.0), fit.params, fit.bse)


def survival(name: str, first: str, second: str, distribution: Callable[..., Any]) -> Any:
    """lifelines for the maximum; SciPy's density and tail for heights."""

    def of(rows: Rows) -> Other:
        try:
            lifelines: Any = importlib.import_module("lifelines")
        except ImportError:
            raise NotInstalled(
                "pip install --no-deps lifelines autograd autograd-gamma interface_meta"
            ) from None
        import pandas

        names = [f"x{k:02}" for k in range(rows.X.shape[1])]
        frame = pandas.DataFrame(rows.X, columns=names)
        frame["time"], frame["event"] = rows.y, rows.beside
        fitter = getattr(lifelines, name)(fit_intercept=False)
        fitter.fit(frame, "time", "event", formula=None, ancillary=None)
        places = [(first, one) for one in names] + [(second, "Intercept")]
        estimate, error = (
            one.loc[places].to_numpy() for one in (fitter.params_, fitter.standard_errors_)
        )
        seen = rows.beside > 0.0

        def height(theta: np.ndarray) -> float:
            of_row = distribution(theta[-1], rows.X @ theta[:-1])
            return np.where(seen, of_row.logpdf(rows.y), of_row.logsf(rows.y)).sum()

        return Other(f"lifelines {name}", height, estimate, error)

    return of


weibull = survival(
    "WeibullAFTFitter",
    "lambda_",
    "rho_",
    lambda u, eta: stats.weibull_min(np.exp(u), scale=np.exp(eta)),
)
lognormal = survival(
    "LogNormalAFTFitter",
    "mu_",
    "sigma_",
    lambda u, eta: stats.lognorm(np.exp(u), scale=np.exp(eta)),
)
