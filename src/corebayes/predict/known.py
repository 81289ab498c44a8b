"""What predictions are made from: the model, its draws, and the columns that it was built with."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, cast

import numpy as np

from corebayes.adapters.predictive import adapted_predictive
from corebayes.coreset import Coreset, GroupCoreset
from corebayes.coreset.files import rebuild_model
from corebayes.data import frames
from corebayes.data.arrays import ArrayData
from corebayes.data.limits import as_limit
from corebayes.data.parquet_files import is_parquet, parquet_batches
from corebayes.formula.columns import find_missing, read
from corebayes.formula.design import Design
from corebayes.formula.groups import NewLevels
from corebayes.formula.stored import design_from_data
from corebayes.models import GLM, MixedRegression
from corebayes.models.units import Units
from corebayes.predict.regression import RegressionPredictive
from corebayes.rows import Rows, open_rows
from corebayes.samplers.mixed.group_effects import parameters_with_effects
from corebayes.samplers.parameters import parameters_of, posterior_of
from corebayes.scan.walk import walk
from corebayes.types import Array, Block, Rng


class Predictive(Protocol):
    """The distribution of y in some rows."""

    @property
    def num_draws(self) -> int: ...

    def predict(self, rng: Rng, block: Block) -> tuple[Array, Array]:
        """E[y | θ_s] and draws of y given θ_s, each (n, S)."""
        ...


@dataclass
class Known:
    """A predictive distribution and the columns that its rows have."""

    predictive: Predictive
    column_names: tuple[str, ...]
    design: Design | None
    target_name: str

    def open(self, rows: Any) -> Any:
        """New rows as the model takes them; one of another library knows by itself."""
        own: Any = getattr(self.predictive, "open", None)
        if own is not None:
            opened = own(rows)
            return NewRows(opened) if isinstance(opened, Rows) else opened
        model: Any = getattr(self.predictive, "model", None)
        width = len(model.column_names) if isinstance(model, MixedRegression) else model.dim
        if isinstance(model, GLM):
            width -= model.intercept
        return open_new_rows(rows, design=self.design, names=self.column_names, width=width)


def known_of(coreset: Any, draws: Any, num_draws: int, seed: int) -> Known:
    """Of a coreset and draws of its posterior, or of draws that know their model."""
    if isinstance(coreset, GroupCoreset):
        # What all groups share, and from it the effects of every group that has rows.
        phi = parameters_of(coreset.model, draws).reshape(-1, coreset.marginal.dim)
        phi = phi[spaced(len(phi), num_draws)]
        draws = parameters_with_effects(coreset, phi, seed=seed)
        model, kept = coreset.marginal.mixed, coreset.provenance
    elif isinstance(coreset, Coreset):
        model, kept = coreset.model, coreset.provenance
    else:
        model, kept = _stored(coreset)
        draws = coreset
    if isinstance(model, Units):
        model = model.model
    design = kept.get("design")
    return Known(
        _predictive(model, draws, num_draws, seed),
        tuple(kept.get("column_names") or ()),
        None if design is None else design_from_data(design),
        str(kept.get("target_name") or "y"),
    )


def _predictive(model: Any, draws: Any, num_draws: int, seed: int) -> Predictive:
    if isinstance(model, GLM | MixedRegression):
        theta = parameters_of(model, draws).reshape(-1, model.dim)
        return RegressionPredictive(model, theta[spaced(len(theta), num_draws)], seed)
    posterior = posterior_of(draws)
    found = None
    if posterior is not None:
        length = posterior.sizes["chain"] * posterior.sizes["draw"]
        found = adapted_predictive(model, posterior, spaced(length, num_draws))
    if found is None:
        raise TypeError(
            f"{type(model).__name__} has a density and no way to draw targets: predict is for "
            "regressions and for models of NumPyro, PyMC and Bambi; with a model of your own, "
            "compute predictions from cb.sample(coreset).posterior"
        )
    return found


def spaced(number: int, wanted: int) -> Any:
    """So many of the draws, evenly spaced, or all."""
    return np.arange(number) if number <= wanted else np.arange(wanted) * number // wanted


def _stored(draws: Any) -> tuple[Any, Mapping[str, Any]]:
    """The model that draws were made from, as `sample` kept it with them; a file's, so checked."""
    try:
        content = json.loads(str(draws["model"]["json"].values))
    except (KeyError, ValueError, TypeError, AttributeError):
        raise ValueError(
            "these draws do not say which model they are of: pass the coreset too, "
            "predict(coreset, rows, draws=draws)"
        ) from None
    if not isinstance(content, dict):
        raise ValueError("the model that these draws hold is damaged")
    kept = cast("dict[str, Any]", content)
    return rebuild_model("the group 'model'", kept.get("model"), None, as_limit()), kept


# Rows of a file that a formula is computed for at once.
BATCH_ROWS = 65_536


@dataclass
class NewRows:
    """The opened rows, and the labels of groups that the design has not seen."""

    rows: Rows
    design: Design | None = None
    new_levels: dict[str, NewLevels] = field(default_factory=dict[str, NewLevels])

    @property
    def num_rows(self) -> int:
        return self.rows.num_rows

    def check(self) -> None:
        self.rows.check()

    def blocks(self, block_rows: int) -> Iterator[Block]:
        """In their order, read as they are asked for."""
        return walk(self.rows.table, block_rows, self.rows.meter)

    def labels(self, column: str, codes: set[float]) -> list[Any]:
        """What new groups are called."""
        known = self.new_levels.get(column)
        if known is None:
            return [int(code) if code == int(code) else code for code in sorted(codes)]
        return list(known.labels)


def open_new_rows(
    source: Any, *, design: Design | None, names: Sequence[str], width: int
) -> NewRows:
    """Rows with the field X of `width` columns: from the formula's design, by name, or as given."""
    if isinstance(source, Rows):
        _check_width(source, names, width)
        return NewRows(source)
    by_name = frames.as_frame(source) is not None or is_parquet(source)
    if by_name and design is not None:
        return _by_design(source, design)
    if by_name and names:
        return NewRows(_by_name(source, names))
    rows = open_rows(source)
    _check_width(rows, names, width)
    return NewRows(rows)


def _by_name(source: Any, column_names: Sequence[str]) -> Rows:
    try:
        return open_rows(source, features=list(column_names))
    except ValueError as error:
        if "Intercept" not in column_names:
            raise
        raise ValueError(
            f"{error}. The coreset has columns that Bambi computed: predict there, with "
            "model.predict(cb.sample(coreset), data=frame), or pass these columns"
        ) from None


def _by_design(source: Any, design: Design) -> NewRows:
    """A frame at once; a file in batches, read again in every pass."""
    groups = zip(design.group_names, design.groups, strict=True)
    new = {name: NewLevels(group) for name, group in groups}

    def matrix(table: Any) -> ArrayData:
        columns = read(table, design.needs_of_rows)
        gaps = find_missing(columns)
        if gaps is not None:
            raise ValueError(
                f"{gaps.words()}: nothing can be predicted there; fill these values, or leave the "
                "rows out of the new ones"
            )
        X = design.apply(columns, new)
        return ArrayData(fields={"X": X}, column_names=design.column_names)

    if not is_parquet(source):
        return NewRows(open_rows(matrix(source)), design, new)

    def batches() -> Iterator[Mapping[str, Any]]:
        first = 0
        for batch in parquet_batches(source, design.needs_of_rows, BATCH_ROWS):
            try:
                yield {"X": matrix(batch).fields["X"]}
            except ValueError as error:
                where = f"of the rows from {first:,} on, " if first else ""
                raise ValueError(f"{where}{error}") from None
            first += batch.num_rows

    return NewRows(open_rows(batches), design, new)


def _check_width(rows: Rows, column_names: Sequence[str], width: int) -> None:
    found = rows.template.fields.get("X")
    number = None if found is None or found.ndim != 2 else found.shape[1]
    if number != width:
        some = ", ".join(map(repr, column_names[:10])) + ", …" * (len(column_names) > 10)
        named = f": {some}" if column_names else ""
        has = "no columns X" if number is None else f"{number} columns"
        raise ValueError(f"the new rows have {has}, and the model was built with {width}{named}")
