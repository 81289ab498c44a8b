"""Every family by formula on the command line: build, certify, sample, predict.

    python -m benchmarks.command_line [FAMILY ...] [--rows 4000] [--tol 0.02] [--seed 5]
                                      [--terms plain mixed]

The five-line session of a newcomer, in a folder of its own, with `y ~ x + C(g)` (plain) or
`y ~ x + (1 | g)` (mixed). A line passes when every command ends with 0, the certificate holds, and,
where the target is a number that was seen, the mean prediction of all rows is within four standard
errors of their mean and 90 % intervals hold at least 87 % of them (targets that are whole numbers
cannot do with fewer). Times are CPU seconds of the four commands, imports not included.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import tempfile
import time
import warnings
from typing import Any

import numpy as np
import pandas as pd
from typer.testing import CliRunner

from corebayes.cli.app import app

TERMS = {"plain": "y ~ x + C(g)", "mixed": "y ~ x + (1 | g)"}
OPTIONS = {
    "binomial": ["--trials", "trials"],
    "exponential": ["--event", "seen"],
    "weibull": ["--event", "seen"],
}
LEAST_COVER, FURTHEST = 0.87, 4.0


def frame_of(family: str, num_rows: int, seed: int) -> pd.DataFrame:
    """Rows of the family: one covariate and six groups."""
    rng = np.random.default_rng(seed)
    x, group = rng.normal(size=num_rows), rng.integers(6, size=num_rows)
    eta = 0.3 + 0.5 * x + rng.normal(0.0, 0.5, size=6)[group]
    frame = pd.DataFrame({"x": x, "g": np.array(list("pqrstu"))[group]})
    if family in ("exponential", "weibull"):
        shape = 1.0 if family == "exponential" else 1.7
        end, censored = np.exp(eta) * rng.weibull(shape, num_rows), rng.exponential(3.0, num_rows)
        return frame.assign(y=np.minimum(end, censored), seen=(end <= censored).astype(int))
    if family == "binomial":
        frame["trials"] = 7
    return frame.assign(y=_target(family, eta, rng))


def _target(family: str, eta: Any, rng: np.random.Generator) -> Any:
    number, mean, share = eta.size, np.exp(eta), 1.0 / (1.0 + np.exp(-eta))
    zero = rng.random(number) < 0.3
    of_three = rng.gumbel(size=(number, 3)) + np.stack([0.0 * eta, eta, -eta], axis=1)
    overdispersed = rng.negative_binomial(3, 3.0 / (3.0 + mean))
    return {
        "beta": rng.beta(8.0 * share, 8.0 * (1.0 - share)).clip(1e-6, 1.0 - 1e-6),
        "binomial": rng.binomial(7, share),
        "categorical": np.array(["u", "v", "w"])[of_three.argmax(axis=1)],
        "cloglog": (rng.random(number) < 1.0 - np.exp(-np.exp(eta - 1.0))).astype(int),
        "gamma": rng.gamma(3.0, mean / 3.0),
        "hurdle-negative-binomial": np.where(zero, 0, 1 + overdispersed),
        "hurdle-poisson": np.where(zero, 0, 1 + rng.poisson(mean)),
        "linear": eta + rng.normal(size=number),
        "logistic": (rng.random(number) < share).astype(int),
        "lognormal": np.exp(eta + 0.5 * rng.normal(size=number)),
        "negative-binomial": overdispersed,
        "ordinal": np.digitize(eta + rng.logistic(size=number), [-1.0, 1.0]),
        "ordinal-probit": np.digitize(eta + rng.normal(size=number), [-1.0, 1.0]),
        "poisson": rng.poisson(mean),
        "poisson-softplus": rng.poisson(np.log1p(mean)),
        "probit": (eta + rng.normal(size=number) > 0.0).astype(int),
        "student-t": eta + rng.standard_t(4.0, number),
        "zero-inflated-negative-binomial": np.where(zero, 0, overdispersed),
        "zero-inflated-poisson": np.where(zero, 0, rng.poisson(mean)),
    }[family]


FAMILIES = (
    *("beta", "binomial", "categorical", "cloglog", "exponential", "gamma"),
    *("hurdle-negative-binomial", "hurdle-poisson", "linear", "logistic", "lognormal"),
    *("negative-binomial", "ordinal", "ordinal-probit", "poisson", "poisson-softplus", "probit"),
    *("student-t", "weibull", "zero-inflated-negative-binomial", "zero-inflated-poisson"),
)


def run(*words: str) -> str:
    """What the command printed; an error where it did not end with 0."""
    done = CliRunner().invoke(app, words, obj=list(words))
    if done.exit_code:
        raise RuntimeError(f"{words[0]} ended with {done.exit_code}: {done.exception or ''}")
    return done.stdout


def session(family: str, formula: str, frame: pd.DataFrame, tol: float) -> tuple[str, bool]:
    """The four commands in the present folder: what to print, and whether it passes."""
    frame.to_parquet("rows.parquet")
    frame.drop(columns="y").to_parquet("new.parquet")
    build = ["build", "rows.parquet", "--model", family, "--formula", formula, "--tol", str(tol)]
    run(*build, "--out", "coreset.parquet", *OPTIONS.get(family, []))
    certificate = json.loads(run("certify", "coreset.parquet", "rows.parquet", "--json"))
    run("sample", "coreset.parquet", "--out", "posterior.nc")
    drawn = ["--posterior", "posterior.nc", "--draws", "300"]
    run("predict", "coreset.parquet", "new.parquet", *drawn, "--out", "predicted.parquet")
    kl = certificate["reverse_kl"]
    text, passed = f"KL {kl['value']:.4f} ± {kl['standard_error']:.4f}", certificate["certified"]
    predicted = pd.read_parquet("predicted.parquet")
    if "mean" not in predicted or "seen" in frame:
        return text, passed
    y = frame["y"].to_numpy(dtype=float)
    off = (predicted["mean"].mean() - y.mean()) / (y.std() / np.sqrt(y.size))
    cover = float(np.mean((y >= predicted["lower"]) & (y <= predicted["upper"])))
    text += f", mean off by {off:+.1f} standard errors, 90 % intervals hold {cover:.1%}"
    return text, passed and abs(off) <= FURTHEST and cover >= LEAST_COVER


def main() -> None:
    parser = argparse.ArgumentParser(description="Every family on the command line.")
    parser.add_argument("families", nargs="*", metavar="FAMILY", help=", ".join(FAMILIES))
    parser.add_argument("--rows", type=int, default=4000)
    parser.add_argument("--tol", type=float, default=0.02)
    parser.add_argument("--seed", type=int, default=5)
    parser.add_argument("--terms", nargs="*", default=list(TERMS), choices=list(TERMS))
    arguments = parser.parse_args()
    unknown = sorted(set(arguments.families) - set(FAMILIES))
    if unknown:
        parser.error(f"there is no family {unknown[0]!r}; there are {', '.join(FAMILIES)}")
    warnings.simplefilter("ignore")
    passed = total = 0
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        for family in arguments.families or FAMILIES:
            for terms in arguments.terms:
                frame, began = frame_of(family, arguments.rows, arguments.seed), time.process_time()
                try:
                    text, good = session(family, TERMS[terms], frame, arguments.tol)
                except RuntimeError as error:
                    text, good = str(error), False
                seconds = time.process_time() - began
                verdict = "pass" if good else "FAIL"
                print(f"{family:32} {terms:6} {verdict} {seconds:5.1f} s  {text}", flush=True)
                passed, total = passed + good, total + 1
    print(f"{passed} of {total} pass")


if __name__ == "__main__":
    main()
