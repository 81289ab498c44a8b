"""When a coreset is close enough: two certificates, and room for the noise of the next."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from corebayes.certify.certificate import Certificate
from corebayes.certify.foreseen import foreseen_kl
from corebayes.certify.measure import measure
from corebayes.constructions import Construction, Info
from corebayes.constructions.construction import CHEAP_ROWS
from corebayes.coreset import Coreset, nearer
from corebayes.data.warn import ToleranceWarning, warn
from corebayes.models.custom.touching import may_have_modes
from corebayes.models.structure import is_structured
from corebayes.problem import Problem
from corebayes.types import Rng

# Draws of a certificate at the most, and its standard errors that a build stays below a tolerance.
DRAWS, SPARE = 4000, 5.0
# A certificate is asked for where what is foreseen of it is at most this share of the tolerance,
# which leaves it room; of the last coreset, which no other follows, at most so many times.
PROMISING, LAST = 0.6, 100.0
# Coresets without a posterior after which more rows are no help: their weights go on to be large.
MOST_IMPROPER = 2
# Passes that the next size may take, and its two certificates: with fewer left none is begun.
OF_A_SIZE, OF_CERTIFICATES = 30.0, 20.0


class Underway(Protocol):
    """A construction on its way; see `run.Run`."""

    problem: Problem
    method: Construction
    rng: Rng

    @property
    def size(self) -> int: ...

    def present(self) -> Coreset:
        """The coreset of the points that it has now."""
        ...


@dataclass
class Tolerance:
    """Asks for certificates when the construction's own KL is low enough, and not too often."""

    tol: float | None
    next_size: int = 1
    reached: bool = False
    num_improper: int = 0
    """Certificates that were withheld since there is no posterior of the weighted rows."""
    hopeless: bool = False
    """Whether there is none of few rows, so that none is asked for; see `build/spiked.py`."""

    def end(self, run: Underway, info: Info, noun: str) -> str | None:
        """Why to stop after a step: it holds, or no number of rows will be certified, or no passes
        are left for more rows."""
        spent = self._spent(run, info)
        if self.holds(run, info, last=info.done is not None or spent is not None):
            kl = f"KL(π_w ‖ π) ≤ {self.tol:g}"
            model = run.problem.model
            limited = self.limited or (is_structured(model) and may_have_modes(model))
            measured = f"measured {kl} around the modes that were found" if limited else ""
            return f"{measured or f'certified {kl}'}, twice, with {run.size} {noun}"
        close = self._close(info) or info.done is not None
        if self.num_improper >= MOST_IMPROPER or (self.hopeless and close):
            return "few rows of large weight have no posterior under this model; see certify"
        return spent

    def _spent(self, run: Underway, info: Info) -> str | None:
        """That the passes of this build are spent, if they are and a size has its answer."""
        if self.tol is None or info.kl is None or info.done is not None:
            return None
        num_rows, (_, most) = run.problem.data.num_rows, run.method.passes(None)
        left = most + (CHEAP_ROWS - run.problem.rows_scanned) / num_rows
        if left >= OF_A_SIZE + OF_CERTIFICATES:
            return None
        made = run.problem.rows_scanned / num_rows
        return (
            f"{made:.0f} of at most {most:.0f} passes are made, too many to begin another size; "
            f"KL(π_w ‖ π) is about {info.kl.value:.2g} nats"
        )

    def holds(self, run: Underway, info: Info, *, last: bool = False) -> bool:
        """Whether two certificates, each on fresh draws, say so; the `last` step is always asked,
        since its weights may be others at the same size."""
        size = run.size
        if self.tol is None or self.hopeless or not self._close(info):
            return False
        if size < self.next_size and not last:
            return False
        self.next_size = size + max(1, size // 10)
        if not self._may_pass(run, LAST if last else PROMISING):
            return False
        first = self._measured(run)
        self.num_improper += first.fault == "model"
        second = self._measured(run) if self._passes(first) else first
        both = self._passes(first) and self._passes(second)
        self.reached = both and (last or room([first, second], self.tol))
        return self.reached

    def _close(self, info: Info) -> bool:
        """Whether the construction itself says so."""
        return self.tol is not None and info.kl is not None and info.kl.value <= self.tol

    def warn_unless_reached(self, coreset: Coreset) -> None:
        """Nobody should take what stopped early for what was asked for."""
        if self.tol is None or self.reached or coreset.reason == "interrupted":
            return
        warn(
            f"tol={self.tol:g} was not reached: the {coreset.size:,} {coreset.noun} are not "
            f"certified at it (stopped: {coreset.reason}). certify measures how far they are; "
            + (
                f"give build more {coreset.noun} or time"
                if coreset.size < coreset.num_rows
                else nearer(coreset)
            )
            + ", or take a larger tol",
            ToleranceWarning,
        )

    def _may_pass(self, run: Underway, times: float) -> bool:
        """Whether chains are worth while, which of a mixed model take longest where they fail."""
        assert self.tol is not None
        if not is_structured(run.problem.model):
            return True
        rows, rng = run.problem.data, np.random.default_rng(int(run.rng.integers(2**31)))
        with rows.stage("certificates"):
            kl = foreseen_kl(rng, run.present(), rows)
        return kl.value <= times * self.tol

    def _measured(self, run: Underway) -> Certificate:
        assert self.tol is not None
        rows, seed = run.problem.data, int(run.rng.integers(2**31))
        with rows.stage("certificates"):
            # Particles take longer than all the rest of such a build; `certify` will see.
            return measure(
                run.present(), rows, draws=DRAWS, seed=seed, tol=self.tol, searching=False
            )

    def _passes(self, found: Certificate) -> bool:
        # Below what a search for modes can see, around those that were found will do.
        self.limited = found.fault == "search" and found.upper is not None
        return found.certified or self.limited


def room(found: Sequence[Certificate], tol: float) -> bool:
    """Whether a certificate on other draws, as many as it takes, will say so too.

    It asks for two standard errors at DRAWS draws; its own noise is another two, and these have
    one of their own.
    """
    values = [one.reverse_kl for one in found if one.reverse_kl is not None]
    errors = [
        kl.standard_error * np.sqrt(one.num_draws / DRAWS)
        for kl, one in zip(values, found, strict=True)
    ]
    return float(np.mean([kl.value for kl in values])) + SPARE * float(np.mean(errors)) <= tol
