"""Given derivatives against differences, so that a wrong sign is an error and not a bad fit.

Differences have errors of their own, so they never give a number here but an interval: between the
slopes to the left and to the right, which a kink may make different, and wider by what round-off
can do and by what a longer step shows of higher orders. Of several steps the one with the narrowest
interval counts. What lies outside is wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from corebayes.types import Array, Indices

Outputs = Callable[[Array], Array]
"""Points (S, d) to values (S, m)."""

# Steps, in units of the length in which the values change by about one.
STEPS = tuple(10.0**-power for power in range(8))
# Outside of the interval by more than this share of the terms that it adds up is wrong; for what
# was computed in single precision, or is compared with differences of differences, it is the other.
TOLERANCE, ROUGH = 1e-4, 1e-2
# Points in those units, one close by and one far out.
SPREADS = (1.0, 0.3, 3.0)
# Columns of a Hessian that are looked at, at most.
MOST_COLUMNS = 60


class Given(NamedTuple):
    """A function and the derivatives that were given with it."""

    name: str
    meaning: str
    """What the gradient must be the gradient of."""
    prefix: str
    """Of the names of the derivatives."""
    values: Outputs
    """The function's terms: it is their sum."""
    gradient: Callable[[Array], Array] | None
    hessian: Callable[[Array], Array] | None


def check_given(given: Given, names: Sequence[str]) -> None:
    """Refuse a gradient that differs from differences at one of three points, or a Hessian that
    does at two: at one the function may have a kink, where a right Hessian jumps.

    Cost: about 170·d values, and 48·d gradients for a Hessian, of at most 60 columns.
    """
    if given.gradient is None and given.hessian is None:
        return
    with np.errstate(all="ignore"):
        base = _finite_base(given, len(names))
        if base is None:
            return
        lengths = lengths_of(given.values, base)
        points = points_around(base, lengths, lambda theta: _is_finite(given, theta))
        if not points and given.gradient is not None and np.isnan(given.gradient(base)).any():
            place = (int(np.argmax(np.isnan(given.gradient(base)))),)
            raise _refusal(given, "gradient", place, names, base, "nan", "a number")
        refusals: list[ValueError] = []
        for theta in points:
            sizes = _check_gradient(given, theta, lengths, names)
            try:
                _check_hessian(given, theta, lengths, sizes, names)
            except ValueError as refusal:
                refusals.append(refusal)
        if len(refusals) >= min(2, len(points)) > 0:
            raise refusals[0]


def _finite_base(given: Given, dim: int) -> Array | None:
    """A place to look around from, the origin if it will do."""
    for start in (0.0, 0.5, -0.5, 1.0, -1.0, 0.01):
        base = np.full(dim, start)
        if np.all(np.isfinite(given.values(base[None, :]))):
            return base
    return None


def _is_finite(given: Given, theta: Array) -> bool:
    answers = [given.values(theta[None, :])]
    answers += [function(theta) for function in (given.gradient, given.hessian) if function]
    return all(bool(np.all(np.isfinite(answer))) for answer in answers)


def _check_gradient(given: Given, theta: Array, lengths: Array, names: Sequence[str]) -> Array:
    """How much there is to add up for each entry, (d,)."""
    if given.gradient is None:
        return np.zeros(theta.size)
    every = np.arange(theta.size)
    bounds, size = bounds_of(given.values, theta, lengths, every).total()
    gradient = np.asarray(given.gradient(theta), dtype=np.float64)
    place = find_wrong(gradient[:, None], bounds, size[:, None])
    if place is not None:
        entry = place[0]
        found = 0.5 * (bounds.low[entry, 0] + bounds.high[entry, 0])
        raise _refusal(
            given, "gradient", (entry,), names, theta, f"{gradient[entry]:.6g}", f"{found:.6g}"
        )
    return size


def _check_hessian(
    given: Given, theta: Array, lengths: Array, sizes: Array, names: Sequence[str]
) -> None:
    if given.hessian is None:
        return
    hessian = np.asarray(given.hessian(theta), dtype=np.float64)
    columns = np.unique(np.linspace(0, theta.size - 1, MOST_COLUMNS).astype(np.int64))
    low, high = bounds_of(_slopes(given, lengths), theta, lengths, columns, sizes)
    if given.gradient is None:
        # Differences of differences have an error that no interval shows: a shorter step does.
        short = bounds_of(_slopes(given, 0.3 * lengths), theta, lengths, columns, sizes)
        apart = 2.0 * np.maximum(np.abs(low - short.low), np.abs(high - short.high))
        low, high = np.minimum(low, short.low) - apart, np.maximum(high, short.high) + apart
    scales = np.sqrt(np.abs(np.diag(hessian)))
    size = np.maximum(np.outer(scales[columns], scales), np.maximum(np.abs(low), np.abs(high)))
    # A row of the Hessian and a column are the same numbers, and both must be right.
    for rows, other in ((hessian[columns], False), (hessian.T[columns], True)):
        place = find_wrong(rows, Bounds(low, high), size, rough=given.gradient is None)
        if place is not None:
            found = 0.5 * (low[place] + high[place])
            entry = int(columns[place[0]]), place[1]
            entry = entry[::-1] if other else entry
            value = f"{hessian[entry]:.6g}"
            raise _refusal(given, "hessian", entry, names, theta, value, f"{found:.6g}")


def _slopes(given: Given, lengths: Array) -> Outputs:
    """The given gradient, which was found right, or central differences."""
    gradient = given.gradient
    if gradient is not None:
        return lambda points: np.stack([gradient(point) for point in points])
    steps = 1e-3 * np.diag(lengths)

    def differences(points: Array) -> Array:
        around = np.concatenate([points[:, None] + steps, points[:, None] - steps])
        values = given.values(around.reshape(-1, lengths.size)).sum(axis=1)
        up, down = values.reshape(2, len(points), lengths.size)
        return (up - down) / (2e-3 * lengths)

    return differences


def _refusal(
    given: Given,
    kind: str,
    place: tuple[int, ...],
    names: Sequence[str],
    theta: Array,
    value: str,
    found: str,
) -> ValueError:
    entry = f"entry {place[0]}" if len(place) == 1 else f"entry {place}"
    parameters = " and ".join(repr(names[position]) for position in place)
    at = ", ".join(f"{number:.4g}" for number in theta[:5]) + (", …" if theta.size > 5 else "")
    return ValueError(
        f"{given.prefix}{kind}: {entry} (parameter {parameters}) is {value} "
        f"at θ = ({at}), but differences of {given.name} give {found}; it must be the {kind} of "
        f"{given.meaning}. Leave it out to have it computed"
    )


class Bounds(NamedTuple):
    """Between what the derivatives lie, (d, m): by coordinate and output."""

    low: Array
    high: Array

    def total(self) -> tuple[Bounds, Array]:
        """Bounds (d, 1) of the sum of the outputs, and how much there is to add up, (d,)."""
        size = np.maximum(np.abs(self.low), np.abs(self.high)).sum(axis=1)
        low, high = self.low.sum(axis=1), self.high.sum(axis=1)
        return Bounds(low[:, None], high[:, None]), size


def lengths_of(function: Outputs, base: Array) -> Array:
    """How far one can go from `base` along each axis until the values change by one on average."""
    here, lengths = function(base[None, :]), 2.0 ** np.arange(-30.0, 31.0)
    found = np.ones(base.size)
    for axis in range(base.size):
        points = np.repeat(base[None, :], 2 * lengths.size, axis=0)
        points[:, axis] += np.concatenate([lengths, -lengths])
        change = np.abs(function(points) - here).mean(axis=1).reshape(2, -1).max(axis=0)
        inside = np.flatnonzero(~(change <= 1.0))
        # Where nothing ever changes there is no length to be found.
        if inside.size:
            found[axis] = lengths[max(int(inside[0]) - 1, 0)]
    return found


def points_around(base: Array, lengths: Array, usable: Callable[[Array], bool]) -> list[Array]:
    """Three points at random places that are always the same, nearer where they are not usable."""
    rng = np.random.default_rng(20190101)
    points: list[Array] = []
    for spread in SPREADS:
        offset = spread * lengths * rng.uniform(0.3, 1.0, base.size)
        offset *= rng.choice([-1.0, 1.0], base.size)
        for _ in range(30):
            if usable(base + offset):
                points.append(base + offset)
                break
            offset = 0.5 * offset
    return points


def bounds_of(
    function: Outputs, theta: Array, lengths: Array, columns: Indices, sizes: Array | float = 0.0
) -> Bounds:
    """Between what the derivatives in these coordinates lie. Cost: 16 values for each.

    `sizes` is what the outputs add up, where that is more than what they are.
    """
    here = function(theta[None, :])
    noise = _noise(function, theta, lengths, here, sizes)
    shape = columns.size, here.shape[1]
    best, longer = np.full(shape, np.inf), np.full(shape, np.nan)
    low, high = np.full(shape, -np.inf), np.full(shape, np.inf)
    axes = np.eye(theta.size)[columns]
    for share in STEPS:
        up, down = theta + share * lengths * axes, theta - share * lengths * axes
        ahead = (up - theta).sum(axis=1)[:, None]
        behind = (theta - down).sum(axis=1)[:, None]
        with np.errstate(all="ignore"):
            right, left = (function(up) - here) / ahead, (here - function(down)) / behind
            # Ten times the step has a hundred times the error of third order.
            middle = 0.5 * (left + right)
            unsure = 4.0 * noise / np.minimum(ahead, behind) + np.abs(middle - longer) / 30.0
            longer = middle
            better = np.abs(right - left) + unsure < best
        low = np.where(better, np.minimum(left, right) - unsure, low)
        high = np.where(better, np.maximum(left, right) + unsure, high)
        best = np.where(better, np.abs(right - left) + unsure, best)
    return Bounds(low, high)


def find_wrong(
    given: Array, bounds: Bounds, size: Array, *, rough: bool = False
) -> tuple[int, ...] | None:
    """Where a given derivative lies furthest outside of its bounds; None when it does nowhere."""
    rough = rough or (bool(np.any(given)) and bool(np.all(given == given.astype(np.float32))))
    unlike = np.maximum(bounds.low - given, given - bounds.high)
    allowed = (ROUGH if rough else TOLERANCE) * size + 1e-12 * size.max(initial=0.0)
    wrong = ~(unlike <= allowed) & np.isfinite(bounds.low) & np.isfinite(bounds.high)
    if not wrong.any():
        return None
    share = np.where(wrong, unlike / np.maximum(size, 1e-300), -np.inf)
    share[np.isnan(share)] = np.inf
    return tuple(int(place) for place in np.unravel_index(int(np.argmax(share)), share.shape))


def _noise(
    function: Outputs, theta: Array, lengths: Array, here: Array, sizes: Array | float
) -> Array:
    """What round-off does to the values, (1, m): by their size, and by how they rattle."""
    close = theta + 1e-7 * np.arange(8.0)[:, None] * lengths
    with np.errstate(all="ignore"):
        rattle = np.abs(np.diff(function(close), 3, axis=0)).max(axis=0, keepdims=True)
        single = np.any(here) and np.all(here == here.astype(np.float32))
    precision = np.finfo(np.float32 if single else np.float64).eps
    return np.nan_to_num(rattle) + 4.0 * precision * np.maximum(np.abs(here), sizes)
