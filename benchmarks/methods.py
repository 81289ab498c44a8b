"""Every construction on data sets: KL against size, CPU time and passes over the rows.

    python -m benchmarks.methods synth_lr ds1 [--sizes 5 10 20 50 100] [--trials 3] [--out DIR]
    python -m benchmarks.methods all --out docs/methods

Prints Markdown tables (medians of the trials) and writes DIR/NAME.csv, .inc (the table), .png and
.svg. KL is
KL(π_w ‖ π) in nats between Laplace fits, exact for the Gaussian and the radial basis data. Methods
with a weighting distribution are given the Laplace fit of the full posterior (the paper's Optimal)
unless their name says otherwise; its cost is part of their time.
"""

from __future__ import annotations

import argparse
import csv
import sys
import time
import warnings
from collections.abc import Iterator
from dataclasses import is_dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from benchmarks import datasets
from benchmarks.flights import flights

import corebayes as cb
import corebayes.constructions as constructions
from corebayes.coreset import Coreset
from corebayes.diagnostics import gaussian_kl
from corebayes.figures.methods import Medians, draw_methods, place_of
from corebayes.problem import Problem
from corebayes.rows import open_rows
from corebayes.samplers.exact import is_conjugate
from corebayes.samplers.laplace import Laplace, full_posterior
from corebayes.scan.inline import one_blas_thread
from corebayes.types import Data, Gaussian

SETS = (*datasets.LOGISTIC, *datasets.POISSON)


class Plan(NamedTuple):
    """What is run unless the command says otherwise."""

    sizes: tuple[int, ...]
    trials: int
    max_time: float
    """Seconds for each build."""


SMALL, LARGE = Plan((5, 10, 20, 50, 100), 3, 8.0), Plan((20, 100), 1, 15.0)
PLANS = dict.fromkeys(SETS, SMALL) | {
    "biketrips_large": LARGE,
    "flights": LARGE,
    "logistic": LARGE,
    "gaussian": Plan((10, 20, 50, 100, 200), 1, 20.0),
    "rbf": Plan((50, 300), 1, 30.0),
}


class Task(NamedTuple):
    """A model, its rows, and the full posterior to measure against."""

    name: str
    model: Any
    data: Data
    full: Gaussian
    prior_kl: float

    def kl(self, coreset: Coreset) -> float:
        fit = Laplace(tolerance=1e-20).fit(cb.Posterior.of(coreset))
        return gaussian_kl(fit, self.full)


class Result(NamedTuple):
    method: str
    size_asked: int
    trial: int
    size: int
    kl: float
    cpu_seconds: float
    passes: float
    reason: str


def all_methods() -> dict[str, Any]:
    """Every exported construction with its defaults, and the variants worth a line of their own."""
    exported = {name: getattr(constructions, name) for name in constructions.__all__}
    methods = {
        name: kind()
        for name, kind in exported.items()
        if hasattr(kind, "step") and is_dataclass(kind)
    }
    methods["GIGA + refit"] = cb.GIGA(refit=True)
    methods["GIGA, realistic"] = cb.GIGA(weighting=cb.Realistic(num_draws=100))
    methods["ImportanceSampling + refit"] = cb.ImportanceSampling(refit=True)
    return {label: methods[label] for label in sorted(methods, key=place_of)}


def load(name: str, folder: str | None) -> Task:
    model, rows = _model_and_rows(name, folder)
    data = open_rows(rows)
    with warnings.catch_warnings():
        # 301 radial functions on a county are nearly dependent, and the model says so.
        warnings.simplefilter("ignore", UserWarning)
        problem = Problem(model.bind(data), data)
    if is_conjugate(problem.model):
        full = problem.full_posterior
    else:
        full = full_posterior(problem.model, data)
    prior = Laplace().fit(cb.Posterior(problem.model, problem.no_points().rows, np.empty(0)))
    return Task(name, model, data, full, gaussian_kl(prior, full))


def _model_and_rows(name: str, folder: str | None) -> tuple[Any, Any]:
    if name == "gaussian":
        return cb.GaussianMean(1.0), datasets.gaussian(seed=0)
    if name == "flights":
        return cb.LogisticRegression(prior=cb.Normal()), flights()[:2]
    if name == "logistic":
        return cb.LogisticRegression(prior=cb.Normal()), datasets.logistic(seed=0)
    stored = datasets.data_folder(folder)
    if name == "rbf":
        features, y, settings = datasets.house_prices(stored, seed=0)
        prior = cb.Normal(settings["mean"], float(np.sqrt(settings["second"])))
        noise_sd = float(np.sqrt(settings["variance"]))
        return cb.LinearRegression(noise_sd=noise_sd, prior=prior), (features, y)
    # The paper's models.
    prior = cb.Normal()
    if name in datasets.LOGISTIC:
        return cb.LogisticRegression(prior=prior), datasets.regression(stored, name)
    return cb.PoissonRegression(link="softplus", prior=prior), datasets.regression(stored, name)


def run(task: Task, methods: dict[str, Any], plan: Plan) -> Iterator[Result]:
    """One result for every method, size and trial; a method that fails is named and left out."""
    # The first build compiles and imports; nobody's time should hold that.
    cb.build(task.model, task.data, size=5, method=cb.SparseVI(), progress=False)
    number, total = 0, len(methods) * len(plan.sizes) * plan.trials
    for label, method in methods.items():
        refused = None
        for size in plan.sizes:
            for trial in range(plan.trials):
                number += 1
                if refused is not None:
                    continue
                try:
                    result = _measure(task, label, method, size, trial, plan.max_time)
                except Exception as error:
                    # One method that fails must not cost the hours of all others: it is named.
                    refused = f"{label} left out, {type(error).__name__}: {error}"
                    print(refused, file=sys.stderr)
                    continue
                print(
                    f"[{number}/{total}] {task.name} {label}, size {size}, trial {trial + 1}: "
                    f"KL {result.kl:.2g}, {result.size} rows, {result.cpu_seconds:.2f} s; "
                    f"{result.reason}",
                    file=sys.stderr,
                    flush=True,
                )
                yield result


def _measure(task: Task, label: str, method: Any, size: int, trial: int, max_time: float) -> Result:
    began = time.process_time()
    with one_blas_thread():
        coreset = cb.build(
            task.model,
            task.data,
            size=size,
            method=method,
            seed=trial,
            max_time=max_time,
            progress=False,
        )
    seconds = time.process_time() - began
    passes = coreset.provenance["passes"]
    kl = task.kl(coreset)
    return Result(label, size, trial, coreset.size, kl, seconds, passes, coreset.reason)


def curves_of(results: list[Result]) -> dict[str, Medians]:
    """Medians over the trials, methods in the order in which they were run."""
    curves: dict[str, Medians] = {}
    for label in dict.fromkeys(result.method for result in results):
        ours = [result for result in results if result.method == label]
        sizes = sorted({result.size_asked for result in ours})
        groups = [[result for result in ours if result.size_asked == size] for size in sizes]
        medians = [
            np.median([(result.kl, result.cpu_seconds, result.passes) for result in group], axis=0)
            for group in groups
        ]
        curves[label] = Medians(np.array(sizes), *np.array(medians).T)
    return curves


def table(results: list[Result]) -> str:
    """KL by size, best first at the largest size, and CPU seconds of that; * for stopped builds."""
    sizes = sorted({result.size_asked for result in results})
    late = {(r.method, r.size_asked) for r in results if r.reason.startswith("time limit")}
    lines = ["| method | " + " | ".join(f"M = {size}" for size in sizes) + " | CPU s |"]
    lines.append("|---" * (len(sizes) + 2) + "|")
    for label, curve in sorted(curves_of(results).items(), key=lambda item: item[1].kls[-1]):
        cells = [
            f"{kl:.2g}" + ("*" if (label, size) in late else "")
            for size, kl in zip(curve.sizes, curve.kls, strict=True)
        ]
        lines.append(f"| {label} | " + " | ".join(cells) + f" | {curve.seconds[-1]:.2g} |")
    return "\n".join(lines)


def read_csv(path: Path) -> list[Result]:
    """What an earlier run of other methods has left there."""
    if not path.exists():
        return []
    with path.open(newline="", encoding="utf-8") as file:
        return [
            Result(
                row["method"],
                int(row["size_asked"]),
                int(row["trial"]),
                int(row["size"]),
                float(row["kl"]),
                float(row["cpu_seconds"]),
                float(row["passes"]),
                row["reason"],
            )
            for row in csv.DictReader(file)
        ]


def write_csv(path: Path, results: list[Result]) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(Result._fields)
        writer.writerows(results)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument(
        "names", nargs="+", choices=[*PLANS, "all"], metavar="NAME", help=", ".join([*PLANS, "all"])
    )
    parser.add_argument("--sizes", type=int, nargs="+")
    parser.add_argument("--trials", type=int)
    parser.add_argument(
        "--methods", nargs="+", help="labels to run, beside what is in --out; default: all"
    )
    parser.add_argument("--max-time", type=float, help="seconds for each build")
    parser.add_argument("--out", type=Path, default=Path("results") / "methods")
    parser.add_argument("--data", help="folder with the paper's .npz files")
    arguments = parser.parse_args()
    methods = all_methods()
    if arguments.methods:
        unknown = set(arguments.methods) - set(methods)
        if unknown:
            parser.error(f"no method {sorted(unknown)}; there are {list(methods)}")
        methods = {label: methods[label] for label in arguments.methods}
    for name in PLANS if "all" in arguments.names else arguments.names:
        plan = Plan(
            tuple(sorted(arguments.sizes or PLANS[name].sizes)),
            arguments.trials or PLANS[name].trials,
            arguments.max_time or PLANS[name].max_time,
        )
        compare(load(name, arguments.data), methods, plan, arguments.out)


def compare(task: Task, methods: dict[str, Any], plan: Plan, out: Path) -> None:
    """Run all methods on one data set; print and write the table and the figure."""
    out.mkdir(parents=True, exist_ok=True)
    results = [old for old in read_csv(out / f"{task.name}.csv") if old.method not in methods]
    for result in run(task, methods, plan):
        results.append(result)
        write_csv(out / f"{task.name}.csv", results)
    results.sort(key=lambda result: place_of(result.method))
    curves = curves_of(results)
    title = f"{task.name}: N = {task.data.num_rows:,}, d = {task.full.mean.size}"
    trials = "one trial" if plan.trials == 1 else f"medians of {plan.trials} trials"
    text = f"{title}; KL of the prior {task.prior_kl:.2g}; {trials}.\n\n{table(results)}\n"
    if any(result.reason.startswith("time limit") for result in results):
        text += (
            f"\n\\* stopped after {plan.max_time:g} s, with fewer rows or steps than asked for.\n"
        )
    print(text)
    (out / f"{task.name}.inc").write_text(text, encoding="utf-8")
    for path in draw_methods(out / task.name, title, curves, task.prior_kl):
        print(f"wrote {path}")


if __name__ == "__main__":
    main()
