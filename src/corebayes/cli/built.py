"""What `corebayes build` says when it is done."""

from __future__ import annotations

import math
import shlex
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from corebayes.cli.options import make_console, print_json
from corebayes.coreset import Coreset
from corebayes.models.priors.table import statement_of, title_of
from corebayes.watch.progress import is_watched

# Nats below which a build says nothing of KL: a subsample that stands for all rows, and rare levels
# that are kept apart, may be off by a tenth of that (`constructions/annealed/surrogate.py`).
KNOWN_TO = 1e-7


def described(coreset: Coreset, out: Path) -> dict[str, Any]:
    priors: Any = getattr(coreset.model, "priors", None)
    last = coreset.trace[-1] if coreset.trace else {}
    kl = last.get("kl")
    if kl is not None and not math.isfinite(kl):
        # JSON has no infinity.
        kl = None
    return {
        "command": "build",
        "out": str(out),
        "size": coreset.size,
        "num_rows": coreset.num_rows,
        "num_counted": coreset.num_counted,
        "unit": coreset.noun,
        "reserve": 0 if coreset.reserve is None else coreset.reserve.size,
        "total_count": coreset.total_count,
        "model": title_of(coreset.model),
        "statement": statement_of(coreset.model),
        "parameters": list(coreset.model.parameter_names),
        "priors": [list(row) for row in priors()] if priors is not None else None,
        "reason": coreset.reason,
        "kl": kl,
        "kl_se": None if kl is None else last.get("kl_se"),
        "seed": coreset.provenance.get("seed"),
        "seconds": coreset.provenance.get("seconds"),
        "passes": coreset.provenance.get("passes"),
    }


def as_typed(arguments: Sequence[str]) -> str:
    """The command as a person would type it: double quotes around a text with single ones."""
    return " ".join(
        f'"{word}"' if "'" in word and not set(word) & set('"$`\\!') else shlex.quote(word)
        for word in ("corebayes", *arguments)
    )


def print_build(description: Mapping[str, Any], *, as_json: bool) -> None:
    """The result; at a terminal without the model, which stands above where the bar was."""
    if as_json:
        print_json(**{name: value for name, value in description.items() if name != "statement"})
        return
    console = make_console()
    size, num_rows, unit = (description[name] for name in ("size", "num_counted", "unit"))
    console.print(f"{size:,} of {num_rows:,} {unit} are in {description['out']}", style="bold")
    console.print(f"  model    {description['model']}, {len(description['parameters'])} parameters")
    if description["statement"] and not (sys.stdout.isatty() and is_watched()):
        first, *lines = str(description["statement"]).splitlines()
        console.print(f"           {first}", soft_wrap=True)
        for line in lines:
            console.print(f"         {line}", soft_wrap=True)
    if description["reserve"]:
        console.print(f"  reserve  {description['reserve']:,} {unit} for update and merge")
    console.print(f"  stopped  {description['reason']}", soft_wrap=True)
    if description["kl"] is not None:
        kl = description["kl"]
        left = f"{kl:.2g}" if kl > KNOWN_TO else f"below {KNOWN_TO:.0e}"
        console.print(
            f"  left     {left} nats, as far as the build sees; `corebayes certify` measures KL",
            soft_wrap=True,
        )
    console.print(f"  time     {description['seconds']:.2f} s")
