"""Custom models that say which parameters a row touches."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import corebayes as cb
from corebayes.adapters.local import bound_with_structure
from corebayes.models.custom.touching import is_touching
from corebayes.models.structure import is_structured
from corebayes.rows import open_rows

G = 7


def rows(num_rows=3000, seed=4):
    rng = np.random.default_rng(seed)
    g = rng.choice(G, size=num_rows, p=rng.dirichlet(np.full(G, 3.0)))
    x = rng.normal(0.3, 1.0, size=num_rows)
    eta = 0.4 + 0.5 * x + (0.6 * rng.normal(size=G))[g] + (0.3 * rng.normal(size=G))[g] * x
    return pd.DataFrame({"x": x, "g": g * 1.0, "y": rng.poisson(np.exp(eta)) * 1.0})


# θ: intercept, slope, log τ of intercepts and slopes, then (intercept, slope) of every group.
EFFECTS = 4 + np.arange(2 * G).reshape(G, 2)


def log_likelihood(draws, block):
    """A Poisson regression with intercepts and slopes of groups, in NumPy."""
    own = draws[:, EFFECTS[block.g.astype(int)]]
    x = block.x[:, None]
    eta = draws[:, 0] + own[:, :, 0].T + (draws[:, 1] + own[:, :, 1].T) * x
    return block.y[:, None] * eta - np.exp(eta)


def log_prior(draws, numpy=np):
    log_tau, b = draws[:, 2:4], draws[:, numpy.asarray(EFFECTS)]
    scaled = b * numpy.exp(-log_tau)[:, None]
    effects = -0.5 * numpy.sum(scaled**2, axis=(1, 2)) - G * log_tau.sum(axis=1)
    hyper = numpy.sum(log_tau - 0.5 * numpy.exp(2.0 * log_tau), axis=1)
    return effects + hyper - 0.5 * numpy.sum(draws[:, :2] ** 2, axis=1)


def model(likelihood=log_likelihood, prior=log_prior, **options):
    return cb.CustomModel(likelihood, prior, 4 + 2 * G, **({"groups": {"g": EFFECTS}} | options))


def bound(frame, **options):
    data = open_rows(frame, target="y")
    return bound_with_structure(model(**options), data), data


def test_structure_and_derivatives_are_those_that_are_said():
    own, data = bound(rows(400))
    assert is_touching(own) and not own.is_traced
    structure = own.structure
    assert structure.shared.tolist() == [0, 1] and structure.scales.tolist() == [2, 3]
    assert [(term.num_groups, term.num_effects) for term in structure.terms] == [(G, 2)]
    block = data.take(np.arange(50))
    theta = 0.3 * np.random.default_rng(1).normal(size=own.dim)
    weights = np.random.default_rng(2).uniform(0.5, 9.0, size=50)
    x, y, g = block["X"][:, 0], block["y"], block["X"][:, 1].astype(int)
    design = np.zeros((50, own.dim))
    design[:, 0], design[:, 1] = 1.0, x
    design[np.arange(50), EFFECTS[g, 0]], design[np.arange(50), EFFECTS[g, 1]] = 1.0, x
    rate = np.exp(design @ theta)
    exact = design.T @ (weights * (y - rate))
    np.testing.assert_allclose(own.gradient(theta, block, weights), exact, rtol=1e-5, atol=1e-5)
    means = own.row_means(theta[None], block)
    touched = np.stack([np.ones(50), x, np.ones(50), x], axis=1)
    np.testing.assert_allclose(means.first, (y - rate)[:, None] * touched, rtol=1e-4, atol=1e-4)
    bends = -rate[:, None, None] * touched[:, :, None] * touched[:, None]
    np.testing.assert_allclose(means.second, bends, rtol=1e-4, atol=1e-4)


@pytest.mark.slow
def test_a_coreset_of_plain_functions_is_the_built_in_one():
    frame = rows()
    coreset = cb.build(model(), frame, target="y", size=70, progress=False)
    assert "GroupedPursuit" in coreset.provenance["method"]
    found = cb.certify(coreset, frame, target="y", draws=400)
    assert found.certified, found
    other, data = cb.from_formula(
        "y ~ x + (1 + x | g)", frame, family="poisson", prior=cb.Normal(), group_sd=cb.HalfNormal(1)
    )
    built_in = cb.build(other, data, size=70, progress=False)
    ours = cb.sample(coreset, draws=300, chains=2).posterior["theta"].values.reshape(600, -1)
    theirs = cb.sample(built_in, draws=400, chains=4).posterior
    for name, values in zip(("Intercept", "x"), ours.T, strict=False):
        other = theirs[name].values
        assert abs(values.mean() - other.mean()) < 0.3 * other.std()
        assert 0.75 < values.std() / other.std() < 1.33


def test_jax_functions_may_say_it_too():
    import jax.numpy as jnp

    def labelled(draws, block):
        # Groups that are computed show in no column of whole numbers.
        own = draws[:, jnp.asarray(EFFECTS)[(block["label"] / 10.0).astype(int)]]
        eta = draws[:, 0] + own[:, :, 0].T + (draws[:, 1] + own[:, :, 1].T) * block["x"][:, None]
        return block["y"][:, None] * eta - jnp.exp(eta)

    def prior(draws):
        return log_prior(draws, jnp)

    frame = rows(600)
    fields = {name: frame[name].to_numpy() for name in ("x", "g", "y")}
    data = open_rows({**fields, "label": 10.0 * fields["g"] + 3.0})
    own = bound_with_structure(model(labelled, prior), data)
    assert own.is_traced and is_structured(own) and own.structure.scales.tolist() == [2, 3]


@pytest.mark.parametrize(
    ("groups", "sentence"),
    [
        ({"g": EFFECTS[:, ::-1][::-1]}, r"row \d+ is of group \d+ of 'g' and changes with"),
        ({"h": EFFECTS}, "groups names 'h', which is no column of the data: it has .*'g'"),
        ({"g": EFFECTS[:5]}, r"row \d+, column 'g': \d+ is not the number of a group: .*0 to 4"),
        ({"x": EFFECTS}, r"row 0, column 'x': .* is not the number of a group"),
    ],
)
def test_what_rows_do_not_do_is_a_sentence(groups, sentence):
    with pytest.raises(ValueError, match=sentence):
        bound(rows(300), groups=groups)


@pytest.mark.parametrize(
    ("groups", "sentence"),
    [
        ({"g": [3, 3]}, r"parameter 3 is in groups\['g'\] and again"),
        ({"g": [3, 99]}, r"groups\['g'\] has 99, which is none of 0 to 17"),
        ({"g": [0.5, 1.5]}, r"groups\['g'\] must be the places in θ"),
        ({"g": [4]}, r"groups\['g'\] must be the places in θ of two or more"),
    ],
)
def test_bad_places_are_sentences(groups, sentence):
    with pytest.raises(ValueError, match=sentence):
        model(groups=groups)


def test_a_prior_that_ties_groups_together_is_refused():
    def tied(draws):
        walk = np.diff(draws[:, EFFECTS[:, 0]], axis=1)
        return log_prior(draws) - 0.5 * np.sum(walk**2, axis=1)

    with pytest.raises(ValueError, match="ties effects of different groups"):
        bound(rows(300), prior=tied)
