"""Priors of single numbers as NumPyro, PyMC and Stan write them."""

from __future__ import annotations

from dataclasses import astuple
from typing import Any, NamedTuple

from corebayes.models.priors.coefficient import CoefficientPrior, DoubleExponential, StudentT
from corebayes.models.priors.scale import (
    Beta,
    Exponential,
    Gamma,
    HalfNormal,
    HalfStudentT,
    OnLine,
    ScalePrior,
)


class Form(NamedTuple):
    """The name that NumPyro and PyMC have for a prior, and its numbers in our order."""

    name: str
    pymc: tuple[str, ...]
    """What PyMC calls the numbers."""
    stan: str
    """Stan cuts it off at zero by the declaration of its number."""


FORMS: dict[type[ScalePrior | CoefficientPrior], Form] = {
    HalfNormal: Form("HalfNormal", ("sigma",), "normal(0, {!r})"),
    HalfStudentT: Form("HalfStudentT", ("nu", "sigma"), "student_t({!r}, 0, {!r})"),
    Gamma: Form("Gamma", ("alpha", "beta"), "gamma({!r}, {!r})"),
    Exponential: Form("Exponential", ("lam",), "exponential({!r})"),
    Beta: Form("Beta", ("alpha", "beta"), "beta({!r}, {!r})"),
    OnLine: Form("Normal", ("mu", "sigma"), "normal({!r}, {!r})"),
    StudentT: Form("StudentT", ("nu", "mu", "sigma"), "student_t({!r}, {!r}, {!r})"),
    DoubleExponential: Form("Laplace", ("mu", "b"), "double_exponential({!r}, {!r})"),
}


def in_numpyro(distributions: Any, prior: ScalePrior | CoefficientPrior) -> Any:
    """A distribution of NumPyro."""
    form = _form(prior, "NumPyro")
    if isinstance(prior, HalfStudentT):
        return distributions.FoldedDistribution(distributions.StudentT(prior.df, 0.0, prior.scale))
    return getattr(distributions, form.name)(*astuple(prior))


def in_pymc(pymc: Any, prior: ScalePrior | CoefficientPrior, name: str | None = None) -> Any:
    """A variable of this name of the PyMC model that is being made; a distribution without one."""
    form = _form(prior, "PyMC")
    kind, numbers = getattr(pymc, form.name), dict(zip(form.pymc, astuple(prior), strict=True))
    return kind.dist(**numbers) if name is None else kind(name, **numbers)


def in_stan(prior: ScalePrior | CoefficientPrior) -> str:
    """The distribution of a statement of Stan."""
    return _form(prior, "Stan").stan.format(*astuple(prior))


def _form(prior: ScalePrior | CoefficientPrior, library: str) -> Form:
    if type(prior) not in FORMS:
        raise TypeError(f"{library} has no form of the prior {prior!r}")
    return FORMS[type(prior)]
