"""New rows: the coreset of all of them from the old coreset and the new rows alone."""

import copy
from dataclasses import replace

import numpy as np
import pytest

import corebayes as cb
from corebayes.certify.chain import added_up
from corebayes.coreset.files import CorruptFile
from corebayes.data.arrays import ArrayData
from corebayes.rows import open_rows
from tests.compose.rows import MODEL, kl, piece

NIGHTS = [piece(seed) for seed in range(5)]


@pytest.fixture(scope="module")
def first():
    return cb.build(MODEL, NIGHTS[0], size=12, reserve=34, seed=0)


@pytest.fixture(scope="module")
def grown(first):
    coreset = first
    for number, night in enumerate(NIGHTS[1:], start=1):
        coreset = cb.update(coreset, night, size=12, name=f"night {number}", seed=number)
    return coreset


def test_the_posterior_is_that_of_all_nights(grown):
    # Single builds of so few rows differ by a factor of twenty from seed to seed.
    ones = [kl(cb.build(MODEL, NIGHTS, size=12, seed=seed), NIGHTS) for seed in range(5)]
    assert grown.size <= 12 and grown.num_rows == grown.total_count == 30_000
    assert kl(grown, NIGHTS) < 3 * np.median(ones) + 1e-6
    assert cb.certify(grown, NIGHTS).certified


def test_without_a_reserve_errors_add_up(first, grown):
    bare = replace(first, reserve=None)
    for number, night in enumerate(NIGHTS[1:], start=1):
        bare = cb.update(bare, night, size=12, reserve=0, seed=number)
    assert bare.reserve is None
    assert kl(bare, NIGHTS) > 2 * kl(grown, NIGHTS)


def test_every_row_is_where_its_origin_says(grown):
    names = ["source-0", *(f"night {k}" for k in range(1, 5))]
    assert [source.name for source in grown.sources] == names
    for (name, number), x, y in zip(grown.origins, grown.rows.X, grown.rows.y, strict=True):
        X, target = NIGHTS[names.index(name)]
        assert np.array_equal(X[number], x) and target[number] == y
    # The numbers of the reserve are those of the same table.
    everything = np.vstack([X for X, _ in NIGHTS])
    assert np.array_equal(everything[grown.reserve.indices], grown.reserve.rows.X)


def test_the_cost_is_in_the_new_rows(grown):
    small = piece(9, 500)
    updated = cb.update(grown, small, size=12)
    assert updated.provenance["rows_decoded"] < 40 * 700
    assert updated.total_count == 30_500


def test_a_file_keeps_sources_steps_and_reserve(grown, tmp_path):
    path = tmp_path / "c.parquet"
    grown.save(path)
    back = cb.load(path)
    assert back.origins == grown.origins and back.provenance["steps"] == grown.provenance["steps"]
    for ours, theirs in ((grown.points, back.points), (grown.reserve, back.reserve)):
        assert np.array_equal(ours.indices, theirs.indices)
        assert np.array_equal(ours.weights, theirs.weights)
        assert np.array_equal(ours.rows.X, theirs.rows.X)
    again = cb.update(back, piece(9, 500), size=12)
    assert np.array_equal(again.weights, cb.update(grown, piece(9, 500), size=12).weights)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda s: s[:-1], "the sources have"),
        (lambda s: [*s[:-1], {**s[-1], "name": s[0]["name"]}], "the same name"),
        (lambda s: [*s[:-1], {**s[-1], "num_rows": "6000"}], "whole number of rows"),
        (lambda s: [*s[:-1], {**s[-1], "total_count": 1.0}], "the sources count"),
        (lambda s: "many", "sources must be a list"),
    ],
)
def test_sources_that_do_not_add_up_are_refused(grown, tmp_path, change, message):
    provenance = {**grown.provenance, "sources": change(grown.provenance["sources"])}
    edited = replace(grown, provenance=provenance)
    with pytest.raises((ValueError, TypeError), match=message):
        edited.save(tmp_path / "c.parquet")


def test_a_reserve_is_checked_like_a_coreset(grown, tmp_path):
    weights = grown.reserve.weights.copy()
    weights[3] = -1.0
    edited = replace(grown, reserve=grown.reserve.at(weights))
    with pytest.raises(ValueError, match="in its reserve: row"):
        cb.certify(edited, NIGHTS)
    assert issubclass(CorruptFile, ValueError)


def test_counts_and_weights_are_kept_apart():
    """An old row counts as often as its weight says, and keeps its own count."""
    X, y = NIGHTS[0]
    counts = np.random.default_rng(0).uniform(0.0, 2.0, len(X))
    counts[::7] = 0.0
    old = cb.build(MODEL, (X, y), counts=counts, size=15, seed=0)
    new = cb.update(old, NIGHTS[1], size=15)
    assert new.total_count == pytest.approx(counts.sum() + 6000)
    expected = np.append(counts, np.ones(6000))[new.indices]
    assert np.array_equal(new.rows.counts, expected) and np.all(expected > 0)
    data = [ArrayData(fields={"X": X, "y": y}, counts=counts), NIGHTS[1]]
    assert cb.certify(new, data).certified


def test_counts_that_add_up_to_the_rows_are_still_counts():
    """Survey weights of mean one: a uniform subsample must follow them."""
    X, y = NIGHTS[0]
    counts = np.where(np.arange(len(X)) < 3000, 2.0, 0.0)
    coreset = cb.build(MODEL, (X, y), counts=counts, size=200, method=cb.Uniform(), seed=1)
    assert coreset.indices.max() < 3000


def test_a_conjugate_model_is_exact_and_needs_no_reserve():
    rng = np.random.default_rng(1)
    model = cb.LinearRegression(noise_sd=0.5, prior=cb.Normal())
    nights = []
    for _ in range(4):
        X = rng.normal(size=(500, 2))
        nights.append((X, X @ [1.0, -2.0] + 0.5 * rng.normal(size=500)))
    coreset = cb.build(model, nights[0], size=7, seed=0)
    for night in nights[1:]:
        coreset = cb.update(coreset, night)
    assert coreset.reserve is None and coreset.size <= 7
    assert kl(coreset, nights) < 1e-10


def test_what_does_not_go_together_is_named(first):
    X, y = NIGHTS[1]
    with pytest.raises(ValueError, match="'X' is 3 numbers in one and 2 numbers in the other"):
        cb.update(first, (X[:, :2], y))
    bad = y.copy()
    bad[17] = 7.0
    with pytest.raises(ValueError, match="row 17"):
        cb.update(first, (X, bad))
    with pytest.raises(ValueError, match="two sources are called 'source-0'"):
        cb.update(first, NIGHTS[1], name="source-0")
    named = cb.build(MODEL, _frame(*NIGHTS[0]), target="late", size=8)
    with pytest.raises(ValueError, match="column 1 is 'a' in one and 'b' in the other"):
        cb.update(named, _frame(*NIGHTS[1])[["b", "a", "c", "late"]], target="late")


def test_frames_files_checkpoints_and_processes_give_the_same(first, tmp_path):
    X, y = NIGHTS[1]
    path = tmp_path / "new.parquet"
    _frame(X, y).to_parquet(path, row_group_size=1000)
    wanted = cb.update(first, (X, y), size=12, seed=3)
    kept = cb.update(first, (X, y), size=12, seed=3, checkpoint=tmp_path / "kept")
    again = cb.update(first, (X, y), size=12, seed=3, checkpoint=tmp_path / "kept")
    stored = cb.update(first, open_rows(path, target="late", features=["a", "b", "c"]), size=12)
    for other in (kept, again):
        assert np.array_equal(wanted.weights, other.weights)
    assert kl(stored, NIGHTS[:2]) < 1e-3 and stored.num_rows == 12_000


def _line(seed, slope=-2.0, num_rows=800):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(num_rows, 2))
    return X, X @ [1.0, slope] + 0.5 * rng.normal(size=num_rows)


# Draws of its posterior are exact and cost nothing; four rows are too few for all quadratics.
LINE = cb.LinearRegression(noise_sd=0.5, prior=cb.Normal())


def test_steps_add_up_where_the_rows_are_gone():
    nights = [_line(seed) for seed in range(3)]
    coreset = cb.build(LINE, nights[0], size=4, seed=0)
    found = cb.certify(coreset, nights[0])
    with pytest.raises(ValueError, match="no reserve that a second certificate"):
        cb.with_certificate(coreset, found, found)
    with pytest.raises(TypeError, match="a certificate is needed, as certify gives it, got 'x'"):
        cb.with_certificate(coreset, "x")
    unknown = cb.certify(cb.update(coreset, nights[1], certify=True))
    assert not unknown.certified and "number 1 has no certified error" in unknown.verdict
    coreset = cb.with_certificate(coreset, found)
    for night in nights[1:]:
        coreset = cb.update(coreset, night, certify=True)
    summed, measured = cb.certify(coreset, tol=10.0), cb.certify(coreset, nights)
    assert "3 steps" in summed.verdict and "no measurement against all rows" in summed.verdict
    steps = [step["kl"] for step in coreset.provenance["steps"]]
    assert len(steps) == 3 and min(steps) > 0.0
    growth = coreset.provenance["steps"][-1]["growth"]
    grown = [growth * steps[0], growth * steps[1], steps[2]]
    assert summed.reverse_kl.value == pytest.approx(added_up(grown)) and growth >= 1.0
    assert summed.reverse_kl.value >= np.sum(np.sqrt(steps)) ** 2
    assert summed.certified and not cb.certify(coreset, tol=1e-12).certified
    assert measured.reverse_kl.value < summed.reverse_kl.value


def test_a_sum_goes_on_from_what_was_certified(first):
    found = cb.certify(first, NIGHTS[0])
    assert cb.with_certificate(first, found).reserve is None
    finer = cb.certify(first.finest, NIGHTS[0])
    both = cb.with_certificate(first, found, finer)
    assert both.reserve is not None
    assert both.provenance["steps"][0]["reserve_kl"] == finer.reverse_kl.value
    assert cb.certify(cb.update(both, NIGHTS[1], certify=True)).reverse_kl is not None


def test_errors_grow_where_the_posterior_has_moved():
    """Of quadratics it is known by how much; of others it is not, far out."""
    coreset = cb.build(LINE, _line(0), size=4, seed=0)
    coreset = cb.with_certificate(coreset, cb.certify(coreset, _line(0)))
    turned = cb.update(coreset, _line(1, slope=2.0), certify=True)
    step = turned.provenance["steps"][-1]
    assert step["away"] > 10 and step["growth"] > 100 and not step["far"]
    said, measured = cb.certify(turned, tol=1e9), cb.certify(turned, [_line(0), _line(1, 2.0)])
    assert said.reverse_kl.value >= measured.reverse_kl.value
    (X, y), (_, other) = _line(0), _line(1, slope=2.0)
    logistic = cb.build(MODEL, (X, (y > 0.0) * 1.0), size=6, reserve=0, seed=0)
    with pytest.warns(UserWarning, match="widths from where what stands for the rows before"):
        turned = cb.update(logistic, (_line(1, 2.0)[0], (other > 0.0) * 1.0), reserve=0)
    assert turned.provenance["steps"][-1]["far"]


def test_learned_rows_are_refused(first):
    learned = replace(
        first,
        indices=-1 - np.arange(first.size),
        reserve=None,
        provenance={**first.provenance, "learned": True},
    )
    with pytest.raises(ValueError, match="learned rows"):
        cb.update(learned, NIGHTS[1])


def test_the_old_coreset_is_left_alone(first):
    before = copy.deepcopy(first)
    cb.update(first, NIGHTS[1])
    assert np.array_equal(before.weights, first.weights)
    assert np.array_equal(before.reserve.weights, first.reserve.weights)


def _frame(X, y):
    pandas = pytest.importorskip("pandas")
    return pandas.DataFrame({"a": X[:, 0], "b": X[:, 1], "c": X[:, 2], "late": y})


def test_fewer_rows_than_parameters_may_have_a_reserve():
    # Their posterior is as wide as the prior in some directions: its covariance is singular in
    # floating point.
    rng = np.random.default_rng(2)
    X = rng.normal(size=(40_000, 3))
    eta = X @ (0.5 * rng.normal(size=3))
    rng.random(40_000)
    coreset = cb.build(cb.PoissonRegression(), (X, rng.poisson(np.exp(eta))), size=2, seed=2)
    assert coreset.size == 2 and np.all(coreset.weights > 0.0)
