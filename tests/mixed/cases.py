"""Small mixed models, all asymmetric: unbalanced groups, slopes, crossed terms, constants."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

import corebayes as cb
from corebayes.problem import Problem
from corebayes.rows import open_rows


class Case(NamedTuple):
    model: Any
    X: np.ndarray
    y: np.ndarray
    names: tuple[str, ...]

    def frame(self) -> dict[str, np.ndarray]:
        import pandas

        table = pandas.DataFrame(self.X, columns=list(self.names))
        table["y"] = self.y
        return table

    def problem(self) -> Problem:
        rows = open_rows(self.frame(), target="y")
        return Problem(self.model.bind(rows), rows)


def case(name: str, num_rows: int = 400, num_groups: int = 7, seed: int = 0) -> Case:
    rng = np.random.default_rng(seed)
    shares = rng.dirichlet(np.full(num_groups, 2.0))
    g = rng.choice(num_groups, size=num_rows, p=shares)
    h = rng.integers(3, size=num_rows)
    x = rng.normal(0.3, 1.0, size=num_rows)
    effects = 0.7 * rng.normal(size=num_groups)
    slopes = 0.4 * rng.normal(size=num_groups)
    others = 0.5 * rng.normal(size=3)
    eta = -0.4 + 0.6 * x + effects[g]
    terms = [cb.GroupTerm(group="g")]
    if name == "slopes":
        terms = [cb.GroupTerm(group="g", effects=("1", "x"))]
        eta = eta + slopes[g] * x
    if name in ("crossed", "gaussian"):
        terms.append(cb.GroupTerm(group="h", scale=cb.HalfStudentT(3.0, 1.0)))
        eta = eta + others[h]
    prior = cb.Normal([0.1, -0.2], [1.5, 2.0])
    learned: Any = None
    family: Any
    if name == "gaussian":
        family, learned = cb.LinearRegression(prior=prior, noise_sd=1.0), cb.HalfNormal(2.0)
        y = eta + 0.8 * rng.normal(size=num_rows)
    elif name == "poisson":
        family = cb.PoissonRegression(link="log", prior=prior)
        y = rng.poisson(np.exp(0.5 * eta)).astype(float)
    elif name == "negative-binomial":
        family, learned = (
            cb.NegativeBinomialRegression(prior=prior, dispersion=1.0),
            cb.Exponential(1.0),
        )
        y = rng.poisson(np.exp(0.5 * eta) * rng.gamma(2.0, 0.5, size=num_rows)).astype(float)
    elif name == "student-t":
        family, learned = cb.StudentTRegression(df=4.0, prior=prior, scale=1.0), cb.HalfNormal(1.0)
        y = eta + rng.standard_t(4, size=num_rows)
    else:
        family = cb.LogisticRegression(prior=prior)
        y = (rng.uniform(size=num_rows) < 1.0 / (1.0 + np.exp(-eta))).astype(float)
    X = np.column_stack([np.ones(num_rows), x, g, h])
    model = cb.MixedRegression(family=family, terms=terms, learned=learned, slopes_only=())
    if name not in ("crossed", "gaussian"):
        X = X[:, :3]
    return Case(model, X, y, ("one", "x", "g", "h")[: X.shape[1]])


NAMES = ("logistic", "slopes", "crossed", "gaussian", "poisson", "negative-binomial", "student-t")
