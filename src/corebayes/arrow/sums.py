"""Sums over rows of gradients A_nᵀc_n and Hessians A_nᵀC_nA_n: few entries are not zero."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array

from corebayes.arrow.layout import Split
from corebayes.arrow.sparse import SparseWide, sparse_sums
from corebayes.types import Array, Indices


class Expected(NamedTuple):
    """E f and its expected derivatives in the predictors, of every row."""

    value: Array
    """(n,)."""
    first: Array
    """(n, k)."""
    second: Array
    """(n, k, k)."""
    third: Array | None
    """(n,), for one predictor."""


class ArrowSums(NamedTuple):
    """A value, a gradient and a Hessian in the parts of an arrow."""

    value: float
    wide: Array
    """(p,): gradient in the wide parameters."""
    wide_wide: Array
    """(p, p)."""
    own: Array
    """(G, q): gradient in each group's effects."""
    own_own: Array
    """(G, q, q)."""
    own_wide: Array
    """(G, q, p)."""
    own_cubes: Array
    """(G, q, q, q): third derivatives in a group's effects; none with several predictors."""

    def plus(self, other: ArrowSums) -> ArrowSums:
        value, *parts = self
        more, *others = other
        return ArrowSums(value + more, *(a + b for a, b in zip(parts, others, strict=True)))

    def padded(self, num_wide: int) -> ArrowSums:
        """With zeros for the last wide parameters, the scales, which rows do not touch."""
        more = num_wide - self.wide.size
        return self._replace(
            wide=np.pad(self.wide, (0, more)),
            wide_wide=np.pad(self.wide_wide, ((0, more), (0, more))),
            own_wide=np.pad(self.own_wide, ((0, 0), (0, 0), (0, more))),
        )


def arrow_sums(
    split: Split, expected: Expected, weights: Array | None, num_groups: int
) -> ArrowSums:
    """Σ_n w_n of values, gradients and Hessians.

    Cost: n·k²·p² flops in BLAS, or those of `sparse_sums`, and n·(q + q² + pq) sparse ones.
    """
    wide, own, groups = split
    value, first, second, third = expected
    if weights is not None:
        value = weights * value
        first = weights[:, None] * first
        second = weights[:, None, None] * second
        third = None if third is None else weights * third
    num_rows, num_predictors, p = wide.shape
    q = own.shape[2]
    chooser = _chooser(groups, num_groups)
    if isinstance(wide, SparseWide):
        wide_gradient, wide_wide, own_wide = sparse_sums(wide, own, first, second, chooser)
    else:
        wide_gradient = np.zeros(p)
        wide_wide = np.zeros((p, p))
        # C_n A_n, the wide part: (n, k, p)
        if num_predictors == 1:
            bent = second[:, :, 0, None] * wide
        else:
            bent = np.einsum("nkj,njp->nkp", second, wide)
        for k in range(num_predictors):
            wide_gradient += first[:, k] @ wide[:, k]
            wide_wide += bent[:, k].T @ wide[:, k]
        beside = np.einsum("nkq,nkp->nqp", own, bent).reshape(num_rows, q * p)
        own_wide = np.asarray(chooser.T @ beside).reshape(num_groups, q, p)
    own_gradient = np.einsum("nk,nkq->nq", first, own)
    own_own = np.einsum("nkq,nkj,njr->nqr", own, second, own).reshape(num_rows, q * q)
    parts = [own_gradient, own_own]
    cubic = 0 if third is None else q
    if third is not None:
        cubes = np.einsum("n,nq,nr,ns->nqrs", third, *(own[:, 0],) * 3)
        parts.append(cubes.reshape(num_rows, q**3))
    by_group = np.asarray(chooser.T @ np.concatenate(parts, axis=1))
    return ArrowSums(
        float(value.sum()),
        wide_gradient,
        wide_wide,
        by_group[:, :q],
        by_group[:, q : q + q * q].reshape(num_groups, q, q),
        own_wide,
        by_group[:, q + q * q :].reshape(num_groups, cubic, cubic, cubic),
    )


def _chooser(groups: Indices, num_groups: int) -> Any:
    """(n, G): a one at each row's group, for sums of the rows of each."""
    num_rows = groups.size
    return csr_array(
        (np.ones(num_rows), np.asarray(groups, dtype=np.int64), np.arange(num_rows + 1)),
        shape=(num_rows, num_groups),
    )
