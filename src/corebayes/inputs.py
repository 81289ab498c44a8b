"""What the command line is given, as objects of the library: names, numbers and files of rows."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import corebayes as cb
from corebayes.constructions import Construction
from corebayes.data.frames import import_pyarrow
from corebayes.data.parquet_files import is_address
from corebayes.rows import Rows, open_rows
from corebayes.scan.query import Executor
from corebayes.types import Coreset, Model


class ModelOptions(NamedTuple):
    """The numbers that models take on the command line; None where nothing was said."""

    prior_sd: float
    intercept: bool
    noise_sd: float | None = None
    df: float | None = None
    dispersion: float | None = None


class Columns(NamedTuple):
    """Which columns of a file are what."""

    target: str | None = None
    features: list[str] | None = None
    counts: str | None = None
    on_bad: str = "raise"
    formula: str | None = None

    def named(self) -> dict[str, Any]:
        """The arguments of `open_rows`."""
        return {name: value for name, value in self._asdict().items() if name != "formula"}


# The options that say something to a model, beside the prior; any other is refused.
MODELS: dict[str, tuple[Callable[..., Model], dict[str, str], dict[str, Any]]] = {
    "logistic": (cb.LogisticRegression, {}, {}),
    "poisson": (cb.PoissonRegression, {}, {"link": "softplus"}),
    "poisson-log": (cb.PoissonRegression, {}, {"link": "log"}),
    "linear": (cb.LinearRegression, {"noise_sd": "noise_sd"}, {}),
    "gaussian": (cb.GaussianMean, {"noise_sd": "cov"}, {}),
    "student-t": (cb.StudentTRegression, {"noise_sd": "scale", "df": "df"}, {}),
    "negative-binomial": (cb.NegativeBinomialRegression, {"dispersion": "dispersion"}, {}),
}
METHODS: dict[str, Callable[[], Construction]] = {
    "annealed-sparse-vi": cb.AnnealedSparseVI,
    "sparse-vi": cb.SparseVI,
    "orthogonal-pursuit": cb.OrthogonalPursuit,
    "giga": cb.GIGA,
    "frank-wolfe": cb.FrankWolfe,
    "hard-thresholding": cb.HardThresholding,
    "importance-sampling": cb.ImportanceSampling,
    "l1": cb.L1,
    "quasi-newton": cb.QuasiNewton,
    "coreset-mcmc": cb.CoresetMCMC,
    "pseudo-coreset": cb.PseudoCoreset,
    "uniform": cb.Uniform,
}
SUFFIXES = (".parquet", ".csv", ".npz", ".npy")
IN_MEMORY = (".csv", ".npz")


def make_model(name: str, options: ModelOptions) -> Model:
    """The model of this name, or an error that lists the names there are."""
    constructor, accepted, settings = _named(name, MODELS, "model")
    arguments = {**settings, "prior": cb.Normal(0.0, options.prior_sd)}
    if name != "gaussian":
        arguments["intercept"] = options.intercept
    elif options.intercept:
        raise ValueError("--intercept is for regressions; the gaussian model has no features")
    for option in ("noise_sd", "df", "dispersion"):
        value: float | None = getattr(options, option)
        if value is None:
            continue
        if option not in accepted:
            flag = "--" + option.replace("_", "-")
            raise ValueError(f"{flag} means nothing to the {name} model: leave it out")
        if not 0.0 < value < np.inf:
            raise ValueError(f"--{option.replace('_', '-')} must be positive, got {value:g}")
        argument = accepted[option]
        arguments[argument] = value**2 if argument == "cov" else value
    return constructor(**arguments)


def make_method(name: str) -> Construction:
    """The construction of this name, with its defaults."""
    return _named(name, METHODS, "method")()


def read_rows(source: str, columns: Columns, memory: str | None = None) -> Rows:
    """The rows of a file, of a folder or of all files that match a pattern, opened.

    Parquet and .npy are read part by part in every pass; .csv and .npz are held in memory.
    """
    path = Path(source)
    if is_address(source):
        if columns.formula is not None:
            raise ValueError("--formula is for tables on this machine, not for addresses")
        return open_rows(source, memory=memory, **columns.named())
    if columns.formula is not None:
        return _read_formula(path, columns.formula, columns)
    if path.suffix in IN_MEMORY and not path.is_dir():
        if not path.exists():
            raise FileNotFoundError(f"there is no file {path}")
        if path.suffix == ".npz":
            return _read_npz(path, columns)
        return open_rows(_read_csv(path), memory=memory, **columns.named())
    if path.suffix not in SUFFIXES and not path.is_dir():
        raise ValueError(
            f"cannot read {path}: rows come as {', '.join(SUFFIXES)} or as a folder of .parquet"
        )
    return open_rows(source, memory=memory, **columns.named())


def columns_of(
    coreset: Coreset, target: str | None, features: str | None, counts: str | None
) -> Columns:
    """The columns a coreset was built with, unless others are named (features as a,b,c)."""
    given = {"target": target, "features": split(features), "counts": counts}
    columns = Columns(**coreset.provenance.get("columns", {}))
    return columns._replace(**{name: value for name, value in given.items() if value})


def split(names: str | None) -> list[str] | None:
    """The names in a,b,c."""
    return None if names is None else [name.strip() for name in names.split(",")]


@contextmanager
def make_executor(workers: int | None, scheduler: str | None) -> Generator[Executor | None]:
    """Worker processes or a Dask cluster for as long as the context lasts; neither is inline."""
    if workers is not None and scheduler is not None:
        raise ValueError("--workers starts processes here and --dask uses a cluster: give one")
    if workers is not None:
        with cb.processes(workers) as executor:
            yield executor
    elif scheduler is not None:
        executor = cb.dask(scheduler)
        with executor.client:
            yield executor
    else:
        yield None


def _read_formula(path: Path, formula: str, columns: Columns) -> Rows:
    """The design that a formula makes of a table, which is held in memory."""
    from corebayes.adapters.formula import design_rows

    if columns.target is not None or columns.features is not None:
        raise ValueError("--formula names the target and the features: leave out --target and co.")
    if columns.on_bad != "raise":
        raise ValueError("--formula needs complete rows: leave out --on-bad")
    if path.suffix not in (".csv", ".parquet") and not path.is_dir():
        raise ValueError(f"--formula is for tables with names, .csv or .parquet, not {path}")
    if not path.exists():
        raise FileNotFoundError(f"there is no file {path}")
    if path.suffix == ".csv":
        table = _read_csv(path)
    else:
        table = import_pyarrow("pyarrow.parquet").read_table(path)
    return design_rows(formula, table, counts=columns.counts)


def _read_csv(path: Path) -> Any:
    pyarrow = import_pyarrow()
    try:
        return import_pyarrow("pyarrow.csv").read_csv(path)
    except (pyarrow.ArrowException, OSError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise ValueError(f"cannot read {path} as csv: {reason}") from error


def _read_npz(path: Path, columns: Columns) -> Rows:
    """Arrays X and y; names of columns have no meaning there."""
    for option in ("target", "features"):
        if getattr(columns, option) is not None:
            raise ValueError(f"--{option} is for tables; {path} has the arrays X and y")
    arrays = _load_numpy(path)
    missing = [name for name in ("X",) if name not in arrays]
    if missing:
        raise ValueError(f"{path} has no array X, only {', '.join(arrays) or 'nothing'}")
    counts = None
    if columns.counts is not None:
        if columns.counts not in arrays:
            raise ValueError(f"{path} has no array {columns.counts!r}, only {', '.join(arrays)}")
        counts = arrays[columns.counts]
    source = (arrays["X"], arrays["y"]) if "y" in arrays else arrays["X"]
    return open_rows(source, counts=counts, on_bad=columns.on_bad)


def _load_numpy(path: Path) -> dict[str, Any]:
    """The arrays of a .npz. Pickled objects are never loaded."""
    try:
        with path.open("rb") as file:
            return dict(np.load(file, allow_pickle=False))
    except Exception as error:
        # A damaged file makes NumPy stumble in many ways that mean the same to the caller.
        raise ValueError(f"cannot read {path} as npz: {error}") from error


def _named(name: str, choices: dict[str, Any], kind: str) -> Any:
    if name in choices:
        return choices[name]
    raise ValueError(f"there is no {kind} {name!r}{_suggestion(name, choices)}")


def _suggestion(name: str, choices: Iterable[str]) -> str:
    known = list(choices)
    near = difflib.get_close_matches(name, known, n=1)
    hint = f"; did you mean {near[0]!r}?" if near else ";"
    return f"{hint} There are {', '.join(known)}"
