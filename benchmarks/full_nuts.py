"""nutpie on the PyMC model of all rows, for as long as is affordable.

A draw of NUTS may take a thousand gradients and cannot be stopped in between. So the first draws
are made in trees of one step, which tells the seconds of a gradient; where not even one for each
draw is affordable, that is all.
"""

from __future__ import annotations

import time
import warnings
from typing import Any, NamedTuple

import corebayes as cb

# A mass matrix that has all directions along which scales differ by more than this.
LOW_RANK = {"low_rank_modified_mass_matrix": True, "mass_matrix_eigval_cutoff": 2.0}
# Draws in trees of one step.
TRIED = 12


class FullRun(NamedTuple):
    trace: Any
    seconds: float
    """CPU seconds of compilation and sampling, all threads."""
    sampling: float
    """Of sampling alone."""
    gradient: float
    """Of one gradient."""
    stopped: bool
    """Whether the limit ended it, before its first draw or later."""

    @property
    def num_gradients(self) -> int:
        """Leapfrog steps of all chains, those to tune included."""
        return _num_gradients(self.trace)


def nutpie_on_all_rows(
    everything: cb.Coreset,
    *,
    seed: int,
    tune: int,
    draws: int,
    chains: int,
    limit: float,
    low_rank: bool = False,
) -> FullRun:
    """NUTS on all rows as a coreset of themselves, stopped after `limit` CPU seconds of sampling.

    The chains are threads of this process, and what they have when they are stopped counts. With
    `low_rank` the mass matrix learns directions too, such as that of an intercept against all
    effects.
    """
    import nutpie

    model = cb.to_pymc(everything)
    began = time.process_time()
    compiled = nutpie.compile_pymc_model(model)
    ready = time.process_time()
    trace = nutpie.sample(
        compiled, draws=1, tune=TRIED, chains=1, seed=seed, progress_bar=False, maxdepth=1
    )
    tried = time.process_time()
    gradient = (tried - ready) / max(_num_gradients(trace), 1)
    if gradient * chains * (tune + draws) > limit:
        return FullRun(trace, tried - began, tried - ready, gradient, stopped=True)
    run = nutpie.sample(
        compiled,
        draws=draws,
        tune=tune,
        chains=chains,
        cores=chains,
        seed=seed,
        progress_bar=False,
        blocking=False,
        **LOW_RANK if low_rank else {},
    )
    trace, stopped = None, False
    while trace is None:
        try:
            trace = run.wait(timeout=0.5)
        except TimeoutError:
            stopped = time.process_time() - tried > limit
            trace = _aborted(run) if stopped else None
    ended = time.process_time()
    sampling = ended - tried
    gradient = sampling / max(_num_gradients(trace), 1)
    return FullRun(trace, ready - began + sampling, sampling, gradient, stopped)


def _num_gradients(trace: Any) -> int:
    groups = ("warmup_sample_stats", "sample_stats")
    stats = [trace[name] for name in groups if name in trace]
    return int(sum(float(one["n_steps"].sum()) for one in stats))


def _aborted(run: Any) -> Any:
    with warnings.catch_warnings():
        # There may be no draws but those to tune.
        warnings.simplefilter("ignore")
        return run.abort()
