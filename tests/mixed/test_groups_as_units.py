"""Groups as units: marginal likelihoods, the coreset of groups, effects on demand, exports."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import corebayes as cb
from corebayes.coreset import CorruptFile
from corebayes.models.mixed.marginal import MarginalRegression
from corebayes.rows import open_rows
from corebayes.samplers.posterior import Posterior
from corebayes.tangent.group_heights import group_heights
from tests.mixed.unit_cases import FAMILIES, bound, mixed, table

families = pytest.mark.parametrize("name", FAMILIES)


def panels(end):
    """Nodes and weights for integrals from −end to end: Gauss and Legendre's in 16 panels."""
    nodes, weights = np.polynomial.legendre.leggauss(12)
    half = end / 16.0
    middles = np.arange(-15.0, 16.0, 2.0) * half
    return (middles[:, None] + half * nodes).ravel(), np.tile(half * weights, 16)


@families
def test_a_groups_potential_is_the_integral_over_its_effect(name):
    model, block, rows, weights = bound(name)
    some = rows.take(np.arange(rows.num_rows))
    codes = model.mixed.groups(some)[:, 0]
    draws = np.random.default_rng(1).normal(0.0, 0.4, (3, model.dim))
    found = model.potentials(draws, block)
    for s, phi in enumerate(draws):
        tau = np.exp(phi[-1])
        for group in range(len(block)):
            own = np.flatnonzero(codes == group)
            b, widths = panels(8.0 * tau)
            theta = np.zeros((b.size, model.mixed.dim))
            theta[:, : model.dim], theta[:, model.dim + group] = phi, b
            heights = weights[own] @ model.mixed.potentials(theta, some.take(own))
            density = np.exp(heights - found[group, s]) * stats.norm.pdf(b, 0.0, tau)
            total = widths @ density
            # Few rows of a heavy-tailed family are the least like a Gaussian.
            assert total == pytest.approx(1.0, rel=3e-3 if name == "student" else 2e-5)


def test_two_effects_are_integrated_out():
    model, block, _, _ = bound("logistic", 20, 2, ("1", "x"))
    phi = np.array([0.2, -0.3, -0.4, -0.8])
    found = model.potentials(phi[None], block)[:, 0]
    tau, X, Z, y, w = np.exp(phi[2:]), block["X"], block["Z"], block["y"], block["w"]
    (first, first_widths), (second, second_widths) = (panels(6.0 * one) for one in tau)
    both = np.stack([one.ravel() for one in np.meshgrid(first, second, indexing="ij")])
    prior = stats.norm.pdf(both, 0.0, tau[:, None]).prod(axis=0)
    for group in range(2):
        eta = (X[group] @ phi[:2])[:, None] + Z[group] @ both
        heights = -w[group] @ np.logaddexp(0.0, (1.0 - 2.0 * y[group])[:, None] * eta)
        density = np.exp(heights - found[group]) * prior
        total = np.outer(first_widths, second_widths).ravel() @ density
        assert total == pytest.approx(1.0, rel=1e-4)


@families
@pytest.mark.parametrize("effects", [("1",), ("1", "x")])
def test_derivatives(name, effects):
    model, block, _, _ = bound(name, effects=effects)
    weights = np.linspace(0.5, 2.0, len(block))
    phi = np.random.default_rng(2).normal(0.0, 0.3, model.dim)
    gradient, hessian = model.gradient_and_hessian(phi, block, weights)
    np.testing.assert_allclose(model.gradient(phi, block, weights), gradient, rtol=1e-12)
    steps = 1e-4 * np.eye(model.dim)
    # Nodes move with φ, so differences see the quadrature's error, too.
    rough = 0.05 if name == "student" else 2e-3
    numeric = [
        (model.sum_potentials(np.stack([phi + e, phi - e]), block, weights) @ [1.0, -1.0]) / 2e-4
        for e in steps
    ]
    np.testing.assert_allclose(gradient, numeric, rtol=rough, atol=rough * np.abs(gradient).max())
    second = [
        (model.gradient(phi + e, block, weights) - model.gradient(phi - e, block, weights)) / 2e-4
        for e in steps
    ]
    np.testing.assert_allclose(hessian, second, rtol=rough, atol=rough * np.abs(hessian).max())
    assert np.all(hessian == hessian.T) or np.allclose(hessian, hessian.T)


@families
@pytest.mark.parametrize("effects", [("1",), ("1", "x")])
def test_far_places_are_no_error(name, effects):
    """Searches for modes go where scales overflow and curvatures are zero or not finite."""
    model, block, *_ = bound(name, effects=effects)
    middle, far = model.potentials(np.zeros((1, model.dim)), block), 400.0 * np.eye(model.dim)
    with np.errstate(all="ignore"):
        values = model.potentials(np.concatenate([far, -far, [np.full(model.dim, 400.0)]]), block)
    assert values.shape == (len(block), 2 * model.dim + 1)
    assert np.isfinite(middle).all()
    assert not np.any(values > 700.0)


def test_of_a_gaussian_the_integral_is_in_closed_form():
    """y ~ N(Xβ, σ² I + τ² 11ᵀ) within a group: no quadrature error at all."""
    rows = open_rows(table("noise", 40, 4), target="y")
    model = MarginalRegression(mixed("noise").bind(rows))
    some = rows.take(np.arange(40))
    block = model.group_block(some, np.ones(40))
    phi = np.array([0.2, -0.5, -0.3, 0.1])
    found = model.potentials(phi[None], block)[:, 0] + model.log_base(block)
    codes = model.mixed.groups(some)[:, 0]
    for group in range(4):
        own = np.flatnonzero(codes == group)
        covariance = np.exp(2 * phi[2]) * np.eye(own.size) + np.exp(2 * phi[3])
        mean = model.mixed.fixed_design(some.take(own)) @ phi[:2]
        expected = stats.multivariate_normal(mean, covariance).logpdf(some.y[own])
        assert found[group] == pytest.approx(expected, rel=1e-10)


@families
def test_sums_over_blocks_are_the_groups_of_all_rows(name):
    """Nodes from some rows, sums from all: as good as nodes from all."""
    frame = table(name, 900, 7, seed=3)
    rows = open_rows(frame, target="y")
    model = MarginalRegression(mixed(name).bind(rows))
    everything = rows.take(np.arange(900))
    draws = np.random.default_rng(4).normal(0.0, 0.2, (5, model.dim))
    exact = model.potentials(draws, model.group_block(everything, np.ones(900))).sum(axis=0)
    # A poor sample: the first nodes are a standard deviation or two off.
    third = np.arange(0, 900, 3)
    placed = model.group_block(everything.take(third), np.full(third.size, 3.0))
    found = group_heights(model, rows, placed, draws)
    np.testing.assert_allclose(found - found[0], exact - exact[0], rtol=0, atol=2e-4)


@pytest.fixture(scope="module")
def built():
    frame = table("logistic", 20_000, 60, seed=1)
    model = mixed("logistic")
    return frame, cb.build(model, frame, target="y", unit="group", size=12, progress=False)


def test_a_dozen_groups_stand_for_sixty(built):
    frame, coreset = built
    assert isinstance(coreset, cb.GroupCoreset)
    assert coreset.size <= 12 and coreset.num_rows == 60
    assert repr(coreset).startswith(f"GroupCoreset({coreset.size} of 60 groups")
    assert coreset.weights.sum() == pytest.approx(60.0, rel=0.5)
    certificate = cb.certify(coreset, frame, target="y", tol=1e-3, draws=250)
    assert certificate.certified
    assert f"{coreset.size} of 60 groups" in certificate.verdict


def test_a_saved_coreset_of_groups_comes_back(built, tmp_path):
    frame, coreset = built
    coreset.save(tmp_path / "groups.parquet")
    loaded = cb.load(tmp_path / "groups.parquet")
    assert isinstance(loaded, cb.GroupCoreset)
    assert repr(loaded) == repr(coreset) and loaded.provenance["unit"] == "g"
    np.testing.assert_array_equal(loaded.indices, coreset.indices)
    np.testing.assert_array_equal(loaded.weights, coreset.weights)
    draws = np.random.default_rng(0).normal(0.0, 0.3, (4, 3))
    np.testing.assert_array_equal(
        loaded.model.potentials(draws, loaded.rows), coreset.model.potentials(draws, coreset.rows)
    )
    ours, theirs = (cb.group_effects(one, draws, groups=[3])["1|g"] for one in (loaded, coreset))
    np.testing.assert_array_equal(ours, theirs)
    certificate = cb.certify(loaded, frame, target="y", tol=1e-3, draws=250)
    assert certificate.certified, certificate


@pytest.mark.parametrize(
    "change",
    [
        {"indices": [0, 60]},
        {"indices": [3, 1]},
        {"indices": [0.5, 1.0]},
        {"weights": [1.0, -1.0]},
        {"weights": [1.0]},
        {"num_nodes": 10_000},
        {"reason": None},
    ],
)
def test_a_strangers_groups_are_refused(built, tmp_path, change):
    groups = {"indices": [0, 1], "weights": [1.0, 2.0], "num_nodes": 9, "reason": ""} | change
    level_one = built[1].level_one
    forged = replace(level_one, provenance={**level_one.provenance, "groups": groups})
    forged.save(tmp_path / "forged.parquet")
    with pytest.raises(CorruptFile):
        cb.load(tmp_path / "forged.parquet")


@pytest.mark.slow
def test_as_few_groups_as_can_be_certified(built):
    frame = built[0].head(6000)
    coreset = cb.build(mixed("logistic"), frame, target="y", unit="group", tol=0.01, progress=False)
    assert coreset.reason.startswith("certified") and coreset.size <= 20
    assert cb.certify(coreset, frame, target="y", tol=0.01, draws=500, seed=9).certified


def test_too_few_groups_are_not_certified(built):
    frame, coreset = built
    few = cb.choose_groups(coreset.level_one, open_rows(frame, target="y"), size=2)
    assert not cb.certify(few, frame, target="y", tol=1e-3, draws=250).certified


@pytest.mark.slow
def test_shared_parameters_are_those_of_all_rows(built):
    """Beside NUTS of the whole mixed model on all rows."""
    frame, coreset = built
    idata = cb.sample(coreset, draws=500)
    rows = open_rows(frame, target="y")
    full = mixed("logistic").bind(rows)
    posterior = Posterior(full, rows.take(np.arange(len(frame))), np.ones(len(frame)))
    drawn = cb.NUTS(num_tune=300, chains=2).draw(np.random.default_rng(0), posterior, 1500).flat
    for place, name in enumerate(("one", "x", "1|g_sigma")):
        ours = idata.posterior[name].values
        theirs = np.exp(drawn[:, place]) if name == "1|g_sigma" else drawn[:, place]
        assert abs(ours.mean() - theirs.mean()) < 0.15 * theirs.std()
        assert ours.std() == pytest.approx(theirs.std(), rel=0.12)


@pytest.mark.slow
def test_effects_of_any_group_on_demand(built):
    frame, coreset = built
    idata = cb.sample(coreset, draws=250)
    left_out = next(group for group in range(60) if group not in coreset.indices)
    kept = int(coreset.indices[0])
    effects = cb.group_effects(coreset, idata, groups=[left_out, kept])["1|g"]
    assert effects.shape == (4, 250, 2)
    rows = open_rows(frame, target="y")
    full = mixed("logistic").bind(rows)
    posterior = Posterior(full, rows.take(np.arange(len(frame))), np.ones(len(frame)))
    drawn = cb.NUTS(num_tune=300, chains=2).draw(np.random.default_rng(0), posterior, 1500).flat
    for place, group in enumerate((left_out, kept)):
        theirs, ours = drawn[:, 3 + group], effects[..., place]
        assert abs(ours.mean() - theirs.mean()) < 0.35 * theirs.std()
        assert ours.std() == pytest.approx(theirs.std(), rel=0.2)
    everyone = cb.group_effects(coreset, np.zeros((5, 3)))["1|g"]
    assert everyone.shape == (5, 60)
    with pytest.raises(ValueError, match="no group 99"):
        cb.group_effects(coreset, idata, groups=[99])
    with pytest.raises(ValueError, match="an array"):
        cb.group_effects(coreset, np.zeros(7))


def test_predictions_draw_effects_of_every_group(built):
    frame, coreset = built
    new = pd.DataFrame({"one": 1.0, "x": 0.5, "g": [*range(60), 77.0]})
    ours = cb.predict(coreset, new, seed=1)
    theirs = cb.predict(coreset.level_one, new, seed=1)
    assert list(ours.new_groups["g"]) == [77]
    spread = (theirs["mean_upper"] - theirs["mean_lower"]) / 3.3
    assert np.all(np.abs(ours.mean - theirs.mean) < 0.5 * spread)
    # Groups differ by more than their errors, and a new one is nobody's in particular.
    assert ours.mean[:60].std() > 2.0 * np.abs(ours.mean - theirs.mean)[:60].mean()
    found = cb.check(coreset, frame, target="y", seed=1)
    assert found.statistics[0].name == "mean" and 0.01 < found.statistics[0].p < 0.99


def test_numpyro_gets_the_marginal_model(built):
    pytest.importorskip("numpyro")
    # Its density is compared with ours before it is handed over.
    assert callable(cb.to_numpyro(built[1]))
    with pytest.raises(TypeError, match=r"no program for a coreset of groups.*level_one"):
        cb.to_stan(built[1])


@pytest.mark.slow
@families
@pytest.mark.parametrize("effects", [("1",), ("1", "x")])
@pytest.mark.parametrize("library", ["numpyro", "pymc"])
def test_every_family_goes_to_both_libraries(name, effects, library):
    pytest.importorskip(library)
    export = {"numpyro": cb.to_numpyro, "pymc": cb.to_pymc}[library]
    frame = table(name, 300, 8, seed=2)
    coreset = cb.build(mixed(name, effects), frame, target="y", unit="g", size=6, progress=False)
    if name == "student":
        with pytest.raises(TypeError, match="several modes"):
            export(coreset)
        return
    assert export(coreset) is not None


def test_what_cannot_be_is_a_sentence(built):
    frame, coreset = built
    two = cb.MixedRegression(
        family=cb.LogisticRegression(prior=cb.Normal()),
        terms=[cb.GroupTerm(group="g"), cb.GroupTerm(group="x")],
    )
    with pytest.raises(ValueError, match="one group term, and this model has 2"):
        cb.build(two, frame, target="y", unit="group", size=5)
    three = mixed("logistic", ("1", "x", "one"))
    with pytest.raises(ValueError, match="at most 2 effects"):
        cb.build(three, frame, target="y", unit="group", size=5)
    with pytest.raises(ValueError, match="unit: there is no column 'group'"):
        cb.build(cb.LogisticRegression(prior=cb.Normal()), frame, target="y", unit="group", size=5)
    with pytest.raises(ValueError, match='must be "group" or the column'):
        cb.build(mixed("logistic"), frame, target="y", unit="h", size=5)
    with pytest.raises(ValueError, match="start is for coresets of rows"):
        cb.build(mixed("logistic"), frame, target="y", unit="group", start=coreset)
    with pytest.raises(TypeError, match="MixedRegression"):
        other = cb.build(
            cb.LinearRegression(noise_sd=1.0, prior=cb.Normal()),
            (frame[["one", "x"]], frame["y"]),
            size=5,
        )
        cb.choose_groups(other, frame)
    with pytest.raises(TypeError, match="coreset of groups is needed"):
        cb.group_effects(coreset.level_one, np.zeros((2, 3)))
