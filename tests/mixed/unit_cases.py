"""Rows with groups of every kind of family, and the model of groups as units."""

from __future__ import annotations

import numpy as np
import pandas as pd

import corebayes as cb
from corebayes.models.mixed.marginal import MarginalRegression
from corebayes.rows import open_rows

FAMILIES = {
    "logistic": (cb.LogisticRegression(prior=cb.Normal()), None),
    "poisson": (cb.PoissonRegression(link="log", prior=cb.Normal()), None),
    "noise": (cb.LinearRegression(noise_sd=1.0, prior=cb.Normal()), cb.HalfNormal(2.0)),
    "student": (
        cb.StudentTRegression(df=4.0, scale=1.0, prior=cb.Normal()),
        cb.HalfStudentT(3.0, 1.0),
    ),
    "dispersion": (
        cb.NegativeBinomialRegression(dispersion=1.0, prior=cb.Normal()),
        cb.Gamma(2.0, 1.0),
    ),
}


def table(name, num_rows, num_groups, seed=0, spread=0.7):
    rng = np.random.default_rng(seed)
    shares = rng.gamma(2.0, size=num_groups)
    g = rng.choice(num_groups, size=num_rows, p=shares / shares.sum())
    x = rng.standard_normal(num_rows)
    eta = 0.3 - 0.4 * x + spread * rng.standard_normal(num_groups)[g]
    eta += 0.3 * rng.standard_normal(num_groups)[g] * x
    if name == "logistic":
        y = rng.uniform(size=num_rows) < 1.0 / (1.0 + np.exp(-eta))
    elif name in ("noise", "student"):
        y = eta + 0.6 * rng.standard_normal(num_rows)
    else:
        y = rng.poisson(np.exp(eta))
    return pd.DataFrame({"one": 1.0, "x": x, "g": g.astype(float), "y": y.astype(float)})


def mixed(name, effects=("1",)):
    family, learned = FAMILIES[name]
    term = cb.GroupTerm(group="g", effects=effects)
    return cb.MixedRegression(family=family, terms=[term], learned=learned)


def bound(name, num_rows=60, num_groups=6, effects=("1",), seed=0):
    rows = open_rows(table(name, num_rows, num_groups, seed), target="y")
    model = MarginalRegression(mixed(name, effects).bind(rows))
    weights = np.random.default_rng(5).gamma(2.0, 0.5, num_rows)
    return model, model.group_block(rows.take(np.arange(num_rows)), weights), rows, weights
