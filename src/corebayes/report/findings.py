"""What a report says, as numbers: measured here, written as a page elsewhere."""

from __future__ import annotations

import time
from typing import NamedTuple

import numpy as np

from corebayes.certify.certificate import Certificate
from corebayes.certify.kl import MAX_PARETO_K
from corebayes.certify.measure import certify
from corebayes.certify.same_data import check_same_data
from corebayes.constructions import AnnealedSparseVI
from corebayes.coreset import Coreset
from corebayes.diagnostics import log_ratios
from corebayes.exact.correct import MAX_RHAT, corrected
from corebayes.predict.check import Check, check_rows
from corebayes.report import curves
from corebayes.report.cost import Cost, gradient_costs
from corebayes.report.curves import Curve
from corebayes.report.draws import (
    NUM_CHAINS,
    Drawn,
    DrawnParameter,
    draw,
    importance_shares,
    parameters,
)
from corebayes.report.landscape import Landscape, landscape
from corebayes.rows import Rows
from corebayes.samplers.laplace import full_posterior
from corebayes.samplers.pareto import pareto_k
from corebayes.samplers.worth import worth
from corebayes.types import Array
from corebayes.watch.progress import Steps

# A build that took longer is not repeated for a figure.
CHEAP_SECONDS = 30.0
# Flops of a Laplace fit of a subsample beyond which it is left out of the figure.
MOST_FLOPS = 2e7
# Data sets that the rows are held against.
REPLICATES = 100


class Sizes(NamedTuple):
    """KL against size: measured between Laplace fits, or as the construction saw it."""

    ours: Curve
    uniform: Curve
    measured: bool


class MeasuredOnRows(NamedTuple):
    """What only the rows can tell. `shares` are the importance weights of the draws, None where
    their tail is too heavy; `seconds` those of certifying."""

    certificate: Certificate
    shares: Array | None
    cost: Cost
    landscape: Landscape | None
    same_fingerprint: bool
    seconds: float
    exact: Array | None = None
    """Draws of the posterior of all rows, (S, d), where shares cannot say what it is."""
    check: Check | None = None
    """What replicated data look like, of models that say how targets are drawn."""


class Findings(NamedTuple):
    """Everything that a report shows."""

    coreset: Coreset
    drawn: Drawn
    parameters: tuple[DrawnParameter, ...]
    sizes: Sizes | None
    measured: MeasuredOnRows | None


def find_out(
    coreset: Coreset,
    data: Rows | None,
    draws: int,
    tol: float,
    seed: int,
    certificate: Certificate | None,
    steps: Steps,
) -> Findings:
    """Sample, and with the rows also certify, correct, fit and compare.

    Cost with the rows: two passes of N · draws potentials (one if there is a certificate already,
    up to three more where the ratios cannot be trusted)
    and, where the build was quick, another build and about eight passes of N·d² flops.
    """
    if data is not None:
        check_same_data(coreset, data)
    steps.begin("sampling the coreset posterior")
    drawn = draw(coreset, draws, seed)
    if data is None:
        found, sizes = parameters(coreset, drawn, None), _traced(coreset)
        return Findings(coreset, drawn, found, sizes, None)
    data.executor, began = steps.watch(data.executor), time.perf_counter()
    if certificate is None:
        steps.begin("certifying")
        number = max(len(drawn.flat), 100)
        certificate = certify(coreset, data, draws=number, tol=tol, seed=seed)
    seconds = time.perf_counter() - began
    steps.begin("correcting the draws")
    ratios = log_ratios(coreset, data, drawn.flat)
    usable = certificate.reverse_kl is not None and pareto_k(ratios, 1.0) <= MAX_PARETO_K
    measured = MeasuredOnRows(
        certificate=certificate,
        shares=importance_shares(ratios) if usable else None,
        cost=gradient_costs(coreset, data, drawn.flat.mean(axis=0)),
        landscape=landscape(np.random.default_rng(seed), coreset, data),
        same_fingerprint=data.fingerprint() == coreset.provenance.get("data"),
        seconds=seconds,
    )
    if measured.shares is None:
        measured = measured._replace(exact=_exact_draws(coreset, data, len(drawn.flat), seed))
    steps.begin("replicating the rows")
    measured = measured._replace(check=_checked(coreset, data, drawn.flat, seed))
    steps.begin("building smaller coresets to compare")
    sizes = _sizes(coreset, data, seed) or _traced(coreset)
    found = parameters(coreset, drawn, measured.shares, measured.exact)
    return Findings(coreset, drawn, found, sizes, measured)


def _checked(coreset: Coreset, data: Rows, draws: Array, seed: int) -> Check | None:
    try:
        return check_rows(coreset, data, draws, num_draws=REPLICATES, seed=seed)
    except (TypeError, NotImplementedError):
        return None


def _exact_draws(coreset: Coreset, data: Rows, number: int, seed: int) -> Array | None:
    """Draws of π by surrogate transitions, if they mix."""
    rng, each = np.random.default_rng(seed), -(-number // NUM_CHAINS)
    try:
        exactly = corrected(rng, coreset, data, each, NUM_CHAINS)
    except ValueError:
        return None
    mixed = worth(exactly.values).max_rhat <= MAX_RHAT
    return exactly.values.reshape(-1, exactly.values.shape[2]) if mixed else None


def _sizes(coreset: Coreset, data: Rows, seed: int) -> Sizes | None:
    """KL between Laplace fits, where these mean something and are quick to come by."""
    model, provenance = coreset.model, coreset.provenance
    repeatable = provenance.get("method") == repr(AnnealedSparseVI())
    cheap = float(provenance.get("seconds") or np.inf) <= CHEAP_SECONDS
    if not (model.log_concave and repeatable and cheap and coreset.size > 2):
        return None
    full = full_posterior(model, data)
    smallest = min(max(model.dim, 2), coreset.size - 1)
    sizes = np.unique(np.geomspace(smallest, coreset.size, 8).astype(int)).tolist()
    affordable = [size for size in curves.UNIFORM_SIZES if size * model.dim**2 <= MOST_FLOPS]
    own_seed = int(provenance.get("seed", seed))
    ours = curves.coreset_curve(coreset, data, full, sizes, own_seed, progress=False)
    return Sizes(ours, curves.uniform_curve(model, data, full, seed, affordable), True)


def _traced(coreset: Coreset) -> Sizes | None:
    ours = curves.traced_curve(coreset)
    # One size has no curve.
    return Sizes(ours, Curve([], []), False) if len(ours.sizes) > 1 else None
