"""Nights in which no rows came, or levels that nobody knew of."""

import numpy as np
import pytest

import corebayes as cb
from corebayes.data.empty import NoRowsError
from tests.compose.rows import MODEL, piece

pd = pytest.importorskip("pandas")
X, Y = piece(0, 3000)
FRAME = pd.DataFrame({"a": X[:, 0], "g": np.array(["u", "v", "w"])[np.arange(3000) % 3], "y": Y})
STAYS = "the coreset of .* stays as it is"


def _of_formula(formula):
    return cb.build(*cb.from_formula(formula, FRAME, family="bernoulli"), size=20, seed=0)


@pytest.fixture(scope="module")
def coreset():
    return cb.build(MODEL, (X, Y), size=12, seed=0)


@pytest.mark.parametrize(
    ("rows", "options"),
    [
        ((X[:0], Y[:0]), {}),
        ((X[:5], Y[:5]), {"counts": np.zeros(5)}),
        ((X[:0], Y[:0]), {"name": "sunday", "size": 6, "certify": True}),
    ],
)
def test_a_night_without_rows_changes_nothing(coreset, rows, options):
    with pytest.warns(UserWarning, match=STAYS):
        assert cb.update(coreset, rows, **options) is coreset
    later = cb.update(coreset, piece(1, 500), size=12)
    assert [source.num_rows for source in later.sources] == [3000, 500]


@pytest.mark.parametrize("formula", ["y ~ a + g", "y ~ a + (1 | g)"])
def test_nor_does_one_of_a_formula(formula):
    coreset = _of_formula(formula)
    with pytest.warns(UserWarning, match=STAYS):
        assert cb.update(coreset, FRAME.iloc[:0]) is coreset


def test_a_file_of_no_rows(tmp_path, coreset):
    pytest.importorskip("pyarrow")
    names = ["a", "b", "c"]
    full = pd.DataFrame(X, columns=names).assign(y=Y)
    built = cb.build(MODEL, cb.open(full, target="y"), size=12, seed=0)
    full.iloc[:0].to_parquet(tmp_path / "sunday.parquet")
    with pytest.warns(UserWarning, match=STAYS):
        assert cb.update(built, tmp_path / "sunday.parquet") is built


def test_there_is_nothing_to_build_from():
    with pytest.raises(NoRowsError, match="the data is empty"):
        cb.build(MODEL, (X[:0], Y[:0]), size=12)


def test_wrong_rows_are_still_refused(coreset):
    with pytest.raises(ValueError, match="do not go with the coreset"):
        cb.update(coreset, (X[:9, :2], Y[:9]))


def test_a_level_that_came_later_can_be_named_before():
    coreset = _of_formula("y ~ a + g")
    later = FRAME.iloc[:200].assign(g="z")
    with pytest.raises(ValueError, match=r"'z' is none of the levels.*C\(g, levels=\[\.\.\.\]\)"):
        cb.update(coreset, later)
    with pytest.warns(UserWarning, match="all zero"):
        wider = _of_formula('y ~ a + C(g, levels=["u", "v", "w", "z"])')
    grown = cb.update(wider, later, size=25)
    assert cb.certify(grown, [FRAME, later]).certified
