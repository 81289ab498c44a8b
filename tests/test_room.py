"""A build to a tolerance leaves room for the noise of whoever certifies it next."""

from __future__ import annotations

import pytest
from benchmarks.mixed_families import FAMILIES, made

import corebayes as cb
from corebayes.build.tolerance import room
from corebayes.certify.certificate import Certificate
from corebayes.types import Estimate


def certificate(value, error, num_draws):
    kl = Estimate(value, error)
    return Certificate(
        reverse_kl=kl, num_draws=num_draws, tol=0.05, certified=True, verdict="", upper=None
    )


def test_room_counts_errors_as_all_draws_would_have_them():
    near = [certificate(0.042, 0.0024, 4000), certificate(0.038, 0.0024, 4000)]
    assert not room(near, 0.05)
    # The same values from fewer draws: with more the errors would be half.
    assert room([certificate(0.038, 0.0024, 1000), certificate(0.038, 0.0024, 1000)], 0.05)
    # Closed forms have no errors.
    assert room([certificate(0.05, 0.0, 0)] * 2, 0.05)


class Asked:
    rows, groups, seed = 20_000, 30, 0


@pytest.mark.slow
@pytest.mark.parametrize("effects", [("1",), ("x1",)])
def test_certificates_at_other_seeds_agree(effects):
    model, table = made(FAMILIES["poisson"], effects, Asked)
    coreset = cb.build(model, table, target="y", tol=0.05, progress=False)
    again = [cb.certify(coreset, table, target="y", tol=0.05, seed=10 + k) for k in range(20)]
    assert sum(one.certified for one in again) >= 19
