"""The model as one would write it, with the priors, which decide what is certified."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from corebayes.coreset import Coreset
from corebayes.models.prior_table import shortened
from corebayes.report.html import Markup, element, section, table


def model_section(coreset: Coreset) -> Markup:
    """Likelihood and table of priors; nothing for models that do not say what they are."""
    model: Any = coreset.model
    priors: Callable[[], Any] | None = getattr(model, "priors", None)
    if priors is None:
        return Markup("")
    first, *_ = str(model.statement()).splitlines()
    rows = shortened(priors())
    return section(
        "model",
        "Model and priors",
        element("p", element("code", first)),
        element(
            "p",
            "Default priors are weakly informative on the scale of the rows, and fixed since the "
            "coreset was built.",
        )
        if any(source == "default" for _, _, source in rows)
        else Markup(""),
        table("Priors", ("parameter", "prior", "from where"), rows, css="words"),
    )
