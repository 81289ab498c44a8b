"""What the command line is given, as objects of the library: names, numbers and files of rows."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import corebayes as cb
from corebayes.adapters.family_names import our_name
from corebayes.adapters.formula import mixed
from corebayes.arguments import check_choices
from corebayes.constructions import Construction, exported
from corebayes.coreset import Coreset
from corebayes.data.frames import import_pyarrow
from corebayes.data.limits import as_limit
from corebayes.data.npy_header import check_archive
from corebayes.data.parquet_files import is_address, is_parquet
from corebayes.files.reading import check_regular, first_line
from corebayes.formula.design import Design
from corebayes.formula.rows import design_rows, in_units, rows_of, stored_design
from corebayes.formula.tokens import shorten
from corebayes.models import BUILT_IN, NormalPriorModel
from corebayes.models.families.family import Family
from corebayes.rows import Rows, open_rows
from corebayes.scan.passes import Executor
from corebayes.types import Model


class ModelOptions(NamedTuple):
    """The numbers that models take on the command line; None where nothing was said."""

    prior: Any
    intercept: bool
    noise_sd: float | None = None
    df: float | None = None
    dispersion: float | None = None
    group_sd: float | None = None
    rows: Mapping[str, str | None] = {}
    """Columns that a family has for its rows: trials, offset, exposure, event."""

    def with_rows(self, features: list[str] | None) -> list[str] | None:
        """The features, and these columns, which are read beside them."""
        if features is None:
            return None
        named = [column for column in self.rows.values() if column is not None]
        return [*features, *(column for column in named if column not in features)]


class Columns(NamedTuple):
    """Which columns of a file are what."""

    target: str | None = None
    features: list[str] | None = None
    counts: str | None = None
    on_bad: str = "raise"
    formula: str | None = None
    design: Design | None = None
    """Of the formula a coreset was built with; the text of that formula is for people."""
    duplicates: str | None = None
    missing: str = "refuse"
    """What a formula does with missing values; a stored design knows it."""
    unit: str | None = None
    """The column whose rows enter together."""

    def named(self) -> dict[str, Any]:
        """The arguments of `open_rows`."""
        names = ("target", "features", "counts", "on_bad", "duplicates", "unit")
        return {name: getattr(self, name) for name in names}

    def stored(self) -> dict[str, Any]:
        """What a coreset keeps of it; the design is kept beside it."""
        return {**self.named(), "formula": self.formula}


# Every name of a built-in model, with its class and the arguments that the name stands for.
MODELS: dict[str, tuple[type[NormalPriorModel], Mapping[str, Any]]] = {
    name: (model, settings)
    for model in BUILT_IN.values()
    for name, settings in model.command_line.items()
}
METHODS: dict[str, Callable[[], Construction]] = {
    kind.command_name(): kind for kind in exported().values()
}
SUFFIXES = (".parquet", ".csv", ".npz", ".npy")
IN_MEMORY = (".csv", ".npz")


def make_model(name: str, options: ModelOptions, *, by_formula: bool = False) -> Model:
    """The model of this name, or an error that lists the names there are.

    Regressions may have the names of Bambi and R.
    """
    name = our_name(name) if name not in MODELS or by_formula else name
    constructor, settings = _named(name, MODELS, "model")
    arguments: dict[str, Any] = dict(settings)
    if options.prior is not None:
        arguments["prior"] = options.prior
    if issubclass(constructor, Family):
        arguments["intercept"] = options.intercept
    elif options.intercept:
        raise ValueError(f"--intercept is for regressions; the {name} model has no features")
    for option in ("noise_sd", "df", "dispersion"):
        value: float | None = getattr(options, option)
        if value is None:
            continue
        if option not in constructor.flags:
            flag = "--" + option.replace("_", "-")
            raise ValueError(f"{flag} means nothing to the {name} model: leave it out")
        if not 0.0 < value < np.inf:
            raise ValueError(f"--{option.replace('_', '-')} must be positive, got {value:g}")
        argument = constructor.flags[option]
        arguments[argument] = value**2 if argument == "cov" else value
    known = {entry.name for entry in fields(constructor)}
    for option, column in options.rows.items():
        if column is None or by_formula:
            # A formula has them as terms.
            continue
        if option not in known:
            raise ValueError(f"--{option} means nothing to the {name} model: leave it out")
        # Of an array without names it is the position.
        arguments[option] = int(column) if column.isdecimal() else column
    return constructor(**arguments)


def with_groups(model: Model, data: Rows, options: ModelOptions) -> Model:
    """The model with the group terms of the formula that made the rows, if it has any."""
    if options.group_sd is not None and not options.group_sd > 0.0:
        raise ValueError(f"--group-sd must be positive, got {options.group_sd:g}")
    if data.design is None or not isinstance(model, Family):
        if options.group_sd is not None:
            raise ValueError("--group-sd is for a --formula with group terms such as (1 | g)")
        return model
    group_sd = None if options.group_sd is None else cb.HalfNormal(options.group_sd)
    return mixed(model, data, group_sd=group_sd)


def make_method(name: str) -> Construction:
    """The construction of this name, with its defaults."""
    return _named(name, METHODS, "method")()


def read_rows(source: str, columns: Columns, memory: str | None = None) -> Rows:
    """The rows of a file, of a folder or of all files that match a pattern, opened.

    Parquet and .npy are read part by part in every pass; .csv and .npz are held in memory.
    """
    path, by_formula = Path(source), columns.formula is not None or columns.design is not None
    if columns.missing != "refuse" and not by_formula:
        raise ValueError("--missing is for a --formula: without one it is --on-bad drop")
    if by_formula:
        return _read_formula(source, columns, memory)
    if is_address(source):
        return open_rows(source, memory=memory, **columns.named())
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
    coreset: Coreset,
    target: str | None,
    features: str | None,
    counts: str | None,
    formula: str | None = None,
) -> Columns:
    """The columns a coreset was built with, unless others are named (features as a,b,c).

    A formula is never taken from the file: what a file says is data, not something to run.
    """
    kept: Any = coreset.provenance.get("columns", {})
    known = Columns()
    if isinstance(kept, dict):
        known = known._replace(**{k: v for k, v in kept.items() if _is_stored(k, v)})  # pyright: ignore
    given = {"target": target, "features": split(features), "counts": counts}
    columns = known._replace(**{name: value for name, value in given.items() if value})
    if formula is not None:
        return columns._replace(formula=formula, design=None)
    columns = columns._replace(formula=None, design=stored_design(coreset))
    if columns.design is not None and known.formula not in (None, columns.design.formula):
        raise ValueError("the coreset names one formula and holds the design of another")
    if columns.design is None and known.formula is not None:
        raise ValueError(
            "the coreset was built from a formula by an earlier version, which kept no design: "
            "give the formula again, --formula 'y ~ …'. The file says that it was "
            f"{shorten(known.formula)}; write your own, since a file is not to be trusted"
        )
    return columns


def _is_stored(name: str, value: Any) -> bool:
    """Whether a file may say this about its columns."""
    if name == "features":
        return isinstance(value, list) and all(isinstance(entry, str) for entry in value)  # pyright: ignore
    names = ("target", "counts", "on_bad", "formula", "duplicates", "unit")
    return name in names and isinstance(value, str)


def split(names: str | None) -> list[str] | None:
    """The names in a,b,c."""
    return None if names is None else [name.strip() for name in names.split(",")]


@contextmanager
def make_executor(
    workers: int | None, scheduler: str | None, tls: Path | None = None
) -> Generator[Executor | None]:
    """Worker processes or a Dask cluster for as long as the context lasts; neither is inline."""
    if workers is not None and scheduler is not None:
        raise ValueError("--workers starts processes here and --dask uses a cluster: give one")
    if tls is not None and scheduler is None:
        raise ValueError("--tls has the certificates for --dask tls://host:8786: give both")
    if workers is not None:
        with cb.processes(workers) as executor:
            yield executor
    elif scheduler is not None:
        from corebayes.scan.dask import certificates

        executor = cb.dask(scheduler, security=None if tls is None else certificates(tls))
        with executor.client:
            yield executor
    else:
        yield None


def _read_formula(source: str, columns: Columns, memory: str | None) -> Rows:
    """The design that a formula makes of a table: of a .csv or of few rows it is held in memory."""
    path = Path(source)
    if columns.target is not None or columns.features is not None:
        raise ValueError("--formula names the target and the features: leave out --target and co.")
    check_choices("raise", columns.duplicates, columns.unit)
    if columns.on_bad != "raise":
        raise ValueError("--formula has its own way: use --missing drop instead of --on-bad")
    if path.suffix != ".csv" and not is_parquet(source):
        raise ValueError(f"--formula is for tables with names, .csv or .parquet, not {path}")
    table: Any = source
    if path.suffix == ".csv":
        if not path.exists():
            raise FileNotFoundError(f"there is no file {path}")
        table = _read_csv(path)
    options: dict[str, Any] = {
        "counts": columns.counts,
        "duplicates": columns.duplicates,
        "memory": memory,
    }
    if columns.formula is not None:
        rows = design_rows(columns.formula, table, missing=columns.missing, **options)
        return rows if columns.unit is None else in_units(rows, table, columns.unit)
    assert columns.design is not None
    return rows_of(columns.design, table, unit=columns.unit, **options)


def read_table(source: str) -> Any:
    """Rows whose columns are still to be chosen: a table or array in memory, or the path itself."""
    path = Path(source)
    if is_address(source) or path.is_dir() or path.suffix not in IN_MEMORY:
        if not is_address(source) and not path.is_dir() and path.suffix not in SUFFIXES:
            raise ValueError(
                f"cannot read {path}: rows come as {', '.join(SUFFIXES)} or a folder of .parquet"
            )
        return source
    if not path.exists():
        raise FileNotFoundError(f"there is no file {path}")
    if path.suffix == ".csv":
        return _read_csv(path)
    arrays = _load_numpy(path)
    if "X" not in arrays:
        raise ValueError(f"{path} has no array X, only {', '.join(arrays) or 'nothing'}")
    return arrays["X"]


def _read_csv(path: Path) -> Any:
    pyarrow = import_pyarrow()
    check_regular(path)
    csv = import_pyarrow("pyarrow.csv")
    # An empty cell of a column of texts is as missing as one of a column of numbers.
    options = csv.ConvertOptions(strings_can_be_null=True)
    try:
        return csv.read_csv(path, convert_options=options)
    except (pyarrow.ArrowException, OSError) as error:
        raise ValueError(f"cannot read {path} as csv: {first_line(error)}") from error


def _read_npz(path: Path, columns: Columns) -> Rows:
    """Arrays X and y; names of columns have no meaning there."""
    for option in ("target", "features", "unit"):
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
    return open_rows(source, counts=counts, on_bad=columns.on_bad, duplicates=columns.duplicates)


def _load_numpy(path: Path) -> dict[str, Any]:
    """The arrays of a .npz. Pickled objects are never loaded."""
    check_regular(path)
    try:
        with path.open("rb") as file:
            check_archive(file, as_limit())
            return dict(np.load(file, allow_pickle=False))
    except Exception as error:
        # A damaged file makes NumPy stumble in many ways that mean the same to the caller.
        raise ValueError(f"cannot read {path} as npz: {first_line(error)}") from error


def _named(name: str, choices: dict[str, Any], kind: str) -> Any:
    if name in choices:
        return choices[name]
    raise ValueError(f"there is no {kind} {name!r}{_suggestion(name, choices)}")


def _suggestion(name: str, choices: Iterable[str]) -> str:
    known = list(choices)
    near = difflib.get_close_matches(name, known, n=1)
    hint = f"; did you mean {near[0]!r}? There" if near else "; there"
    return f"{hint} are {', '.join(known)}"
