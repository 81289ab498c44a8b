"""The whole of the quick version, and the paper's claims as inequalities."""

import csv
import os
import re

import numpy as np
import pyarrow.parquet
import pytest

from corebayes.cli import app as cli
from corebayes.experiments import datasets
from corebayes.experiments.catalogue import make_experiment
from corebayes.experiments.measure import run_trial
from corebayes.experiments.reproduce import reproduce

COLUMNS = "experiment data method trial seed size_asked size kl kl_normalised cpu_seconds"
SETS = (*datasets.LOGISTIC, *datasets.POISSON)
# Every experiment once takes a minute.
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def done(tmp_path_factory, data_folder):
    return reproduce(
        "all",
        out=tmp_path_factory.mktemp("reproduce"),
        command="corebayes reproduce all --quick --trials 1",
        num_trials=1,
        quick=True,
        folder=data_folder,
        workers=os.cpu_count(),
    )


@pytest.fixture(scope="module")
def medians(done):
    """KL at the largest M, by data and method."""
    results = done.results
    return {
        data: {method: curve.last for method, curve in results.curves(name, data).items()}
        for name in results.experiments()
        for data in results.sets(name)
    }


def test_sparse_vi_keeps_improving_where_giga_stalls(done):
    curves = done.results.curves("gaussian", "gaussian")
    assert curves["SparseVI"].at(50) <= 0.1 * curves["SparseVI"].at(25)
    assert curves["GIGA"].at(50) >= 0.2 * curves["GIGA"].at(25)
    for other in ("GIGA", "GIGA, realistic", "Uniform"):
        assert curves["SparseVI"].at(50) <= 0.01 * curves[other].at(50)


def test_sparse_vi_is_below_giga_on_the_house_prices(medians):
    assert medians["king_county_sales"]["SparseVI"] < medians["king_county_sales"]["GIGA"]


def test_uniform_beats_realistic_giga_on_the_house_prices(data_folder):
    """At the size of the paper: neither method takes long."""
    experiment = make_experiment("rbf", quick=False, housing_set="king_county_sales")
    path = data_folder / "king_county_sales.npz"

    def last(method):
        return run_trial(experiment, "king_county_sales", path, method, 0).rows[-1]["kl"]

    assert last("Uniform") < last("GIGA, realistic")


@pytest.mark.parametrize("data", SETS)
def test_sparse_vi_is_below_realistic_giga_and_uniform(medians, data):
    assert medians[data]["SparseVI"] < medians[data]["GIGA, realistic"]
    assert medians[data]["SparseVI"] < medians[data]["Uniform"]


@pytest.mark.parametrize("data", [*SETS, "gaussian", "king_county_sales"])
def test_our_default_is_below_all(medians, data):
    others = [kl for method, kl in medians[data].items() if method != "AnnealedSparseVI"]
    assert medians[data]["AnnealedSparseVI"] < min(others)


@pytest.mark.parametrize("data", SETS)
def test_sparse_vi_is_much_slower_than_giga(done, data):
    name = "logistic" if data in datasets.LOGISTIC else "poisson"
    curves = done.results.curves(name, data)
    assert curves["SparseVI"].seconds[-1] > 10 * curves["GIGA"].seconds[-1]


def test_tables_are_tidy_and_agree(done):
    table = pyarrow.parquet.read_table(done.out / "results.parquet")
    assert table.column_names == COLUMNS.split()
    with open(done.out / "results.csv", newline="", encoding="utf-8") as file:
        read = list(csv.DictReader(file))
    assert len(read) == table.num_rows == len(done.results.rows)
    assert float(read[7]["kl"]) == pytest.approx(table.column("kl")[7].as_py())
    assert np.all(np.array(table.column("size")) <= np.array(table.column("size_asked")))


def test_every_figure_is_there_as_png_and_svg(done):
    names = [figure.stem.name for figure in done.figures]
    assert [name.split("-")[1] for name in names] == ["1", "2a", "2b", "3a", "3b", "4", "5"]
    for figure in done.figures:
        assert figure.png.read_bytes().startswith(b"\x89PNG")
        assert "</svg>" in figure.svg.read_text(encoding="utf-8")
        assert figure.svg.stat().st_size < 1_000_000
    # Which house prices these are is on the figure.
    assert "king_county_sales" in (done.out / "figure-3b-houses-map.svg").read_text("utf-8")


def test_the_report_has_every_claim_and_needs_no_other_file(done):
    page = done.report.read_text(encoding="utf-8")
    assert page.count("<img ") == len(done.figures)
    sources = re.findall(r'src="([^"]{30})', page)
    assert sources and all(source.startswith("data:image/png;base64,") for source in sources)
    kept = sum(claim.holds for claim in done.claims)
    assert page.count('<span class="good">') == kept
    assert page.count('<span class="bad">') == len(done.claims) - kept
    assert f"{kept} of {len(done.claims)} hold" in page
    assert "corebayes reproduce all --quick --trials 1" in page


def test_command_line(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("COREBAYES_DATA", raising=False)

    def call(line):
        with pytest.raises(SystemExit) as exited:
            cli.run(line.split())
        return exited.value.code, capsys.readouterr()

    code, said = call("reproduce geometry --out here")
    assert code == 0 and "1 of 1 claims hold" in said.out
    assert (tmp_path / "here" / "figure-1-geometry.svg").is_file()
    for line, words in (
        ("reproduce figures", "no experiment 'figures'; there are gaussian, rbf"),
        ("reproduce all --trials 0", "--trials must be at least 1, got 0"),
        ("reproduce all --workers 0", "--workers must be at least 1, got 0"),
        ("reproduce logistic --data nowhere", "nowhere is not a folder"),
        ("reproduce logistic --data here", "ds1.npz is not in here"),
    ):
        code, said = call(line)
        assert code == 2 and words in said.err and "Traceback" not in said.err
