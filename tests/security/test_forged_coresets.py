"""Content with a right check sum, or edited by hand, is checked as `build` would."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import corebayes as cb
from corebayes.adapters.exports.tables import to_csv
from corebayes.coreset import CorruptFile, check_coreset
from corebayes.types import Block
from tests.security.forged import DATA, PLAIN, forge, model_of

# Forged content with a right sum, and what the sentence must say.
FORGED = {
    "weights zero": (
        {"columns": {"weight": np.zeros(3)}},
        "row 41 has the weight 0.0; weights are positive",
    ),
    "weight missing": ({"columns": {"weight": np.array([1, np.nan, 1])}}, "weight nan"),
    "row twice": ({"columns": {"row_id": np.array([7, 7, 19])}}, "row 7 .* more than once"),
    "rows renumbered": ({"columns": {"row_id": np.array([-1, -2, -3])}}, "negative number"),
    "NaN feature": ({"columns": {"x1": np.array([1, np.nan, 2])}}, "row 7 has nan in its field"),
    "label": ({"columns": {"y": np.array([1.0, 0.0, 7.0])}}, "row 19 has the target 7.0"),
    "count": ({"columns": {"count": np.array([1.0, -1.0, 1.0])}}, "counts .* ≥ 0"),
    "counts": ({"columns": {"count": np.array([60.0, 1.0, 1.0])}}, "rows alone count 62 times"),
    "no counts": ({"total_count": 49.0}, "total_count is 49, but without counts"),
    "total NaN": ({"total_count": float("nan")}, "total_count must be"),
    "total text": ({"total_count": "50"}, "total_count must be"),
    "total huge": ({"total_count": 10**400}, "total_count must be"),
    "num_rows huge": ({"num_rows": 10**300}, "num_rows must be between"),
    "num_rows fraction": ({"num_rows": 50.5}, "num_rows must be a whole number"),
    "num_rows true": ({"num_rows": True}, "num_rows must be a whole number"),
    "num_rows few": ({"num_rows": 2}, "num_rows must be between the 3 rows"),
    "provenance": ({"provenance": [1]}, "provenance must be a mapping"),
    "column names": ({"provenance": {"column_names": [{}]}}, "column_names .* texts"),
    "trace": ({"trace": [[1]]}, "entry 0 of the coreset's trace"),
    "trace mapping": ({"trace": {"a": 1}}, "trace"),
    "reason": ({"reason": None}, "reason must be a text"),
    "extra column": ({"columns": {"z": np.zeros(3)}}, "not made of the columns"),
    "fields": ({"fields": [{"name": "X", "shape": [-3], "columns": ["x0", "x1", "x2"]}]}, "column"),
    "dim": ({"model": {"name": "LogisticRegression", "config": {}, "dim": 10**400}}, "which model"),
}


@pytest.mark.parametrize("case", FORGED)
def test_forged_content_is_checked_as_build_would(tmp_path, case):
    changes, says = FORGED[case]
    path = tmp_path / "c.parquet"
    forge(path, **changes)
    with pytest.raises(CorruptFile, match=says) as caught:
        cb.load(path)
    assert "\n" not in str(caught.value)


def test_no_rows_are_refused(tmp_path):
    path = tmp_path / "c.parquet"
    forge(
        path,
        columns={name: np.zeros(0) for name in ("weight", "x0", "x1", "x2", "y")}
        | {"row_id": np.zeros(0, np.int64)},
    )
    with pytest.raises(CorruptFile, match="no rows"):
        cb.load(path)


@pytest.mark.parametrize(
    "config",
    [
        {"names": ["a"] * 4},
        {"names": [1, 2, 3, 4]},
        {"names": ["a", "b", "c", "x" * 2000]},
        {"names": None},
        {"intercept": "yes"},
        {"intercept": False},
        {"prior": {"mean": [0.0] * 7, "sd_or_cov": 1.0}},
        {"prior": {"mean": "0", "sd_or_cov": -1.0}},
        {"prior": {}, "unknown": 3},
    ],
    ids=str,
)
def test_forged_model_is_one_sentence(tmp_path, config):
    path = tmp_path / "c.parquet"
    forge(path, model=model_of(path, **config))
    with pytest.raises(CorruptFile) as caught:
        cb.load(path)
    assert "\n" not in str(caught.value)


def test_limit_can_be_raised(tmp_path, monkeypatch):
    path = tmp_path / "c.parquet"
    PLAIN.save(path)
    with pytest.raises(ValueError, match=r"has a footer .* limit of 1kB: .* COREBAYES_LIMIT=\d+MB"):
        cb.load(path, limit="1kB")
    monkeypatch.setenv("COREBAYES_LIMIT", "10")
    with pytest.raises(ValueError, match="above the limit of 10B"):
        cb.load(path)
    assert cb.load(path, limit="1GB").size == 3
    monkeypatch.setenv("COREBAYES_LIMIT", "much")
    with pytest.raises(ValueError, match="COREBAYES_LIMIT must be a positive size"):
        cb.load(path)


# Coresets edited by hand.
EDITED = {
    "negative": {"weights": np.array([1.0, -1.0, 1.0])},
    "NaN": {"weights": np.array([1.0, np.nan, 1.0])},
    "few": {"weights": np.ones(2)},
    "many": {"weights": np.ones(4)},
    "list": {"weights": [1.0, 2.0, 3.0]},
    "column": {"weights": np.ones((3, 1))},
    "fractions": {"indices": np.array([41.0, 7.0, 19.0])},
    "renumbered": {"indices": np.array([-1, -2, -3])},
    "beyond": {"indices": np.array([41, 7, 50])},
    "rows": {"rows": PLAIN.rows.take(slice(2))},
    "no fields": {"rows": Block({})},
    "num_rows": {"num_rows": 2.0**60},
    "provenance": {"provenance": None},
}


@pytest.mark.parametrize("case", EDITED)
def test_hand_edited_coreset_is_refused_everywhere(tmp_path, case):
    edited = replace(PLAIN, **EDITED[case])
    calls = (
        check_coreset,
        lambda c: cb.certify(c, DATA),
        cb.sample,
        cb.report,
        lambda c: c.save(tmp_path / "c.parquet"),
        lambda c: to_csv(c, tmp_path / "c.csv"),
        cb.to_stan,
        lambda c: cb.build(cb.LogisticRegression(prior=cb.Normal()), DATA, size=5, start=c),
    )
    sentences = set()
    for call in calls:
        with pytest.raises((ValueError, TypeError)) as caught:
            call(edited)
        sentences.add(str(caught.value))
    assert len(sentences) == 1 and "\n" not in sentences.pop()


def test_learned_rows_are_said_not_to_be_compared(tmp_path):
    method = cb.PseudoCoreset(update=cb.Adam(num_steps=3, rate=0.01))
    learned = cb.build(cb.LogisticRegression(prior=cb.Normal()), DATA, size=4, method=method)
    assert learned.provenance["learned"] is True
    learned.save(tmp_path / "c.parquet")
    back = cb.load(tmp_path / "c.parquet")
    assert "4 learned rows, which cannot be compared" in cb.certify(back, DATA).verdict
    # Files of 0.1.0 name the method only.
    old = {name: value for name, value in learned.provenance.items() if name != "learned"}
    check_coreset(replace(learned, provenance=old))
    with pytest.raises(ValueError, match="does not say that its rows were learned"):
        check_coreset(replace(learned, provenance={}))
    with pytest.raises(ValueError, match="row 0 is among learned rows"):
        check_coreset(replace(learned, indices=np.array([-2, -1, 0, -3])))
