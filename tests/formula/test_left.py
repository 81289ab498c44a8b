"""The left side and what stands beside the predictor: levels, trials, events, offsets, gaps."""

from __future__ import annotations

import json

import numpy as np
import pandas
import polars
import pyarrow
import pytest

import corebayes as cb
from corebayes.formula.design import Design
from corebayes.formula.rows import describe_target, design_rows, rows_of
from corebayes.formula.stored import design_from_data

NUM_ROWS = 30


def table() -> pandas.DataFrame:
    rng = np.random.default_rng(8)
    return pandas.DataFrame(
        {
            "x": rng.normal(size=NUM_ROWS),
            "t": rng.uniform(1.0, 2.0, size=NUM_ROWS),
            "g": rng.choice(list("abc"), size=NUM_ROWS),
            "late": np.where(rng.uniform(size=NUM_ROWS) < 0.3, "yes", "no"),
            "flag": rng.uniform(size=NUM_ROWS) < 0.5,
            "code": rng.integers(1, 3, size=NUM_ROWS),
            "wins": rng.integers(0, 5, size=NUM_ROWS),
            "games": rng.integers(5, 9, size=NUM_ROWS),
            "status": rng.choice(["none", "right"], size=NUM_ROWS),
        }
    )


def kinds(frame: pandas.DataFrame) -> list[object]:
    return [frame, polars.from_pandas(frame), pyarrow.Table.from_pandas(frame)]


@pytest.mark.parametrize(
    ("left", "expected", "said"),
    [
        ("late", lambda f: f["late"] == "yes", "y is 1 where late = yes, and 0 elsewhere"),
        ("late[no]", lambda f: f["late"] == "no", "y is 1 where late = no, and 0 elsewhere"),
        ('late["no"]', lambda f: f["late"] == "no", "y is 1 where late = no, and 0 elsewhere"),
        ("flag", lambda f: f["flag"], "y is flag"),
        ("flag[False]", lambda f: ~f["flag"], "y is 1 where flag = False, and 0 elsewhere"),
        ("code[2]", lambda f: f["code"] == 2, "y is 1 where code = 2, and 0 elsewhere"),
        ("g[b]", lambda f: f["g"] == "b", "y is 1 where g = b, and 0 elsewhere"),
        ("g", lambda f: f["g"].map({"a": 0, "b": 1, "c": 2}), "y is g: 0 = a, 1 = b, 2 = c"),
        (
            'C(g, levels=["c", "a", "b"])',
            lambda f: f["g"].map({"c": 0, "a": 1, "b": 2}),
            "y is g: 0 = c, 1 = a, 2 = b",
        ),
    ],
)
def test_levels_of_the_target(left, expected, said):
    for frame in kinds(table()):
        rows = design_rows(f"{left} ~ x", frame)
        design = design_from_data(json.loads(json.dumps(rows.design)))
        assert describe_target(design) == said
        for one in (rows, rows_of(design, frame)):
            y = one.take(np.arange(NUM_ROWS)).y
            np.testing.assert_array_equal(y, expected(table()).astype(float))


def test_the_order_of_categories_says_which_level_is_one():
    frame = table().assign(
        late=pandas.Categorical(table()["late"], categories=["yes", "never", "no"])
    )
    design = Design.fit("late ~ x", frame)
    assert describe_target(design) == "y is 1 where late = no, and 0 elsewhere"


@pytest.mark.parametrize(
    ("formula", "names", "beside"),
    [
        ("wins ~ x + offset(log(t))", ["offset(log(t))"], lambda f: [np.log(f["t"])]),
        ("wins ~ offset(t) + x + offset(x)", ["offset(t + x)"], lambda f: [f["t"] + f["x"]]),
        ("p(wins, games) ~ x", ["trials(games)"], lambda f: [f["games"]]),
        ("prop(wins, 9) ~ x", ["trials(9)"], lambda f: [np.full(NUM_ROWS, 9)]),
        ("cbind(wins, games) ~ x", ["trials(wins + games)"], lambda f: [f["wins"] + f["games"]]),
        ("Surv(t, flag) ~ x", ["event(flag)"], lambda f: [f["flag"]]),
        (
            "censored(t, status) ~ x + offset(x)",
            ["event(status == 'none')", "offset(x)"],
            lambda f: [f["status"] == "none", f["x"]],
        ),
    ],
)
def test_columns_beside_the_predictor(formula, names, beside):
    frame = table()
    rows = design_rows(formula, frame)
    assert rows.column_names == ("Intercept", "x", *names)
    design = design_from_data(json.loads(json.dumps(rows.design)))
    assert list(design.beside_names.values()) == names
    expected = np.column_stack([np.asarray(values, dtype=float) for values in beside(frame)])
    for one in (rows, rows_of(design, frame)):
        np.testing.assert_allclose(one.take(np.arange(NUM_ROWS)).X[:, 2:], expected)


def test_the_dot_is_none_of_what_the_formula_names_otherwise():
    frame = table()[["x", "t", "wins", "games"]]
    rows = design_rows("p(wins, games) ~ . + offset(t)", frame)
    assert rows.column_names == ("Intercept", "x", "trials(games)", "offset(t)")


def test_missing_rows_are_left_out_by_choice():
    frame = table().assign(x=table()["x"].where(np.arange(NUM_ROWS) != 3))
    frame.loc[[0, 6], "g"] = None
    whole = frame.drop(index=[0, 3, 6])
    for one in kinds(frame):
        with pytest.raises(ValueError, match="row 0, column 'g' is missing; so are 2 of 30") as bad:
            design_rows("late ~ scale(x) + g", one)
        assert "1 in 'x'" in str(bad.value) and 'missing="drop"' in str(bad.value)
        with pytest.warns(UserWarning, match="3 rows with missing values are left out: row 0, col"):
            rows = design_rows("late ~ scale(x) + g", one, missing="drop")
        assert rows.num_rows == NUM_ROWS and rows.total_count == NUM_ROWS - 3
        block = rows.take(np.arange(NUM_ROWS))
        assert np.flatnonzero(block.multiplicity() == 0.0).tolist() == [0, 3, 6]
        expected = design_rows("late ~ scale(x) + g", whole)
        kept = block.take(whole.index.to_numpy())
        np.testing.assert_allclose(kept.X, expected.take(np.arange(len(whole))).X, rtol=1e-14)
        design = design_from_data(json.loads(json.dumps(rows.design)))
        assert rows_of(design, one).fingerprint() == rows.fingerprint()


def test_counts_go_with_missing_rows():
    frame = table().assign(x=table()["x"].where(np.arange(NUM_ROWS) != 3))
    with pytest.warns(UserWarning, match="1 row with missing values is left out"):
        rows = design_rows("late ~ x", frame, counts="games", missing="drop")
    expected = np.where(np.arange(NUM_ROWS) == 3, 0.0, frame["games"])
    np.testing.assert_array_equal(rows.take(np.arange(NUM_ROWS)).multiplicity(), expected)


def test_a_coreset_finds_its_columns_again():
    frame = table().assign(x=table()["x"].where(np.arange(NUM_ROWS) != 3))
    with pytest.warns(UserWarning, match="missing"):
        model, rows = cb.from_formula("late ~ x + t", frame, missing="drop")
    coreset = cb.build(model, rows, size=5, seed=0, progress=False)
    assert 3 not in coreset.indices
    certificate = cb.certify(coreset, frame, draws=200)
    assert certificate.reverse_kl is not None and np.isfinite(certificate.reverse_kl.value)
    assert cb.predict(coreset, frame.drop(columns=["late"]).dropna()[:4]).mean.shape == (4,)


@pytest.mark.parametrize(
    ("formula", "words"),
    [
        ("one ~ x", "the left side 'one' is 'a' in every row"),
        ("late[] ~ x", "where a number or a text should be"),
        ("late[yes ~ x", "where ']' should be"),
        ("log(t)[2] ~ x", "must be one column of numbers, one level of a column"),
        ("p(wins) ~ x", "where ',' should be"),
        ("p(wins, games, t) ~ x", r"where '\)' should be"),
        ("censored(t, flag) ~ x", "must be 'none' where the event was seen"),
        ("censored(t, g) ~ x", r"where it is 1 and 0, write Surv\(time, event\)"),
        ("censored(t, log(t)) ~ x", r"censored\(\) takes a column of times"),
        ("wins ~ x - offset(t)", r"offset\(\) is added as it is"),
        ("wins ~ (x + offset(t))", r"offset\(\) is added as it is"),
        ("wins ~ offset(t):x", r"offset\(\) is added as it is"),
        ("wins ~ (1 + offset(t) | g)", r"offset\(\) is added as it is"),
        ("wins ~ offset(g)", "column 'g' holds categories, where numbers are needed"),
        ("wins ~ offset(poly(t, 2))", r"poly\(\) is a term of its own"),
        ("wins ~ offset(1)", "1 has no column in it"),
        ("wins ~ 0 + offset(t)", "the formula makes no columns"),
        ("wins ~ x + wins", "the formula has 'wins' on both sides"),
        ("late[yes] ~ x:late", "the formula has 'late' on both sides"),
        ("log(t) ~ (1 | t)", "the formula has 't' on both sides"),
        ("wins ~ offset(__import__('os'))", "no function '__import__'"),
    ],
)
def test_what_cannot_be_is_one_sentence(formula, words):
    with pytest.raises(ValueError, match=words) as caught:
        design_rows(formula, table().assign(one="a"))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "change",
    [
        {"beside": {"weights": ["column", "t"]}},
        {"beside": {"offset": ["call", "eval", [["column", "t"]], {}]}},
        {"beside": {"offset": ["literal", 1]}},
        {"beside": ["offset"]},
        {"missing": "import os"},
        {"missing": None},
    ],
)
def test_what_a_file_says_is_checked(change):
    data = {**Design.fit("wins ~ x", table()).to_data(), **change}
    with pytest.raises(ValueError, match="the stored design cannot be used"):
        design_from_data(data)


def test_a_family_without_such_columns_says_so():
    with pytest.raises(ValueError, match="LogisticRegression needs numbers or two levels"):
        cb.from_formula("g ~ x", table())
    with pytest.raises(ValueError, match="PoissonRegression has no trials: leave p"):
        cb.from_formula("p(wins, games) ~ x", table(), family="poisson")


def test_columns_beside_are_named_by_options_or_by_the_model():
    rng = np.random.default_rng(3)
    frame = pandas.DataFrame({"x": rng.normal(size=60), "n out of": rng.integers(1, 9, 60)})
    frame["wins"] = rng.binomial(frame["n out of"], 0.4)
    written = cb.from_formula("p(wins, `n out of`) ~ x", frame, family="binomial")
    by_option = cb.from_formula("wins ~ x", frame, family="binomial", trials="n out of")
    own = cb.BinomialRegression(trials="n out of")
    by_model = cb.from_formula("wins ~ x", frame, family=own)
    for model, rows in (by_option, by_model):
        assert model.row_columns == written[0].row_columns
        assert np.array_equal(rows.take(np.arange(60)).X, written[1].take(np.arange(60)).X)


def test_two_words_are_no_counts():
    frame = pandas.DataFrame({"x": [1.0, 2.0, 3.0], "late": ["no", "yes", "no"]})
    with pytest.raises(ValueError, match=r"'late' has two levels.*write late\[yes\] ~ …"):
        cb.from_formula("late ~ x", frame, family="poisson")
    _, rows = cb.from_formula("late[yes] ~ x", frame, family="poisson")
    assert rows.take([0, 1, 2]).y.tolist() == [0.0, 1.0, 0.0]


def test_rows_where_a_function_has_no_value_are_dropped_too():
    frame = pandas.DataFrame({"x": [1.0, -2.0, np.nan, 3.0, 5.0], "y": [1.0, 2.0, 3.0, 4.0, 7.0]})
    with pytest.raises(ValueError, match="column 'x' is missing"):
        cb.from_formula("y ~ log(x)", frame, family="gaussian")
    with pytest.warns(UserWarning) as told:
        rows = cb.from_formula("y ~ log(x)", frame, family="gaussian", missing="drop")[1]
    assert len(told) == 2
    assert (rows.num_rows, rows.total_count, rows.num_left_out) == (5, 3.0, 2)


def test_a_level_that_no_row_has_is_refused():
    frame = pandas.DataFrame({"late": ["yes", "no", "yes", "no"], "x": [1.0, 2.0, 3.0, 4.0]})
    with pytest.raises(ValueError, match=r"no row of 'late' is 'yse'; did you mean 'yes'\?"):
        cb.from_formula("late[yse] ~ x", frame)
    with pytest.raises(ValueError, match=r"no row of 'late' is True\. Its levels are 'no', 'yes'"):
        cb.from_formula("late[True] ~ x", frame)
