"""Potentials of the GLM families in compiled loops, when numba is installed.

A potential f(η, y) costs an exponential and up to two logarithms, and a pass over the rows is
bound by them. Here they are polynomials in loops that become vector instructions. What makes it
work:

- Each loop does one thing to a chunk of values that stays in the first cache, so its constants
  stay in registers and several of its iterations are under way at once.
- A chunk is flat, with y repeated for every draw: few draws are as quick as many. With many draws
  it is one row, which may need less than its neighbours: a large count no exponential.
- No branch depends on one value: `a if c else b` becomes a select. Conditions are such that a NaN
  falls through to the side that keeps it, since a pass finds bad rows by their NaN.
- Sums run over rows in order, so that the same call gives the same bits on any thread.

In this file: exp and log for the families' kernels, the loops over rows that call a kernel, and how
they are compiled: on first use, each on its own, kept on disk for the next process. numba compiles
again when this file changes, and looks at no other, so a loop also carries a checksum of the files
that its kernels and the special functions are in.
"""

from __future__ import annotations

import inspect
import os
import threading
import zlib
from collections.abc import Callable
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from corebayes.extras import install
from corebayes.models.compiled import special
from corebayes.types import Array

# Values in a chunk: its five buffers of 4 kB stay in a first cache of 32 kB.
CHUNK = 512
# Draws from which one row is a chunk.
LONG_ROW = 64

LN2 = 0.6931471805599453
LN2_HIGH = 0.6931471803691238  # of 33 bits: its product with an exponent is exact
LN2_LOW = 1.9082149292705877e-10
# Added to x it rounds x to an integer and leaves that integer in the low bits of the sum.
ROUND = 1.5 * 2.0**52
# A double is a sign, 11 bits of exponent and 52 bits of mantissa.
MANTISSA_LENGTH = np.uint64(52)
MANTISSA = np.uint64(2**52 - 1)
ROOT_HALF_BITS = np.uint64(0x3FE6A09E667F3BCD)
ONE_BITS = np.uint64(0x3FF0000000000000)
# The low bits of 2⁵² + k are the integer k.
INTEGER = 2.0**52
INTEGER_BITS = np.uint64(0x4330000000000000)
EXPONENT_OF_ONE = 1023.0


def _bits(x: float) -> Any:
    """The bits of a double as an unsigned integer."""
    return np.float64(x).view(np.uint64)


def _from_bits(bits: Any) -> float:
    """The double with these bits."""
    return np.uint64(bits).view(np.float64)


def exp(x: float) -> float:
    """exp(x) for x ≤ 709, within 1.1 ulp; zero below −708, where doubles lose precision.

    exp(x) = 2ᵏ exp(r) with |r| ≤ ½ ln 2; a polynomial of degree 11 in r that interpolates at
    Chebyshev points, of relative error 2e-17. Even and odd powers are summed apart, here and
    below, since two short chains of operations overlap and one long chain does not.
    """
    rounded = x * (1.0 / LN2) + ROUND
    k = rounded - ROUND
    r = (x - k * LN2_HIGH) - k * LN2_LOW
    q = r * r
    even = 2.4801521317484083e-05 + q * 2.7620078203806394e-07
    even = 0.04166666666662416 + q * (0.0013888888917199863 + q * even)
    odd = 2.7557268476553695e-06 + q * 2.5100377619606372e-08
    odd = 0.008333333333330063 + q * (0.00019841269863042963 + q * odd)
    odd = 0.16666666666666669 + q * odd
    power = 1.0 + (r + q * ((0.5000000000000001 + q * even) + r * odd))
    # Adding k to the exponent's bits multiplies by 2ᵏ.
    power = _from_bits(_bits(power) + (_bits(rounded) << MANTISSA_LENGTH))
    return 0.0 if x < -708.0 else power


def artanh_tail(z: float) -> float:
    """artanh(s)/s − 1 = s²/3 + s⁴/5 + … at z = s² ≤ 1/9.

    A polynomial of degree 10 that interpolates at Chebyshev points, within 7e-18.
    """
    q = z * z
    even = 0.06657072104827468 + q * 0.04400369243072337
    even = 0.1428571428355438 + q * (0.09090894718066429 + q * even)
    even = 0.3333333333333333 + q * even
    odd = 0.06000536404795356 + q * 0.08082022805971766
    odd = 0.11111111358713932 + q * (0.07692785032479312 + q * odd)
    odd = 0.20000000000007292 + q * odd
    return z * (even + z * odd)


def log1p_unit(t: float) -> float:
    """log(1 + t) = 2 artanh(t/(2 + t)) for 0 ≤ t ≤ 1, within 2 ulp."""
    s = t / (2.0 + t)
    return (s + s) + (s + s) * artanh_tail(s * s)


def log1p_slope(t: float) -> float:
    """log(1 + t)/t for 0 ≤ t ≤ 1, within 2 ulp."""
    inverse = 1.0 / (2.0 + t)
    s = t * inverse
    return (inverse + inverse) + (inverse + inverse) * artanh_tail(s * s)


def log(x: float) -> float:
    """log(x) for positive, finite and normal x, within 2 ulp.

    log(x) = k ln 2 + 2 artanh(s) with x = 2ᵏ m, √½ ≤ m < √2 and s = (m − 1)/(m + 1). As s² ≤ 0.03,
    a polynomial of degree 7 is enough for artanh(s)/s within 5e-18.
    """
    # Moved by this much, the exponent's bits change at √½ and not at 1.
    moved = _bits(x) + (ONE_BITS - ROOT_HALF_BITS)
    k = _from_bits((moved >> MANTISSA_LENGTH) | INTEGER_BITS) - (INTEGER + EXPONENT_OF_ONE)
    f = _from_bits((moved & MANTISSA) + ROOT_HALF_BITS) - 1.0
    s = f / (2.0 + f)
    z = s * s
    q = z * z
    even = 0.14285714312991274 + q * (0.09091444604633298 + q * 0.07308242099183301)
    even = 0.3333333333333335 + q * even
    odd = 0.19999999999949744 + q * (0.11111105566821042 + q * 0.07665859404140035)
    return k * LN2 + ((s + s) + (s + s) * (z * (even + z * odd)))


def log1p(x: float) -> float:
    """log(1 + x) for finite x ≥ 0, within 2.5 ulp: what 1 + x rounds off is given back."""
    u = 1.0 + x
    return log(u) + (x - (u - 1.0)) / u


Decorate = Callable[..., Any]  # numba's decorator for one signature, given numba and the options
# A family overwrites η by f(η, y): flat arrays of one length, two constants, two arrays to work in.
Kernel = Callable[[Array, Array, float, float, Array, Array], None]
# ℓ and its slopes: η (k, M), constants, what rows have (columns, M); values (M,), slopes (…, M).
JetKernel = Callable[[Array, Array, Array, Array, Array], None]
Kernels = tuple[Callable[..., Any], ...]  # one, and what it calls


# Loops over rows, a chunk of them at a time. The kernel is a constant to the compiler.


def _rows_at_once(num_draws: int) -> int:
    return 1 if num_draws >= LONG_ROW else CHUNK // max(1, num_draws)


def _apply(kernel: Kernel, eta: Array, y: Array, p0: float, p1: float, work: Array) -> None:
    """Overwrite η, a flat chunk of y.size rows, by f(η, y)."""
    num_draws = eta.size // y.size
    repeated = work[0, : eta.size]
    for n in range(y.size):
        for s in range(num_draws):
            repeated[n * num_draws + s] = y[n]
    kernel(eta, repeated, p0, p1, work[1, : eta.size], work[2, : eta.size])


def _make_transform(kernel: Kernel, checksum: int) -> Callable[..., None]:
    def transform(eta: Array, y: Array, p0: float, p1: float) -> None:
        _ = checksum
        num_rows, num_draws = eta.shape
        step = _rows_at_once(num_draws)
        work = np.empty((3, step * num_draws))
        for first in range(0, num_rows, step):
            rows = slice(first, min(first + step, num_rows))
            _apply(kernel, eta[rows].reshape(-1), y[rows], p0, p1, work)

    return transform


def _make_weighted_sums(kernel: Kernel, checksum: int) -> Callable[..., Array]:
    def weighted_sums(eta: Array, y: Array, weights: Array, p0: float, p1: float) -> Array:
        _ = checksum
        num_rows, num_draws = eta.shape
        step = _rows_at_once(num_draws)
        work = np.empty((3, step * num_draws))
        buffer = np.empty(step * num_draws)
        sums = np.zeros(num_draws)
        for first in range(0, num_rows, step):
            rows = slice(first, min(first + step, num_rows))
            source = eta[rows].reshape(-1)
            potentials = buffer[: source.size]
            for i in range(source.size):
                potentials[i] = source[i]
            _apply(kernel, potentials, y[rows], p0, p1, work)
            for n in range(first, rows.stop):
                # A row of weight zero is passed over, even if its potential is not finite.
                if weights[n] != 0.0:
                    weight = weights[n]
                    row = potentials[(n - first) * num_draws : (n - first + 1) * num_draws]
                    for s in range(num_draws):
                        sums[s] += weight * row[s]
        return sums

    return weighted_sums


def transform(kernel: Kernel, eta: Array, y: Array, p0: float = 0.0, p1: float = 0.0) -> None:
    """Overwrite the C-contiguous η (n, S) by f(η, y) with y (n,)."""
    _check(eta, y)
    _function("transform", kernel)(eta, y, p0, p1)


def weighted_sums(
    kernel: Kernel, eta: Array, y: Array, weights: Array, p0: float = 0.0, p1: float = 0.0
) -> Array:
    """Σ_n w_n f(η_ns, y_n), shape (S,), leaving the C-contiguous η (n, S) as it is."""
    _check(eta, y)
    _check(eta, weights)
    return _function("weighted_sums", kernel)(eta, y, weights, p0, p1)


def _check(eta: Array, values: Array) -> None:
    """Compiled code does not see the end of an array."""
    if values.shape != eta.shape[:1]:
        raise ValueError(f"η of shape {eta.shape} needs one value a row, got shape {values.shape}")


# Compiling.


@cache
def available() -> bool:
    """Whether numba can be used. The first call imports it; COREBAYES_NUMBA=0 turns it off."""
    if os.environ.get("COREBAYES_NUMBA") == "0":
        return False
    try:
        numba: Any = import_module("numba")
    except Exception:
        # A numba that does not fit the installed NumPy fails with more than ImportError.
        return False
    return not numba.config.DISABLE_JIT


# `contract` lets a·b + c be one fused operation. Dividing by zero is no exception.
OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy", "fastmath": {"contract"}}

MAKERS: dict[str, Callable[[Kernel, int], Callable[..., Any]]] = {
    "transform": _make_transform,
    "weighted_sums": _make_weighted_sums,
}

_functions: dict[tuple[str, Callable[..., Any]], Any] = {}
_lock = threading.Lock()


def _function(operation: str, kernel: Kernel) -> Any:
    """One operation with one kernel, compiled by the first thread that asks."""
    return compiled_once(operation, (kernel,), MAKERS[operation], _njit_for(operation))


def compiled_once(
    operation: str, kernels: Kernels, make: Callable[..., Any], decorate: Decorate
) -> Any:
    """`make(*kernels, checksum)`, compiled by the first thread that asks.

    `decorate(numba, **options)` is numba's decorator, for one signature.
    """
    function = _functions.get((operation, kernels[0]))
    if function is not None:
        return function
    if not available():
        raise ImportError(
            f"compiled kernels need numba: {install('fast')}; "
            "and do not set COREBAYES_NUMBA=0 or NUMBA_DISABLE_JIT"
        )
    with _lock:
        if (operation, kernels[0]) not in _functions:
            compiled = _compile(operation, kernels, make, decorate)
            _functions[operation, kernels[0]] = compiled
        return _functions[operation, kernels[0]]


def _njit_for(operation: str) -> Decorate:
    """numba's decorator for the one signature of a loop, so that a call has no types to look up."""

    def decorate(numba: Any, **options: Any) -> Any:
        double, array = numba.types.float64, numba.types.Array
        reads_only = operation == "weighted_sums"
        eta = array(double, 2, "C", readonly=reads_only)
        vectors = [array(double, 1, "A", readonly=True)] * (2 if reads_only else 1)
        return numba.njit((eta, *vectors, double, double), **options)

    return decorate


def _compile(operation: str, kernels: Kernels, make: Callable[..., Any], decorate: Decorate) -> Any:
    numba = _taught_numba()
    for kernel in kernels:
        _extending().register_jitable(**OPTIONS)(kernel)
    files = {inspect.getfile(one) for one in (*kernels, *special.HELPERS)}
    loop = make(*kernels, sum(zlib.crc32(Path(one).read_bytes()) for one in sorted(files)))
    # numba names its symbols after the function and a counter of the process: under one name, loops
    # that two processes put into the cache would be taken for each other by a third.
    loop.__name__ = loop.__qualname__ = f"{operation}_{kernels[0].__name__}"
    try:
        return decorate(numba, cache=True, **OPTIONS)(loop)
    except Exception:
        # The cache cannot be read or written: no directory, a full disk, a damaged file. Had the
        # compiler failed, it will fail again.
        return decorate(numba, **OPTIONS)(loop)


@cache
def _taught_numba() -> Any:
    """numba, once it knows the functions of this file."""
    extending, numba = _extending(), import_module("numba")

    def teach_cast(function: Callable[..., Any], source: Any, target: Any) -> None:
        """The same 64 bits as another type: no instruction at all."""

        def typer(context: Any) -> Callable[[Any], Any]:
            def result(argument: Any) -> Any:
                return target if argument == source else None

            return result

        def lower(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            return builder.bitcast(arguments[0], context.get_value_type(target))

        extending.type_callable(function)(typer)
        extending.lower_builtin(function, source)(lower)

    teach_cast(_bits, numba.types.float64, numba.types.uint64)
    teach_cast(_from_bits, numba.types.uint64, numba.types.float64)
    functions = (exp, artanh_tail, log1p_unit, log1p_slope, log, log1p, _rows_at_once, _apply)
    for function in (*functions, *special.HELPERS):
        extending.register_jitable(**OPTIONS)(function)
    return numba


def _extending() -> Any:
    return import_module("numba.extending")
