"""One chain of NUTS by nutpie, on a density in z.

nutpie is written in Rust. It calls a density either at an address, with no Python in between, or as
a Python function from a thread of its own.
"""

from __future__ import annotations

import ctypes
import importlib
import sys
import threading
import warnings
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, NamedTuple

import numpy as np

from corebayes.deadline import check_time
from corebayes.extras import import_extra
from corebayes.models.compiled.density import copy_address
from corebayes.models.custom.compiling import float64
from corebayes.samplers.density import Callback, Pointer
from corebayes.types import Array

# Seconds between looks at the clock.
PATIENCE = 0.2


class Chain(NamedTuple):
    """Where a chain starts, in z, and its random numbers."""

    start: Array
    seed: int


def import_nutpie() -> Any:
    """nutpie, or what to install."""
    return import_quietly("nutpie", "NUTS")


def import_quietly(name: str, what: str) -> Any:
    """A library of the extra for sampling. Their imports warn about other libraries' futures."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return import_extra(name, f"{what} needs", "sample")


class Trace(NamedTuple):
    """What a chain drew after its tuning, z (draws, d), and its statistics by nutpie's names."""

    z: Array
    stats: dict[str, Array]


def run_chain(
    density: Callback | Pointer, chain: Chain, options: dict[str, Any], stats: Sequence[str]
) -> Trace:
    """One chain; `options` are `nutpie.sample`'s, with `tune` and `draws`."""
    nutpie = import_nutpie()
    failures: list[Exception] = []
    if isinstance(density, Pointer):
        compiled = _from_pointer(density, chain)
    else:
        thread = Thread(options["tune"] + options["draws"])
        compiled = _from_callback(_guarded(density, failures, thread), chain, thread)
    sampler = nutpie.sample(
        compiled,
        chains=1,
        cores=1,
        seed=chain.seed,
        save_warmup=False,
        blocking=False,
        # Chains as ArviZ data, one by one, would take longer than the draws of a small coreset.
        return_raw_trace=True,
        **options,
    )
    try:
        while True:
            # Waiting here, not in nutpie, lets an interrupt through instead of returning a short
            # trace.
            try:
                trace = sampler.wait(timeout=PATIENCE)
                break
            except TimeoutError:
                check_time()
                if failures:
                    raise failures[0] from None
    except BaseException:
        sampler.cancel()
        if failures:
            raise failures[0] from None
        raise
    if failures:
        raise failures[0]
    return _read(trace, chain.start.size, options["draws"], stats)


def _read(trace: Any, dim: int, num_draws: int, names: Sequence[str]) -> Trace:
    """The last so many draws of a trace of Arrow columns, those before are of the tuning."""
    pyarrow: Any = importlib.import_module("pyarrow")
    (draws,), (stats,) = trace.get_arrow_trace()
    z = pyarrow.array(draws.column("z")).flatten().to_numpy(zero_copy_only=False)
    return Trace(
        np.asarray(z, dtype=np.float64).reshape(-1, dim)[-num_draws:],
        {name: np.asarray(stats.column(name).to_numpy())[-num_draws:] for name in names},
    )


class Thread:
    """nutpie's thread of a chain, as Python knows it.

    Rust enters Python again for every call, so that Python, and JAX with it, would set up and throw
    away all that it keeps for a thread each time: half of what a small density costs. Entering once
    more with the first call and leaving with the last draw keeps it in between. JAX is set to
    float64 once for all calls, too; that setting is the thread's own and ends with it.
    """

    def __init__(self, num_draws: int):
        self.left = num_draws
        self.entered: tuple[int, int] | None = None
        self.precision: AbstractContextManager[Any] = nullcontext()

    def enter(self) -> None:
        if self.entered is None:
            self.entered = threading.get_ident(), ctypes.pythonapi.PyGILState_Ensure()
            if "jax" in sys.modules:
                self.precision = float64()
                self.precision.__enter__()

    def count_draw(self) -> None:
        self.left -= 1
        if self.left == 0 and self.entered and self.entered[0] == threading.get_ident():
            ctypes.pythonapi.PyGILState_Release(self.entered[1])


def _guarded(density: Callback, failures: list[Exception], thread: Thread) -> Callback:
    def guarded(z: Array) -> tuple[float, Array]:
        thread.enter()
        # An exception must not cross nutpie's threads: keep it, and raise it when they are done.
        if not failures:
            try:
                return density(z)
            except Exception as error:
                failures.append(error)
        return np.nan, np.full_like(z, np.nan)

    return guarded


def _from_callback(density: Callback, chain: Chain, thread: Thread) -> Any:
    from_pyfunc: Any = importlib.import_module("nutpie.compiled_pyfunc").from_pyfunc

    def expand(*_: Any) -> Callable[[Array], dict[str, Array]]:
        def whole(z: Array) -> dict[str, Array]:
            thread.count_draw()
            return {"z": z}

        return whole

    def density_of_chain() -> Callback:
        return density

    return from_pyfunc(
        chain.start.size,
        density_of_chain,
        expand,
        ["float64"],
        [(chain.start.size,)],
        ["z"],
        make_initial_point_fn=_start_of(chain),
    )


def _from_pointer(density: Pointer, chain: Chain) -> Any:
    """What nutpie makes of a PyMC model, with our compiled functions instead of its own."""
    compiled_model: Any = importlib.import_module("nutpie.compile_pymc").CompiledPyMCModel
    dim = chain.start.size
    return compiled_model(
        dims={},
        compiled_logp_func=_Address(density.address),
        compiled_expand_func=_Address(copy_address()),
        initial_point_func=_start_of(chain),
        shared_data={},
        user_data=density.numbers,
        n_expanded=dim,
        shape_info=(["z"], None, [(dim,)]),
        logp_func=None,
        expand_func=None,
        _n_dim=dim,
        _shapes={"z": (dim,)},
        _coords={},
    )


class _Address(NamedTuple):
    address: int


def _start_of(chain: Chain) -> Callable[[Any], Array]:
    def start(_: Any) -> Array:
        return chain.start

    return start
