"""Coresets that go on from an earlier one, budgets of memory, and what a run says."""

import io
import json
import logging

import numpy as np
import pytest

import corebayes as cb
from corebayes.build import tolerance
from corebayes.cli import app as cli
from corebayes.scan.budget import MemoryBudgetError
from corebayes.watch.logs import logger, write_lines
from tests.problems import coins


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1500, 4))
    return X, coins(rng, X @ [1.0, -2.0, 0.5, 0.1])


MODEL = cb.LogisticRegression(prior=cb.Normal())


def test_sparse_vi_goes_on_where_it_was(rows):
    whole = cb.build(MODEL, rows, size=9, method=cb.SparseVI())
    first = cb.build(MODEL, rows, size=5, method=cb.SparseVI())
    grown = cb.build(MODEL, rows, size=9, method=cb.SparseVI(), start=first)
    # Nothing is lost and nothing done twice: the rows are those of one run.
    assert np.array_equal(grown.indices, whole.indices)
    assert np.allclose(grown.weights, whole.weights, rtol=1e-3)
    assert len(grown.trace) == len(whole.trace) - len(first.trace)


def test_the_default_method_grows_with_fewer_passes(rows):
    first = cb.build(MODEL, rows, size=8)
    grown = cb.build(MODEL, rows, size=16, start=first)
    afresh = cb.build(MODEL, rows, size=16)
    assert grown.size > 8

    def kl(coreset):
        return cb.diagnostics.laplace_kl(coreset, cb.open(rows))

    assert kl(grown) < 0.1 * kl(first)
    assert grown.provenance["passes"] < afresh.provenance["passes"]


def test_growing_to_a_tolerance(rows):
    first = cb.build(MODEL, rows, size=3, method=cb.SparseVI())
    grown = cb.build(MODEL, rows, tol=0.05, start=first)
    assert grown.reason.startswith("certified") and grown.size > 3


def test_a_start_must_fit(rows):
    first = cb.build(MODEL, rows, size=5, method=cb.SparseVI())
    with pytest.raises(TypeError, match="Uniform begins from nothing"):
        cb.build(MODEL, rows, size=9, start=first, method=cb.Uniform())
    with pytest.raises(ValueError, match="larger than the 5 rows of start, got 5"):
        cb.build(MODEL, rows, size=5, start=first)
    with pytest.raises(ValueError, match="pass the data the coreset was built from"):
        cb.build(MODEL, (rows[0][::-1], rows[1][::-1]), size=9, start=first)
    with pytest.raises(ValueError, match="1,500 rows"):
        cb.build(MODEL, (rows[0][:-1], rows[1][:-1]), size=9, start=first)
    with pytest.raises(TypeError, match="start must be a coreset, got list"):
        cb.build(MODEL, rows, size=9, start=[1, 2])
    learned = cb.build(MODEL, rows, size=3, method=cb.PseudoCoreset(update=cb.Adam(num_steps=2)))
    with pytest.raises(ValueError, match="learned rows"):
        cb.build(MODEL, rows, size=9, start=learned)


def test_memory_is_refused_before_anything_is_read(rows):
    with pytest.raises(MemoryBudgetError, match="memory=10MB is not enough"):
        cb.build(MODEL, rows, size=5, memory="10MB")
    with pytest.raises(ValueError, match="'much'"):
        cb.build_path(MODEL, rows, sizes=[5], memory="much")
    coreset = cb.build(MODEL, rows, size=5, method=cb.Uniform())
    with pytest.raises(MemoryBudgetError, match="memory=10MB is not enough"):
        cb.certify(coreset, rows, memory="10MB")


def test_memory_changes_no_more_than_the_last_bits(rows):
    plain = cb.build(MODEL, rows, size=12)
    tight = cb.build(MODEL, rows, size=12, memory="390MB")
    assert np.array_equal(tight.indices, plain.indices)
    assert np.allclose(tight.weights, plain.weights, rtol=1e-6)
    certificates = [cb.certify(plain, rows, memory=memory) for memory in (None, "660MB")]
    values = [certificate.reverse_kl.value for certificate in certificates]
    assert np.allclose(values[0], values[1], rtol=1e-6)


def test_one_line_a_step(rows, caplog):
    with caplog.at_level(logging.INFO, logger="corebayes"):
        coreset = cb.build(MODEL, rows, size=4, method=cb.SparseVI())
    fields = [record.fields for record in caplog.records]
    assert [entry["event"] for entry in fields] == ["begin", *["step"] * len(coreset.trace), "end"]
    assert [entry["size"] for entry in fields[1:-1]] == [1, 2, 3, 4]
    assert fields[2]["kl"] == coreset.trace[1]["kl"]
    assert caplog.messages[2].startswith("step 2: 2 rows, KL ≈ ")
    assert caplog.messages[-1] == "4 rows, stopped: reached size 4"


def test_lines_of_json(rows):
    stream = io.StringIO()
    handler, level = write_lines(stream, "json"), logger.level
    try:
        cb.build(MODEL, rows, size=3, method=cb.SparseVI())
        logger.warning("a %s of KL = %g", "number", float("inf"), extra={"fields": {"kl": np.inf}})
    finally:
        logger.removeHandler(handler)
        logger.setLevel(logging.NOTSET)
    lines = [json.loads(line) for line in stream.getvalue().splitlines()]
    assert level == logging.INFO
    assert [line["event"] for line in lines[:-1]] == ["begin", "step", "step", "step", "end"]
    assert all(line["time"].endswith("Z") and line["level"] for line in lines)
    assert lines[-1]["level"] == "warning" and lines[-1]["kl"] is None
    with pytest.raises(ValueError, match="text or json, got 'xml'"):
        write_lines(stream, "xml")


@pytest.mark.parametrize("method", [cb.AnnealedSparseVI(), cb.SparseVI(), cb.Uniform(), cb.GIGA()])
def test_a_method_costs_what_it_says(method):
    """Where there are many rows: more than a pool has, which the default method chooses from."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(8000, 3))
    y = coins(rng, X @ [1.0, -2.0, 0.5])
    for size in (4, 8):
        coreset = cb.build(MODEL, (X, y), size=size, method=method)
        fewest, most = method.passes(size)
        assert fewest <= coreset.provenance["passes"] <= most <= method.passes(None)[1]


def test_a_tolerance_ends_where_its_passes_do(monkeypatch):
    """Here after the first size, since no more than it and two certificates may be made."""
    monkeypatch.setattr(tolerance, "CHEAP_ROWS", 0)
    monkeypatch.setattr(cb.AnnealedSparseVI, "passes", lambda self, size: (1.0, 51.0))
    rng = np.random.default_rng(0)
    X = rng.normal(size=(8000, 3))
    y = coins(rng, X @ [1.0, -2.0, 0.5])
    with pytest.warns(cb.ToleranceWarning, match="of at most 51 passes are made, .* nats"):
        coreset = cb.build(MODEL, (X, y), tol=1e-7)
    assert coreset.provenance["passes"] <= 51.0
    assert f"about {coreset.trace[-1]['kl']:.2g} nats" in coreset.reason


@pytest.fixture
def call(rows, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    np.savez("rows.npz", X=rows[0], y=rows[1])

    def call(line):
        with pytest.raises(SystemExit) as exit_:
            cli.run(line.split())
        for handler in list(logger.handlers):
            logger.removeHandler(handler)
        logger.setLevel(logging.NOTSET)
        return exit_.value.code, *capsys.readouterr()

    return call


BUILD = "build rows.npz --model logistic --out c.parquet --method sparse-vi"


def test_the_command_line_logs_grows_and_keeps_to_its_memory(call, monkeypatch):
    code, _, err = call(f"{BUILD} --size 3 --log json --checkpoint kept --memory 400MB")
    assert code == 0 and json.loads(err.splitlines()[0])["event"] == "begin"
    monkeypatch.setenv("COREBAYES_LOG", "text")
    code, _, err = call(f"{BUILD} --size 5 --start c.parquet")
    assert code == 0 and "step 1: 4 rows" in err and "stopped: reached size 5" in err
    assert cb.load("c.parquet").size == 5
    monkeypatch.delenv("COREBAYES_LOG")
    code, out, err = call(f"{BUILD} --size 3 --memory 10MB")
    assert (code, out) == (2, "") and "memory=10MB is not enough" in err and err.count("\n") == 1
    code, out, err = call(f"{BUILD} --size 4 --checkpoint kept --memory 400MB")
    assert (code, out) == (2, "") and "size was 3 and is 4" in err and err.count("\n") == 1
    code, out, err = call("certify c.parquet rows.npz --memory 10MB")
    assert code == 2 and "memory=10MB is not enough" in err


def test_a_long_run_says_beforehand_what_it_costs(call, monkeypatch):
    monkeypatch.setattr(cli, "MANY_ROWS", 1500)
    code, _, err = call("build rows.npz --model logistic --out c.parquet --size 5")
    assert code == 0
    assert err == (
        "corebayes: 1,500 rows in 1 shards: as a rule 2 to 32 passes over them, "
        "up to 48,000 rows to read\n"
    )
    _, _, err = call("build rows.npz --model logistic --out c.parquet --tol 0.05")
    assert "as a rule 2 to 122 passes over them, up to 183,000 rows to read" in err
    _, _, err = call(f"{BUILD} --size 2")
    assert "at least 2 passes over them, at least 3,000 rows to read" in err
