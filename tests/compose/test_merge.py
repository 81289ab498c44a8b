"""Shards that never meet: one coreset from the coresets of each."""

import pickle

import numpy as np
import pandas
import pytest

import corebayes as cb
from tests.compose.rows import MODEL, kl, piece

SITES = [piece(seed, 3000, shift=0.3 * seed) for seed in range(6)]


@pytest.fixture(scope="module")
def parts():
    return [cb.build(MODEL, site, size=40, seed=0) for site in SITES]


def test_a_tree_of_merges_is_near_the_coreset_of_the_whole(parts):
    names = [f"site-{k}" for k in range(6)]
    level = [cb.merge(parts[k : k + 2], size=40, names=names[k : k + 2]) for k in range(0, 6, 2)]
    # Nodes travel to workers and back.
    level = [pickle.loads(pickle.dumps(node)) for node in level]
    root = cb.merge(level, size=12)
    # Single builds of so few rows differ by a factor of ten from seed to seed.
    single = [kl(cb.build(MODEL, SITES, size=12, seed=seed), SITES) for seed in range(3)]
    assert kl(root, SITES) < 3 * np.median(single) + 1e-6
    assert cb.certify(root, SITES).certified
    assert len({name for name, _ in root.origins}) > 1
    for (name, number), x in zip(root.origins, root.rows.X, strict=True):
        assert np.array_equal(SITES[names.index(name)][0][number], x)


@pytest.mark.slow
def test_shards_built_around_all_of_them_lose_nothing():
    """Many small shards: matched where each one's own posterior lies, most of it is lost."""
    X, y = piece(11, 48_000)

    def measured(coreset):
        return cb.certify(coreset, (X, y), draws=1000, seed=9).reverse_kl.value

    shards = list(zip(np.array_split(X, 24), np.array_split(y, 24), strict=True))
    rough = [cb.build(MODEL, shard, size=12, reserve=0, seed=0) for shard in shards]
    pilot = cb.merge(rough, size=12, reserve=0)
    parts = [cb.build(MODEL, shard, size=12, seed=0, around=pilot) for shard in shards]
    names = [f"site-{k}" for k in range(24)]
    level = [
        cb.merge(parts[k : k + 6], size=12, names=names[k : k + 6], around=pilot)
        for k in range(0, 24, 6)
    ]
    root = cb.merge(level, size=12)
    single = np.median([measured(cb.build(MODEL, (X, y), size=12, seed=s)) for s in range(3)])
    assert all(part.size <= 12 for part in parts)
    assert measured(root) < 3 * single
    # The same in one round of nothing but so many rows.
    assert measured(pilot) > 5 * measured(root)
    # And in one round with the reserves that builds keep.
    kept = [cb.build(MODEL, shard, size=12, seed=0) for shard in shards]
    level = [cb.merge(kept[k : k + 6], names=names[k : k + 6]) for k in range(0, 24, 6)]
    assert all(12 < part.reserve.size <= 60 for part in kept)
    assert measured(cb.merge(level, size=12)) < 3 * single
    for (name, number), x in zip(root.origins, root.rows.X, strict=True):
        assert np.array_equal(shards[names.index(name)][0][number], x)


def test_parts_that_nothing_was_done_for_are_counted(caplog):
    bare = [cb.build(MODEL, site, size=12, reserve=0, seed=0) for site in SITES[:2]]
    kept = cb.build(MODEL, SITES[2], size=12, seed=0)
    with caplog.at_level("INFO", logger="corebayes"):
        pilot = cb.merge([*bare, kept])
        assert "2 of the 3 coresets have no reserve" in caplog.text
        caplog.clear()
        around = [cb.build(MODEL, site, size=12, around=pilot, seed=0) for site in SITES[:2]]
        cb.merge([*around, kept])
        assert "no reserve" not in caplog.text


def test_a_file_may_leave_the_reserve_out(parts, tmp_path):
    pq = pytest.importorskip("pyarrow.parquet")
    parts[0].save(tmp_path / "a.parquet", reserve=False)
    back = cb.load(tmp_path / "a.parquet")
    assert parts[0].reserve is not None and back.reserve is None
    assert pq.read_table(tmp_path / "a.parquet").num_rows == parts[0].size


def test_a_pilot_brings_its_default_priors(tmp_path):
    """Priors on the scale of some rows are those of the pilot, for every shard."""
    model = cb.LogisticRegression()
    rough = [cb.build(model, site, size=12, seed=0) for site in SITES[:2]]
    pilot = cb.merge(rough, size=12, reserve=0)
    pilot.save(tmp_path / "pilot.parquet")
    pilot = cb.load(tmp_path / "pilot.parquet")
    parts = [cb.build(model, site, size=12, seed=0, around=pilot) for site in SITES[:2]]
    theta = np.array([[0.3, -1.0, 2.0]])
    priors = [part.model.log_prior(theta)[0] for part in (*parts, pilot)]
    assert priors[0] == priors[1] == priors[2]
    assert kl(cb.merge(parts, size=12), SITES[:2]) < 1e-3


def test_a_pilot_must_fit(parts):
    X, y = SITES[0]
    with pytest.raises(ValueError, match="around does not go with the rows: the field 'X' is 3"):
        cb.build(MODEL, (X[:, :2], y), size=12, around=parts[0])
    with pytest.raises(ValueError, match="tol goes with a coreset of its own posterior"):
        cb.build(MODEL, SITES[0], tol=0.01, around=parts[0])
    with pytest.raises(TypeError, match="around must be a coreset"):
        cb.build(MODEL, SITES[0], size=12, around=(X, y))
    with pytest.raises(TypeError, match="Uniform cannot build around another posterior"):
        cb.build(MODEL, SITES[0], size=12, around=parts[0], method=cb.Uniform())


def test_names_that_nobody_gave_do_not_meet(parts):
    tree = cb.merge([cb.merge(parts[:2]), cb.merge(parts[2:4])])
    assert [source.name for source in tree.sources] == [f"source-{k}" for k in range(4)]
    assert {name for name, _ in tree.origins} <= {f"source-{k}" for k in range(4)}
    grown = cb.update(cb.merge(parts[:2], names=["x", "y"]), SITES[2])
    assert [source.name for source in grown.sources] == ["x", "y", "source-2"]


def test_the_prior_counts_once():
    """Two coresets of all their rows, with a strong prior, against the closed form."""
    rng = np.random.default_rng(2)
    model = cb.LinearRegression(noise_sd=1.0, prior=cb.Normal(0.5, 0.1))
    data = [(rng.normal(size=(20, 1)), rng.normal(size=20)) for _ in range(2)]
    merged = cb.merge([cb.build(model, one, size=3, seed=0) for one in data], size=3)
    assert kl(merged, data) < 1e-10


def test_what_differs_is_named(parts):
    other = cb.build(cb.LogisticRegression(prior=cb.Normal(0.0, 2.0)), SITES[1], size=12)
    with pytest.raises(ValueError, match="north and south cannot be merged: prior is"):
        cb.merge([parts[0], other], names=["north", "south"])
    poisson = cb.build(cb.PoissonRegression(link="softplus", prior=cb.Normal()), SITES[1], size=12)
    with pytest.raises(ValueError, match="one is for a LogisticRegression, the other for a Pois"):
        cb.merge([parts[0], poisson])
    X, y = SITES[1]
    fewer = cb.build(MODEL, (X[:, :2], y), size=12)
    with pytest.raises(ValueError, match="'X' is 3 numbers in one and 2 numbers"):
        cb.merge([parts[0], fewer])
    with pytest.raises(ValueError, match="two sources are called 'a'"):
        cb.merge(parts[:2], names=["a", "a"])
    with pytest.raises(TypeError, match="a list of coresets"):
        cb.merge(parts[0])
    with pytest.raises(ValueError, match="at least two"):
        cb.merge(parts[:1])


def test_the_target_of_tables_is_a_column_too():
    frames = [pandas.DataFrame({"a": X[:, 0], "y": y, "z": y}) for X, y in SITES[:2]]
    first, second = (
        cb.build(MODEL, frame, target=target, features=["a"], size=3)
        for frame, target in zip(frames, ("y", "z"), strict=True)
    )
    with pytest.raises(ValueError, match="the target is 'y' in one and 'z' in the other"):
        cb.merge([first, second])


def test_functions_count_by_their_values():
    def model(scale):
        return cb.CustomModel(
            lambda draws, block: -0.5 * scale * (block["x"][:, None] - draws[:, 0]) ** 2,
            lambda draws: -0.5 * draws[:, 0] ** 2,
            dim=1,
            log_concave=True,
        )

    x = np.random.default_rng(0).normal(1.0, 1.0, size=(2, 400))
    built = [cb.build(model(1.0), {"x": one}, size=5) for one in x]
    merged = cb.merge(built, size=5)
    mean = 800 * x.mean() / 801
    fit = cb.Laplace().fit(cb.Posterior.of(merged))
    assert fit.mean[0] == pytest.approx(mean, abs=1e-4)
    other = cb.build(model(2.0), {"x": x[1]}, size=5, method=cb.Uniform())
    with pytest.raises(ValueError, match="the log-likelihood of their CustomModel has other"):
        cb.merge([built[0], other])


def test_learned_rows_merge_with_their_like(parts):
    from dataclasses import replace

    learned = [
        replace(
            part,
            indices=-1 - np.arange(part.size),
            reserve=None,
            provenance={**part.provenance, "learned": True},
        )
        for part in parts[:2]
    ]
    merged = cb.merge(learned, size=12)
    assert merged.indices.max() < 0 and len(set(merged.indices.tolist())) == merged.size
    assert kl(merged, SITES[:2]) < 1e-3
    with pytest.raises(ValueError, match="coreset 0 has learned rows and coreset 1 real ones"):
        cb.merge([learned[0], parts[1]])


def test_the_same_rows_under_two_names_are_told():
    coreset = cb.build(MODEL, SITES[0], size=12, seed=0)
    with pytest.warns(UserWarning, match="'a' and 'b' have the same rows: they count twice"):
        twice = cb.merge([coreset, coreset], names=["a", "b"], size=12)
    assert twice.num_rows == 2 * coreset.num_rows
