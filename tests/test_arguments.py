"""Hostile values for every number that a public class or function takes: one sentence each."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import corebayes as cb

X = np.random.default_rng(0).normal(size=(200, 2))
ROWS = (X, X @ [1.0, -1.0])
CORESET = cb.build(cb.LinearRegression(noise_sd=1.0, prior=cb.Normal()), ROWS, size=6)

SKIPPED = {
    "Certificate",
    "Check",
    "Coreset",
    "CustomModel",
    "Report",
    "Normal",
    "Prediction",
    "GivenDraws",
    "GroupCoreset",
    "Draws",
    "Refit",
}
CLASSES = {
    name: getattr(cb, name)
    for name in cb.__all__
    if dataclasses.is_dataclass(getattr(cb, name)) and name not in SKIPPED
}
HOSTILE = ["x", -1, np.nan, True, [1], 1j, np.inf]


def fields_of(words):
    return [
        (name, field.name)
        for name, kind in CLASSES.items()
        for field in dataclasses.fields(kind)
        if str(field.type).removesuffix(" | None") in words and field.init
    ]


@pytest.mark.parametrize(("name", "field"), fields_of({"int", "float"}))
def test_numbers_of_every_class(name, field):
    for value in HOSTILE:
        if field == "mean" and value == -1:
            # A mean may be negative.
            continue
        with pytest.raises((TypeError, ValueError)) as refusal:
            CLASSES[name](**required(name), **{field: value})
            pytest.fail(f"{value!r} was taken")
        assert field in str(refusal.value) and "\n" not in str(refusal.value), value


@pytest.mark.parametrize(("name", "field"), fields_of({"int"}))
def test_whole_numbers_of_every_class(name, field):
    for value in (0.5, -3):
        with pytest.raises((TypeError, ValueError), match=field):
            CLASSES[name](**required(name), **{field: value})
            pytest.fail(f"{value!r} was taken")


@pytest.mark.parametrize(
    ("name", "field"),
    [(name, "refit") for name in ("GIGA", "FrankWolfe", "ImportanceSampling")]
    + [("Laplace", "matched")],
)
def test_flags(name, field):
    with pytest.raises(TypeError, match=f"{field} must be True or False, got 'no'"):
        CLASSES[name](**{field: "no"})


def required(name):
    return {"geometry": cb.Hermite()} if name == "Guard" else {}


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: cb.NUTS(num_tune=0), "num_tune must be at least"),
        (lambda: cb.NUTS(target_accept=1.0), "target_accept must be between 0 and 1, got 1.0"),
        (lambda: cb.AnnealedSparseVI(warming=1.0), "warming must be finite, above 1"),
        (lambda: cb.MonteCarlo(num_draws=1), "num_draws must be at least 2"),
        (lambda: cb.Hermite(order=0), "order must be at least 1"),
        (lambda: cb.Adam(decay=(0.9, 1.0)), "decay must be"),
        (lambda: cb.HotDoG(decay=0.9), "decay must be two numbers"),
        (lambda: cb.SGD(rate="fast"), "rate must be a number"),
        (lambda: cb.SparseVI(geometry=cb.MonteCarlo), r"geometry .* write MonteCarlo\(\)"),
        (lambda: cb.MonteCarlo(sampler="nuts"), "sampler must be one of corebayes' objects"),
        (lambda: cb.LogisticRegression(prior={"mean": 0}), "prior of 'mean' must be one such as"),
        (lambda: cb.LogisticRegression(prior="flat"), "prior must be"),
        (lambda: cb.Normal("a"), "mean"),
        (lambda: cb.Normal(0.0, {"sd": 1}), "sd"),
        (lambda: cb.CustomModel("ll", lambda d: d, 2), "log_likelihood must be a function"),
        (lambda: cb.CustomModel(print, print, 2, hessian=3), "hessian must be a function"),
        (lambda: cb.from_pymc("x"), "from_pymc takes a PyMC model"),
    ],
)
def test_sentences_of_classes(make, words):
    with pytest.raises((TypeError, ValueError), match=words):
        make()


CALLS = {
    "build": lambda **more: cb.build(
        cb.LinearRegression(noise_sd=1.0, prior=cb.Normal()), ROWS, **{"size": 5, **more}
    ),
    "build_path": lambda **more: cb.build_path(
        cb.LinearRegression(noise_sd=1.0, prior=cb.Normal()), ROWS, **{"sizes": [5], **more}
    ),
    "certify": lambda **more: cb.certify(CORESET, ROWS, **more),
    "sample": lambda **more: cb.sample(CORESET, **more),
    "report": lambda **more: cb.report(CORESET, ROWS, progress=False, **more),
}
ARGUMENTS = {
    "build": {"size": ["x", 0, 2.5, True], "seed": None, "tol": None, "max_time": None},
    "build_path": {"sizes": ["x", 3, [], [0], [2.5], [True]], "seed": None, "max_time": None},
    "certify": {"draws": None, "seed": None, "tol": None},
    "sample": {"draws": None, "chains": None, "tune": None, "seed": None},
    "report": {"draws": None, "seed": None, "tol": None},
}
BAD = ["a", np.nan, -1, True, np.inf, [1]]


@pytest.mark.parametrize(
    ("call", "argument", "value"),
    [
        (call, argument, value)
        for call, arguments in ARGUMENTS.items()
        for argument, values in arguments.items()
        for value in (values or BAD)
    ]
    + [(call, "seed", 1.5) for call in CALLS]
    + [(call, "method", value) for call in ("build", "build_path") for value in ("giga", cb.GIGA)],
    ids=repr,
)
def test_arguments_of_every_function(call, argument, value):
    with pytest.raises((TypeError, ValueError)) as refusal:
        CALLS[call](**{argument: value})
    words = str(refusal.value)
    assert words.startswith(argument.removesuffix("s") if argument == "sizes" else argument), words


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (cb.LogisticRegression, r"write LogisticRegression\(\), with parentheses"),
        ("logistic", r"model must be one such as LogisticRegression\(\)"),
        ((cb.LogisticRegression(prior=cb.Normal()), None), "gives first of its pair"),
    ],
)
def test_what_is_no_model_is_said(model, words):
    with pytest.raises(TypeError, match=words):
        cb.build(model, (np.ones((4, 1)), np.ones(4)), size=2)


def test_a_coreset_is_not_saved_under_the_name_of_another_format(tmp_path):
    rows = np.random.default_rng(0).normal(size=(20, 2))
    coreset = cb.build(
        cb.GaussianMean(np.eye(2)), rows, size=3, method=cb.Uniform(), progress=False
    )
    with pytest.raises(ValueError, match=r"end the name in \.parquet, .*c\.csv; corebayes\.to_csv"):
        coreset.save(tmp_path / "c.csv")
    assert not (tmp_path / "c.csv").exists()
    coreset.save(tmp_path / "c.parquet")
