"""docs/posteriordb.md: the table of all posteriors that were measured, and whether bars hold."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from benchmarks.posteriordb.catalogue import catalogue
from benchmarks.rowwise import commits

MOST_OFF, MOST_TIMES = 0.1, 2.0
# Spaces that do not break: three lines to a cell make a page of a table.
NARROW = "\N{NARROW NO-BREAK SPACE}"

HEAD = """# Posteriors of posteriordb

posteriordb is a collection of posteriors that others published, with reference draws. Here are
those of it whose likelihood is a product over rows, for the data sets that were at hand.
`python -m benchmarks.posteriordb DIR` makes this page from a checkout and measures what is new.

- *Reference*: posteriordb's own draws where it has them. Linear regressions without groups have
  exact draws (their noise on a grid, coefficients given it); logistic ones draws around Laplace's
  fit with importance weights of all rows. For the others it is the run of NUTS that is timed.
- *Coreset*: built to 0.002 nats, of a mixed model to the rows of the counting argument (at most a
  half of all), certified at 0.005 nats, then 4 × 4,000 draws. A mean that is off by δ standard
  deviations costs about δ²/2 nats. The models are built-in regressions; *the same from NumPyro* is
  `from_numpyro` of the model as one would write it there: CPU seconds of build and sample, compiled
  afresh, and how far a mean is off.
- *Off*: the largest difference of a posterior mean over the shared parameters (coefficients and
  standard deviations), in posterior standard deviations, with its Monte Carlo error; the ratio of
  standard deviations that is furthest from one; the largest difference of a 5, 50 or 95 % quantile;
  and the largest of all of these in units of its own Monte Carlo error.
- *CPU s*: of one thread, build + sample, and certify apart; and NumPyro's NUTS on all rows as it
  comes, four chains of so many draws (and at least 500 to warm up). Compilation is included
  on both sides, but for corebayes' own kernels, which are compiled once for an installation;
  imports are not. ESS is the smallest over the shared parameters.
- *low_dim_gauss_mix* has a scale for every component: of rows that count more than once such a
  mixture is no distribution. A build to a tolerance finds that out first, keeps all rows, which is
  the posterior itself, and says so.

"""
COLUMNS = (
    "posterior",
    "N",
    "d",
    "rows",
    "KL certified",
    "mean off",
    "sd ratio",
    "quantile off",
    "in MC errors",
    "reference",
    "build + sample, certify",
    "the same from NumPyro",
    "ESS",
    "full NUTS",
    "its ESS",
)


def measured(rows: Mapping[str, Any]) -> dict[str, Any]:
    """Without what is kept for the rows: runs of NUTS."""
    return {name: row for name, row in rows.items() if "shared" in row}


def cells(name: str, row: Mapping[str, Any]) -> list[str]:
    ours, off = row["coreset"], row["shared"]
    kl = "withheld" if ours["kl"] is None else f"{ours['kl'][0]:.1e}"
    word = "" if ours["certified"] else " (not certified)"
    return [
        name,
        f"{ours['num_rows']:,}",
        str(ours["num_parameters"]),
        f"{ours['size']:,}",
        kl + word,
        f"{off['mean']:.3f}{NARROW}±{NARROW}{off['noise']:.3f}",
        f"{off['sd']:.3f}",
        f"{off['quantile']:.3f}",
        f"{off['errors']:.1f}",
        row["reference"],
        f"{ours['build'] + ours['sample']:.1f}, {ours['certify']:.1f}",
        _from_numpyro(row.get("numpyro")),
        f"{row['ess']:,}",
        f"{row['nuts']['seconds']:.1f} (4 × {row['nuts'].get('draws', 1000):,})",
        f"{row['nuts_ess']:,}",
    ]


def _from_numpyro(found: Mapping[str, Any] | None) -> str:
    if found is None:
        return ""
    word = "" if found["certified"] else ", not certified"
    return f"{found['build'] + found['sample']:.1f}, off {found['mean']:.3f}{word}"


def line(name: str, row: Mapping[str, Any]) -> str:
    return " | ".join(cells(name, row))


def times(row: Mapping[str, Any]) -> float:
    """CPU seconds in those of NUTS, of the slower of the two ways to write the model."""
    both = [row["coreset"], row.get("numpyro") or row["coreset"]]
    return max(one["build"] + one["sample"] for one in both) / row["nuts"]["seconds"]


def verdict(rows: Mapping[str, Any]) -> str:
    """The bars in sentences."""
    found = measured(rows)
    certified = [name for name in found if found[name]["coreset"]["certified"]]
    unknown = [name for name in certified if found[name]["shared"]["noise"] > MOST_OFF]
    off = [name for name in certified if found[name]["shared"]["mean"] > MOST_OFF]
    wrong = [name for name in off if name not in unknown]
    beside = (
        f" (not known to that, as the reference has few effective draws: {', '.join(unknown)})"
        if unknown
        else ""
    )
    slow = [name for name, row in found.items() if times(row) > MOST_TIMES]
    ratios = sorted(times(row) for row in found.values())
    return (
        f"{len(found)} posteriors, {len(certified)} certified. Certified and off by more than "
        f"{MOST_OFF} standard deviations: {', '.join(wrong) or 'none'}{beside}. Build + sample, "
        "of the slower of the two ways to write the model, takes "
        f"{ratios[0]:.2f} to {ratios[-1]:.2f} times the CPU seconds of NUTS on all rows (median "
        f"{ratios[len(ratios) // 2]:.2f}); more than {MOST_TIMES:g} times: "
        f"{', '.join(slow) or 'none'}."
        if found
        else "nothing is measured yet"
    )


def page(rows: Mapping[str, Any]) -> str:
    found = measured(rows)
    table = [f"| {' | '.join(COLUMNS)} |", "|" + "---|" * len(COLUMNS)]
    table += [f"| {' | '.join(cells(name, row))} |" for name, row in found.items()]
    used = sorted({row["versions"] for row in found.values()})
    seeds = sorted({row["seed"] for row in found.values()})
    missing = [name for name in catalogue() if name not in found]
    without = f"\nWithout a result yet: {', '.join(missing)}.\n" if missing else ""
    without += f"\nMeasured at commits, with how many rows: {commits(found.values())}.\n"
    foot = f"{without}\nSeeds {', '.join(map(str, seeds))}; {'; '.join(used)}.\n"
    return HEAD + verdict(rows) + "\n\n" + "\n".join(table) + "\n" + foot
