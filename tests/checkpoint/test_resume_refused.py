"""A checkpoint is of one run: what belongs to another is refused by name."""

import numpy as np
import pytest

import corebayes as cb
from corebayes.checkpoint import CheckpointError


def other_rows(rows):
    X = rows[0].copy()
    X[123, 1] = np.nextafter(X[123, 1], 9.0)
    return X, rows[1]


class Renamed(cb.LogisticRegression):
    pass


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda rows: {"seed": 1}, "seed was 0 and is 1"),
        (lambda rows: {"size": 11}, "size was 10 and is 11"),
        (lambda rows: {"tol": 0.1}, "tol was None and is 0.1"),
        (lambda rows: {"method": cb.Uniform()}, "is Uniform()"),
        (lambda rows: {"method": cb.SparseVI(patience=3)}, "patience=3"),
        (lambda rows: {"memory": "700MB"}, "memory was None and is 700000000"),
        (lambda rows: {"data": other_rows(rows)}, "the rows of the data"),
        (lambda rows: {"data": (rows[0][:, [1, 0, 2]], rows[1])}, "the rows of the data"),
        (lambda rows: {"data": (rows[0][::-1], rows[1][::-1])}, "the rows of the data"),
        (lambda rows: {"data": (rows[0][:-1], rows[1][:-1])}, "data was 600 rows"),
        (lambda rows: {"model": Renamed()}, "is Renamed("),
        (
            lambda rows: {"model": cb.LogisticRegression(prior=cb.Normal(0.0, 2.0))},
            "model was LogisticRegression(",
        ),
    ],
)
def test_another_run_is_refused_by_name(rows, tmp_path, change, words):
    given = {
        "model": cb.LogisticRegression(prior=cb.Normal()),
        "data": rows,
        "size": 10,
        "method": cb.SparseVI(),
        "max_time": 1e-9,
        "checkpoint": tmp_path,
    }
    cb.build(**given)
    before = sorted(path.name for path in tmp_path.iterdir())
    with pytest.raises(CheckpointError) as refusal:
        cb.build(**given | change(rows))
    assert words in str(refusal.value) and "another run" in str(refusal.value)
    assert sorted(path.name for path in tmp_path.iterdir()) == before
    # How long it may take is no part of what it computes.
    cb.build(**given | {"max_time": 1e-8})


def test_another_version_is_refused(rows, tmp_path, monkeypatch):
    call = {"size": 5, "checkpoint": tmp_path, "method": cb.Uniform()}
    cb.build(cb.LogisticRegression(prior=cb.Normal()), rows, **call)
    monkeypatch.setattr("corebayes.checkpoint.identity.__version__", "99.0")
    with pytest.raises(CheckpointError, match=r"corebayes was .* and is 99\.0"):
        cb.build(cb.LogisticRegression(prior=cb.Normal()), rows, **call)


def test_permuted_columns_of_a_table_are_refused(rows, tmp_path):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(rows[0], columns=["a", "b", "c"]).assign(y=rows[1])
    call = {"target": "y", "size": 5, "checkpoint": tmp_path, "method": cb.Uniform()}
    cb.build(cb.LogisticRegression(prior=cb.Normal()), frame, **call)
    with pytest.raises(CheckpointError, match=r"a, b, c and is .*b, a, c"):
        cb.build(cb.LogisticRegression(prior=cb.Normal()), frame[["b", "a", "c", "y"]], **call)


def test_a_function_that_changed_is_noticed_by_its_values(rows, tmp_path):
    def model(scale):
        def log_likelihood(draws, block):
            return -0.5 * np.square(block.y[:, None] - block.X @ draws.T) * scale

        return cb.CustomModel(log_likelihood, lambda draws: -0.5 * np.sum(draws**2, axis=1), 3)

    data = (rows[0], rows[1] * 1.0)
    call = {"size": 5, "checkpoint": tmp_path, "method": cb.Uniform()}
    cb.build(model(1.0), data, **call)
    cb.build(model(1.0), data, **call)
    with pytest.raises(CheckpointError, match="other values"):
        cb.build(model(1.5), data, **call)
