"""Analyses as somebody writes them the first time, on data that people know.

    python -m benchmarks.first_tries                    # all of them: an hour
    python -m benchmarks.first_tries --only Default --only Wage
    python -m benchmarks.first_tries --list
    python -m benchmarks.first_tries --full-only --only Default

Each analysis is built to KL 0.005 with every default, certified, and sampled; then all rows are
sampled by Bambi, PyMC or NumPyro with a model that was written there, with the same priors where
they are said or the library's own are others (of 0 and 1), and its own elsewhere. "yes" means:
built, certified, every posterior mean within a tenth of a standard deviation of the other's and
every standard deviation within a tenth, and three Monte Carlo errors of both, which the table has
beside them (of the number that is furthest off); "yes, refused" that the certificate was refused
and so the difference was said. What is not installed is left out with a sentence. The data: see
`benchmarks.teaching_data`.

The posteriors of all rows take most of the time. Their summaries are kept in
`results/first_tries.jsonl`; delete it to sample them again.
"""

from __future__ import annotations

import argparse
import math
import time
import traceback
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.first_models import (
    bambi_ordinal,
    bambi_posterior,
    flat,
    numpyro_ordinal,
    numpyro_posterior,
    pymc_hierarchy,
    pymc_posterior,
    weibull,
    weibull_posterior,
)
from benchmarks.kept import Kept
from benchmarks.summaries import summaries
from benchmarks.teaching_data import NotInstalled, from_file, from_r

import corebayes as cb

TOL, DRAWS, CLOSE = 0.005, 1000, 0.1
KEPT = Path("results/first_tries.jsonl")

Posterior = Mapping[str, Any]
"""Draws (chains, draws) of each number by name."""
Summaries = Mapping[str, Mapping[str, Any]]


class Try(NamedTuple):
    """One analysis: the coreset as first written, and the posterior of all rows by others."""

    name: str
    coreset: Callable[[], Any]
    full: Callable[[], Posterior]


class Outcome(NamedTuple):
    rows: int
    size: int
    seconds: float
    kl: float
    certified: bool
    mean: Gap
    sd: Gap

    @property
    def good(self) -> bool:
        return (self.mean.close and self.sd.close) or not self.certified


class Gap(NamedTuple):
    """How far two numbers are apart, in posterior standard deviations, and its error."""

    off: float = 0.0
    error: float = 0.0
    name: str = ""

    @property
    def beyond(self) -> float:
        return self.off - 3.0 * self.error

    @property
    def close(self) -> bool:
        return self.beyond <= CLOSE


def furthest(ours: Summaries, theirs: Summaries, place: int) -> Gap:
    """The largest gap that draws do not explain, of means (place 0) or deviations (1)."""
    gaps = [Gap()]
    for name in compared(ours, theirs):
        (a, b), sd = (ours[name], theirs[name]), theirs[name]["values"][1]
        error = math.hypot(a["errors"][place], b["errors"][place]) / sd
        gaps.append(Gap(abs(a["values"][place] - b["values"][place]) / sd, error, name))
    return max(gaps, key=lambda gap: (not gap.close, gap.off))


def by_formula(formula: str, frame: Any, **options: Any) -> Any:
    model, data = cb.from_formula(formula, frame, **options)
    return cb.build(model, data, tol=TOL, seed=0, progress=False), data


def by_adapter(adapt: Callable[[Any], Any], model: Any) -> Any:
    adapted, data = adapt(model)
    return cb.build(adapted, data, tol=TOL, seed=0, progress=False), data


def linear_diamonds() -> Any:
    frame = from_r("ggplot2", "diamonds")[["carat", "depth", "table", "price"]]
    data = cb.open(frame, target="price")
    model = cb.LinearRegression(intercept=True)
    return cb.build(model, data, tol=TOL, seed=0, progress=False), data


def bambi(formula: str, frame: Any, **options: Any) -> Any:
    library: Any = __import__("bambi")
    return library.Model(formula, frame, **options)


def bikes() -> Any:
    return from_file("ISLP", "Bikeshare.csv")


def teachers() -> Any:
    return from_r("lme4", "InstEval")


def tries() -> list[Try]:
    """In the order in which a new user tried them."""
    default = "default ~ student + balance + income"
    shared = "bikers ~ mnth + C(hr) + workingday + temp + weathersit"
    gems = "price ~ carat + cut + color + clarity + depth + table"
    visits = "mdvis ~ lncoins + idp + lpi + fmde + physlm + disea + hlthg + hlthf + hlthp"
    wages = "wage ~ age + year + education"
    return [
        Try(
            "Default, logistic",
            lambda: by_formula(default, from_r("ISLR", "Default"), family="bernoulli"),
            lambda: bambi_posterior(
                "default['Yes'] ~ student + balance + income",
                from_r("ISLR", "Default"),
                middle=-3.37,
                family="bernoulli",
            ),
        ),
        Try(
            "Bikeshare, Poisson",
            lambda: by_formula(shared, bikes(), family="poisson"),
            lambda: bambi_posterior(shared, bikes(), family="poisson"),
        ),
        Try(
            "diamonds, Bambi Gaussian",
            lambda: by_adapter(cb.from_bambi, bambi(gems, from_r("ggplot2", "diamonds"))),
            lambda: bambi_posterior(gems, from_r("ggplot2", "diamonds")),
        ),
        Try(
            "diamonds, LinearRegression",
            linear_diamonds,
            lambda: bambi_posterior("price ~ carat + depth + table", from_r("ggplot2", "diamonds")),
        ),
        Try(
            "randhie, negative binomial",
            lambda: by_formula(
                visits, from_file("statsmodels", "randhie.csv"), family="negativebinomial"
            ),
            lambda: bambi_posterior(
                visits, from_file("statsmodels", "randhie.csv"), family="negativebinomial"
            ),
        ),
        Try(
            "Wage, Student-t",
            lambda: by_formula(wages, from_r("ISLR", "Wage"), family="t"),
            lambda: bambi_posterior(wages, from_r("ISLR", "Wage"), family="t"),
        ),
        Try("colon, censored Weibull", lambda: weibull(TOL), weibull_posterior),
        *(
            Try(
                f"InstEval, Bambi (1|dept), noncentered={form}",
                lambda form=form: by_adapter(
                    cb.from_bambi,
                    bambi("y ~ service + (1|dept)", teachers(), noncentered=form),
                ),
                lambda form=form: bambi_posterior(
                    "y ~ service + (1|dept)", teachers(), noncentered=form
                ),
            )
            for form in (True, False)
        ),
        Try(
            "VerbAgg, PyMC hierarchical",
            lambda: by_adapter(cb.from_pymc, pymc_hierarchy(from_r("lme4", "VerbAgg"))),
            lambda: pymc_posterior(pymc_hierarchy(from_r("lme4", "VerbAgg"))),
        ),
        Try(
            "InstEval ordinal, NumPyro",
            lambda: numpyro_ordinal(teachers(), TOL),
            lambda: numpyro_posterior(teachers()),
        ),
        Try(
            "InstEval ordinal, Bambi cumulative",
            lambda: by_adapter(cb.from_bambi, bambi_ordinal(teachers())),
            lambda: bambi_posterior(bambi_ordinal(teachers())),
        ),
        Try(
            "Caravan, 86 parameters",
            lambda: by_formula("Purchase ~ .", from_r("ISLR", "Caravan"), family="bernoulli"),
            lambda: bambi_posterior(
                all_columns("Purchase", from_r("ISLR", "Caravan")),
                from_r("ISLR", "Caravan"),
                middle=-2.75,
                family="bernoulli",
            ),
        ),
    ]


def all_columns(target: str, frame: Any) -> str:
    """Bambi has no dot."""
    others = " + ".join(name for name in frame.columns if name != target)
    return f"{target}['Yes'] ~ {others}"


def full_summaries(one: Try) -> Summaries:
    """Of all rows by the other library, kept."""
    jobs = [(one.name, one)]
    (row,) = Kept(KEPT).each(jobs, lambda job: {"found": summaries(job.full())})
    return row["found"]


def measure(one: Try) -> Outcome:
    began = time.process_time()
    coreset, data = one.coreset()
    seconds = time.process_time() - began
    certificate = cb.certify(coreset, data, seed=1)
    drawn = cb.sample(coreset, draws=DRAWS, chains=4, seed=1, progress=False)
    ours = summaries({plain(name): own for name, own in flat(drawn.posterior).items()})
    theirs = full_summaries(one)
    kl = certificate.reverse_kl
    return Outcome(
        data.num_rows,
        len(coreset.indices),
        seconds,
        float("nan") if kl is None else kl.value,
        certificate.certified,
        furthest(ours, theirs, 0),
        furthest(ours, theirs, 1),
    )


def plain(name: str) -> str:
    """What Bambi calls a number: x[T.a] of a formula is x[a] there."""
    return name.replace("[T.", "[").replace("C(hr)", "hr").replace("noise_sd", "sigma")


def compared(ours: Summaries, theirs: Summaries) -> list[str]:
    names = [name for name in ours if name in theirs]
    if not names:
        raise ValueError(f"nothing to compare: {sorted(ours)[:8]} and {sorted(theirs)[:8]}")
    return names


def main() -> None:
    parser = argparse.ArgumentParser(description="Analyses as written the first time.")
    parser.add_argument("--only", action="append", default=[], help="a name or its beginning")
    parser.add_argument("--list", action="store_true", help="print the names alone")
    parser.add_argument("--full-only", action="store_true", help="sample and keep all rows alone")
    options = parser.parse_args()
    chosen = [
        one for one in tries() if not options.only or one.name.startswith(tuple(options.only))
    ]
    if options.list:
        print("\n".join(one.name for one in chosen))
        return
    if options.full_only:
        for one in chosen:
            print(one.name, len(full_summaries(one)), flush=True)
        return
    print("| analysis | first try | rows kept of N | CPU s | KL | means within | sds within |")
    print("|---|---|---|---|---|---|---|")
    for one in chosen:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            print(line(one), flush=True)


def line(one: Try) -> str:
    """One row of the table."""
    try:
        found = measure(one)
    except NotInstalled as missing:
        return f"| {one.name} | left out: {missing} | | | | | |"
    except Exception as error:
        traceback.print_exc()
        return f"| {one.name} | no: {type(error).__name__}: {str(error)[:120]} | | | | | |"
    verdict = "yes" if found.good and found.certified else "yes, refused" if found.good else "no"
    return (
        f"| {one.name} | {verdict} | {found.size:,} of {found.rows:,} | {found.seconds:.0f} "
        f"| {found.kl:.1g} | {found.mean.off:.2f} ± {found.mean.error:.2f} sd "
        f"| {100 * found.sd.off:.0f} ± {100 * found.sd.error:.0f} % |"
    )


if __name__ == "__main__":
    main()
