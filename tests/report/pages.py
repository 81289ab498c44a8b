"""A small coreset with names that are trouble, and its report, made once."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pyarrow as pa

import corebayes as cb
from tests.problems import coins

NAMES = ("<script>alert('x')</script>", 'a & "b"', "speed")
TARGET = "late > 15"


@functools.cache
def table() -> Any:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 3))
    y = coins(rng, X @ [1.0, -1.0, 0.5] - 0.5)
    columns = dict(zip(NAMES, X.T, strict=True))
    return pa.table({**columns, TARGET: y.astype(np.int64)})


@functools.cache
def coreset() -> cb.Coreset:
    model = cb.LogisticRegression(intercept=True, prior=cb.Normal())
    return cb.build(model, table(), target=TARGET, size=15, seed=4)


@functools.cache
def full_report() -> cb.Report:
    return cb.report(coreset(), table(), target=TARGET, draws=400, title="Late <trains>")
