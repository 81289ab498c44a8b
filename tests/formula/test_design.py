"""The columns of a formula: those of formulaic, by the same names, and again from stored data."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pandas
import polars
import pyarrow
import pytest

import corebayes as cb
from corebayes.formula import Design
from corebayes.formula.columns import read
from corebayes.formula.rows import design_rows
from corebayes.formula.stored import design_from_data
from tests.formula.grammar import NUM_ROWS, check_same, ours, table

FORMULAS = """
1
x + z - 1
x*z
g
0 + g
g*h
g*h - 1
g:h
g:h - 1
g:x
g/h
g/x
(x + z)/g
(x + z + g + h)^2 - g:h
(g + h + grade)**3
h + g:h:grade
C(k)*x
C(k):g - 1
C(g, levels=["c", "a", "b"])
C(g, Treatment("b"))*h
C(g, contr.treatment(base="c")) - 1
C(g, contr.sum)*x
C(g, Sum):h
grade:x
poly(x, 3)*g
poly(x, 2, raw=True)
bs(x, df=5)
bs(x, df=6, include_intercept=True)
bs(x, df=6, include_intercept=True):g - 1
bs(x, knots=[-0.5, 0.5], degree=2)
bs(x, 4, lower_bound=-5, upper_bound=5.0)
bs(x, None, [-0.5, 0.5])
cr(x, df=4)
cr(x, df=4, constraints='center')
cs(x, knots=[-.5, 0.2]):h
center(log(z)) + I(center(x)**2) + scale(z, ddof=0)
standardize(x) + scale(x, center=False)
I(-x**2) + I((x > 0)*z) + I(2**-x) + I(x - (z - k)) + I((x - z) - k)
I(z % 2) + I(z // 1) + I(g == "a") + I("b" != g)
np.log(z) + np.sqrt(z) + log2(z) + log10(z)
`my col`*größe + log(`my col` + 10)
. - g
.:x
x - -z
z:x + x:z
""".strip().splitlines()


@pytest.mark.parametrize("right", FORMULAS)
def test_columns_and_names_are_those_of_formulaic(right):
    check_same(f"y ~ {right}")


@pytest.mark.parametrize("right", FORMULAS)
def test_stored_as_json_and_block_by_block_it_is_the_same(right):
    frame = table()
    design = Design.fit(f"y ~ {right}", frame)
    again = design_from_data(json.loads(json.dumps(design.to_data())))
    assert again.to_data() == design.to_data()
    whole = design.apply(read(frame, design.needs))
    blocks = [frame.iloc[:7], frame.iloc[7:8], frame.iloc[8:]]
    parts = [again.apply(read(block, again.needs)) for block in blocks]
    np.testing.assert_allclose(np.concatenate(parts), whole, rtol=1e-13, atol=1e-13)


def test_the_left_side_is_transformed_too():
    frame = table()
    data = design_rows("log(z) ~ x", frame)
    np.testing.assert_array_equal(data.take(np.arange(NUM_ROWS)).y, np.log(frame["z"]))
    assert data.target_name == "log(z)" and data.column_names == ("Intercept", "x")


def test_what_formulaic_does_not_have_against_a_closed_form():
    frame = table()
    np.testing.assert_array_equal(
        ours('y ~ C(g, reference="b")')[1], ours('y ~ C(g, Treatment("b"))')[1]
    )
    np.testing.assert_array_equal(ours("y ~ ns(x, df=3)")[1], ours("y ~ cr(x, df=3)")[1])
    np.testing.assert_array_equal(ours("y ~ centre(x) - 1")[1][:, 0], frame.x - frame.x.mean())
    np.testing.assert_array_equal(ours("y ~ floor(x) - 1")[1][:, 0], np.floor(frame.x))
    truths = frame.assign(b=frame.x > 0)
    assert ours("y ~ b", truths)[0] == ["Intercept", "b[T.True]"]
    np.testing.assert_array_equal(ours("y ~ b", truths)[1][:, 1], truths.b)
    np.testing.assert_array_equal(ours("y ~ I(b * x) - 1", truths)[1][:, 0], truths.b * frame.x)
    sums = ours("y ~ bs(x, df=7, include_intercept=True) - 1")[1].sum(axis=1)
    np.testing.assert_allclose(sums, 1.0, rtol=1e-12)


def test_what_r_writes_is_understood():
    assert ours("y ~ I(x^2) + factor(g)")[0] == ours("y ~ I(x**2) + C(g)")[0]
    np.testing.assert_array_equal(
        ours("y ~ I(x^2) + as.factor(k, ref=2)")[1], ours("y ~ I(x**2) + C(k, ref=2)")[1]
    )


def test_new_rows_keep_levels_means_and_knots():
    frame = table()
    design = Design.fit("y ~ scale(x) + C(k) + bs(z, df=4, lower_bound=0, upper_bound=9)", frame)
    new = pandas.DataFrame({"x": [5.0, 6.0], "k": [3.0, 3.0], "z": [8.0, 0.1], "y": [0.0, 1.0]})
    X = design.apply(read(new, design.needs))
    np.testing.assert_allclose(X[:, 1], (new.x - frame.x.mean()) / frame.x.std(), rtol=1e-12)
    np.testing.assert_array_equal(X[:, 2:5], [[0, 0, 1]] * 2)
    with pytest.raises(
        ValueError, match=r"row 1, column 'k': 7.0 is none of the levels 0, 1, 2, 3"
    ):
        design.apply(read(new.assign(k=[3, 7.0]), design.needs))
    with pytest.raises(ValueError, match=r"10 in row 0 is outside of the bounds 0 and 9"):
        design.apply(read(new.assign(z=10.0), design.needs))


@pytest.mark.parametrize("library", ["polars", "arrow"])
def test_frames_of_all_kinds_give_the_same_columns(library):
    frame = table().assign(b=table().x > 0)
    as_polars = polars.from_pandas(frame).with_columns(
        polars.col("grade").cast(polars.Enum(["low", "mid", "high"])),
        polars.col("h").cast(polars.Categorical),
    )
    other = as_polars if library == "polars" else pyarrow.Table.from_pandas(frame)
    formula = "y ~ x*grade + g:h + C(k) + b + `my col`"
    names, X = ours(formula, frame)
    assert ours(formula, other)[0] == names
    np.testing.assert_array_equal(ours(formula, other)[1], X)


def test_pandas_is_not_needed_for_the_other_two():
    script = (
        "import sys, polars\n"
        "class Absent:\n"
        "    def find_spec(self, name, *_):\n"
        "        if name in ('pandas', 'formulaic'): raise ImportError(name)\n"
        "sys.meta_path.insert(0, Absent())\n"
        "import pyarrow\n"
        "from corebayes.formula.rows import design_rows\n"
        "columns = {'g': ['a', 'b', 'a'], 'x': [1, 2, 4], 'y': [0.5, 1.5, 2.5]}\n"
        "for frame in (polars.DataFrame(columns), pyarrow.table(columns)):\n"
        "    print(design_rows('y ~ g + x', frame).take([0, 1, 2]).X.tolist())\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.stdout == "[[1.0, 0.0, 1.0], [1.0, 1.0, 2.0], [1.0, 0.0, 4.0]]\n" * 2, done.stderr


def test_a_column_called_like_an_expression_is_not_taken_for_it():
    frame = table().assign(**{"I(x)": 7.0})
    names, X = ours("y ~ `I(x)` - 1", frame)
    assert names == ["I(x)"] and (X == 7.0).all()
    with pytest.raises(ValueError, match=r"come more than once: .'I.x.'"):
        ours("y ~ `I(x)` + I(x)", frame)


def test_a_category_of_a_chunked_arrow_table_and_intervals():
    chunks = pyarrow.chunked_array([["b", "a"], ["c", "b"]])
    plain = pyarrow.table({"g": chunks, "y": [1.0, 2, 3, 4]})
    coded = plain.set_column(0, "g", chunks.dictionary_encode())
    assert ours("y ~ g - 1", plain)[0] == ["g[a]", "g[b]", "g[c]"]
    np.testing.assert_array_equal(
        ours("y ~ g - 1", plain)[1], [[0, 1, 0], [1, 0, 0], [0, 0, 1], [0, 1, 0]]
    )
    assert ours("y ~ g - 1", coded)[0] == ["g[b]", "g[a]", "g[c]"]
    cut = table().assign(c=pandas.cut(table().z, [0, 1, 2, 3]))
    assert ours("y ~ c", cut)[0] == ["Intercept", "c[T.(1, 2]]", "c[T.(2, 3]]"]


def test_missing_values_are_told_of_all_columns():
    frame = table().astype({"g": object})
    frame.loc[[7, 9], "g"] = None
    frame.loc[8, "x"] = np.nan
    words = "row 7, column 'g' is missing; so are 2 of 30 values there and 1 in 'x'"
    for other in (frame, polars.from_pandas(frame), pyarrow.Table.from_pandas(frame)):
        with pytest.raises(ValueError, match=words):
            Design.fit("y ~ x + g + z", other)


@pytest.mark.parametrize(
    ("right", "words"),
    [
        ("when", "column 'when' holds .*days since a date"),
        ("C(when)", "column 'when' holds .*days since a date"),
        ("x:offset(z)", r"offset\(\) is a term of its own: write it between"),
        ("0", "makes no columns"),
        ("2:x", r"2 is no term of a formula: write I\(2 \* x\)"),
        ("(0 + x)", "no effect inside of parentheses"),
        ("I(g)", "column 'g' holds categories, where numbers are needed"),
        ("poly(k, 4)", "a degree of 4 needs more than 4 values"),
        ("scale(one)", "all values are the same"),
        ("bs(x, df=2)", "df must be a whole number from 3"),
        ("bs(x, df=4, knots=[0])", "give df or knots"),
        ("cr(x, knots=[99])", "knots must differ and be between the bounds"),
        ("exposure(x)", r"write offset\(log\(x\)\)"),
        ("lag(x)", r"no function 'lag' in a formula; .*There are I, log, "),
        ("logg(x)", "did you mean 'log'"),
        ("log(x, 2)", r"log\(\): too many positional arguments"),
        ('C(g, levels=["a"])', "is none of the levels 'a'"),
        ('C(g, reference="q")', "the reference 'q' is none of the levels"),
        ("I(poly(x, 2) * z)", r"poly\(\) is a term of its own"),
    ],
)
def test_what_cannot_be_is_one_sentence(right, words):
    when = pandas.to_datetime(["2020-01-01"] * NUM_ROWS)
    frame = table().assign(when=when, one=1.0)
    for other in (frame, polars.from_pandas(frame)):
        with pytest.raises(ValueError, match=words) as caught:
            ours(f"y ~ {right}", other)
        assert "\n" not in str(caught.value)


def test_certify_takes_the_frame_of_a_formula(tmp_path):
    rng = np.random.default_rng(2)
    frame = pandas.DataFrame({"x": rng.normal(size=200), "g": ["a", "b", "c", "b"] * 50})
    frame["times"] = rng.integers(1, 3, size=200)
    frame["y"] = rng.normal(size=200)
    model, data = cb.from_formula("y ~ . + I(x**2):g", frame, family="linear", counts="times")
    assert "times" not in data.column_names
    coreset = cb.build(model, data, size=20, seed=0)
    coreset.save(tmp_path / "coreset.parquet")
    loaded = cb.load(tmp_path / "coreset.parquet")
    assert loaded.provenance["design"]["formula"] == "y ~ . + I(x**2):g"
    certificate = cb.certify(loaded, frame, counts="times", draws=200)
    assert certificate.to_dict() == cb.certify(coreset, data, draws=200).to_dict()
