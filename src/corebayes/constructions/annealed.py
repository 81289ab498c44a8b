"""Annealed sparse variational inference: coresets of any number of rows in a handful of passes.

A posterior far away cannot be seen from the tangent space at the prior, but the posterior of a
subsample of U rows, each counted once, is near π_β ∝ exp(β Σ_n c_n f_n) π_0 with β = U/N. From
there the way is marched to β = 1. At each temperature, in the tangent space at π_{βw},

    w ← argmin_{w ≥ 0, ‖w‖_0 ≤ M} ‖Σ_n c_n g_n − Σ_i w_i g_i‖²      (nonnegative orthogonal pursuit)

over a pool of random rows and the points so far. Few points would go astray on the way, so a
generous pilot makes it. Around π_pilot ≈ π the coreset itself is selected by the same pursuit,
which answers for all sizes at once; its weights are polished by natural gradient and its points
selected anew from π_w, and only what lowers KL is kept. Where a coreset must stay far from π (few
points for many parameters), selection has to see π_w and not π; where looks are cheap, points are
then also grown one by one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from corebayes.constructions.construction import Info, drop_zeros
from corebayes.constructions.looks import Candidate, Look, make_pool
from corebayes.problem import Problem
from corebayes.samplers.exact import is_conjugate
from corebayes.samplers.laplace import prior_fit
from corebayes.scan.query import BadPotentialError, BestRows
from corebayes.tangent import Geometry, default_geometry
from corebayes.tangent.geometry import Moments, subsample
from corebayes.types import Array, Estimate, Indices, Points
from corebayes.weights import NaturalGradient
from corebayes.weights.pursuit import orthogonal_pursuit

# The pilot stands for the posterior once it is this close, in nats.
SETTLED = 0.05
# Beyond this many nats a coreset is far from the posterior.
FAR = 1.0
# The best-aligned of all rows are worth a pass when KL is above this many nats.
WORTH_A_PASS = 1e-4
# An open size starts where the pursuit promises this many nats.
FIRST_PROMISE = 0.1
# Temperatures: a misfit above the first number is a step too far, below the second one too short.
TOO_FAR, TOO_SHORT = 25.0, 0.25
# Row numbers of a subsample at most: memory must not grow with N, so then rather all rows.
MOST_NUMBERS = 2**20
# A growing coreset takes in one row, or one for every so many that it has, and gives up when it
# has not grown for some steps.
GROWTH, PATIENCE, BEYOND = 20, 10, 1.25
# Best-aligned rows that it chooses from, for each row that may enter.
CHOICE = 20
GROWTH_STEPS = NaturalGradient()


class Ground(NamedTuple):
    """A problem of few rows that stands for one of many."""

    problem: Problem
    numbers: Indices | None
    """What its rows are numbered in the other; None when they are the same."""


class State(NamedTuple):
    current: Candidate
    """The pilot on the way, then the coreset of the size at hand."""
    sizes: tuple[int, ...]
    """Rows to select, smallest first."""
    open: bool
    """Whether the size may grow, since none was asked for."""
    temperature: float
    warming: float
    """The ratio of the next temperature to this one."""
    chosen: tuple[tuple[Points, Array], ...] = ()
    """Points selected for each size around the pilot's posterior."""
    pilot: Candidate | None = None
    """The pilot that they were selected from."""
    answers: tuple[Candidate, ...] = ()
    """The coresets of the first sizes, polished."""
    far: tuple[int, ...] = ()
    """Sizes whose coresets stay far from the posterior."""
    growing: Candidate | None = None
    """A coreset that grows from nothing, for those sizes."""
    ground: Ground | None = None
    """The rows that it grows on."""
    idle: int = 0
    """Steps in a row in which it did not grow."""

    @property
    def points(self) -> Points:
        return self.current.points.take(self._kept)

    @property
    def weights(self) -> Array:
        kept = self.current.weights[self._kept]
        return kept * (self.current.weights.sum() / kept.sum())

    @property
    def _kept(self) -> Indices:
        """All points; of a pilot with more rows than were asked for, those of largest weight."""
        size = self.current.weights.size if self.open else self.sizes[-1]
        return np.argsort(-self.current.weights, kind="stable")[:size]


@dataclass(frozen=True, kw_only=True)
class AnnealedSparseVI:
    """Pursuit along a path of temperatures, then around the posterior.

    Cost: four to seven passes whatever N is, a few more when some rows count far more than others,
    and one to four for each further size of a path; for each pursuit M·(M + d) flops a row of the
    pool.
    """

    geometry: Geometry | None = None
    """How covariances are known. Default: closed form, else Hermite for a GLM, else draws."""
    polish: NaturalGradient = field(
        default_factory=lambda: NaturalGradient(num_steps=3, least_share=0.1)
    )
    """The last word on the weights."""
    pool_rows: int = 4000
    """Random rows to choose from."""
    pilot_size: int = 200
    """Rows on the way to β = 1, at most, when fewer are asked for: too few would go astray."""
    warming: float = 16.0
    """The first ratio of temperatures; it adapts to what the looks show."""
    total_rows: float = 3.0
    """Rows in the subsample for a total, in units of βN: its error is 1/√3 deviations of π_β."""
    rounds: int = 3
    """Times that the points are selected anew around their own posterior, at most."""
    tolerance: float = 1e-8
    """Stop when what is left to fit, ½ ‖residual‖² in the tangent space, is at most this."""

    def passes(self, size: int | None) -> tuple[float, float]:
        """Of a size that was asked for; an open one takes a few more each time it grows."""
        return (4.0, 7.0 if size is not None else float("inf"))

    def init(self, rng: np.random.Generator, problem: Problem, size: int | None) -> State:
        state = self.init_path(rng, problem, [size or _quadratics(problem)])
        return state._replace(open=size is None)

    def init_path(self, rng: np.random.Generator, problem: Problem, sizes: Sequence[int]) -> State:
        """The state before the first step to coresets of all these sizes.

        A subsample with every row counted once has the posterior of temperature U/N.
        """
        ordered = tuple(sorted({min(size, problem.data.num_rows) for size in sizes}))
        wanted = _first_rows(problem)
        points = make_pool(rng, problem, problem.no_points(), wanted)
        counts = points.rows.multiplicity()
        share = float(counts.sum()) / problem.data.total_count
        temperature = 1.0 if wanted >= problem.data.num_rows else min(1.0, share)
        after = _warmer(temperature, self.warming)
        weights = counts / temperature
        _check_potentials(problem, points)
        look = self._look(rng, problem, ordered, points, weights, None, temperature, after)
        pilot = Candidate(points, weights, look)
        return State(pilot, ordered, False, temperature, self.warming)

    def init_from(
        self,
        rng: np.random.Generator,
        problem: Problem,
        size: int | None,
        points: Points,
        weights: Array,
    ) -> State:
        """The state at temperature one with these points as the pilot. Cost: one look."""
        sizes = (min(size or _quadratics(problem), problem.data.num_rows),)
        look = self._look(rng, problem, sizes, points, weights, None)
        pilot = Candidate(points, weights, look)
        return State(pilot, sizes, size is None, 1.0, self.warming)

    def step(self, rng: np.random.Generator, problem: Problem, state: State) -> tuple[State, Info]:
        if state.temperature < 1.0:
            return self._warm(rng, problem, state)
        if not state.chosen:
            return self._choose(rng, problem, state)
        if len(state.answers) < len(state.sizes):
            return self._finish(rng, problem, state)
        if state.growing is not None:
            return self._grow(rng, problem, state)
        return self._enlarge(rng, problem, state)

    def _warm(self, rng: np.random.Generator, problem: Problem, state: State) -> tuple[State, Info]:
        """Fit the pilot for the next temperature; go there if it is seen to fit there too."""
        temperature = _warmer(state.temperature, state.warming)
        after = _warmer(temperature, state.warming**2)
        points, weights = self._pilot(rng, problem, state)
        last = state.current.look
        look = self._look(rng, problem, state.sizes, points, weights, last, temperature, after)
        # π_{βw} against π_β to second order; d nats are a deviation or so in every direction.
        misfit = temperature**2 * look.half_variance / problem.model.dim
        if misfit > TOO_FAR and state.warming > 1.5:
            return state._replace(warming=float(np.sqrt(state.warming))), Info(None)
        warming = state.warming**2 if misfit < TOO_SHORT else state.warming
        current = Candidate(points, weights, look)
        state = state._replace(current=current, temperature=temperature, warming=warming)
        return state, self._info(problem, state) if temperature == 1.0 else Info(None)

    def _choose(
        self, rng: np.random.Generator, problem: Problem, state: State
    ) -> tuple[State, Info]:
        """Fit the pilot again if it is not there yet; else select for every size around it."""
        current = state.current
        if current.look.half_variance > SETTLED:
            better = self._looked(rng, problem, state, *self._pilot(rng, problem, state))
            if better.lower_than(current):
                state = state._replace(current=better)
                return state, self._info(problem, state)
        if state.open:
            state = state._replace(sizes=(self._first_size(rng, problem, state),))
        chosen = self._select(rng, problem, current, state.sizes, scan=False)
        state = state._replace(chosen=tuple(chosen), pilot=current)
        return state, self._info(problem, state)

    def _first_size(self, rng: np.random.Generator, problem: Problem, state: State) -> int:
        """Where an open size starts: few points that promise to be close."""
        sizes = sorted({max(1, int(state.sizes[-1] * share)) for share in np.linspace(0.2, 1.0, 9)})
        for size, choice in zip(
            sizes, self._select(rng, problem, state.current, sizes, scan=False), strict=True
        ):
            if state.current.look.promise(*choice) <= FIRST_PROMISE:
                return size
        return sizes[-1]

    def _finish(
        self, rng: np.random.Generator, problem: Problem, state: State
    ) -> tuple[State, Info]:
        """Polish the next size; select its points anew as long as that lowers KL."""
        number = len(state.answers)
        size, (points, weights) = state.sizes[number], state.chosen[number]
        rehearsal = self._rehearsal(problem, state, points, weights)
        if rehearsal is not None:
            rough = self._looked(rng, rehearsal, state, points, weights)
            rough = self._improved(rng, problem, state, rough, size, rehearsal, scan=False)
            points, weights = rough.points, rough.weights
        best = self._looked(rng, problem, state, points, weights)
        last = number == len(state.sizes) - 1
        best = self._improved(rng, problem, state, best, size, problem, scan=last)
        state = state._replace(current=best, answers=(*state.answers, best))
        if len(state.answers) == len(state.sizes):
            ground, far = self._ground(rng, problem, state), self._far_sizes(problem, state)
            if ground is not None and far:
                seed = self._looked(rng, ground.problem, state, problem.no_points(), np.empty(0))
                state = state._replace(far=far, growing=seed, ground=ground)
        return state, self._info(problem, state)

    def _far_sizes(self, problem: Problem, state: State) -> tuple[int, ...]:
        """The sizes to grow a coreset to, row by row: those whose coresets stay far from π.

        That takes many looks. In closed form they are free of N; else only fewer points than
        parameters are worth them.
        """
        largest = problem.data.num_rows if is_conjugate(problem.model) else problem.model.dim
        return tuple(
            size
            for size, answer in zip(state.sizes, state.answers, strict=True)
            if size <= largest and self._kl(problem, state, answer).value > FAR and not state.open
        )

    def _ground(self, rng: np.random.Generator, problem: Problem, state: State) -> Ground | None:
        """All rows where looks at them are cheap; else a random pool, which is as good as all rows
        where KL counts in thousands. None where looks cost more than their passes."""
        if is_conjugate(problem.model) or problem.data.num_rows <= self.pool_rows:
            return Ground(problem, None)
        if not self._looks_cost_passes(problem, state.sizes):
            return None
        pool = make_pool(rng, problem, problem.no_points(), self.pool_rows)
        counts = pool.rows.multiplicity()
        scale = problem.data.total_count / counts.sum()
        return Ground(_problem_of(problem, pool, scale * counts), pool.indices)

    def _improved(
        self,
        rng: np.random.Generator,
        problem: Problem,
        state: State,
        best: Candidate,
        size: int,
        judge: Problem,
        *,
        scan: bool,
    ) -> Candidate:
        """Weights polished, then points selected anew from π_w, as long as that lowers KL.

        The `judge` says what the totals are: the problem itself or its rehearsal.
        """
        for _ in range(self.rounds):
            before = best.look.half_variance
            best = self._polished(rng, judge, state, best, self.polish)
            now = best.look.half_variance
            if now <= self.tolerance:
                break
            if now <= 0.01 * before:
                # The points are right and the weights still on their way.
                continue
            (again,) = self._select(rng, problem, best, [size], scan=scan)
            if best.look.promise(*again) > 0.8 * now:
                break
            candidate = self._looked(rng, judge, state, *again)
            if not candidate.lower_than(best):
                break
            best = candidate
        return best

    def _rehearsal(
        self, problem: Problem, state: State, points: Points, weights: Array
    ) -> Problem | None:
        """The pilot in the place of all rows: looks at coresets that are much further from the
        posterior need no pass then. None where it is too far, or passes are not what looks cost."""
        pilot = state.pilot
        if pilot is None or pilot.look.half_variance > SETTLED:
            return None
        if pilot.look.promise(points, weights) < 10.0 * pilot.look.half_variance:
            return None
        if problem.data.num_rows <= self.pool_rows or is_conjugate(problem.model):
            return None
        if not self._looks_cost_passes(problem, state.sizes):
            return None
        return _problem_of(problem, pilot.points, pilot.weights)

    def _looks_cost_passes(self, problem: Problem, sizes: tuple[int, ...]) -> bool:
        """Whether a pass is most of a look: not where draws of π_w are by NUTS."""
        on_the_way = self._geometry(problem, sizes, arrived=False)
        return self._geometry(problem, sizes) == on_the_way

    def _grow(self, rng: np.random.Generator, problem: Problem, state: State) -> tuple[State, Info]:
        """Let some more points in from where the growing coreset stands, and move all weights.

        At each size asked for, the grown coreset counts if its KL is lower.
        """
        assert state.growing is not None and state.ground is not None
        ground, numbers = state.ground
        points, weights, look = state.growing
        number = max(1, weights.size // GROWTH)
        # The pursuit of what is missing: the best-aligned row and, if more may enter, the best
        # complements to it.
        residual = look.residual(points, weights)
        query = BestRows(look.space, residual, CHOICE * number, np.sort(points.indices))
        best = ground.ask(query).points
        (choice,) = orthogonal_pursuit(look.space, best.rows, residual, [number])
        points = points.append(best.take(choice.taken))
        start = np.append(weights, np.zeros(choice.taken.size))
        seen = Look.at(look.space, look.total, points, start)
        grown = self._polished(rng, ground, state, Candidate(points, start, seen), GROWTH_STEPS)
        idle = 0 if grown.weights.size > weights.size else state.idle + 1
        # Points leave again, so a little beyond the largest size a lower KL may still be found.
        ended = idle == PATIENCE or grown.weights.size >= BEYOND * state.far[-1]
        state = state._replace(growing=None if ended else grown, idle=idle)
        if numbers is not None:
            if idle or grown.weights.size not in state.far:
                return state, self._info(problem, state)
            points = Points(numbers[grown.points.indices], grown.points.rows)
            grown = self._looked(rng, problem, state, points, grown.weights)
        answers = tuple(
            grown if 0 < grown.weights.size <= size and grown.lower_than(answer) else answer
            for size, answer in zip(state.sizes, state.answers, strict=True)
        )
        state = state._replace(answers=answers, current=answers[-1])
        return state, self._info(problem, state)

    def _enlarge(
        self, rng: np.random.Generator, problem: Problem, state: State
    ) -> tuple[State, Info]:
        """A larger coreset, when the size is open."""
        last = state.sizes[-1]
        size = min(last + max(1, last // 3), problem.data.num_rows)
        state = state._replace(sizes=(size,), answers=())
        chosen = self._select(rng, problem, state.current, [size])
        return self._finish(rng, problem, state._replace(chosen=tuple(chosen)))

    def _info(self, problem: Problem, state: State) -> Info:
        if state.open and not state.answers:
            # A pilot, which may be all rows, is no answer, however close.
            return Info(None)
        kl = self._kl(problem, state, state.current)
        if len(state.answers) < len(state.sizes) or state.growing is not None:
            return Info(kl)
        if state.current.look.half_variance <= self.tolerance:
            return Info(kl, "nothing is left to fit that the tangent space can see")
        if state.open and state.sizes[-1] < problem.data.num_rows:
            return Info(kl)
        return Info(kl, f"KL no longer falls at size {state.sizes[-1]}")

    def _pilot(
        self, rng: np.random.Generator, problem: Problem, state: State
    ) -> tuple[Points, Array]:
        size = max(state.sizes[-1], min(_quadratics(problem), self.pilot_size))
        return self._select(rng, problem, state.current, [size], scan=False, overshoot=1.0)[0]

    def _select(
        self,
        rng: np.random.Generator,
        problem: Problem,
        current: Candidate,
        sizes: Sequence[int],
        *,
        scan: bool = True,
        overshoot: float = 2.0,
    ) -> list[tuple[Points, Array]]:
        """Points and weights of each size by pursuit, from where the candidate stands.

        The pool is random rows, the candidate's own and, when `scan` and some are not in the pool,
        the best-aligned of all rows.
        """
        points, look = current.points, current.look
        if points.indices.size > self.pool_rows:
            # The first subsample: rows as random as the pool's.
            points = problem.no_points()
        unseen = problem.data.num_rows > self.pool_rows
        if scan and unseen and look.half_variance > WORTH_A_PASS:
            residual = look.residual(current.points, current.weights)
            query = BestRows(look.space, residual, max(sizes), np.sort(points.indices))
            points = points.append(problem.ask(query).points)
        pool = make_pool(rng, problem, points, self.pool_rows)
        choices = orthogonal_pursuit(
            look.space, pool.rows, look.total.element, sizes, overshoot=overshoot
        )
        if choices[-1].taken.size == 0:
            raise ValueError(
                "no row says anything about the parameters: every potential is constant in θ"
            )
        return [(pool.take(choice.taken), choice.weights) for choice in choices]

    def _polished(
        self,
        rng: np.random.Generator,
        problem: Problem,
        state: State,
        candidate: Candidate,
        steps: NaturalGradient,
    ) -> Candidate:
        """The candidate after natural-gradient steps, its points of weight zero dropped."""
        # All looks share their random numbers, so that KL is compared along one smooth curve.
        seed = int(rng.integers(2**63))
        points, last = candidate.points, candidate.look

        def look(weights: Array) -> tuple[Moments, Look]:
            fresh = np.random.default_rng(seed)
            seen = self._look(fresh, problem, state.sizes, points, weights, last)
            return seen.moments(points), seen

        weights, seen = steps.descend(look, candidate.weights, (last.moments(points), last))
        if np.all(weights > 0.0):
            return Candidate(points, weights, seen)
        points, weights = drop_zeros(points, weights)
        return Candidate(points, weights, Look.at(seen.space, seen.total, points, weights))

    def _looked(
        self,
        rng: np.random.Generator,
        problem: Problem,
        state: State,
        points: Points,
        weights: Array,
    ) -> Candidate:
        look = self._look(rng, problem, state.sizes, points, weights, state.current.look)
        return Candidate(points, weights, look)

    def _look(
        self,
        rng: np.random.Generator,
        problem: Problem,
        sizes: tuple[int, ...],
        points: Points,
        weights: Array,
        last: Look | None,
        temperature: float = 1.0,
        after: float = 1.0,
    ) -> Look:
        """The look from π_{βw}, with a total good enough for the temperature after this one."""
        # On the way a Gaussian fit will do; at β = 1 draws are of π_w itself.
        geometry = self._geometry(problem, sizes, arrived=temperature == 1.0)
        start = None if last is None else last.space.location
        space = geometry.space(rng, problem, points, temperature * weights, start)
        rows = None
        if after < 1.0:
            wanted = max(self.pool_rows, int(self.total_rows * after * problem.data.num_rows))
            rows = subsample(rng, problem, wanted) if wanted <= MOST_NUMBERS else None
        return Look.at(space, geometry.total(problem, space, rows), points, weights)

    def _kl(self, problem: Problem, state: State, candidate: Candidate) -> Estimate:
        look = candidate.look
        residual = look.residual(candidate.points, candidate.weights)
        return self._geometry(problem, state.sizes).kl(problem, look.space, residual)

    def _geometry(
        self, problem: Problem, sizes: tuple[int, ...], *, arrived: bool = True
    ) -> Geometry:
        return self.geometry or default_geometry(problem, sizes[-1], few_looks=arrived)


def _problem_of(problem: Problem, points: Points, weights: Array) -> Problem:
    """The same model on these rows, each counted as often as its weight says."""
    return problem.of_points(points, weights)


def _check_potentials(problem: Problem, points: Points) -> None:
    """Name a row that has no log-likelihood at the prior's mode, before a fit stumbles over it."""
    model = problem.model
    mode = prior_fit(model, problem.no_points().rows).mean
    bad = np.flatnonzero(~np.isfinite(model.potentials(mode[None, :], points.rows)[:, 0]))
    if bad.size:
        raise BadPotentialError(int(points.indices[bad[0]]))


def _first_rows(problem: Problem) -> int:
    """Rows of the first subsample: enough for the parameters, and a share of all rows, so that the
    way from there is no longer for more rows."""
    share = min(problem.data.num_rows // 400, 20_000)
    return max(500, 20 * problem.model.dim, share)


def _warmer(temperature: float, ratio: float) -> float:
    """The temperature after this one; what would end just below one goes all the way."""
    warmer = ratio * temperature
    return 1.0 if warmer > 0.5 else warmer


def _quadratics(problem: Problem) -> int:
    """Points that match every quadratic in θ: d(d + 3)/2 + 1 (Carathéodory)."""
    dim = problem.model.dim
    return min(dim * (dim + 3) // 2 + 1, problem.data.num_rows)
