"""A coreset for people: a frame with their own columns, a picture, and a notebook's summary."""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from corebayes.data import layout
from corebayes.data.units import COUNT, ROW
from corebayes.extras import import_pyplot
from corebayes.files.markup import Markup, element, notebook, plain_table
from corebayes.models.priors.table import title_of
from corebayes.types import Array

# Lines of a notebook's table, and columns beside row and weight.
MOST_LINES, MOST_COLUMNS = 8, 8


def to_columns(coreset: Any) -> dict[str, NDArray[Any]]:
    """`row_id`, `weight`, and the columns of the rows; of a formula's, those that it was given."""
    known, rows = coreset.provenance, coreset.rows
    fields = layout.plan(
        rows,
        column_names=known.get("column_names") or (),
        target_name=known.get("target_name") or "y",
        reserved=("row_id", "weight"),
    )
    columns: dict[str, NDArray[Any]] = dict(layout.flatten(rows, fields))
    design: Any = known.get("design")
    if isinstance(design, Mapping) and COUNT not in rows.fields and ROW not in rows.fields:
        columns = own_columns(columns, design)  # pyright: ignore[reportUnknownArgumentType]
    if rows.counts is not None:
        columns["count"] = rows.counts
    return {"row_id": coreset.indices.copy(), "weight": coreset.weights.copy(), **columns}


def own_columns(columns: dict[str, NDArray[Any]], design: Mapping[str, Any]) -> dict[str, Any]:
    """The columns that a formula was computed from, as far as its own columns tell.

    Categories are read off their indicator columns and groups off their codes. What is a function
    of a column, as log(x), stays as it is; products and the intercept follow from the others.
    """
    left = dict(columns)
    found: dict[str, Any] = {}
    for node, levels in design.get("factors", []):
        source, prefixes = _called(node)
        if levels is None or source is None:
            continue
        values = _category(left, prefixes, list(levels))
        if values is not None:
            found[source] = values
    for group in design.get("groups", []):
        names, levels = list(group["columns"]), list(zip(*group["levels"], strict=True))
        code = next((n for n in (f"{':'.join(names)} group", ":".join(names)) if n in left), None)
        if code is None or code in found:
            continue
        numbers = left.pop(code).astype(np.int64)
        for place, name in enumerate(names):
            found[name] = np.array([levels[k][place] for k in numbers], dtype=object)
    kept = {n: v for n, v in left.items() if n != "Intercept" and not _is_product(n, found)}
    target = [name for name in kept if name == list(columns)[-1]]
    features = {name: values for name, values in kept.items() if name not in target}
    return {**features, **found, **{name: kept[name] for name in target}}


def _is_product(name: str, found: Mapping[str, Any]) -> bool:
    """Whether a column is a product of others, as a:b."""
    return ":" in name and name not in found


def _called(node: Any) -> tuple[str | None, tuple[str, ...]]:
    """The column that a factor is made of, and how the names of its own columns begin."""
    match node:
        case ["column", str(name)]:
            return name, (f"{name}[",)
        case ["call", "C", [["column", str(name)], *_], _]:
            return name, (f"C({name})[", f"C({name},")
        case _:
            return None, ()


def _category(left: dict[str, NDArray[Any]], prefixes: tuple[str, ...], levels: list[Any]) -> Any:
    """The category of every row, its indicator columns taken out; None if there are none."""
    places: dict[str, int] = {}
    for column in left:
        for place, level in enumerate(levels):
            marks = (f"[T.{level}]", f"[S.{level}]", f"[{level}]")
            if column.startswith(prefixes) and "]:" not in column and column.endswith(marks):
                places[column] = place
    if not places:
        return None
    wide = np.column_stack([left.pop(column) for column in places])
    own = list(places.values())
    # Where no indicator is set it is the level that has none.
    others = [place for place in range(len(levels)) if place not in own] or [own[-1]]
    chosen = np.where((wide == 1.0).any(axis=1), np.array(own)[wide.argmax(axis=1)], others[0])
    return np.array(levels, dtype=object)[chosen]


def to_frame(coreset: Any) -> Any:
    """The columns as a pandas frame."""
    try:
        pandas: Any = importlib.import_module("pandas")
    except ImportError as error:
        raise ImportError(
            "to_frame makes a pandas frame: pip install pandas, or take corebayes.to_columns",
            name="pandas",
        ) from error
    return pandas.DataFrame(to_columns(coreset))


def to_html(coreset: Any) -> str:
    """What it is, and its heaviest rows."""
    kept = _heaviest(coreset.weights)
    columns = to_columns(coreset)
    names = list(columns)[: 2 + MOST_COLUMNS]
    lines = [[_cell(columns[name][row]) for name in names] for row in kept]
    parts: list[Markup] = []
    if coreset.size:
        parts.append(plain_table(names, lines))
    left = coreset.size - len(kept)
    if left > 0 or len(columns) > len(names):
        more = f"{left:,} more rows" if left > 0 else ""
        wide = f"{len(columns) - len(names):,} more columns" if len(columns) > len(names) else ""
        parts.append(element("p", " and ".join(filter(None, (more, wide)))))
    title = f"{coreset.size:,} of {coreset.num_counted:,} {coreset.noun}, {title_of(coreset.model)}"
    return notebook(title, element("p", f"stopped: {coreset.reason or 'unknown'}"), *parts)


def _heaviest(weights: Array) -> Sequence[int]:
    return np.argsort(-weights, kind="stable")[:MOST_LINES].tolist()


def _cell(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:,.5g}" if abs(value) < 1e5 else f"{value:,.0f}"
    return f"{value:,}" if isinstance(value, int | np.integer) else str(value)


def plot(coreset: Any, axes: Any = None) -> Any:
    """The weights, largest first, and the rows in two of their columns, area as weight."""
    pyplot = import_pyplot()
    columns = {
        name: values for name, values in to_columns(coreset).items() if values.dtype.kind in "iuf"
    }
    order = np.argsort(-coreset.weights)
    names = [name for name in columns if name not in ("row_id", "weight", "count")]
    varying = [name for name in names if np.ptp(columns[name]) > 0.0] if coreset.size else []
    if axes is None:
        _, axes = pyplot.subplots(1, 2, figsize=(9.0, 3.6), layout="constrained")
    first, second = axes
    first.vlines(np.arange(1, coreset.size + 1), 0.0, coreset.weights[order], color="#0072B2")
    first.set(xlabel="row, by weight", ylabel="weight", title=f"{coreset.size:,} weighted rows")
    first.set_ylim(bottom=0.0)
    if varying:
        across, along = varying[0], varying[1] if len(varying) > 1 else "weight"
        area = 300.0 * coreset.weights / max(float(coreset.weights.max()), 1e-300)
        target = varying[-1] if len(varying) > 2 else None
        drawn = second.scatter(
            columns[across],
            columns[along],
            s=np.maximum(area, 4.0),
            c=None if target is None else columns[target],
            alpha=0.7,
            edgecolors="white",
            linewidths=0.5,
        )
        if target is not None:
            second.figure.colorbar(drawn, ax=second, label=target)
        second.set(xlabel=across, ylabel=along, title="area as weight")
    return axes
