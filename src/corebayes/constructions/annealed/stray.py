"""The last look around: modes that only the coreset has.

Points are fitted where π_w lies, at the modes of π, and at a few places far away. Few of them can
still make a mode somewhere else, which no look from there would ever see: on a frequency with
aliases fifteen rows had half of their mass at one that 400 rows rule out. So particles are annealed
from the prior to π_w, as a certificate does; where they find a mode that nobody watched it is
watched from then on, by looks and by the guards, and points are selected again around the pilot and
around π_w. What is left when that no longer helps is said: of every mode the shares

    p_k ∝ π_w(θ_k) |Σ_k|^½,      q_k ∝ p_k e^{r(θ_k)},      r what all rows say and π_w does not,

and, since so few rows may also give its modes another shape, KL(π_w ‖ π) at draws around all of
them: a mode with a share of 10⁻⁵ that all rows rule out by a hundred nats is a thousandth of a nat,
and few rows may have dozens of them.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple, TypeVar

import numpy as np

from corebayes.constructions.annealed import grow
from corebayes.constructions.annealed.grow import Arrived
from corebayes.constructions.annealed.look import Look
from corebayes.constructions.annealed.measured import heights_of
from corebayes.constructions.annealed.polish import Polisher, improved
from corebayes.constructions.annealed.view import Goal, View
from corebayes.constructions.construction import Info
from corebayes.models.custom.touching import may_have_modes
from corebayes.samplers.kl import MEASURED, kl_at, weighted_draws
from corebayes.samplers.modes.high_places import with_high_modes
from corebayes.samplers.modes.places import (
    MOST_BUILT_DIM,
    all_places,
    most_fits,
    spread,
)
from corebayes.samplers.modes.search import (
    Mode,
    lies_in,
    log_volume,
    modes_of_particles,
    shares_of,
    shares_of_logs,
)
from corebayes.samplers.modes.spikes import find_spike
from corebayes.samplers.modes.tempering import Annealed
from corebayes.samplers.posterior import Posterior
from corebayes.samplers.resampling import MAX_PARETO_K
from corebayes.scan.heights import log_posterior
from corebayes.types import Array, Rng, WeightedPoints

AnyState = TypeVar("AnyState")

# Modes with a smaller share of π_w do not matter, however deep they are for all rows.
NEGLIGIBLE = 1e-7
# Modes that are watched have at least this share, or cost as many nats; so many more at a time.
NOTABLE, MOST_STRAYS = 1e-4, 10
# Times that new modes are watched and points selected again, at most, and in a row without half of
# the error to show for it.
ROUNDS, PATIENCE = 6, 2
# Nats between the shares of modes under π_w and π below which nothing is done.
FINE = 1e-3
# Nats between π_w and π that are said. They are known to a fifth or so, which is why what is said
# begins below 0.05.
FAR = 0.04


class Settle(NamedTuple):
    """Every size has an answer; modes of their own are looked for, one answer after the other."""

    goal: Goal
    answers: tuple[Look, ...]
    pilot: Look
    grown: bool
    settled: int = 0
    warning: str | None = None

    @property
    def points(self) -> WeightedPoints:
        return self.goal.shown(self.answers[-1].points)


def may_stray(view: View) -> bool:
    """Whether π_w may have modes of its own, and particles can find them."""
    model = view.problem.model
    return may_have_modes(model) and model.dim <= MOST_BUILT_DIM


def settling(view: View, state: AnyState, info: Info) -> tuple[AnyState | Settle, Info]:
    """The state, or, where every size has an answer, one that looks for modes of their own."""
    if not (isinstance(state, Arrived) and may_stray(view)):
        return state, info
    return Settle(state.goal, state.answers, state.pilot, state.grown), Info(None)


def step(view: View, state: Settle, polisher: Polisher) -> tuple[Settle | Arrived, Info]:
    """The next answer, with no mode of its own if so many rows can be without.

    Cost: a thousand particles on M rows, and a few looks for each time that a mode is found.
    """
    number = state.settled
    view = replace(view, size=state.goal.sizes[-1])
    answer, warning = _settled(view, state, state.goal.sizes[number], polisher)
    answers = (*state.answers[:number], answer, *state.answers[number + 1 :])
    state = state._replace(answers=answers, settled=number + 1, warning=warning)
    if state.settled < len(answers):
        return state, view.info(state.goal, answers[-1], state.pilot)
    arrived = Arrived(state.goal, answers, state.pilot, state.grown)
    info = grow.last_info(view, arrived, polisher.tolerance)
    if warning is None and info.kl is not None and info.kl.value > FAR:
        warning = _far_words(info.kl.value, "by what the build itself can see of it")
        warning += _more(view, state.goal.sizes[number])
    return arrived, info._replace(warning=warning)


def _settled(view: View, state: Settle, size: int, polisher: Polisher) -> tuple[Look, str | None]:
    best, least, seen, idle = state.answers[state.settled], np.inf, None, 0
    answer, several = best, False
    for _ in range(ROUNDS):
        posterior = Posterior(view.problem.model, answer.points.rows, answer.points.weights)
        around = modes_around(view.rng, posterior, view.problem.watched)
        if not around.modes:
            return answer, None
        shares = _between(view, answer.points, around.modes)
        notable = np.count_nonzero(np.maximum(shares.ours, shares.full) > NOTABLE)
        several |= bool(notable > 1)
        idle = 0 if shares.kl < 0.5 * least else idle + 1
        if shares.kl < least:
            best, least, seen = answer, shares.kl, (around, shares)
        if least <= FINE or idle == PATIENCE:
            break
        strays = _strays(view, around.modes, shares)
        if strays:
            view.problem.watch(np.array([mode.fit.mean for mode in strays]))
        answer = _again(view, state, answer, size, polisher)
    assert seen is not None
    return best, _words(view, best.points, *seen, size, several)


class Around(NamedTuple):
    """The modes of π_w that count, the heaviest first, and particles of it."""

    modes: list[Mode]
    annealed: Annealed | None


def _words(
    view: View,
    points: WeightedPoints,
    around: Around,
    shares: Between,
    size: int,
    several: bool,
) -> str | None:
    """What is wrong with so few rows, if much is. Cost: one pass of N potentials a draw."""
    model = view.problem.model
    posterior = Posterior(model, points.rows, points.weights)
    usual = int(np.argmax(shares.full[: len(around.modes)]))
    spike = find_spike(posterior, around.modes, usual)
    if spike is not None:
        words = spike.words(model, points.indices, points.weights)
        return (
            f"the coreset posterior cannot be certified: {words}. Chains may stay around its modes "
            "and not come there. Draw with cb.correct, or keep the parameter from that end"
        )
    if not several:
        return None
    whole = _distance(view, points, around)
    if max(whole, shares.kl) <= FAR:
        return None
    if shares.kl > 0.5 * whole:
        return shares.words() + _more(view, size)
    return _far_words(whole, "its modes have another shape") + _more(view, size)


def _far_words(kl: float, why: str) -> str:
    return f"the coreset posterior is about {kl:.2g} nats from that of all rows (KL(π_w‖π)): {why}"


def _more(view: View, size: int) -> str:
    return ". Build with a larger size" if size < view.problem.data.num_rows else ""


def _distance(view: View, points: WeightedPoints, around: Around) -> float:
    """KL(π_w ‖ π) at weighted draws around the modes of π_w; at particles of it where those do not
    cover it."""
    modes = around.modes
    posterior = Posterior(view.problem.model, points.rows, points.weights)
    drawn = weighted_draws(view.rng, posterior, modes)
    draws, weights = drawn.flat, np.ones(MEASURED)
    if drawn.weights is not None and drawn.pareto_k <= MAX_PARETO_K:
        weights = drawn.weights.ravel()
    elif around.annealed is not None:
        particles = around.annealed.particles
        draws = particles[:: max(1, len(particles) // MEASURED)]
        weights = np.ones(len(draws))
    heights = heights_of(view.problem)
    return kl_at(posterior, heights, modes[0].fit.mean, draws, weights).value


def _again(view: View, state: Settle, answer: Look, size: int, polisher: Polisher) -> Look:
    """Points selected with all that is watched now, around the pilot or around π_w."""
    best = view.look(answer.points, answer)
    if not state.grown:
        pilot = view.look(state.pilot.points, state.pilot)
        (chosen,) = view.select(pilot, [size], scan=False)
        other = view.look(chosen, pilot)
        best = other if other.lower_than(best) else best
    return improved(view, view, best, best, size, polisher, scan=False)


def modes_around(rng: Rng, posterior: Posterior, watched: Array) -> Around:
    """Cost: a thousand particles on M rows, and some fits."""
    annealed, starts = spread(rng, posterior)
    modes = modes_of_particles(posterior, watched, most=len(watched))
    modes = modes_of_particles(posterior, starts, known=modes, most=most_fits(posterior.model))
    modes = with_high_modes(posterior, all_places(rng, posterior, annealed), modes)
    if not modes:
        return Around([], annealed)
    kept = zip(modes, shares_of(modes), strict=True)
    return Around([mode for mode, share in kept if share > NEGLIGIBLE], annealed)


def _strays(view: View, modes: list[Mode], shares: Between) -> list[Mode]:
    """Modes of π_w that count and that nobody watches, those that cost most."""
    costs, watched = shares.costs()[: len(modes)], view.problem.watched
    notable = np.maximum(costs, shares.ours[: len(modes)]) > NOTABLE
    order: list[int] = np.argsort(-costs).tolist()
    strays = [modes[place] for place in order if notable[place]]
    if len(watched):
        strays = [mode for mode in strays if not lies_in(mode.fit, watched, 1.0)]
    return strays[:MOST_STRAYS]


class Between(NamedTuple):
    """Modes of π_w and of π, (K, d), and their shares under both."""

    places: Array
    ours: Array
    full: Array

    @property
    def kl(self) -> float:
        """Σ p log p/q: what KL(π_w ‖ π) is at least when whole modes are counted."""
        return float(self.costs().sum())

    def costs(self) -> Array:
        """p log p/q of each mode."""
        logs = np.log(np.maximum(self.ours, 1e-300)) - np.log(np.maximum(self.full, 1e-300))
        return self.ours * logs

    def words(self) -> str:
        # A mode that π_w should not have, or one that it lacks.
        worst = int(np.argmax(np.maximum(self.costs(), self.full - self.ours)))
        place = ", ".join(f"{value:.3g}" for value in self.places[worst][:5])
        more = ", …" if self.places.shape[1] > 5 else ""
        return (
            f"the coreset posterior has about {_percent(self.ours[worst])} of its mass at the mode "
            f"near θ = ({place}{more}), where that of all rows has {_percent(self.full[worst])}: "
            "these weighted rows do not tell its modes apart"
        )


def _percent(share: float) -> str:
    return f"{100.0 * share:.3g} %"


def _between(view: View, points: WeightedPoints, modes: list[Mode]) -> Between:
    """Cost: one pass of N·K potentials, and fits on a subsample for modes that π_w lacks."""
    problem, model = view.problem, view.problem.model

    def is_new(place: Array) -> bool:
        return not any(lies_in(mode.fit, place[None], 1.0) for mode in modes)

    missing = np.array([is_new(place) for place in problem.places], dtype=bool)
    lost = problem.modes_near(problem.places[missing])
    # A place that was known roughly may lead to a mode that is there.
    lost = [mode for mode in lost if is_new(mode.fit.mean)]
    places = np.array([mode.fit.mean for mode in [*modes, *lost]])
    full = log_posterior(problem.ask, model, places)
    with np.errstate(all="ignore"):
        ours = Posterior(model, points.rows, points.weights).log_density(places)
    volumes = np.array([log_volume(mode.fit) for mode in [*modes, *lost]])
    has = np.arange(len(places)) < len(modes)
    return Between(
        places,
        shares_of_logs(np.where(has, ours + volumes, -np.inf)),
        shares_of_logs(full + volumes),
    )
