"""What a report says, as numbers: measured here, written as a page elsewhere."""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np

from corebayes.certificate import Certificate
from corebayes.certify import MAX_PARETO_K, certify, check_same_data
from corebayes.constructions import AnnealedSparseVI
from corebayes.diagnostics import log_ratios
from corebayes.report.cost import Cost, gradient_costs
from corebayes.report.curves import (
    UNIFORM_SIZES,
    Curve,
    coreset_curve,
    traced_curve,
    uniform_curve,
)
from corebayes.report.draws import Drawn, Parameter, draw, importance_shares, parameters
from corebayes.report.landscape import Landscape, landscape
from corebayes.rows import Rows
from corebayes.samplers.laplace import full_posterior
from corebayes.steps import Steps
from corebayes.types import Array, Coreset

# A build that took longer is not repeated for a figure.
CHEAP_SECONDS = 30.0
# Flops of a Laplace fit of a subsample beyond which it is left out of the figure.
MOST_FLOPS = 2e7


@dataclass(frozen=True, kw_only=True)
class Sizes:
    """KL against size, and what the figures are."""

    ours: Curve
    uniform: Curve
    measured: bool
    """Between Laplace fits; otherwise as the construction saw it."""


@dataclass(frozen=True, kw_only=True)
class Measured:
    """What only the rows can tell."""

    certificate: Certificate
    shares: Array | None
    """Importance weights of the draws; None where they have too heavy a tail to be used."""
    cost: Cost
    landscape: Landscape | None
    same_fingerprint: bool
    seconds: float
    """Of certifying."""


@dataclass(frozen=True, kw_only=True)
class Findings:
    """Everything that a report shows."""

    coreset: Coreset
    drawn: Drawn
    parameters: tuple[Parameter, ...]
    sizes: Sizes | None
    measured: Measured | None


def find_out(
    coreset: Coreset,
    data: Rows | None,
    *,
    draws: int,
    tol: float,
    seed: int,
    certificate: Certificate | None,
    steps: Steps,
) -> Findings:
    """Sample, and with the rows also certify, correct, fit and compare.

    Cost with the rows: two passes of N · draws potentials (one if there is a certificate already)
    and, where the build was quick, another build and about eight passes of N·d² flops.
    """
    if data is not None:
        check_same_data(coreset, data)
    steps.begin("sampling the coreset posterior")
    drawn = draw(coreset, draws, seed)
    if data is None:
        found = parameters(coreset, drawn, None)
        return Findings(
            coreset=coreset,
            drawn=drawn,
            parameters=tuple(found),
            sizes=_traced(coreset),
            measured=None,
        )
    data.executor = steps.watch(data.executor)
    measured = _measure(coreset, data, drawn, tol, seed, certificate, steps)
    steps.begin("building smaller coresets to compare")
    sizes = _sizes(coreset, data, seed) or _traced(coreset)
    return Findings(
        coreset=coreset,
        drawn=drawn,
        parameters=tuple(parameters(coreset, drawn, measured.shares)),
        sizes=sizes,
        measured=measured,
    )


def _measure(
    coreset: Coreset,
    data: Rows,
    drawn: Drawn,
    tol: float,
    seed: int,
    certificate: Certificate | None,
    steps: Steps,
) -> Measured:
    began = time.perf_counter()
    if certificate is None:
        steps.begin("certifying")
        certificate = certify(coreset, data, draws=max(len(drawn.flat), 100), tol=tol, seed=seed)
    seconds = time.perf_counter() - began
    steps.begin("correcting the draws")
    ratios = log_ratios(coreset, data, drawn.flat)
    k = certificate.pareto_k
    usable = certificate.reverse_kl is not None and k is not None and k <= MAX_PARETO_K
    return Measured(
        certificate=certificate,
        shares=importance_shares(ratios) if usable else None,
        cost=gradient_costs(coreset, data, drawn.flat.mean(axis=0)),
        landscape=landscape(np.random.default_rng(seed), coreset, data),
        same_fingerprint=data.fingerprint() == coreset.provenance.get("data"),
        seconds=seconds,
    )


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
    affordable = [size for size in UNIFORM_SIZES if size * model.dim**2 <= MOST_FLOPS]
    return Sizes(
        ours=coreset_curve(
            coreset, data, full, sizes, int(provenance.get("seed", seed)), progress=False
        ),
        uniform=uniform_curve(model, data, full, seed, affordable),
        measured=True,
    )


def _traced(coreset: Coreset) -> Sizes | None:
    ours = traced_curve(coreset)
    # One size has no curve.
    if len(ours.sizes) < 2:
        return None
    return Sizes(ours=ours, uniform=Curve([], []), measured=False)
