"""How far the coreset posterior is from the full one, on fresh draws.

Conjugate models have a closed form. For others draws are taken in stages, each with its share of
the level, until the verdict is clear; what a stage says is in `kl.py`, how its bound is made to
hold in `bound.py`, what is drawn from in `covering.py`, how modes are looked for in `search.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from corebayes.arguments import checked_positive, checked_seed, checked_whole
from corebayes.certify import certificate
from corebayes.certify.certificate import Certificate
from corebayes.certify.conjugate import exact_kl
from corebayes.certify.covering import one_mode, several_modes
from corebayes.certify.evidence import Chains, Evidence, LostDigitsError, Ratios, sampling_trouble
from corebayes.certify.kl import Measured, measure_kl
from corebayes.certify.marginals import Marginals, marginals
from corebayes.certify.same_data import check_same_data, has_every_row
from corebayes.certify.steps import certificate_of_steps
from corebayes.coreset import Coreset, GroupCoreset, check_coreset
from corebayes.formula.rows import as_built
from corebayes.models.custom.touching import is_touching, may_have_modes
from corebayes.models.structure import is_structured
from corebayes.rows import Rows
from corebayes.samplers.automatic import Automatic
from corebayes.samplers.convergence import max_rhat
from corebayes.samplers.draws import Draws, Sampler
from corebayes.samplers.exact import is_conjugate
from corebayes.samplers.laplace import Laplace
from corebayes.samplers.mixed.group_by_group import group_by_group
from corebayes.samplers.named import insisted
from corebayes.samplers.nuts import NUTS
from corebayes.samplers.posterior import Posterior
from corebayes.scan.inline import one_blas_thread
from corebayes.scan.passes import Executor
from corebayes.types import Estimate, Rng

# Chains must be this long for R̂ to tell disagreement from chance.
MIN_CHAIN = 300
# The probability, over all stages, that a KL above the tolerance is certified.
LEVEL = 0.025
# The first stage, each later one four times the one before; the first is only taken for an answer
# where it is below this share of the tolerance, since so few draws may miss a part of π_w.
FIRST, GROWTH, CLEAR = 100, 4, 0.1
# The share of draws beyond which smaller steps would leave some that diverge, and take minutes.
HOPELESS = 0.25
# Draws at most where groups are units.
GROUP_DRAWS = 1000
# Parameters from which on draws take longer than passes.
LARGE = 2_000
# Draws for what changes about single parameters, and potentials that they may cost.
MARGINAL_DRAWS, MOST_POTENTIALS = 1_000, 300_000_000


def certify(
    coreset: Coreset,
    data: Any = None,
    *,
    draws: int = 4000,
    seed: int = 1,
    tol: float = 0.02,
    sampler: str | Sampler | None = None,
    memory: str | int | None = None,
    executor: Executor | None = None,
    target: str | None = None,
    features: Sequence[str] | None = None,
    counts: Any = None,
    on_bad: str = "raise",
) -> Certificate:
    """Measure KL between the coreset posterior and the posterior of all rows, on fresh draws.

    `data` must be what the coreset was built from (`target`, `features`, `counts` and `on_bad` as
    there); of an updated or merged coreset all its sources, in a list. Without `data` the certified
    errors of the steps that led to it are added up, which is no measurement (`certify/steps.py`).
    `memory`, such as "500MB", is what the passes may bring the process to in all.
    The coreset is certified when KL(π_w ‖ π) is at most `tol` nats with two standard errors to
    spare, which happens to one above `tol` in 40 cases at most; at 0.02 no probability is off by
    more than 0.1. For conjugate models KL is exact, and zero where the coreset is all rows. For
    others draws are added until the verdict is clear, `draws` at most: weighted draws of a mixture
    around the modes of π_w and π where one covers π_w, four NUTS chains otherwise. A `sampler`, by
    its name as in `sample` or one's own, must draw from π_w itself; unless it says that its draws
    are independent, errors have their autocorrelation and its chains must agree. No number is given
    when the chains disagree, draws diverge, or the ratios have heavy tails (k̂ > 0.7) or few
    effective draws: the verdict says whether draws or coreset are at fault. Of a model that is not
    log-concave the modes are searched for by annealing, up to 40 parameters, or along a ridge where
    it is seen to be concave given at most three (`samplers/modes/concave.py`): beyond, below 0.001
    nats, and where a rare value of a row matters at no place that was looked at, the distance
    around the modes that were found is given, and nothing is certified. Nor is π_w where it is no
    distribution: a mixture with a scale for every component rises without end as one of them goes
    to zero at a row of large weight. `correct` draws from π all the same. Modes and spikes that a
    `sampler` of one's own does not visit are not looked for.
    Cost: N potentials for each draw, and a few passes of N·d² flops unless 100 draws will do.
    """
    _check_arguments(draws, tol, seed, sampler)
    own = None if sampler is None else insisted(sampler)
    check_coreset(coreset)
    if data is None:
        return certificate_of_steps(coreset, tol)
    # Rows are compared with those of the coreset of rows that groups were chosen from.
    of_rows = coreset.level_one if isinstance(coreset, GroupCoreset) else coreset
    rows = as_built(
        of_rows,
        data,
        target=target,
        features=features,
        counts=counts,
        on_bad=on_bad,
        memory=memory,
        executor=executor,
    )
    if not is_conjugate(coreset.model):
        # Before anything is read.
        rows.with_sampling()
    check_same_data(of_rows, rows)
    return measure(coreset, rows, draws=draws, seed=seed, tol=tol, sampler=own)


def measure(
    coreset: Coreset,
    rows: Rows,
    *,
    draws: int = 4000,
    seed: int = 1,
    tol: float = 0.02,
    sampler: Sampler | None = None,
    searching: bool = True,
) -> Certificate:
    """The certificate of a coreset that is known to be of these rows; see `certify`.

    If it is not `searching`, a structured model's is by NUTS, whatever modes there may be: a first
    impression, far cheaper than a search."""
    asked: dict[str, Any] = {"draws": draws, "seed": seed, "tol": tol, "sampler": sampler}
    try:
        with one_blas_thread():
            return _measured_with(coreset, rows, searching=searching, **asked)
    except LostDigitsError as lost:
        return certificate.withheld(coreset, str(lost), "draws", tol, num_draws=0)


def _measured_with(
    coreset: Coreset,
    rows: Rows,
    *,
    draws: int,
    seed: int,
    tol: float,
    sampler: Sampler | None,
    searching: bool,
) -> Certificate:
    model = coreset.model
    if sampler is None and has_every_row(coreset, rows):
        return _known(coreset, 0.0, 0.0, tol)
    if sampler is None and is_conjugate(model):
        return _known(coreset, *exact_kl(model, coreset, rows), tol)
    rng = np.random.default_rng(seed)
    if sampler is not None:
        drawn = _draw(rng, coreset, draws, sampler)
        own = not model.log_concave
        return _of_draws(coreset, rows, drawn, tol, [len(drawn.flat)], own_sampler=own)
    if isinstance(coreset, GroupCoreset):
        # Quadratures of all groups at every draw: as many as the coreset's own cost nothing beside.
        number = min(draws, GROUP_DRAWS)
        drawn = _draw(rng, coreset, 4 * number, Automatic()).thinned(4)
        return _of_draws(coreset, rows, drawn, tol, stages(number))
    if is_structured(model) and not (searching and may_have_modes(model)):
        # Thousands of parameters have no modes to search; the ratios at NUTS' draws tell.
        return _of_nuts(rng, coreset, rows, draws, tol)
    sources = (one_mode if model.log_concave else several_modes)(rng, coreset, rows)
    modes = sources.num_modes
    if sources.trouble is not None:
        return certificate.withheld(
            coreset, sources.trouble, sources.fault, tol, num_draws=0, num_modes=modes
        )
    if sources.evidence is not None:
        num_draws, found = in_stages(sources.evidence, stages(draws), tol)
        result = certificate.judged(
            coreset,
            found,
            tol,
            num_draws=num_draws,
            num_modes=modes,
            because=sources.what_is_lost(),
            unseen=sources.unseen,
        )
        return _with_draws(result, sources.evidence)
    drawn = _drawn(rng, coreset, draws)
    return _of_draws(coreset, rows, drawn, tol, stages(draws), modes, unseen=sources.unseen)


def _of_nuts(rng: Rng, coreset: Coreset, rows: Rows, draws: int, tol: float) -> Certificate:
    """By chains of NUTS: of as many draws as there may be, or where draws take longer than passes
    of fewer first, and of more where these leave it open."""
    numbers = stages(draws)
    ends = [len(numbers)]
    if coreset.model.dim >= LARGE:
        ends = [*range(min(2, len(numbers)), len(numbers)), len(numbers)]
    elif is_touching(coreset.model):
        # Every gradient is a call of Python, and the last stage but one mostly decides.
        ends = sorted({max(1, len(numbers) - 1), len(numbers)})
    for end in ends[:-1]:
        drawn = _drawn(rng, coreset, numbers[end - 1])
        found = _of_draws(coreset, rows, drawn, tol, numbers[:end], looks=sum(ends))
        kl = found.reverse_kl
        if found.certified or (kl is not None and kl.value - 2.0 * kl.standard_error > tol):
            return found
    drawn = _drawn(rng, coreset, draws)
    return _of_draws(coreset, rows, drawn, tol, numbers, looks=sum(ends))


def _known(coreset: Coreset, reverse: float, forward: float, tol: float) -> Certificate:
    """Where KL both ways is known without a draw."""
    found = Measured(
        reverse=Estimate(reverse, 0.0),
        forward=Estimate(forward, 0.0),
        symmetrised=Estimate(reverse + forward, 0.0),
        lower=reverse,
        upper=reverse,
        pareto_k=None,
        effective=None,
        trouble=None,
    )
    return certificate.judged(coreset, found, tol, num_draws=0)


def stages(most: int) -> list[int]:
    """Numbers of draws at which to look, each a quarter of the next.

    >>> stages(4000)
    [100, 250, 1000, 4000]
    """
    numbers = [most]
    while numbers[0] >= 2 * FIRST:
        numbers.insert(0, max(numbers[0] // GROWTH, FIRST))
    return numbers


def in_stages(
    evidence: Evidence, numbers: Sequence[int], tol: float, looks: int | None = None
) -> tuple[int, Measured]:
    """What the first stage says whose verdict is clear, or the last, and its number of draws;
    `looks` are all stages, where there are others."""
    # Each stage has an even share, and one is for what no correction of finite draws can know.
    level = LEVEL / ((looks or len(numbers)) + 1)
    for stage, number in enumerate(numbers[:-1]):
        size, found = _measured(evidence.at_least(number), level, tol)
        certified = found.upper <= (CLEAR * tol if stage == 0 else tol)
        if found.trouble is None and (certified or (found.lower > tol and stage > 0)):
            return size, found
    return _measured(evidence.at_least(numbers[-1]), level, tol)


def _measured(ratios: Ratios, level: float, tol: float) -> tuple[int, Measured]:
    values, logs, independent = ratios
    return values.size, measure_kl(values, logs, independent=independent, level=level, tol=tol)


def _of_draws(
    coreset: Coreset,
    rows: Rows,
    drawn: Draws,
    tol: float,
    numbers: Sequence[int],
    num_modes: int | None = None,
    looks: int | None = None,
    **judging: Any,
) -> Certificate:
    """The certificate from the draws of a sampler."""
    trouble = sampling_trouble(drawn)
    about: dict[str, Any] = {
        "max_rhat": drawn.max_rhat,
        "num_divergences": drawn.num_divergences,
        "num_modes": num_modes,
    }
    if trouble is not None:
        size = len(drawn.flat)
        return certificate.withheld(coreset, trouble, "draws", tol, num_draws=size, **about)
    evidence = Chains(coreset, rows, drawn)
    num_draws, found = in_stages(evidence, numbers, tol, looks)
    if not drawn.independent:
        last = evidence.at_least(num_draws).values
        about["max_rhat"] = max(drawn.max_rhat, max_rhat(last))
        trouble = sampling_trouble(replace(drawn, max_rhat=about["max_rhat"]))
        if trouble is not None:
            return certificate.withheld(
                coreset, trouble, "draws", tol, num_draws=num_draws, **about
            )
    result = certificate.judged(coreset, found, tol, num_draws=num_draws, **about, **judging)
    result = _with_draws(result, evidence)
    if is_structured(coreset.model):
        wanted = num_draws
        if not result.certified:
            # Many parameters are looked at, each with the noise of all of them.
            most = min(MARGINAL_DRAWS, numbers[-1], MOST_POTENTIALS // rows.num_rows)
            wanted = max(num_draws, most)
        result = certificate.with_marginals(result, _marginals(coreset, evidence, wanted))
    return result


def _with_draws(found: Certificate, evidence: Evidence) -> Certificate:
    """The same with its draws, where their ratios can be trusted."""
    return found if found.reverse_kl is None else replace(found, reweighted=evidence.reweighted())


def _marginals(coreset: Coreset, evidence: Chains, num_draws: int) -> Marginals:
    """What the evaluated draws say of single parameters and of the shared ones."""
    assert is_structured(coreset.model)
    structure, names = coreset.model.structure, coreset.model.parameter_names
    shared = np.concatenate([structure.shared, structure.scales])
    draws, ratios = evidence.evaluated(num_draws)
    return marginals(draws, ratios, names, shared, evidence.draws.independent)


def _drawn(rng: Rng, coreset: Coreset, num_draws: int) -> Draws:
    """By NUTS; along walls where there are any, and group by group where there are thousands, for
    which a chain would take very long."""
    posterior = Posterior.of(coreset)
    drawn = Automatic(chains=4).along_walls(rng, posterior, num_draws)
    if drawn is None:
        drawn = group_by_group(rng, posterior, num_draws)
    if drawn is not None:
        return drawn.diagnosed()
    return _draw(rng, coreset, num_draws, NUTS(chains=4, hopeless=HOPELESS))


def _draw(rng: Rng, coreset: Coreset, num_draws: int, sampler: Sampler) -> Draws:
    posterior = Posterior.of(coreset)
    if not isinstance(sampler, NUTS):
        return sampler.draw(rng, posterior, num_draws).diagnosed()
    # Draws cost M rows each but N in the pass, so chains run longer and are thinned for it; they
    # must be long anyway for R̂ to tell disagreement from chance.
    each = -(-num_draws // sampler.chains)
    thin = max(2, -(-MIN_CHAIN // each))
    return sampler.draw(rng, posterior, thin * each * sampler.chains).diagnosed().thinned(thin)


def _check_arguments(draws: int, tol: float, seed: int, sampler: str | Sampler | None) -> None:
    checked_whole("draws", draws, 100)
    checked_positive("tol", tol)
    checked_seed(seed)
    if isinstance(sampler, Laplace):
        raise ValueError(
            "Laplace() draws from an approximation of π_w, which would certify the approximation; "
            "leave sampler out, or pass NUTS()"
        )
