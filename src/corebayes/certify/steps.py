"""What is known of a coreset whose earlier rows cannot be read any more: the errors of its steps.

A coreset that was updated or merged misses r = r_1 + r_2 + …, what each step missed of the union it
compressed (`compose/reduce.py`). Each step can be certified against that union, which was at hand
then, and of Gaussians P, Q, R the distances from P to Q and from Q to R bound that from P to R
(`chain.py`). Rows that come later multiply both sides of an early step by the same likelihood, and
by the chain rule of KL

    E KL(π_w(· | rows) ‖ π(· | rows)) ≤ KL(π_w ‖ π)     over rows such as π_w predicts.

Rows of another kind move the posterior to where the error of an early step is another one; by how
much it may have grown there is known (`compose/places.py`), and is put into the sum. So the sum
holds where posteriors are about Gaussian; it is no measurement of all, and says so. It is withheld
where the posterior of a model whose potentials are not quadratic has gone too far since.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, cast

import numpy as np

from corebayes.certify.certificate import Certificate
from corebayes.certify.chain import added_up
from corebayes.coreset import Coreset
from corebayes.types import Estimate

# Where the provenance has the places of earlier steps.
PLACES = "places"


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
    away: float | None = None
    """How far the posterior lies from where the errors of earlier steps are known, in widths."""
    growth: float | None = None
    """By how much these may have grown here; None where that is not known."""
    far: bool = False
    """Whether it lies so far away that they say little."""
    kl: float | None = None
    kl_se: float | None = None
    """KL(π_w ‖ π_union), certified; None when it was not, or could not be."""
    reserve_kl: float | None = None
    reserve_se: float | None = None
    """The same of the reserve, which later steps go on from."""

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
    for one in (certificate, *([] if reserve is None else [reserve])):
        if not isinstance(one, Certificate):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError(f"a certificate is needed, as certify gives it, got {one!r:.60}")
        if one.reverse_kl is None:
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
        away=None,
        growth=None,
        far=False,
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
    # The last was measured where the posterior is.
    grown = [*[steps[-1].growth or 1.0] * (len(steps) - 1), 1.0]
    found = [(g * (s.kl or 0.0), g * (s.kl_se or 0.0)) for g, s in zip(grown, steps, strict=True)]
    value = added_up([kl for kl, _ in found])
    upper = added_up([kl + 2.0 * error for kl, error in found])
    kl, certified = Estimate(float(value), float(upper - value) / 2.0), bool(upper <= tol)
    verdict = (
        f"{'By' if certified else 'Not certified: by'} the sum of its {len(steps)} steps the "
        f"coreset posterior ({coreset.size:,} of {coreset.num_counted:,} {coreset.noun}) is within "
        f"{kl.value:.2g} ± {kl.standard_error:.1g} nats of the full posterior (KL(π_w‖π)). Each "
        "step was certified when its rows were read; the rows before it were not read again, so "
        "this is the sum of what was found then, as distances of Gaussians add up"
        + _told(grown[0])
        + ", and no measurement against all rows."
    )
    return Certificate(reverse_kl=kl, certified=certified, verdict=verdict, **nothing)


def _told(growth: float) -> str:
    if growth <= 1.0:
        return ""
    return f" ({growth:.2g} times as much of earlier steps, since the posterior has moved)"


def _trouble(steps: Sequence[Step]) -> str | None:
    unknown = [place for place, step in enumerate(steps, start=1) if step.kl is None]
    if unknown:
        some = ", ".join(map(str, unknown[:5])) + ", …" * (len(unknown) > 5)
        return (
            f"of the {len(steps)} steps number {some} has no certified error: update and merge "
            "with certify=True, and note what certify finds with with_certificate"
        )
    for place, step in enumerate(steps, start=1):
        if step.far:
            return (
                f"by step {place} the posterior had gone {step.away or 0.0:.1f} widths from where "
                "the errors of earlier steps are known, beyond which they say little: certify with "
                "all rows"
            )
    if len(steps) > 1 and steps[-1].growth is None:
        return (
            "how far the posterior has moved since is not known, nor what has become of the errors "
            "of earlier steps: certify with all rows"
        )
    return None


def _step(entry: Any) -> Step:
    """A step as a file may have it, or an error."""
    if not isinstance(entry, Mapping):
        raise ValueError("the steps in the coreset's provenance must be mappings")
    known = cast(Mapping[str, Any], entry)
    numbers = ("away", "growth", "kl", "kl_se", "reserve_kl", "reserve_se")
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
        far=known.get("far") is True,
        **{name: known.get(name) for name in numbers},
    )
