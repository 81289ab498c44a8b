"""Every family, and data of the teaching packages that people fit with it."""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from benchmarks.families import others
from benchmarks.families.others import Other, Rows
from benchmarks.teaching_data import NotInstalled, from_r


class Case(NamedTuple):
    data: str
    frame: Callable[[], Any]
    family: str
    left: str
    right: str
    """As formulaic takes it too."""
    other: Callable[[Rows], Other]
    beside: str = ""
    """A column: of an offset, of trials, or of events."""
    added: str = ""
    """What else the formula has on its right: an offset."""

    @property
    def formula(self) -> str:
        return f"{self.left} ~ {self.right}{self.added}"


def mortgages() -> Any:
    frame = from_r("AER", "HMDA")
    return frame.assign(denied=1.0 * (frame["deny"] == "yes"))


def schools() -> Any:
    frame = others.statsmodels("api").datasets.star98.load_pandas().data
    return frame.assign(pupils=frame["NABOVE"] + frame["NBELOW"])


@cache
def late_flights() -> Any:
    """Flights of each day and airport, and how many left more than a quarter of an hour late."""
    frame = from_r("nycflights13", "flights").dropna(subset=["dep_delay"])
    frame = frame.assign(late=1.0 * (frame["dep_delay"] > 15.0))
    days = frame.groupby(["origin", "month", "day"], as_index=False)
    found = days.agg(late=("late", "sum"), flights=("late", "size"))
    season = 2.0 * np.pi * found["month"] / 12.0
    return found.assign(
        log_flights=np.log(found["flights"]), summer=-np.cos(season), spring=np.sin(season)
    )


def visits() -> Any:
    return from_r("AER", "NMES1988")


def doctors() -> Any:
    return from_r("AER", "DoctorVisits")


def wages() -> Any:
    frame = from_r("AER", "CPS1988")
    return frame.assign(log_wage=np.log(frame["wage"]), years=frame["experience"] / 10.0)


def food() -> Any:
    """Shares of what Spanish households spend that go into food."""
    frame = from_r("Ecdat", "BudgetFood").dropna()
    frame = frame[(frame["wfood"] > 0.0) & (frame["wfood"] < 1.0)]
    return frame.assign(spent=np.log(frame["totexp"]) - 13.0, decades=frame["age"] / 10.0)


def poverty() -> Any:
    frame = from_r("carData", "WVS")
    order = {"Too Little": 0.0, "About Right": 1.0, "Too Much": 2.0}
    return frame.assign(level=frame["poverty"].map(order), decades=frame["age"] / 10.0 - 4.0)


def votes() -> Any:
    frame = from_r("carData", "BEPS")
    codes = {"Conservative": 0.0, "Labour": 1.0, "Liberal Democrat": 2.0}
    return frame.assign(party=frame["vote"].map(codes), decades=frame["age"] / 10.0 - 5.0)


def tumours() -> Any:
    frame = from_r("survival", "rotterdam")
    frame = frame.assign(
        years=frame["rtime"] / 365.25,
        decades=frame["age"] / 10.0 - 5.0,
        some=np.sqrt(frame["nodes"]),
    )
    return frame[frame["years"] > 0.0]


DENIED = "pirat + lvrat + chist + phist + afam"
PARTS = "C(origin) + summer + spring"
ILL = "health + chronic + gender + school + insurance"
REPORTED = "gender + age + income + illness + reduced + health"
EARNED = "education + years + I(years**2) + ethnicity + parttime"
NURSED = "decades + size + some + C(grade) + hormon + chemo"


def cases() -> dict[str, Case]:
    flights = ("nycflights13 flights, by day and airport", late_flights)
    nmes, hmda = ("AER NMES1988", visits), ("AER HMDA", mortgages)
    cps, wvs = ("AER CPS1988", wages), ("carData WVS", poverty)
    seen, australia = ("survival rotterdam", tumours), ("AER DoctorVisits", doctors)
    times = "Surv(years, recur)"
    offset = " + offset(log_flights)"
    return {
        "gaussian": Case(*cps, "gaussian", "log_wage", EARNED, others.gaussian),
        "student-t": Case(*cps, "t", "log_wage", EARNED, others.student),
        "bernoulli": Case(*hmda, "bernoulli", "denied", DENIED, others.discrete("Logit")),
        "probit": Case(*hmda, "probit", "denied", DENIED, others.discrete("Probit")),
        "cloglog": Case(*hmda, "cloglog", "denied", DENIED, others.glm("Binomial", "CLogLog")),
        "binomial": Case(
            "statsmodels star98",
            schools,
            "binomial",
            "p(NABOVE, pupils)",
            "LOWINC + PERASIAN + PERBLACK + PERHISP + PTRATIO",
            others.glm("Binomial", "Logit"),
            "pupils",
        ),
        "poisson": Case(*australia, "poisson", "visits", REPORTED, others.discrete("Poisson")),
        "poisson, offset": Case(
            *flights, "poisson", "late", PARTS, others.glm("Poisson", "Log"), "log_flights", offset
        ),
        "negative-binomial": Case(
            *nmes, "negativebinomial", "visits", ILL, others.negative_binomial
        ),
        "negative-binomial, offset": Case(
            *flights,
            "negativebinomial",
            "late",
            PARTS,
            others.negative_binomial,
            "log_flights",
            offset,
        ),
        "gamma": Case(*cps, "gamma", "wage", EARNED, others.gamma),
        "beta": Case(
            "Ecdat BudgetFood", food, "beta", "wfood", "spent + decades + size + sex", others.beta
        ),
        "ordinal": Case(
            *wvs,
            "cumulative",
            "level",
            "religion + degree + country + decades + gender",
            others.ordered("logit"),
        ),
        "ordinal-probit": Case(
            *wvs,
            "ordinal-probit",
            "level",
            "religion + degree + country + decades + gender",
            others.ordered("probit"),
        ),
        "categorical": Case(
            "carData BEPS",
            votes,
            "categorical",
            "party",
            "decades + Europe + Blair + Hague + gender",
            others.categorical,
        ),
        "zero-inflated-poisson": Case(
            *australia,
            "zero_inflated_poisson",
            "visits",
            REPORTED,
            others.zero_inflated(False),
        ),
        "zero-inflated-negative-binomial": Case(
            *nmes,
            "zero_inflated_negativebinomial",
            "visits",
            ILL,
            others.zero_inflated(True),
        ),
        "hurdle-poisson": Case(*nmes, "hurdle_poisson", "visits", ILL, others.hurdle(False)),
        "hurdle-negative-binomial": Case(
            *nmes, "hurdle_negativebinomial", "visits", ILL, others.hurdle(True)
        ),
        "exponential": Case(*seen, "exponential", times, NURSED, others.exponential, "recur"),
        "weibull": Case(*seen, "weibull", times, NURSED, others.weibull, "recur"),
        "lognormal": Case(*seen, "lognormal", times, NURSED, others.lognormal, "recur"),
    }


def rows_of(case: Case) -> tuple[Any, tuple[str, ...], Rows]:
    """The frame, and the columns and rows of the other library: a design of formulaic's."""
    try:
        formulaic: Any = importlib.import_module("formulaic")
    except ImportError:
        raise NotInstalled("pip install formulaic") from None
    frame = case.frame().reset_index(drop=True)
    design = formulaic.model_matrix(case.right, frame)
    if case.family in ("cumulative", "ordinal-probit"):
        # Cutpoints replace the intercept.
        design = design.drop(columns=["Intercept"])
    target = re.sub(r"\w+\((\w+),.*\)", r"\1", case.left)
    beside = frame[case.beside].to_numpy(dtype=float) if case.beside else None
    rows = Rows(frame[target].to_numpy(dtype=float), design.to_numpy(dtype=float), beside)
    return frame, tuple(design.columns), rows
