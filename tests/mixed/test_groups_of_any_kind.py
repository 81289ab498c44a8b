"""Groups in files, in processes, after a crash; of one row, of one label, and far too many."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import corebayes as cb
from corebayes.checkpoint import journal

NUM_ROWS = 60_000
# Groups 12 and 13 are in the last file only, 99 has one row, and all labels of group 5 are equal.
LAST_FILE, ONE_ROW, ONE_LABEL = 2 * NUM_ROWS // 3, 99, 5


def table() -> pd.DataFrame:
    rng = np.random.default_rng(3)
    first, last = rng.integers(12, size=NUM_ROWS), rng.integers(14, size=NUM_ROWS)
    g = np.where(np.arange(NUM_ROWS) < LAST_FILE, first, last)
    g[-1] = ONE_ROW
    x = rng.normal(size=NUM_ROWS)
    eta = 0.2 + 0.5 * x + 0.6 * rng.normal(size=100)[g]
    y = (rng.uniform(size=NUM_ROWS) < 1.0 / (1.0 + np.exp(-eta))).astype(float)
    y[g == ONE_LABEL] = 1.0
    return pd.DataFrame({"x": x, "g": g, "y": y})


@pytest.fixture(scope="module")
def frame():
    return table()


@pytest.fixture(scope="module")
def files(frame, tmp_path_factory):
    folder = tmp_path_factory.mktemp("parts")
    for part in range(3):
        own = frame.iloc[part * NUM_ROWS // 3 : (part + 1) * NUM_ROWS // 3]
        own.to_parquet(folder / f"part-{part}.parquet")
    return folder / "*.parquet"


def model():
    return cb.MixedRegression(
        family=cb.LogisticRegression(intercept=True, prior=cb.Normal()),
        terms=[cb.GroupTerm(group="g")],
    )


def built(source, size=80, **options):
    return cb.build(model(), source, target="y", size=size, progress=False, **options)


@pytest.fixture(scope="module")
def expected(files):
    return built(files)


def same_bits(one, other):
    np.testing.assert_array_equal(one.indices, other.indices)
    np.testing.assert_array_equal(one.weights, other.weights)


def test_every_group_has_rows_and_the_posterior_is_that_of_all(frame, expected):
    assert expected.model.structure.terms[0].num_groups == 15
    kept = set(expected.rows.X[:, 1])
    assert kept == set(frame["g"])
    assert expected.trace[-1]["kl"] < 1e-4
    certificate = cb.certify(expected, frame, target="y", tol=0.05, draws=800)
    assert certificate.certified, certificate
    assert certificate.marginals is not None and certificate.marginals.num_shared == 3


def test_files_and_memory_agree(frame, files):
    """Sums are taken in other parts, so only round-off differs, which chooses no other rows as long
    as there is something left to match."""
    inside, outside = built(frame, size=30), built(files, size=30)
    np.testing.assert_array_equal(inside.indices, outside.indices)
    np.testing.assert_allclose(inside.weights, outside.weights, rtol=1e-4)


@pytest.mark.slow
def test_processes_give_the_same_bits(files, expected):
    with cb.processes(2) as executor:
        same_bits(built(files, executor=executor), expected)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_a_cluster_gives_the_same_bits(files, expected):
    distributed = pytest.importorskip("distributed")
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=None
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        same_bits(built(files, executor=cb.dask(client)), expected)


class Crash:
    """An executor that fails after some shards."""

    def __init__(self, inner, number):
        self.inner, self.left = inner, number

    def map(self, work, shards):
        for answer in self.inner.map(work, shards):
            if self.left == 0:
                raise RuntimeError("the lights went out")
            self.left -= 1
            yield answer


@pytest.mark.slow
@pytest.mark.parametrize("number", [4, 11])
def test_a_build_goes_on_after_a_crash(files, expected, tmp_path, monkeypatch, number):
    monkeypatch.setattr(journal, "SHARE_OF_TIME", 0.0)
    folder = tmp_path / "checkpoint"
    with cb.processes(1) as executor:
        with pytest.raises(RuntimeError, match="lights"):
            built(files, checkpoint=folder, executor=Crash(executor, number))
        again = built(files, checkpoint=folder, executor=executor)
    same_bits(again, expected)


def test_a_million_groups_of_one_row_is_a_sentence():
    number = 1_000_000
    rows = pd.DataFrame({"g": np.arange(number), "y": np.arange(number) % 2.0})
    with pytest.raises(ValueError, match=r"1,000,000 groups of 'g' in 1,000,000 rows"):
        built(rows, size=5000)


def test_bad_group_columns_are_sentences(frame):
    small = frame.head(300)
    missing = small.assign(g=small["g"].astype(float))
    missing.loc[7, "g"] = np.nan
    with pytest.raises(ValueError, match=r"row 7.*column 'g'"):
        built(missing)
    with pytest.raises(ValueError, match=r"row 0, column 'g': .* is not the number of a group"):
        built(small.assign(g=small["x"]))


@pytest.mark.parametrize(
    "formula", [pytest.param("y ~ x + (1|g)", marks=pytest.mark.slow), "y ~ x + (1 + x|g)"]
)
def test_a_group_column_with_one_level(frame, formula):
    """Nothing tells its effects from the coefficients: with τ free that is a funnel."""
    few = frame.iloc[:5_000].assign(g="all")
    model, data = cb.from_formula(formula, few, family="logistic")
    coreset = cb.build(model, data, size=12, progress=False)
    found = cb.certify(coreset, data)
    assert found.certified and found.num_divergences == 0


def test_groups_of_one_row_each_beside_large_ones():
    """Half of the groups have a single row: their effects are the prior's, but for that row."""
    rng = np.random.default_rng(8)
    g = np.concatenate([np.repeat(np.arange(20), 150), np.arange(20, 40)])
    x = rng.normal(size=g.size)
    rows = pd.DataFrame({"x": x, "g": g, "y": 0.5 * x + rng.normal(size=40)[g]})
    rows["y"] += 0.7 * rng.normal(size=g.size)
    mixed = cb.MixedRegression(
        family=cb.LinearRegression(prior=cb.Normal()),
        terms=[cb.GroupTerm(group="g")],
        learned=cb.HalfNormal(2.0),
    )
    coreset = cb.build(mixed, rows, target="y", size=250, progress=False)
    certificate = cb.certify(coreset, rows, target="y", tol=0.1, draws=400)
    assert certificate.certified, certificate


def test_more_pairs_than_anyone_has_is_a_sentence():
    rng = np.random.default_rng(1)
    rows = pd.DataFrame(
        {"g": rng.integers(900, size=20_000), "h": rng.integers(700, size=20_000), "y": 0.0}
    )
    terms = [cb.GroupTerm(group="g"), cb.GroupTerm(group="h")]
    crossed = cb.MixedRegression(family=cb.LogisticRegression(prior=cb.Normal()), terms=terms)
    with pytest.raises(ValueError, match="parameters meet in rows of many groups"):
        cb.build(crossed, rows, target="y", size=500)


@pytest.mark.slow
def test_crossed_terms_with_hundreds_of_groups():
    rng = np.random.default_rng(2)
    g, h, c = (rng.integers(number, size=8000) for number in (110, 90, 16))
    eta = (
        0.4 + rng.normal(size=110)[g] + 0.5 * rng.normal(size=90)[h] + 0.3 * rng.normal(size=16)[c]
    )
    y = (rng.uniform(size=8000) < 1.0 / (1.0 + np.exp(-eta))).astype(float)
    rows = pd.DataFrame({"one": 1.0, "g": g, "h": h, "c": c, "y": y})
    terms = [cb.GroupTerm(group=name) for name in "ghc"]
    crossed = cb.MixedRegression(family=cb.LogisticRegression(prior=cb.Normal()), terms=terms)
    few, many = (cb.build(crossed, rows, target="y", size=size, progress=False)
                 for size in (250, 600))  # fmt: skip
    assert few.size == 250 and many.size == 600
    # Each pair of groups is a quadratic of its own: KL falls, but slowly.
    assert many.trace[-1]["kl"] < 0.7 * few.trace[-1]["kl"]
