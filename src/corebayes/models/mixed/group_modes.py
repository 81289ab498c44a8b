"""Modes of the effects of many groups at many draws, by Newton's method on all of them at once.

Most groups are there in three steps, and of a family that is not log-concave some take a dozen. So
after every step only those go on that still move.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from corebayes.models.mixed.group_rows import GroupRows
from corebayes.types import Array

# Newton's steps to the mode of a group's effects, and how often each may be halved.
STEPS, HALVINGS = 12, 10
# The step, in deviations of the effect given the rows, from which on there is nothing to go: nodes
# need not be at the very mode, and the last step went much nearer.
SETTLED = 1e-3
# What is added to curvatures so that they have a root: relative, and where they are zero.
ROUNDING, LEAST_CURVATURE = 1e-15, 1e-200


def effect_modes(rows: GroupRows, tau: Array) -> tuple[Array, Array]:
    """The modes of the effects (n, S, q), and the roots of their curvatures (n, S, q, q), where
    they have deviations `tau` (S, q). Cost: some eight potentials of every row at every draw."""
    shape = (*rows.fixed.shape[::2], tau.shape[1])
    modes: Array = np.zeros(shape)
    top = _height(rows, modes, tau)
    groups, draws = (one.ravel() for one in np.indices(shape[:2]))
    moving, own = rows, tau
    for step in range(STEPS):
        b, best = (modes, top) if step == 0 else (modes[groups, draws][:, None], top[groups, draws])
        moved, reached, far = _stepped(moving, b, best.reshape(b.shape[:2]), own)
        modes[groups, draws] += moved.reshape(groups.size, shape[2])
        top[groups, draws] = reached.ravel()
        still = far.ravel()
        if not still.any():
            break
        groups, draws = groups[still], draws[still]
        moving, own = rows.pairs(groups, draws), tau[draws][:, None]
    return modes, _newton(rows, modes, tau)[1]


def _height(rows: GroupRows, b: Array, tau: Array) -> Array:
    """Of the effects' density, up to a constant, (n, S)."""
    return rows.heights(b[:, :, None])[:, :, 0] - 0.5 * np.square(b / tau).sum(axis=2)


def _stepped(
    rows: GroupRows, b: Array, top: Array, tau: Array
) -> tuple[Array, Array, NDArray[np.bool_]]:
    """By how much each moves, which is none where halving leads to nothing higher, to what height,
    and whether that was far."""
    step, root = _newton(rows, b, tau)
    share, better = np.ones(top.shape), _height(rows, b + step, tau)
    for _ in range(HALVINGS):
        groups, draws = np.nonzero(better < top)
        if groups.size == 0:
            break
        share[groups, draws] *= 0.5
        shorter = b[groups, draws] + share[groups, draws, None] * step[groups, draws]
        own = np.broadcast_to(tau, b.shape)[groups, draws]
        tried = _height(rows.pairs(groups, draws), shorter[:, None], own[:, None])
        better[groups, draws] = tried[:, 0]
    share = np.where(better < top, 0.0, share)
    moved = share[:, :, None] * step
    # ‖Rᵀ step‖ with R Rᵀ the curvature
    far = np.abs(moved[:, :, None] @ root).max(axis=(2, 3)) > SETTLED
    return moved, np.maximum(better, top), far


def _newton(rows: GroupRows, b: Array, tau: Array) -> tuple[Array, Array]:
    first, second = (one[..., 0] for one in rows.slopes(b[:, :, None]))
    Z, w, precision = rows.columns, rows.weights[:, :, None], tau**-2.0
    gradient = (w * first).transpose(0, 2, 1) @ Z - precision * b
    # Where a family is not log-concave its curvature may be none: the prior's is there.
    bend = np.maximum(-second, 0.0) * w
    q = b.shape[2]
    squares = (Z[..., None] * Z[..., None, :]).reshape(*Z.shape[:2], q * q)
    curvature = (bend.transpose(0, 2, 1) @ squares).reshape(*b.shape, q)
    curvature = _invertible(curvature + precision[..., None] * np.eye(q))
    if q == 1:
        return gradient / curvature[..., 0], np.sqrt(curvature)
    step: Array = np.asarray(np.linalg.solve(curvature, gradient[..., None]), dtype=np.float64)
    root: Array = np.asarray(np.linalg.cholesky(curvature), dtype=np.float64)
    return step[..., 0], root


def _invertible(curvature: Array) -> Array:
    """A search for modes also looks at places where scales overflow and nothing bends: what is
    said there comes to no finite number, but is no error."""
    identity = np.eye(curvature.shape[-1])
    finite = np.all(np.isfinite(curvature), axis=(-2, -1), keepdims=True)
    curvature = np.where(finite, curvature, identity)
    least = ROUNDING * np.trace(curvature, axis1=-2, axis2=-1) + LEAST_CURVATURE
    return curvature + least[..., None, None] * identity
