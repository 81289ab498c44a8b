from __future__ import annotations

import numpy as np
import pytest

from corebayes.models.radial_basis import paper_radial_basis, radial_basis


def test_features_are_the_formula():
    rng = np.random.default_rng(0)
    X, centers = rng.normal(size=(20, 2)), rng.normal(size=(5, 2))
    scales = np.array([0.2, 0.5, 1.0, 3.0, 100.0])
    features = radial_basis(X, centers, scales)
    assert features.shape == (20, 5)
    for n in range(20):
        for k in range(5):
            distance = np.linalg.norm(X[n] - centers[k])
            expected = np.exp(-(distance**2) / (2 * scales[k] ** 2))
            assert features[n, k] == pytest.approx(expected, rel=1e-11)
    np.testing.assert_allclose(radial_basis(X, centers, 0.5)[:, 1], features[:, 1])


def test_distances_far_from_the_origin():
    rng = np.random.default_rng(1)
    X, centers = rng.normal(size=(20, 2)), rng.normal(size=(5, 2))
    far = np.array([2.0**24, -(2.0**25)])
    np.testing.assert_allclose(
        radial_basis(X + far, centers + far, 0.3), radial_basis(X, centers, 0.3), rtol=1e-5
    )
    np.testing.assert_allclose(np.diag(radial_basis(X + far, X + far, 0.01)), 1.0, rtol=1e-9)


def test_the_basis_of_the_paper():
    rng = np.random.default_rng(2)
    X = rng.normal(size=(400, 2)) + np.array([50.0, -3.0])
    centers, scales = paper_radial_basis(np.random.default_rng(3), X)
    assert centers.shape == (301, 2) and scales.shape == (301,)
    np.testing.assert_array_equal(scales[:300], np.repeat([0.2, 0.4, 0.8, 1.2, 1.6, 2.0], 50))
    assert scales[300] == 100.0
    np.testing.assert_allclose(centers[300], X.mean(axis=0))
    rows = {tuple(x) for x in X}
    assert all(tuple(center) in rows for center in centers[:300])
    for first in range(0, 300, 50):
        assert len({tuple(center) for center in centers[first : first + 50]}) == 50
    constant = radial_basis(X, centers, scales)[:, 300]
    assert constant.min() > 0.99
    again = paper_radial_basis(np.random.default_rng(3), X)
    np.testing.assert_array_equal(again.centers, centers)
    few = paper_radial_basis(rng, X, per_scale=2, scales=(0.5, 1.0))
    np.testing.assert_array_equal(few.scales, [0.5, 0.5, 1.0, 1.0, 100.0])


def test_refusals():
    X = np.zeros((5, 2))
    with pytest.raises(ValueError, match="X has 2 columns but centers have 3"):
        radial_basis(X, np.zeros((4, 3)), 1.0)
    with pytest.raises(ValueError, match=r"scales must be positive, the smallest is 0.0"):
        radial_basis(X, X, [1.0, 1.0, 0.0, 2.0, 1.0])
    with pytest.raises(ValueError, match=r"X must be rows of coordinates, got shape \(5,\)"):
        radial_basis(np.zeros(5), X, 1.0)
    with pytest.raises(ValueError, match="between 1 and the 5 rows of X, got 50"):
        paper_radial_basis(np.random.default_rng(0), X)
