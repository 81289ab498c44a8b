"""Whether a change of the code changed a result: a dozen coresets and certificates.

    python -m benchmarks.same_results record before.json
    python -m benchmarks.same_results compare before.json

Compared are the rows kept (exactly), their weights and the certificate's KL (to a relative 1e-6, or
to 1e-9 nats). Exit code 1 when one differs. Some fifteen CPU seconds.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import corebayes as cb

RELATIVE, ABSOLUTE = 1e-6, 1e-9


def main(arguments: list[str]) -> int:
    if len(arguments) != 2 or arguments[0] not in ("record", "compare"):
        print(__doc__)
        return 2
    path = Path(arguments[1])
    if arguments[0] == "record":
        path.write_text(json.dumps({name: case() for name, case in CASES.items()}, indent=1))
        return 0
    before = json.loads(path.read_text())
    differing = 0
    for name, case in CASES.items():
        found = _difference(before[name], case())
        differing += found != ""
        print(f"{name:<28} {found or 'same'}")
    return 1 if differing else 0


def _difference(before: dict[str, Any], after: dict[str, Any]) -> str:
    if before["rows"] != after["rows"]:
        shared = len(set(before["rows"]) & set(after["rows"]))
        sizes = f"{len(before['rows'])}, now {len(after['rows'])}, {shared} shared"
        return f"other rows: {sizes}; KL {before['kl']}, now {after['kl']}"
    weights = np.abs(np.divide(after["weights"], before["weights"]) - 1.0).max()
    if weights > RELATIVE:
        return f"weights differ by a relative {weights:.2g}"
    if (before["kl"] is None) != (after["kl"] is None) or before["certified"] != after["certified"]:
        return f"another verdict: KL {before['kl']}, now {after['kl']}"
    if before["kl"] is not None and not np.isclose(after["kl"], before["kl"], RELATIVE, ABSOLUTE):
        return f"KL {before['kl']:.6g}, now {after['kl']:.6g}"
    return ""


def _result(model: Any, data: Any, *, certify: bool = True, **options: Any) -> dict[str, Any]:
    coreset = cb.build(model, data, progress=False, **options)
    named = {name: options[name] for name in ("target",) if name in options}
    certificate = cb.certify(coreset, data, draws=200, **named) if certify else None
    kl = (
        None if certificate is None or certificate.reverse_kl is None else certificate.reverse_kl[0]
    )
    return {
        "rows": coreset.indices.tolist(),
        "weights": coreset.weights.tolist(),
        "kl": kl,
        "certified": certificate is not None and certificate.certified,
    }


def _design(
    num_rows: int, dim: int, seed: int
) -> tuple[np.ndarray, np.ndarray, np.random.Generator]:
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.normal(size=(num_rows, dim - 1)), np.ones(num_rows)])
    return X, X @ np.linspace(-1.0, 1.0, dim), rng


def _logistic(num_rows: int = 5000, dim: int = 4) -> tuple[np.ndarray, np.ndarray]:
    X, eta, rng = _design(num_rows, dim, 0)
    return X, (rng.random(num_rows) < 1.0 / (1.0 + np.exp(-eta))).astype(float)


def _poisson() -> tuple[np.ndarray, np.ndarray]:
    X, eta, rng = _design(3000, 3, 1)
    return X, rng.poisson(np.exp(0.5 * eta)).astype(float)


def _linear() -> tuple[np.ndarray, np.ndarray]:
    X, eta, rng = _design(2000, 4, 2)
    return X, eta + rng.normal(size=2000)


def _student() -> tuple[np.ndarray, np.ndarray]:
    X, eta, rng = _design(2000, 3, 3)
    return X, eta + rng.standard_t(4.0, size=2000)


def _custom() -> cb.CustomModel:
    def log_likelihood(draws: Any, block: Any) -> Any:
        return -(np.abs(block.y[:, None] - block.X @ draws.T) ** 1.5)

    return cb.CustomModel(log_likelihood, lambda draws: -0.5 * np.sum(draws**2, axis=1), dim=3)


def _files() -> dict[str, Any]:
    import pyarrow
    from pyarrow import parquet

    X, y = _logistic(20_000)
    with tempfile.TemporaryDirectory() as folder:
        columns = {f"x{k}": X[:, k] for k in range(X.shape[1])}
        path = f"{folder}/rows.parquet"
        parquet.write_table(pyarrow.table({**columns, "y": y}), path, row_group_size=3000)
        return _result(cb.LogisticRegression(prior=cb.Normal()), path, target="y", size=15)


CASES: dict[str, Callable[[], dict[str, Any]]] = {
    "logistic": lambda: _result(cb.LogisticRegression(prior=cb.Normal()), _logistic(), size=15),
    "logistic, many rows": lambda: _result(
        cb.LogisticRegression(prior=cb.Normal()), _logistic(60_000), size=15
    ),
    "logistic, tol": lambda: _result(
        cb.LogisticRegression(prior=cb.Normal()), _logistic(), tol=0.01
    ),
    "logistic, SparseVI": lambda: _result(
        cb.LogisticRegression(prior=cb.Normal()), _logistic(1000, 3), size=12, method=cb.SparseVI()
    ),
    "poisson": lambda: _result(
        cb.PoissonRegression(link="log", prior=cb.Normal()), _poisson(), size=10
    ),
    "linear": lambda: _result(
        cb.LinearRegression(noise_sd=1.0, prior=cb.Normal()), _linear(), size=15
    ),
    "linear, GIGA": lambda: _result(
        cb.LinearRegression(noise_sd=1.0, prior=cb.Normal()), _linear(), size=15, method=cb.GIGA()
    ),
    "gaussian mean": lambda: _result(cb.GaussianMean(), _linear()[0][:, :3], size=8),
    "gaussian mean, pursuit": lambda: _result(
        cb.GaussianMean(), _linear()[0][:, :3], size=8, method=cb.OrthogonalPursuit()
    ),
    "student t": lambda: _result(
        cb.StudentTRegression(df=4.0, scale=1.0, prior=cb.Normal()), _student(), size=15
    ),
    "custom": lambda: _result(_custom(), _student(), size=12),
    "uniform": lambda: _result(
        cb.LogisticRegression(prior=cb.Normal()),
        _logistic(),
        size=50,
        method=cb.Uniform(),
        certify=False,
    ),
    "parquet": _files,
}

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
