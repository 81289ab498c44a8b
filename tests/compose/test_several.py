"""One coreset for several models: other priors, fewer columns, folds left out."""

import numpy as np
import pytest

import corebayes as cb
from corebayes.compose.refit import changed_coreset
from corebayes.data.narrowed import Narrowed, narrowing
from corebayes.problem import Problem
from corebayes.rows import open_rows
from corebayes.samplers.laplace import full_posterior
from corebayes.tangent.stacked import ModelView, Stacked
from tests.compose.rows import MODEL, kl, piece

X, Y = piece(3, 8000)
STRICT = cb.LogisticRegression(prior=cb.Normal(0.0, 0.02))


def narrowed(data, **how):
    rows = open_rows(data)
    shown = narrowing(rows.template, (), how.get("features"), how.get("leave_out"))
    return open_rows(Narrowed(table=rows.table, narrowing=shown))


def test_the_stacked_space_is_the_sum_of_its_layers():
    """Inner products, totals and energies against the spaces one by one, with a fold masked."""
    rng = np.random.default_rng(0)
    data = {"X": X[:300], "y": Y[:300], "fold": np.arange(300) % 3}
    rows = open_rows(data)
    bound = MODEL.bind(rows)
    shown = narrowing(rows.template, (), [0, 2], {"fold": 1})
    nested = MODEL.bind(narrowed(data, features=[0, 2], leave_out={"fold": 1}))
    problem = Problem(bound, rows)
    points = problem.points(np.arange(30), rng.uniform(1.0, 20.0, 30))
    stacked = Stacked(
        models=(ModelView(bound, narrowing(points.rows, (), None, None)), ModelView(nested, shown))
    )
    space = stacked.space(rng, problem, points)
    block = rows.take(np.arange(100, 160))
    vectors = space.embed(block)
    mask = (block["fold"] != 1).astype(float)
    first, second = (layer.space for layer in space.layers)
    fewer = type(block)({"X": block.X[:, [0, 2]], "y": block.y})
    expected = first.gram(first.embed(block)) + np.outer(mask, mask) * second.gram(
        second.embed(fewer)
    )
    assert np.allclose(space.gram(vectors), expected)
    assert np.allclose(space.squared_norms(vectors), np.diag(expected))
    weights = rng.uniform(size=60)
    element = space.combine(vectors, weights)
    assert np.allclose(space.project(vectors, element), expected @ weights)
    assert element @ element == pytest.approx(weights @ expected @ weights)
    counted = type(block)(block.fields, weights)
    assert np.allclose(space.total(counted).element, element)
    some = np.array([3, 50, 7])
    assert np.allclose(space.gram(space.take(vectors, some)), expected[np.ix_(some, some)])
    total = space.total(counted)
    parts = first.total(counted), second.total(shown.of(counted))
    energies = first.free_energy(parts[0]) + second.free_energy(parts[1])
    assert space.free_energy(total) == pytest.approx(energies)


def test_a_coreset_for_all_serves_each():
    nested = {"features": [1, 2]}
    several = cb.build(MODEL, (X, Y), size=30, models=[STRICT, cb.Variant(**nested)], seed=0)
    alone = cb.build(MODEL, (X, Y), size=30, seed=0)
    assert type(several.model) is type(MODEL) and several.model.dim == 3
    for model, how in ((None, {}), (STRICT, {}), (None, nested)):
        ours = changed_coreset(several, model, **how)
        assert kl(ours, narrowed((X, Y), **how)) < 1e-6
    for model, how in ((STRICT, {}), (None, nested)):
        assert kl(changed_coreset(alone, model, **how), narrowed((X, Y), **how)) > 1e-5


def test_folds_are_left_out_exactly():
    data = {"X": X, "y": Y, "fold": np.arange(len(X)) % 3}
    folds = [cb.Variant(leave_out={"fold": k}) for k in range(3)]
    several = cb.build(MODEL, data, size=50, models=folds, seed=0)
    for k in range(3):
        kept = np.arange(len(X)) % 3 != k
        ours = changed_coreset(several, leave_out={"fold": k})
        assert np.all(ours.rows["fold"] != k)
        fit = cb.Laplace().fit(cb.Posterior.of(ours))
        full = full_posterior(MODEL.bind(open_rows((X[kept], Y[kept]))), (X[kept], Y[kept]))
        assert cb.diagnostics.gaussian_kl(fit, full) < 1e-5


def test_refit_says_whether_it_stands():
    coreset = cb.build(MODEL, (X, Y), size=30, seed=0)
    near = cb.LogisticRegression(prior=cb.Normal(0.0, 3.0))
    found = cb.refit(coreset, near, (X, Y), draws=250, chains=4)
    assert found.certificate.certified and found.distance < 0.5
    assert found.posterior["beta"].shape == (4, 250, 3)
    alone = cb.refit(coreset, near, draws=250)
    assert alone.certificate is None and "no rows were given" in str(alone)
    far = cb.refit(coreset, features=[1, 2], draws=250)
    assert far.distance > 10 and "do not use these draws" in far.verdict
    assert far.coreset.model.parameter_names == ("beta[1]", "beta[2]")
    with pytest.raises(ValueError, match="features: there is no column '7'"):
        cb.refit(coreset, features=[0, 7])
    with pytest.raises(ValueError, match="leave_out: the rows have no field 'fold'"):
        cb.refit(coreset, leave_out={"fold": 1})
    with pytest.raises(TypeError, match=r"model must be one such as .*, got 'logistic'"):
        cb.refit(coreset, "logistic")


@pytest.mark.parametrize(
    ("other", "named"),
    [
        (cb.PoissonRegression(), "is a PoissonRegression with log link"),
        (cb.ProbitRegression(), "is a ProbitRegression"),
        (cb.LogisticRegression(offset=2), "is a LogisticRegression with offset"),
        (cb.MixedRegression(family=cb.PoissonRegression()), "is a PoissonRegression with log link"),
    ],
)
def test_another_likelihood_is_refused(other, named):
    """With a caution its draws looked like those of any other model."""
    coreset = cb.build(MODEL, (X, Y), size=12, seed=0)
    for data in (None, (X, Y)):
        with pytest.raises(ValueError, match=f"likelihood of a LogisticRegression, .* {named}"):
            cb.refit(coreset, other, data)


def test_a_coreset_serves_the_likelihoods_that_it_was_built_for(tmp_path):
    probit = cb.ProbitRegression(prior=cb.Normal())
    both = cb.build(MODEL, (X, Y), size=20, models=[probit], seed=0)
    both.save(tmp_path / "c.parquet")
    assert cb.refit(
        cb.load(tmp_path / "c.parquet"), probit, (X, Y), draws=250
    ).certificate.certified


def test_constants_may_be_known_or_learned():
    features, target = heavy_tails()
    coreset = cb.build(cb.StudentTRegression(), (features, target), size=30, seed=0)
    known = cb.StudentTRegression(df=4.0, scale=1.0)
    assert cb.refit(coreset, known, draws=100, chains=2, tune=100).certificate is None


def test_what_cannot_serve_several_says_so():
    with pytest.raises(TypeError, match="Uniform cannot serve several models"):
        cb.build(MODEL, (X, Y), size=5, models=[STRICT], method=cb.Uniform())
    with pytest.raises(TypeError, match="models must be a list"):
        cb.build(MODEL, (X, Y), size=5, models=STRICT)
    with pytest.raises(ValueError, match="models is empty"):
        cb.build(MODEL, (X, Y), size=5, models=[])


def heavy_tails():
    rng = np.random.default_rng(4)
    features = rng.normal(loc=[0.5, 0.0, 0.0], size=(2400, 3))
    return features, features @ [1.0, -0.5, 0.3] + rng.standard_t(4, size=2400)


@pytest.mark.slow
def test_models_that_are_not_log_concave_are_served():
    """Student's t noise: another prior far away, a nested model, and a fold that is left out."""
    features, target = heavy_tails()
    data = {"X": features, "y": target, "fold": np.arange(2400) % 4}
    model = cb.StudentTRegression(df=4.0, scale=1.0, prior=cb.Normal())
    strict = cb.StudentTRegression(df=4.0, scale=1.0, prior=cb.Normal(0.0, 0.01))
    ways = [(strict, {}), (None, {"features": [0, 2]}), (None, {"leave_out": {"fold": 1}})]
    variants = [cb.Variant(model=other, **how) for other, how in ways]
    several = cb.build(model, data, size=60, models=variants, seed=0)
    for other, how in [(None, {}), *ways]:
        changed = changed_coreset(several, other, **how)
        assert kl(changed, narrowed(data, **how)) < 1e-4
    # Without a warning of modes: one that is known roughly is the one that was found.
    alone = cb.build(model, data, size=60, seed=0)
    assert kl(changed_coreset(alone, strict), narrowed(data)) > 1e-4


def mixed_rows(seed=0, num_rows=1200):
    rng = np.random.default_rng(seed)
    group = rng.integers(0, 5, num_rows)
    x = rng.normal(size=num_rows) + 0.4
    predictor = 0.2 + 0.7 * x + np.array([0.9, -0.6, 0.1, 0.5, -1.0])[group]
    late = rng.random(num_rows) < 1.0 / (1.0 + np.exp(-predictor))
    return {"x": x, "g": group, "late": late * 1.0, "t": predictor + rng.normal(size=num_rows)}


@pytest.mark.parametrize(
    "formula", ["late ~ x + (1 | g)", pytest.param("t ~ x", marks=pytest.mark.slow)]
)
def test_mixed_models_and_learned_constants_are_served(formula):
    """Priors that move the posterior by many standard deviations, and a nested model."""
    pandas = pytest.importorskip("pandas")
    table, grouped = pandas.DataFrame(mixed_rows()), "g" in formula
    how = {"family": "logistic" if grouped else "gaussian"}
    model, rows = cb.from_formula(formula, table, **how)
    strict, _ = cb.from_formula(formula, table, prior=cb.Normal(0.0, 0.02), **how)
    fewer = ["Intercept", "g"] if grouped else ["Intercept"]
    several = cb.build(model, rows, size=80, models=[strict, cb.Variant(features=fewer)], seed=0)
    for other, options in ((None, {}), (strict, {}), (None, {"features": fewer})):
        found = cb.refit(several, other, table, draws=500, tol=0.05, seed=2, **options)
        assert found.certificate.certified, str(found)
