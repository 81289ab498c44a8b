"""One door to the rows: nothing else reads them, and what it says it read is what was decoded."""

import ast
import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import corebayes as cb
from corebayes.data.table import Tally
from corebayes.deadline import OutOfTimeError, deadline_at
from corebayes.scan.every_row import Counts
from corebayes.scan.inline import Inline
from tests.problems import coins

SOURCE = Path(cb.__file__).parent
# What a formula makes of files is behind the door as well.
DOOR = {"rows.py", "scan/passes.py", "scan/fetch.py", "scan/walk.py", "formula/source.py"}
NUM_ROWS, GROUP = 40_000, 5_000


@pytest.fixture(scope="module")
def arrays():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(NUM_ROWS, 3))
    return X, coins(rng, X @ [1.0, -0.5, 0.2]).astype(float)


@pytest.fixture(scope="module")
def file(arrays, tmp_path_factory):
    X, y = arrays
    path = tmp_path_factory.mktemp("rows") / "rows.parquet"
    table = pa.table({"a": X[:, 0], "b": X[:, 1], "c": X[:, 2], "y": y, "unused": y})
    pq.write_table(table, path, row_group_size=GROUP)
    return str(path)


@pytest.fixture
def decoded(monkeypatch):
    """Rows that Arrow really decoded, by columns, counted where pyarrow is called."""
    counted = Tally()
    read = pq.ParquetFile.read_row_groups

    def counting(self, groups, columns=None, **options):
        table = read(self, groups, columns=columns, **options)
        counted.num_bytes += table.num_rows * table.num_columns
        return table

    monkeypatch.setattr(pq.ParquetFile, "read_row_groups", counting)
    return lambda: counted.num_bytes / 4


@pytest.fixture(autouse=True)
def nothing_stays(monkeypatch):
    """As with files that are larger than what may stay in memory."""
    monkeypatch.setattr("corebayes.data.decoded.MOST_BYTES", 0)


@pytest.fixture
def few_kept(monkeypatch):
    monkeypatch.setattr("corebayes.rows.RESERVE_ROWS", 10_000)


def test_no_other_module_reads_rows():
    for path in SOURCE.rglob("*.py"):
        name = path.relative_to(SOURCE).as_posix()
        if name in DOOR or name.startswith("data/"):
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                assert node.func.attr not in ("parts", "stream"), f"{name}:{node.lineno}"
            if isinstance(node, ast.ImportFrom):
                names = {alias.name for alias in node.names}
                assert not (node.module == "corebayes.scan.query" and "scan" in names), name
                assert node.module not in (
                    "corebayes.scan.fetch",
                    "corebayes.data.entry",
                    "corebayes.data.stored",
                    "corebayes.data.parquet",
                    "corebayes.data.npy",
                    "corebayes.data.blocks",
                ), name


def test_opening_reads_no_row_and_one_pass_checks_values_and_targets(file, decoded):
    rows = cb.open(file, target="y", features=["a", "b", "c"])
    assert (rows.num_rows, rows.column_names, decoded()) == (NUM_ROWS, ("a", "b", "c"), 0)
    cb.LogisticRegression(prior=cb.Normal()).bind(rows)
    assert decoded() == rows.meter.rows_decoded == NUM_ROWS
    cb.LogisticRegression(prior=cb.Normal()).bind(rows)
    rows.take(np.arange(0, NUM_ROWS, 7))
    assert decoded() == NUM_ROWS, "checked once, and the rows were picked up on the way"


def test_provenance_says_what_was_decoded(file, decoded, few_kept):
    coreset = cb.build(
        cb.LogisticRegression(prior=cb.Normal()),
        file,
        target="y",
        features=["a", "b", "c"],
        size=20,
    )
    said = coreset.provenance
    assert (
        said["rows_decoded"]
        == decoded()
        == sum(stage["rows_decoded"] for stage in said["stages"].values())
    )
    assert said["stages"]["checking"]["rows_decoded"] == NUM_ROWS
    # Besides the passes there are the first look at the rows and one fetch of those not kept.
    assert said["rows_decoded"] <= (said["passes"] + 2) * NUM_ROWS
    metadata = pq.ParquetFile(file).metadata
    chunks = [
        metadata.row_group(group).column(column).total_compressed_size
        for group in range(metadata.num_row_groups)
        for column in range(4)
    ]
    assert said["bytes_read"] == pytest.approx(
        said["rows_decoded"] / NUM_ROWS * sum(chunks), rel=1e-3
    )
    assert json.loads(json.dumps(said)) == dict(said)


def test_workers_count_too_and_choose_the_same_rows(file, few_kept):
    options = {"target": "y", "size": 20}
    here = cb.build(cb.LogisticRegression(prior=cb.Normal()), file, **options)
    with cb.processes(2) as workers:
        there = cb.build(
            cb.LogisticRegression(prior=cb.Normal()), file, executor=workers, **options
        )
    assert np.array_equal(here.indices, there.indices)
    assert np.array_equal(here.weights, there.weights)
    assert there.provenance["rows_decoded"] == here.provenance["rows_decoded"]


def test_an_opened_handle_serves_several_runs_and_each_counts_its_own(file, decoded):
    rows = cb.open(file, target="y")
    coreset = cb.build(cb.LogisticRegression(prior=cb.Normal()), rows, size=20)
    before = rows.meter.rows_decoded
    assert coreset.provenance["rows_decoded"] == before
    assert cb.certify(coreset, rows).certified
    # The ratios are one pass; the rows were checked and the coreset's are at hand.
    assert rows.meter.rows_decoded == before + NUM_ROWS
    again = cb.build(cb.LogisticRegression(prior=cb.Normal()), rows, size=20)
    assert np.array_equal(again.indices, coreset.indices)
    assert again.provenance["rows_decoded"] == before - NUM_ROWS
    with pytest.raises(ValueError, match="target='y' has no meaning for Rows"):
        cb.build(cb.LogisticRegression(prior=cb.Normal()), rows, target="y", size=20)


def test_what_another_model_reads_is_counted_and_has_the_budget(file, decoded, few_kept):
    rows = cb.open(file, target="y", features=["a", "b", "c"], memory="1GB")
    coreset = cb.build(
        cb.LogisticRegression(prior=cb.Normal()),
        rows,
        size=20,
        models=[cb.Variant(features=["a", "b"])],
    )
    assert coreset.provenance["rows_decoded"] == rows.meter.rows_decoded == decoded()
    assert rows.showing(rows.table).budget == rows.budget


def test_rows_that_are_opened_once_more_keep_budget_and_executor(arrays):
    X, y = arrays
    rows = cb.open((X, y), memory="1GB", executor=Inline(threads=1))
    for again in (
        cb.open(rows),
        cb.open(rows, duplicates="count"),
        cb.open(rows, unit=np.arange(NUM_ROWS) // 4),
    ):
        assert again.budget == rows.budget and again.executor == Inline(threads=1)


def test_certify_takes_two_passes_and_refuses_targets_that_build_refuses(file, arrays, few_kept):
    coreset = cb.build(
        cb.LogisticRegression(prior=cb.Normal()),
        file,
        target="y",
        features=["a", "b", "c"],
        size=20,
    )
    rows = cb.open(file, target="y", features=["a", "b", "c"])
    assert cb.certify(coreset, rows).certified
    assert rows.meter.rows_decoded == 2 * NUM_ROWS
    X, y = arrays
    y = y.copy()
    bad = np.setdiff1d(np.arange(NUM_ROWS), coreset.indices)[17]
    y[bad] = 7.0
    with pytest.raises(ValueError, match=f"row {bad}, column 'y': 7.0 is not a target"):
        cb.certify(coreset, (X, y))


def test_certificates_on_the_way_are_in_the_journal(file, tmp_path, monkeypatch):
    options = {"target": "y", "tol": 0.05, "checkpoint": tmp_path / "run"}
    first = cb.build(cb.LogisticRegression(prior=cb.Normal()), file, **options)
    assert first.reason.startswith("certified")
    assert first.provenance["stages"]["certificates"]["rows_decoded"] >= 2 * NUM_ROWS
    second = cb.build(cb.LogisticRegression(prior=cb.Normal()), file, **options)
    assert np.array_equal(first.weights, second.weights)
    # Only the check was really made again.
    assert second.provenance["rows_decoded"] == NUM_ROWS


def test_the_deadline_holds_for_every_read(file, few_kept):
    rows = cb.open(file, target="y").check().using()
    for read in (lambda: rows.ask(Counts()), lambda: rows.take(np.array([3, 39_999]))):
        with deadline_at(0.0), pytest.raises(OutOfTimeError):
            read()


def test_random_rows_are_of_those_kept_whatever_the_layout(arrays, file, tmp_path, few_kept):
    X, _ = arrays
    table = pq.read_table(file)
    pq.write_table(table, tmp_path / "other.parquet", row_group_size=999)
    one, other = cb.open(file, target="y"), cb.open(tmp_path / "other.parquet", target="y")
    drawn = one.some(np.random.default_rng(3), 4000)
    assert np.array_equal(drawn, other.some(np.random.default_rng(3), 4000))
    assert np.unique(drawn).size == 4000 and np.all(np.diff(drawn) > 0)
    np.testing.assert_array_equal(one.take(drawn).X[:, :3], X[drawn])
    assert one.meter.rows_decoded == NUM_ROWS


def test_small_row_groups_are_read_together(arrays, file, tmp_path):
    pq.write_table(pq.read_table(file), tmp_path / "small.parquet", row_group_size=40)
    rows = cb.open(tmp_path / "small.parquet", target="y")
    assert rows.num_shards == 2
    assert rows.check().meter.rows_decoded == NUM_ROWS


@pytest.mark.parametrize(
    ("model", "size"),
    [
        ("logistic", 30),
        *(
            pytest.param(model, size, marks=pytest.mark.slow)
            for model in ("logistic", "poisson", "gaussian", "student-t", "negative-binomial")
            for size in (1, 7, 200)
        ),
    ],
)
def test_what_is_announced_is_not_exceeded(
    file, few_kept, monkeypatch, capsys, tmp_path, model, size
):
    from corebayes.cli import app as cli

    monkeypatch.setattr(cli, "MANY_ROWS", 1000)
    line = ["build", file, "--model", model, "--target", "y", "--features", "a,b,c"]
    line += ["--size", str(size), "--json"]
    with pytest.raises(SystemExit):
        cli.run([*line, "--out", str(tmp_path / "c.parquet")])
    told = capsys.readouterr().err
    most = int(told.split("up to ")[1].split(" rows")[0].replace(",", ""))
    assert cb.load(tmp_path / "c.parquet").provenance["rows_decoded"] <= most
