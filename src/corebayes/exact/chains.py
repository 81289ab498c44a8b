"""Draws of the posterior of all rows, by the quickest way that works.

In turn: independent draws in closed form for conjugate models; moves on π_w, accepted on all rows;
where too few are accepted, moves on π_w bent by what r was seen to be (`tilt`); at last proposals
around the modes of π itself. Each is exact. They differ in how much is accepted, so the first one
that accepts enough and whose ratios have no heavy tail is taken.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace

import numpy as np

from corebayes.certify.search import Found
from corebayes.coreset import Coreset, nearer
from corebayes.exact.cover import covering_all, fit_mixture, modes_of
from corebayes.exact.exactly import Exactly, closed_form
from corebayes.exact.foresight import learn_foresight
from corebayes.exact.lost import LostModeError, full_modes, searched, told_apart
from corebayes.exact.paths import Local, Paths, frame_of
from corebayes.exact.pool import CandidatePool, num_inner
from corebayes.exact.residual import Residual
from corebayes.exact.surrogate import Guess, Proposals, SurrogateChains, TooManyPassesError
from corebayes.exact.tilt import Tilt, Tilted, learn_tilt
from corebayes.rows import Rows
from corebayes.samplers.draws import systematic
from corebayes.samplers.exact import is_conjugate
from corebayes.samplers.independence import Pilot, autocorrelation_time
from corebayes.samplers.laplace import asked_posterior, fit_or_units
from corebayes.samplers.modes.search import Mode, distinct_modes, find_modes, shares_of
from corebayes.samplers.nuts import NUTS
from corebayes.samplers.pareto import pareto_k
from corebayes.samplers.posterior import Posterior
from corebayes.samplers.proposal import Component, Proposal
from corebayes.types import Array, Indices, Rng

# Steps before the first draw that is kept, and these as a share of the draws.
LEAST_WARMUP, WARMUP = 10, 0.05
# Passes of all attempts together, and of one.
MAX_PASSES, EACH_PASSES = 130, 60
LEAST_SHARE = 0.05
# Nats between the ratios of all proposals up to which the shape of their tail says nothing.
ALIKE = 1.0
# Steps of a first look where what is drawn ahead may be void.
LOOK_STEPS, LOOK_PASSES, FRAME_DRAWS, MEETING_PARTS = 60, 10, 200, 3


def draw_exactly(rng: Rng, coreset: Coreset, rows: Rows, draws: int, chains: int) -> Exactly:
    """Chains of `draws` draws each of the posterior of all rows. Cost: see `corebayes.correct`."""
    if is_conjugate(coreset.model):
        return closed_form(rng, coreset, rows, draws, chains)
    found = searched(rng, coreset, rows)
    if found is not None:
        found, never = told_apart(coreset, rows, found)
        if found.lost:
            try:
                return _with_lost_modes(rng, coreset, rows, draws, chains, found)
            except LostModeError:
                if never:
                    raise
                found = found._replace(ours=[*found.ours, *found.lost], lost=[])
    best: Exactly | None = None
    refused: TooManyPassesError | None = None
    for attempt in _attempts(rng, coreset, rows, draws, chains, found):
        try:
            found = attempt()
        except TooManyPassesError as error:
            refused = error
            continue
        if found is None:
            continue
        if found.good:
            return found
        if best is None or found.time < best.time:
            best = found
    if best is None:
        raise TooManyPassesError(str(refused))
    return best


def _with_lost_modes(
    rng: Rng, coreset: Coreset, rows: Rows, draws: int, chains: int, found: Found
) -> Exactly:
    """Draws around all modes of π, since moves on π_w never come to those that it lacks."""
    modes, posterior = full_modes(coreset, rows, found), Posterior.of(coreset)
    run = _Run(rng, Residual(coreset, rows, modes[0].fit.mean), posterior, chains, draws)
    exactly = run.around(modes, "modes of all rows")
    if not exactly.good:
        trouble = f"proposals around the modes do not cover it: {nearer(coreset)}"
        raise LostModeError.at(found.lost[0], trouble)
    return exactly


def _attempts(
    rng: Rng, coreset: Coreset, rows: Rows, draws: int, chains: int, found: Found | None
) -> Iterator[Callable[[], Exactly | None]]:
    """Better and better proposals, each made of what the ones before it have seen."""
    posterior = Posterior.of(coreset)
    modes = modes_of(rng, posterior) if found is None else found.ours
    annealed = None if found is None else found.annealed
    particles = None if annealed is None else annealed.particles
    pilot = covering_all(rng, posterior, modes, particles)
    if pilot is None:
        yield from _local_attempts(rng, coreset, rows, draws, chains, modes)
        return
    run = _Run(rng, Residual(coreset, rows, modes[0].fit.mean), posterior, chains, draws)
    yield lambda: run.pooled(posterior, pilot, None)
    for _ in range(2):
        tilt = run.learn()
        if tilt is not None:
            bent = _bent(posterior, tilt)
            again = distinct_modes(find_modes(bent, [mode.fit.mean for mode in modes]))
            better = covering_all(rng, bent, again, run.resampled(tilt))
            if better is not None:
                yield lambda bent=bent, better=better, tilt=tilt: run.pooled(bent, better, tilt)
    if found is None:
        yield run.around_full_modes
        return
    full = full_modes(coreset, rows, found)
    if full:
        # One mode would do for its own draws, and never leave it.
        yield lambda: run.around(full, "modes of all rows")


def _bent(posterior: Posterior, tilt: Tilt) -> Tilted:
    return Tilted(posterior.model, posterior.rows, posterior.weights, tilt)


def _local_attempts(
    rng: Rng, coreset: Coreset, rows: Rows, draws: int, chains: int, modes: list[Mode]
) -> Iterator[Callable[[], Exactly | None]]:
    """The same with a local kernel: a short look first, since what is ahead may be void."""
    posterior = Posterior.of(coreset)
    anchor = modes[0].fit.mean if modes else None
    sampled = NUTS(chains=chains).draw(rng, posterior, chains * FRAME_DRAWS, anchor)
    residual = Residual(coreset, rows, sampled.flat.mean(axis=0) if anchor is None else anchor)
    frame, starts = frame_of(sampled.flat, fit_or_units(posterior, anchor)), sampled.values[:, -1]
    # It covers nothing, but paths that parted meet where both take a candidate of it.
    meeting = fit_mixture(rng, sampled.flat, MEETING_PARTS) or fit_mixture(rng, sampled.flat, 1)
    around = Local(frame, meeting)
    look = _Run(rng, residual, posterior, chains, LOOK_STEPS, warmup=0)
    run = replace(look, draws=draws, warmup=None)
    with suppress(TooManyPassesError):
        starts = look.local(posterior, around, starts, None, LOOK_PASSES).values[:, -1]
        # The steps of the look have been taken on all rows, too.
        run = replace(run, warmup=max(LEAST_WARMUP, run.steps - draws - LOOK_STEPS))
    tilt = run.learn()
    if tilt is not None:
        bent = _bent(posterior, tilt)
        yield lambda: run.local(bent, around, starts, tilt, run.passes_left)
    yield lambda: run.local(posterior, around, starts, None, run.passes_left)


@dataclass
class _Run:
    """One set of chains after another, on the same rows; what each evaluated is kept."""

    rng: Rng
    residual: Residual
    posterior: Posterior
    chains: int
    draws: int
    warmup: int | None = None
    seen: list[tuple[Array, Array]] = field(default_factory=list[tuple[Array, Array]])
    """Draws and their r, of one attempt after the other."""

    @property
    def steps(self) -> int:
        warmup = self.warmup
        if warmup is None:
            warmup = max(LEAST_WARMUP, int(np.ceil(WARMUP * self.draws)))
        return self.draws + warmup

    @property
    def passes_left(self) -> int:
        """For one attempt, of those that all may take together."""
        return min(EACH_PASSES, max(1, MAX_PASSES - self.residual.num_passes))

    def pooled(self, target: Posterior, pilot: Pilot, tilt: Tilt | None) -> Exactly:
        """Independence Metropolis on the surrogate, all of it in one pass."""
        inner = num_inner(pilot.time)
        pool = CandidatePool.draw(self.rng, target, pilot.proposal, self.chains, self.steps, inner)
        return self._accept(pool, _less(tilt, pool), self.passes_left, _words(tilt))

    def around_full_modes(self) -> Exactly | None:
        """Independence Metropolis for π itself around the modes that Newton's method finds.

        Cost: some passes of N·d² flops for each mode, then one as always.
        """
        rows, model = self.residual.rows, self.posterior.model
        draws, residuals = self.seen[-1]
        heights = residuals + self.posterior.finite_log_density(draws)
        best = draws[int(np.argmax(heights))]
        try:
            with np.errstate(all="ignore"):
                fit = asked_posterior(model, rows.ask, start=best, tolerance=1e-6)
        except (FloatingPointError, np.linalg.LinAlgError):
            return None
        if not (np.all(np.isfinite(fit.mean)) and np.all(np.isfinite(fit.factor))):
            return None
        return self.around([Mode(fit, 0.0)], "mode of all rows")

    def around(self, modes: list[Mode], surrogate: str) -> Exactly:
        """Independence Metropolis for π itself, with proposals around these modes of it."""
        degrees = max(5.0, float(self.posterior.dim))
        # A mode gets at least some of the proposals, since the masses are rough.
        shares = np.maximum(shares_of(modes), LEAST_SHARE)
        parts: list[Component] = []
        for mode, share in zip(modes, shares.tolist(), strict=True):
            parts.append(Component(mode.fit, 0.7 * share))
            parts.append(Component(mode.fit, 0.3 * share, degrees))
        pool = CandidatePool.draw(self.rng, None, Proposal(tuple(parts)), self.chains, self.steps)

        def correct(states: Indices) -> Array:
            return self.posterior.finite_log_density(pool.draws(states)) - pool.log_q[states]

        return self._accept(pool, correct, self.passes_left, surrogate)

    def local(
        self, target: Posterior, around: Local, starts: Array, tilt: Tilt | None, most: int
    ) -> Exactly:
        paths = Paths.begin(self.rng, target, around, starts)
        return self._accept(paths, _less(tilt, paths), most, _words(tilt))

    def learn(self) -> Tilt | None:
        """r̂ from what the last attempt has evaluated."""
        return learn_tilt(*self.seen[-1]) if self.seen else None

    def foresight(
        self, under_way: dict[int, float], proposals: Proposals
    ) -> Callable[[Array], Array] | None:
        """r̂ from all that was evaluated, of as high a degree as foretells it."""
        seen = list(self.seen)
        if under_way:
            draws = proposals.draws(np.array(list(under_way), dtype=np.int64))
            seen.append((draws, np.array(list(under_way.values()))))
        if not seen:
            return None
        draws, residuals = (np.concatenate(parts) for parts in zip(*seen, strict=True))
        return learn_foresight(draws, residuals) or learn_tilt(draws, residuals)

    def resampled(self, tilt: Tilt) -> Array:
        """What the last attempt evaluated, in proportion to e^{r̂}: draws of about π_w e^{r̂}."""
        draws = self.seen[-1][0]
        heights = tilt(draws)
        return draws[systematic(self.rng, np.exp(heights - heights.max()), len(draws))]

    def _accept(
        self,
        proposals: Proposals,
        correction: Callable[[Indices], Array],
        max_passes: int,
        surrogate: str,
    ) -> Exactly:
        residuals: dict[int, float] = {}

        def evaluate(states: Indices) -> Array:
            r = self.residual.at(proposals.draws(states))
            residuals.update(zip(states.tolist(), r.tolist(), strict=True))
            with np.errstate(all="ignore"):
                values = r + correction(states)
            return np.where(np.isfinite(values), values, -np.inf)

        def foresee() -> Guess | None:
            ahead = self.foresight(residuals, proposals)
            if ahead is None:
                return None
            return lambda states: ahead(proposals.draws(states)) + correction(states)

        local = foresee if isinstance(proposals, Paths) else None
        surrogates = SurrogateChains.over(
            self.rng, proposals, evaluate, self.steps, max_passes, local
        )
        try:
            chains = surrogates.run()
        finally:
            evaluated = np.array(list(residuals), dtype=np.int64)
            if evaluated.size:
                seen = proposals.draws(evaluated), np.array(list(residuals.values()))
                self.seen.append(seen)
        states, accepted = chains.states[:, -self.draws :], chains.accepted[:, -self.draws :]
        values = np.array(list(chains.values.values()))
        return Exactly(
            values=proposals.draws(states.ravel()).reshape(*states.shape, -1),
            residuals=np.array([residuals[state] for state in states.ravel().tolist()]).reshape(
                states.shape
            ),
            accepted=accepted,
            how=f"{proposals.name}, {self.chains} chains accepted on all rows",
            residual=self.residual,
            acceptance=float(accepted.mean()),
            pareto_k=_tail(values),
            proposed=proposals.draws(evaluated),
            time=autocorrelation_time(values),
            surrogate=surrogate,
        )


def _tail(values: Array) -> float:
    """k̂ of what was proposed; zero at most where all ratios are alike and no tail can count."""
    shape = pareto_k(np.maximum(values, values.max() - 700.0), 1.0)
    return min(shape, 0.0) if float(np.ptp(values)) < ALIKE else shape


def _less(tilt: Tilt | None, proposals: Proposals) -> Guess:
    """−r̂ of states: what is left of v = r − r̂ when r is known."""

    def correction(states: Indices) -> Array:
        return np.zeros(states.size) if tilt is None else -tilt(proposals.draws(states))

    return correction


def _words(tilt: Tilt | None) -> str:
    return "coreset" if tilt is None else "coreset and a quadratic fit of what it misses"
