"""What is known of a coreset whose earlier rows cannot be read any more: the errors of its steps.

A coreset that was updated or merged misses r = r_1 + r_2 + …, what each step missed of the union it
compressed (`compose/reduce.py`). Each step can be certified against that union, which was at hand
then. KL has no triangle inequality, but between Gaussians, P to Q to R, in any dimension

    KL(P ‖ R) ≤ K(K⁻¹(KL(P ‖ Q)) + K⁻¹(KL(Q ‖ R))),     K(x) = ½ (eˣ − 1 − x)

with equality for scales in one direction; to second order √KL adds up. (Searches for Gaussians that
exceed it found none, `tests/compose/test_sums.py`; it is not proved here.) Rows that come later
multiply both sides of an early step by the same likelihood, and by the chain rule of KL

    E KL(π_w(· | rows) ‖ π(· | rows)) ≤ KL(π_w ‖ π)     over rows such as π_w predicts.

So the sum of what was measured holds on average, where posteriors are about Gaussian and rows such
as the model expects; it is no measurement of all. It says so, and is withheld where the posterior
has gone too far since: where a reserve with what that misses has followed it, by more than two of
the widths within which that is known; else by more than three of its standard deviations in a step,
or one and a half over all steps, as a random walk.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, cast

import numpy as np

from corebayes.certify.certificate import Certificate
from corebayes.coreset import Coreset
from corebayes.samplers.laplace import Laplace
from corebayes.samplers.posterior import Posterior
from corebayes.types import Array, Estimate

# Standard deviations, as a root mean square over the parameters, by which a posterior may move in
# a step: new rows as many as the old ones move it by less than one.
FAR_MOVED = 3.0
# The same over all steps that nothing has followed, as the root of the sum of squares: six nights
# that are alike make 1.2. Sums were seen below the truth from 1.9 on, where all went one way.
FAR_UNFOLLOWED = 1.5
# Widths of a polynomial of what a reserve misses, as a root mean square, from any place where one
# was kept to where the posterior lies now. Sums were seen below the truth from 2.5 on.
FAR_AWAY = 2.0
# Where the provenance has these places.
PLACES = "places"
# Of a chain: beyond it nats are no numbers.
NEWTON_STEPS, LONGEST = 60, 700.0


@dataclass(frozen=True, kw_only=True)
class Step:
    """One reduction on the way to a coreset, as its provenance keeps it."""

    kind: str
    """build, update or merge."""
    names: Sequence[str]
    """The sources that came in."""
    num_rows: int
    """Rows of the union that was compressed."""
    size: int
    moved: float | None = None
    """How far the posterior moved, in standard deviations of the one before, or of the parts of a
    merge the one that moved furthest."""
    away: float | None = None
    """How far it lies from where what is kept of earlier rows was made; see `compose/places.py`."""
    followed: bool = False
    """Whether what the rows before missed was put right where it moved to."""
    kl: float | None = None
    kl_se: float | None = None
    """KL(π_w ‖ π_union), certified; None when it was not, or could not be."""
    reserve_kl: float | None = None
    reserve_se: float | None = None
    """The same of the reserve, which later steps go on from."""

    @property
    def moved_far(self) -> bool:
        """Whether it moved to where nothing was measured, and nothing followed it."""
        return self.moved is not None and self.moved > FAR_MOVED and not self.followed

    @property
    def far_away(self) -> bool:
        """Whether what followed it says little where it is."""
        return self.away is not None and self.away > FAR_AWAY

    def stored(self) -> dict[str, Any]:
        return {**asdict(self), "names": list(self.names)}


def steps_of(coreset: Coreset) -> list[Step]:
    """The steps that led to a coreset; a plain build is one, with an error that nobody noted."""
    stored: Any = coreset.provenance.get("steps")
    if stored is None:
        names = [source.name for source in coreset.sources]
        return [Step(kind="build", names=names, num_rows=coreset.num_rows, size=coreset.size)]
    return [_step(entry) for entry in stored]


def passed_steps(coreset: Coreset, names: Sequence[str]) -> list[Step]:
    """The steps as what comes after sees them: it goes on from the reserve, if there is one.

    `names` are what the coreset's sources are called from now on.
    """
    called = dict(zip((source.name for source in coreset.sources), names, strict=True))
    steps = [
        replace(step, names=[called.get(name, name) for name in step.names])
        for step in steps_of(coreset)
    ]
    if coreset.reserve is None:
        return steps
    last = steps[-1]
    return [*steps[:-1], replace(last, kl=last.reserve_kl, kl_se=last.reserve_se)]


def certified_step(step: Step, coreset: Certificate, reserve: Certificate | None) -> Step:
    """The step with the errors that its certificates found."""
    kl, finer = coreset.reverse_kl, None if reserve is None else reserve.reverse_kl
    return replace(
        step,
        kl=None if kl is None else kl.value,
        kl_se=None if kl is None else kl.standard_error,
        reserve_kl=None if finer is None else finer.value,
        reserve_se=None if finer is None else finer.standard_error,
    )


def with_certificate(
    coreset: Coreset, certificate: Certificate, reserve: Certificate | None = None
) -> Coreset:
    """The coreset with what `certify` found against all of its rows, for when they are gone.

    `update` and `merge` pass it on, and `certify(coreset)` without rows adds it up. Later steps go
    on from the reserve, if there is one, so its certificate is noted too:
    `with_certificate(coreset, certify(coreset, rows), certify(coreset.finest, rows))`. A reserve
    that nobody certified is left out: a sum has only what was measured.
    """
    for one in (certificate, reserve):
        if one is not None and one.reverse_kl is None:
            raise ValueError(f"the certificate has no distance to note: {one.verdict}")
    if coreset.reserve is None and reserve is not None:
        raise ValueError("the coreset has no reserve that a second certificate could be of")
    if reserve is None:
        coreset = replace(coreset, reserve=None, missed=None)
    # Measured against everything, so what the steps before it found counts no more.
    whole = replace(
        steps_of(coreset)[-1],
        names=[source.name for source in coreset.sources],
        num_rows=coreset.num_rows,
        moved=None,
        away=None,
    )
    steps = [certified_step(whole, certificate, reserve).stored()]
    return replace(coreset, provenance={**coreset.provenance, "steps": steps, PLACES: []})


def certificate_of_steps(coreset: Coreset, tol: float) -> Certificate:
    """The sum of the steps' own certified errors, and a verdict that says so."""
    steps = steps_of(coreset)
    trouble = _trouble(steps)
    nothing: dict[str, Any] = {"num_draws": 0, "max_rhat": 1.0, "num_divergences": 0, "tol": tol}
    if trouble is not None:
        verdict = (
            "Not certified: without the rows only the errors of its steps can be added up, and "
            f"{trouble}."
        )
        return Certificate(certified=False, verdict=verdict, **nothing)
    found = [(step.kl or 0.0, step.kl_se or 0.0) for step in steps]
    value = added_up([kl for kl, _ in found])
    upper = added_up([kl + 2.0 * error for kl, error in found])
    kl, certified = Estimate(float(value), float(upper - value) / 2.0), bool(upper <= tol)
    verdict = (
        f"{'By' if certified else 'Not certified: by'} the sum of its {len(steps)} steps the "
        f"coreset posterior ({coreset.size:,} of {coreset.num_counted:,} {coreset.noun}) is within "
        f"{kl.value:.2g} ± {kl.standard_error:.1g} nats of the full posterior (KL(π_w‖π)). Each "
        "step was certified when its rows were read; the rows before it were not read again, so "
        "this is the sum of what was found then, as distances of Gaussians add up, and no "
        "measurement against all rows: it holds for later rows such as the model expects."
    )
    return Certificate(reverse_kl=kl, certified=certified, verdict=verdict, **nothing)


def added_up(distances: Sequence[float]) -> float:
    """KL from one end to the other of a chain of Gaussians with these between them, at the most
    as far as is known.

    >>> round(added_up([0.01, 0.01]), 4)
    0.0428
    """
    steps = np.asarray(distances, dtype=np.float64)
    # Newton's steps from above, where convex K is larger.
    lengths = np.minimum(2.0 * np.sqrt(steps), 2.0 * np.log(steps + 1.0) + 4.0).clip(max=LONGEST)
    for _ in range(NEWTON_STEPS):
        slope = 0.5 * np.expm1(lengths)
        lengths = lengths - (_nats(lengths) - steps) / np.where(slope > 0.0, slope, 1.0)
    return float(_nats(np.minimum(lengths.sum(keepdims=True), LONGEST))[0])


def _nats(length: Array) -> Array:
    """K(x) = ½ (eˣ − 1 − x), exact where x is small, too."""
    series = 0.25 * length**2 * (1.0 + length / 3.0 + length**2 / 12.0 + length**3 / 60.0)
    return np.asarray(np.where(length < 1e-2, series, 0.5 * (np.expm1(length) - length)))


def moved(before: Coreset, after: Coreset) -> float | None:
    """How far the posterior has moved, in standard deviations of the one before, as a root mean
    square over the parameters; None without Laplace fits. Cost: two fits of M·d² flops."""
    old = Laplace().try_fit(Posterior.of(before))
    new = Laplace().try_fit(Posterior.of(after), None if old is None else old.mean)
    if old is None or new is None:
        return None
    shift = np.linalg.solve(old.factor, new.mean - old.mean)
    return float(np.sqrt(np.mean(np.square(shift))))


def _trouble(steps: Sequence[Step]) -> str | None:
    unknown = [place for place, step in enumerate(steps, start=1) if step.kl is None]
    if unknown:
        some = ", ".join(map(str, unknown[:5])) + ", …" * (len(unknown) > 5)
        return (
            f"of the {len(steps)} steps number {some} has no certified error: update and merge "
            "with certify=True, and note what certify finds with with_certificate"
        )
    for place, step in enumerate(steps, start=1):
        if step.moved_far:
            return (
                f"in step {place} the posterior moved by {step.moved:.1f} of its standard "
                "deviations, to where the errors of earlier steps were never measured: certify "
                "with all rows"
            )
    for place, step in enumerate(steps, start=1):
        if step.far_away:
            return (
                f"by step {place} the posterior had gone {step.away:.1f} widths from where what is "
                "kept of earlier rows was made, beyond which it says little: certify with all rows"
            )
    loose = [step for step in steps if step.moved is not None and not step.followed]
    squares = [float(step.moved or 0.0) ** 2 for step in loose if step.kind == "update"]
    joined = [float(step.moved or 0.0) ** 2 for step in loose if step.kind == "merge"]
    if (together := np.sqrt(sum(squares) + max(joined, default=0.0))) > FAR_UNFOLLOWED:
        return (
            f"the posterior moved by {together:.1f} of its standard deviations over steps without "
            "a reserve that follows it, to where the errors of earlier steps were never measured: "
            "keep the reserve that build makes, or certify with all rows"
        )
    return None


def _step(entry: Any) -> Step:
    """A step as a file may have it, or an error."""
    if not isinstance(entry, Mapping):
        raise ValueError("the steps in the coreset's provenance must be mappings")
    known = cast(Mapping[str, Any], entry)
    numbers = ("moved", "away", "kl", "kl_se", "reserve_kl", "reserve_se")
    for name in numbers:
        value = known.get(name)
        real = isinstance(value, int | float) and not isinstance(value, bool)
        if value is not None and not (real and 0.0 <= float(cast(Any, value)) < np.inf):
            raise ValueError(f"{name} of a step must be a finite number ≥ 0, got {value!r:.40}")
    names: Any = known.get("names") or []
    return Step(
        kind=str(known.get("kind")),
        names=[str(name) for name in names],
        num_rows=int(known.get("num_rows", 0)),
        size=int(known.get("size", 0)),
        followed=known.get("followed") is True,
        **{name: known.get(name) for name in numbers},
    )
