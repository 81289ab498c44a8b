"""Groups of mixed models that come later, or that only some sites have."""

import numpy as np
import pytest

import corebayes as cb
from corebayes.compose.new_groups import with_all_groups

pandas = pytest.importorskip("pandas")
EFFECTS = np.random.default_rng(99).normal(size=12)


def frame(seed, groups, num_rows=1200):
    rng = np.random.default_rng(seed)
    group = rng.choice(list(groups), num_rows)
    x = rng.normal(size=num_rows) + 0.3
    predictor = 0.5 + 0.7 * x + 0.8 * EFFECTS[group]
    late = rng.random(num_rows) < 1.0 / (1.0 + np.exp(-predictor))
    noise = 0.5 * rng.normal(size=num_rows)
    names = [f"s{number:02}" for number in group]
    return pandas.DataFrame({"x": x, "g": names, "late": late * 1.0, "t": predictor + noise})


FIRST, LATER, AGAIN = frame(0, range(4)), frame(1, [2, 9, 0, 7]), frame(2, range(4))


def built(table, formula="late ~ x + (1 | g)", size=60, **options):
    model, rows = cb.from_formula(formula, table, **options)
    return cb.build(model, rows, size=size, seed=0)


def kl(coreset, data):
    return cb.certify(coreset, data, draws=1000, seed=5, tol=0.1).reverse_kl.value


@pytest.fixture(scope="module")
def first():
    return built(FIRST)


def labels(coreset):
    return coreset.model.terms[0].labels


def test_new_groups_get_their_effects_and_rows(first, tmp_path):
    grown = cb.update(first, LATER, name="later")
    assert labels(grown) == ("s00", "s01", "s02", "s03", "s07", "s09")
    assert grown.size > first.size
    codes = grown.rows.X[:, grown.model.column_names.index("g")]
    table = pandas.concat([FIRST, LATER], ignore_index=True)
    assert [labels(grown)[int(code)] for code in codes] == table["g"][grown.indices].tolist()
    assert np.array_equal(
        grown.rows.X[:, grown.model.column_names.index("x")], table["x"][grown.indices]
    )
    assert kl(grown, [FIRST, LATER]) < 0.02
    grown.save(tmp_path / "grown.parquet")
    again = cb.update(cb.load(tmp_path / "grown.parquet"), AGAIN, name="again")
    assert labels(again) == labels(grown)
    assert kl(again, [FIRST, LATER, AGAIN]) < 0.02


def test_the_posterior_is_that_of_all_rows(first):
    """Means and deviations beside a fit of all rows, whose groups are in another order."""
    grown = cb.update(first, LATER, size=90)
    model, rows = cb.from_formula("late ~ x + (1 | g)", pandas.concat([FIRST, LATER]))
    whole = cb.build(model, rows, size=90, seed=1)
    ours, theirs = (cb.sample(one, draws=500, chains=2, seed=3).posterior for one in (grown, whole))
    for group in ("s00", "s07", "s09"):
        a, b = (one["1|g"].sel(g__factor_dim=group) for one in (ours, theirs))
        assert abs(float(a.mean() - b.mean())) < 0.25 * float(b.std())
    assert abs(float(ours["x"].mean() - theirs["x"].mean())) < 0.25 * float(theirs["x"].std())


def test_sites_with_other_groups_are_merged(first):
    """Each site numbers its own groups from zero: s02 is 2 in one and 1 in the other."""
    other = built(LATER)
    assert labels(other) == ("s00", "s02", "s07", "s09")
    merged = cb.merge([first, other], names=["a", "b"])
    tables = {"a": FIRST, "b": LATER}
    codes = merged.rows.X[:, merged.model.column_names.index("g")]
    for (site, number), code in zip(merged.origins, codes, strict=True):
        assert labels(merged)[int(code)] == tables[site]["g"][number]
    assert kl(merged, [FIRST, LATER]) < 0.02
    backwards = with_all_groups([other, first])
    assert (
        labels(backwards[0]) == labels(backwards[1]) == ("s00", "s02", "s07", "s09", "s01", "s03")
    )


def test_groups_by_number():
    def numbered(table):
        codes = table["g"].str[1:].astype(float).to_numpy()
        return pandas.DataFrame({"x": table["x"], "g": codes, "late": table["late"]})

    model = cb.MixedRegression(
        family=cb.LogisticRegression(prior=cb.Normal()), terms=[cb.GroupTerm(group="g")]
    )
    tables = [numbered(table) for table in (FIRST, LATER)]
    coresets = [cb.build(model, table, target="late", size=60, seed=0) for table in tables]
    opened = [cb.open(table, target="late") for table in tables]
    for made in (cb.update(coresets[0], tables[1]), cb.merge(coresets)):
        assert made.model.known.values[0].tolist() == [0.0, 1.0, 2.0, 3.0, 7.0, 9.0]
        assert kl(made, opened) < 0.02


@pytest.mark.parametrize(
    "formula", [pytest.param("t ~ x", marks=pytest.mark.slow), "t ~ x + (1 | g)"]
)
def test_learned_noise_is_updated_and_merged(formula):
    start = built(FIRST, formula, family="gaussian", size=40)
    for made in (
        cb.update(start, LATER),
        cb.merge([start, built(LATER, formula, family="gaussian", size=40)]),
    ):
        assert kl(made, [FIRST, LATER]) < 0.02


def test_whole_groups_do_not_go_together(first):
    whole = cb.choose_groups(first, cb.from_formula("late ~ x + (1 | g)", FIRST)[1])
    with pytest.raises(ValueError, match="a coreset of whole groups cannot go together"):
        cb.update(whole, LATER)
