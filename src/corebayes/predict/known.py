"""What predictions are made from: the model, its draws, and the columns that it was built with."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol, cast

import numpy as np

from corebayes.adapters.predictive import adapted_predictive
from corebayes.coreset import Coreset, GroupCoreset
from corebayes.coreset.files import rebuild_model
from corebayes.data.limits import as_limit
from corebayes.formula.design import Design
from corebayes.formula.stored import design_from_data
from corebayes.models import GLM, MixedRegression
from corebayes.models.units import Units
from corebayes.predict.new_rows import NewRows, open_new_rows
from corebayes.predict.regression import RegressionPredictive
from corebayes.rows import Rows
from corebayes.samplers.group_effects import parameters_with_effects
from corebayes.samplers.parameters import parameters_of, posterior_of
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
