"""The page of the families: a table and a verdict in a sentence."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from benchmarks.rowwise import commits

MOST_OFF = 0.1
EARLIEST = "6416d4c or before"
HEAD = """# Families on real data

Every family on data of R's and Python's teaching packages, beside another library's fit of all
rows. `python -m benchmarks.families` makes this page and measures what is new.

- *Coreset*: from the formula, built to 0.002 nats with priors as wide as nothing (a normal of
  standard deviation 100 for coefficients, a half-normal of 100 for constants), certified at
  0.005 nats, then 4 × 4,000 draws.
- *From its estimate*: the largest distance of a posterior mean from the other library's estimate,
  in its standard errors, and the posterior standard deviations in those; constants are logarithms
  and log odds. Posteriors are a little skewed, so this is not zero for all rows either.
- *From its posterior*: the same against the posterior of all rows by the other library's likelihood
  (draws around its estimate with importance weights of all rows), in posterior standard deviations
  with the Monte Carlo error. This has no such slack: it must be below 0.1 and that error.
- *CPU s* are of build + sample.

"""
COLUMNS = (
    "family",
    "data",
    "N",
    "d",
    "rows",
    "KL certified",
    "other library",
    "from its estimate",
    "sd in its errors",
    "from its posterior",
    "sd ratios",
    "CPU s",
)


def between(pair: Any) -> str:
    return "" if pair is None else f"{pair[0]:.2f} to {pair[1]:.2f}"


def cells(name: str, row: Mapping[str, Any]) -> list[str]:
    kl = "withheld" if row["kl"] is None else f"{row['kl'][0]:.1e}"
    off = row["estimate_off"]
    return [
        name,
        row["data"],
        f"{row['num_rows']:,}",
        str(row["num_parameters"]),
        str(row["rows"]),
        kl + ("" if row["certified"] else " (not certified)"),
        row["other"],
        "" if off is None else f"{off:.2f}",
        between(row["error_ratios"]),
        f"{row['off']:.3f} ± {row['noise']:.3f}",
        between(row["sd_ratios"]),
        f"{row['build'] + row['sample']:.1f}",
    ]


def line(name: str, row: Mapping[str, Any]) -> str:
    return " | ".join(cells(name, row))


def verdict(rows: Mapping[str, Any]) -> str:
    off = [name for name, row in rows.items() if row["off"] > MOST_OFF + 2.0 * row["noise"]]
    without = [name for name, row in rows.items() if not row["certified"]]
    largest = max((row["off"] for row in rows.values()), default=0.0)
    return (
        f"{len(rows)} families. A mean off by more than {MOST_OFF} standard deviations and twice "
        f"the Monte Carlo error: {', '.join(off) or 'none'} (the largest is {largest:.3f}). Not "
        f"certified: {', '.join(without) or 'none'}."
    )


def page(rows: Mapping[str, Any]) -> str:
    table = [f"| {' | '.join(COLUMNS)} |", "|" + "---|" * len(COLUMNS)]
    table += [f"| {line(name, row)} |" for name, row in rows.items()]
    seeds = sorted({row["seed"] for row in rows.values()})
    used = "; ".join(sorted({row["versions"] for row in rows.values()}))
    # Rows did not say so from the beginning.
    known = [{"commit": EARLIEST, **row} for row in rows.values()]
    foot = f"\nMeasured at commits, with how many rows: {commits(known)}.\n"
    foot += f"\nSeeds {', '.join(map(str, seeds))}; {used}.\n"
    return HEAD + verdict(rows) + "\n\n" + "\n".join(table) + "\n" + foot
