"""A small table, formulas from a grammar for it, and what formulaic makes of them."""

from __future__ import annotations

import functools
import warnings

import formulaic
import numpy as np
import pandas
from hypothesis import strategies as st

from corebayes.formula import Design
from corebayes.formula.columns import read

NUM_ROWS = 30
KNOWN = {"sqrt": np.sqrt, "log1p": np.log1p, "expm1": np.expm1, "sin": np.sin, "cos": np.cos}


@functools.cache
def table() -> pandas.DataFrame:
    rng = np.random.default_rng(4)
    place = np.arange(NUM_ROWS)
    return pandas.DataFrame(
        {
            "x": rng.normal(size=NUM_ROWS),
            "z": rng.uniform(0.5, 3.0, size=NUM_ROWS),
            "k": rng.permutation(place % 4),
            "g": rng.permutation(np.array(list("abc"))[place % 3]),
            "h": rng.permutation(np.array(["no", "yes"])[place % 2]),
            "grade": pandas.Categorical(
                rng.permutation(np.array(["low", "high"])[place % 2]), ["low", "mid", "high"]
            ),
            "my col": rng.normal(size=NUM_ROWS),
            "größe": rng.normal(size=NUM_ROWS),
            "y": rng.normal(size=NUM_ROWS),
        }
    )


def ours(formula: str, frame=None) -> tuple[list[str], np.ndarray]:
    frame = table() if frame is None else frame
    design = Design.fit(formula, frame)
    return list(design.column_names), design.apply(read(frame, design.needs))


def theirs(formula: str, frame=None) -> tuple[list[str], np.ndarray]:
    frame = table() if frame is None else frame
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        names = {"__formulaic_variables_available__": list(frame.columns)}
        right = formulaic.Formula(formula, _context=names).rhs
        matrix = right.get_model_matrix(frame, context=KNOWN)
    return list(map(str, matrix.columns)), matrix.to_numpy(dtype=float)


def check_same(formula: str) -> None:
    names, X = theirs(formula)
    our_names, our_X = ours(formula)
    assert our_names == names, formula
    np.testing.assert_allclose(our_X, X, rtol=1e-10, atol=1e-10, err_msg=formula)


NUMBERS = st.sampled_from(["x", "z", "k", "`my col`", "größe", "center(z)", "scale(x)"])
EXPRESSIONS = st.recursive(
    NUMBERS | st.sampled_from(["2", "0.5", "3.0", "1e1"]),
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from("+-*"), inner).map(lambda t: f"({t[0]} {t[1]} {t[2]})"),
        # Times one: what minus a truth is, or a truth plus a truth, is pandas' own affair.
        st.tuples(inner, st.sampled_from([">", "<="]), NUMBERS).map(
            lambda t: f"1.0*({t[0]} {t[1]} {t[2]})"
        ),
        st.tuples(inner, st.integers(1, 3)).map(lambda t: f"({t[0]})**{t[1]}"),
        st.tuples(st.sampled_from(["sin", "cos", "np.abs", "np.tanh"]), inner).map(
            lambda t: f"{t[0]}({t[1]})"
        ),
        inner.map(lambda text: f"-{text}"),
    ),
    max_leaves=4,
).map(lambda text: f"I({text} + 0*x)")
FACTORS = st.one_of(
    st.sampled_from(["x", "z", "k", "g", "h", "grade", "`my col`", "größe"]),
    st.sampled_from(["C(k)", "C(g)", "C(h, Sum)", 'C(g, Treatment("b"))', 'I(g == "a")']),
    st.sampled_from(["log(z)", "np.log(z)", "exp(x)", "sqrt(z)", "log1p(z)", "center(x)"]),
    st.sampled_from(["poly(x, 2)", "poly(z,2,raw=True)", "bs(x, df=4)", "cr(z, df=3)"]),
    st.sampled_from(["bs(z, df=4, degree=2, include_intercept=True)", "standardize(x)"]),
    EXPRESSIONS,
)
INTERACTIONS = st.lists(FACTORS, min_size=1, max_size=3).map(":".join)
SUMS = st.lists(INTERACTIONS, min_size=1, max_size=3).map(" + ".join)
TERMS = st.one_of(
    INTERACTIONS,
    st.tuples(FACTORS, FACTORS).map(lambda t: f"{t[0]}*{t[1]}"),
    st.tuples(FACTORS, FACTORS).map(lambda t: f"{t[0]} / {t[1]}"),
    st.tuples(st.lists(FACTORS, min_size=1, max_size=3), st.integers(1, 2)).map(
        lambda t: f"({' + '.join(t[0])})**{t[1]}"
    ),
    SUMS.map(lambda text: f"({text})"),
)
FORMULAS = st.tuples(
    st.sampled_from(["", "0 + ", "1 + ", "-1 + "]),
    st.lists(TERMS, min_size=1, max_size=3),
    st.lists(FACTORS, max_size=1),
).map(lambda t: f"y ~ {t[0]}{' + '.join(t[1])}" + "".join(f" - {factor}" for factor in t[2]))
