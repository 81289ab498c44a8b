"""The cache of compiled loops, and how to do without numba."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numba
import numpy as np
import pytest

from corebayes.models.compiled import jit
from corebayes.models.families.logistic import LogisticRegression
from corebayes.models.families.student_t import StudentTRegression
from corebayes.models.priors.normal import Normal
from corebayes.types import Array

LOGISTIC = LogisticRegression(prior=Normal()).kernel


def values_of(function: Any) -> Array:
    eta = np.linspace(-4.0, 4.0, 12).reshape(3, 4)
    function(eta, np.array([1.0, -1.0, 1.0]), 0.0, 0.0)
    return eta


def compile_again() -> Any:
    """The loop over logistic potentials, compiled though it is known."""
    make, decorate = jit.MAKERS["transform"], jit._njit_for("transform")
    return jit._compile("transform", (LOGISTIC,), make, decorate)


def test_a_damaged_or_missing_cache_does_no_harm(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = values_of(jit._function("transform", LOGISTIC))
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))
    assert np.array_equal(values_of(compile_again()), expected)
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert files
    kept = compile_again()
    assert sum(kept.stats.cache_hits.values()) == 1
    for path in files:
        path.write_bytes(path.read_bytes()[:300])
    assert np.array_equal(values_of(compile_again()), expected)


def test_loops_have_names_of_their_own_in_the_cache() -> None:
    """Under one name numba took the logistic loop of one process for the Poisson loop of another:
    'descr' is NULL as soon as a third loaded both."""
    kernels = LOGISTIC, StudentTRegression(prior=Normal()).kernel
    loops = [jit._function("transform", kernel) for kernel in kernels]
    assert len({loop.py_func.__qualname__ for loop in loops}) == 2


def test_compiles_without_a_place_for_the_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    njit = numba.njit

    def refuse_to_cache(*arguments: Any, **options: Any) -> Any:
        if options.get("cache"):
            raise RuntimeError("cannot cache function: no locator available")
        return njit(*arguments, **options)

    expected = values_of(jit._function("transform", LOGISTIC))
    monkeypatch.setattr(numba, "njit", refuse_to_cache)
    assert np.array_equal(values_of(compile_again()), expected)


@pytest.mark.parametrize(
    "variable", ["COREBAYES_NUMBA=0", pytest.param("NUMBA_DISABLE_JIT=1", marks=pytest.mark.slow)]
)
def test_numba_can_be_turned_off(variable: str) -> None:
    name, value = variable.split("=")
    program = (
        "import sys, numpy as np\n"
        "from corebayes.models.compiled import jit\n"
        "from corebayes.models.families import logistic\n"
        "assert 'numba' not in sys.modules\n"
        "assert not jit.available()\n"
        "try:\n"
        "    jit.transform(logistic.logistic_kernel, np.zeros((1, 1)), np.ones(1))\n"
        "except ImportError as error:\n"
        "    assert 'corebayes[fast]' in str(error)\n"
        "else:\n"
        "    raise SystemExit('no error')\n"
    )
    environment = {**os.environ, name: value}
    subprocess.run([sys.executable, "-c", program], check=True, env=environment)


def test_a_numba_that_cannot_be_imported_is_not_available(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(name: str) -> Any:
        raise SystemError(f"{name} needs another NumPy")

    monkeypatch.setattr(jit, "import_module", fail)
    monkeypatch.delenv("COREBAYES_NUMBA", raising=False)
    jit.available.cache_clear()
    try:
        assert not jit.available()
    finally:
        jit.available.cache_clear()
