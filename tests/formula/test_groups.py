"""Group terms of formulas: codes, effects, labels of any kind, and what cannot be."""

from __future__ import annotations

import json

import numpy as np
import pandas
import polars
import pyarrow
import pytest
from formulae import design_matrices

from corebayes.formula import Design
from corebayes.formula.columns import read
from corebayes.formula.rows import design_rows
from corebayes.formula.stored import design_from_data
from tests.formula.grammar import table


def fitted(right: str, frame=None):
    frame = table() if frame is None else frame
    design = Design.fit(f"y ~ {right}", frame)
    return design, design.apply(read(frame, design.needs))


def effect_columns(design: Design, X: np.ndarray) -> dict[str, np.ndarray]:
    """{"x|g": (n, G)}: what each group's effects are multiplied by, written out."""
    names, columns = list(design.column_names), {}
    for group, code, effects in zip(design.groups, design.group_names, design.effects, strict=True):
        own = X[:, [names.index(code)]] == np.arange(len(group.levels))
        for effect in effects:
            values = 1.0 if effect == "1" else X[:, [names.index(effect)]]
            columns[f"{effect}|{group.name}"] = own * values
    return columns


@pytest.mark.parametrize(
    "right",
    [
        "x + (1|g)",
        "x + (x|g)",
        "x + (0 + z|g) + (1|h)",
        "(1|g) + (0 + x|g)",
        "1 + (x:z|g)",
        "x + (1|g:h)",
        "x + (-1 + z|k)",
        "(log(z) + I(x**2)|g)",
    ],
)
def test_effects_are_those_of_formulae(right):
    design, X = fitted(right)
    theirs = design_matrices(f"y ~ {right}", table(), extra_namespace={"log": np.log}).group
    ours = effect_columns(design, X)
    expected = {name: theirs[name].toarray() for name in theirs.terms}
    assert set(ours) == set(expected)
    for name, values in expected.items():
        np.testing.assert_allclose(ours[name], values, atol=1e-12)


def test_columns_of_x_are_terms_then_slopes_then_codes():
    design, X = fitted("x + (1 + x + z | g) + (0 + I(z**2) | k) + (1 | h)")
    assert design.column_names == ("Intercept", "x", "z", "I(z ** 2)", "g", "k", "h")
    assert design.slope_names == ("z", "I(z ** 2)")
    assert design.effects == (("1", "x", "z"), ("I(z ** 2)",), ("1",))
    frame = table()
    np.testing.assert_array_equal(X[:, 2], frame["z"])
    np.testing.assert_array_equal(np.array(list("abc"))[X[:, 4].astype(int)], frame["g"])
    assert design.groups[1].labels == ("0", "1", "2", "3")


def test_categories_as_effects_are_coded_within_their_term():
    design, X = fitted("x + (1 + h | g) + (0 + h | k)")
    assert design.effects == (("1", "h[T.yes]"), ("h[no]", "h[yes]"))
    assert design.slope_names == ("h[T.yes]", "h[no]", "h[yes]")
    names = list(design.column_names)
    np.testing.assert_array_equal(X[:, names.index("h[no]")], table()["h"] == "no")


def test_a_nested_group_is_the_outer_one_and_both():
    nested, both = fitted("(1 | g/h)")[0], fitted("(1 | g) + (1 | g:h)")[0]
    assert nested.groups == both.groups
    assert nested.groups[1].labels == ("a:no", "a:yes", "b:no", "b:yes", "c:no", "c:yes")
    three = fitted("(1 | g/h/grade)")[0]
    assert [group.name for group in three.groups] == ["g", "g:h", "g:h:grade"]
    assert fitted("(1 | g:h) + (x | h:g)")[0].effects == (("1", "x"),)


def test_two_bars_are_one():
    assert fitted("(1 + x || g)")[1].tolist() == fitted("(1 + x | g)")[1].tolist()


def test_a_dot_leaves_out_what_rows_are_grouped_by():
    frame = table()[["x", "g", "k", "y"]]
    assert fitted(". + (1 | g)", frame)[0].column_names == ("Intercept", "x", "k", "g")
    assert fitted("(1 | g) + .", frame)[0].column_names == ("Intercept", "x", "k", "g")


def test_a_column_that_is_a_term_and_a_group():
    design, X = fitted("k + (k | k)")
    assert design.column_names == ("Intercept", "k", "k group")
    np.testing.assert_array_equal(X[:, 1], X[:, 2])


@pytest.mark.parametrize(
    ("values", "levels"),
    [
        (["b", "a", "ü"], ("a", "b", "ü")),
        ([7, -2, 10**15], (-2, 7, 10**15)),
        ([7.0, -2.0, 0.0], (-2, 0, 7)),
        ([True, False, True], (False, True)),
        ([True, True, True], (True,)),
        (pandas.Categorical(["hi", "lo", "hi"], ["no", "lo", "mid", "hi"]), ("lo", "hi")),
        (pandas.Categorical([3, 1, 3], [3, 2, 1], ordered=True), (3, 1)),
        (pandas.array([3, 1, 3], dtype="Int64"), (1, 3)),
        (pandas.array(["b", "a", "b"], dtype="string"), ("a", "b")),
    ],
)
def test_labels_of_any_kind(values, levels):
    column = pandas.Series(values)
    frame = pandas.DataFrame({"g": pandas.concat([column] * 4, ignore_index=True)})
    frame = frame.assign(y=np.arange(12.0), x=np.sqrt(np.arange(12.0)))
    tables = [frame, pyarrow.Table.from_pandas(frame)]
    if frame["g"].dtype != "category":
        tables.append(polars.from_pandas(frame))
    for other in tables:
        design, X = fitted("x + (1 | g)", other)
        assert design.groups[0].levels == tuple((level,) for level in levels)
        assert [levels[int(code)] for code in X[:, -1]] == frame["g"].tolist()
        stored = design_from_data(json.loads(json.dumps(design.to_data())))
        assert stored == design
        np.testing.assert_array_equal(stored.apply(read(other, stored.needs)), X)


DAYS = pandas.Series(pandas.to_datetime(["2024-03-10", "2023-12-31", "2024-03-09"] * 4))


@pytest.mark.parametrize("days", [DAYS, DAYS.dt.date, DAYS.dt.tz_localize("UTC")])
def test_days_name_groups(days, tmp_path):
    frame = pandas.DataFrame({"day": days, "y": np.arange(12.0), "x": np.sqrt(np.arange(12.0))})
    path = tmp_path / "rows.parquet"
    frame.to_parquet(path)
    tables = [frame, pyarrow.Table.from_pandas(frame), polars.from_pandas(frame)]
    for other in tables:
        design, X = fitted("x + (1 | day)", other)
        assert [label[:10] for label in design.groups[0].labels] == [
            "2023-12-31",
            "2024-03-09",
            "2024-03-10",
        ]
        assert design.groups == fitted("x + (1 | day)", frame)[0].groups
        np.testing.assert_array_equal(X[:, -1], [2.0, 0.0, 1.0] * 4)
        with pytest.raises(ValueError, match=r"'day' holds .* can only name groups"):
            fitted("x + day + (1 | day)", other)
    stored = design_rows("y ~ x + (1 | day)", str(path))
    np.testing.assert_array_equal(stored.take(np.arange(12)).fields["X"], X)
    frame.loc[4, "day"] = None
    with pytest.raises(ValueError, match="row 4, column 'day' is missing"):
        fitted("x + (1 | day)", frame)


def test_labels_that_read_alike_are_told_apart():
    frame = pandas.DataFrame({"a": ["p:q", "p"] * 4, "b": ["r", "q:r"] * 4, "y": np.arange(8.0)})
    assert fitted("(1 | a:b)", frame)[0].groups[0].labels == ("'p':'q:r'", "'p:q':'r'")


def test_many_levels_are_kept():
    rng = np.random.default_rng(0)
    number = rng.permutation(np.repeat(np.arange(30_000), 3))
    frame = pandas.DataFrame({"g": [f"shop {k}" for k in number], "y": 0.0})
    design, X = fitted("1 + (1 | g)", frame)
    stored = design_from_data(json.loads(json.dumps(design.to_data())))
    assert len(stored.groups[0].levels) == 30_000
    labels = stored.groups[0].labels
    assert [labels[int(code)] for code in X[:100, 1]] == frame["g"][:100].tolist()


def test_other_rows_have_the_codes_of_the_first():
    design = fitted("x + (1 | g) + (1 | g:h)")[0]
    some = table()[table()["g"] != "a"].iloc[::-1]
    X = design.apply(read(some, design.needs))
    assert np.array(list("abc"))[X[:, 2].astype(int)].tolist() == some["g"].tolist()
    labels = design.groups[1].labels
    assert [labels[int(code)] for code in X[:, 3]] == (some["g"] + ":" + some["h"]).tolist()


def test_unknown_groups_are_named():
    design = fitted("x + (1 | g)")[0]
    other = table().assign(g=["a"] * 5 + ["q"] * 20 + ["r"] * 5)
    with pytest.raises(ValueError, match=r"row 5, column 'g': the group 'q' .* the 3 .*'q', 'r'"):
        design.apply(read(other, design.needs))
    pair = fitted("x + (1 | g:h)")[0]
    with pytest.raises(ValueError, match=r"row 5, column 'g:h': the group 'q:"):
        pair.apply(read(other, pair.needs))


def test_missing_groups_are_counted():
    frame = table().copy()
    frame["g"] = frame["g"].astype(object)
    frame.loc[[7, 9], "g"] = None
    with pytest.raises(ValueError, match="row 7, column 'g' is missing; so are 2 of 30 values"):
        fitted("x + (1 | g)", frame)


@pytest.mark.parametrize(
    ("right", "words"),
    [
        ("log((1 | g))", r"has '\|' at character 12: group terms .* outside of functions"),
        ("log(1 | g)", "group terms .* outside of functions"),
        ("x:(1 | g)", "between [+] signs"),
        ("x + ((1 | g))", "between [+] signs"),
        ("x - (1 | g)", "between [+] signs"),
        ("1 | g", "in parentheses of their own"),
        ("(1 | g) * x", r"has '\*' at character 13"),
        ("( | g)", r"nothing before the \|: write \(1 \| g\)"),
        ("( || g)", r"nothing before the \|\|"),
        ("(0 | g)", r"no effects before the \|"),
        ("(1 | )", "where the column of a group should be"),
        ("(1 | 1)", "where the column of a group should be"),
        ("(1 | C(g))", r"groups need no C\(\)"),
        ("(1 | g + h)", r"has '\+' at character 12, where '\)' should be"),
        ("(1 | gg)", "no column 'gg'|'gg'"),
        ("(1 | g", r"the end at character 11, where '\)' should be"),
        ("(1 | z)", r"row 0, column 'z' is no group: it has .* write \(0 \+ z \| g\)"),
        ("(1 | row)", "'row' has 30 groups in 30 rows, and no coreset can be smaller"),
        ("(g | h", "the end"),
    ],
)
def test_what_cannot_be_is_one_sentence(right, words):
    frame = table().assign(row=np.arange(30))
    with pytest.raises(ValueError, match=words) as caught:
        fitted(right, frame)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "change",
    [
        {"columns": []},
        {"columns": [3]},
        {"columns": ["g", "h"]},
        {"levels": []},
        {"levels": [["a", "a"]]},
        {"levels": [["a", None]]},
        {"levels": [["a", ["b"]]]},
        {"levels": [["a"], ["b"]]},
        {"levels": "abc"},
        {"terms": []},
        {"terms": [[[9, False]]]},
        {"terms": [[[0, True]]]},
        {"more": 1},
    ],
)
def test_a_strangers_groups_are_refused(change):
    data = fitted("x + (x | g)")[0].to_data()
    data["groups"][0] |= change
    with pytest.raises(ValueError, match="the stored design cannot be used"):
        design_from_data(data)


def test_a_design_without_groups_is_stored_as_before():
    assert "groups" not in fitted("x + g")[0].to_data()
