"""The part of a report that holds the rows against replicates of them."""

import numpy as np
import pandas as pd

import corebayes as cb
from corebayes.predict.check import Check, Statistic
from corebayes.report.page import predictive


def found(edges, shares, name="trips"):
    one = Statistic("share of zeros", 0.25, 0.1, 0.05, 0.15, 0.0)
    return Check(
        statistics=(one,),
        num_rows=29960,
        num_draws=len(shares) - 1,
        target_name=name,
        edges=np.asarray(edges, dtype=float),
        shares=np.asarray(shares, dtype=float),
    )


def test_counts_are_a_rootogram_and_words_are_escaped():
    shares = [[0.5, 0.3, 0.15, 0.05], [0.4, 0.3, 0.2, 0.1], [0.45, 0.3, 0.15, 0.1]]
    page = predictive(found([0.5, 1.5, 2.5], shares, "<b>"))
    assert "√ share of rows" in page and "29,960 rows" in page and "0.000" in page
    assert "<b>" not in page and "&lt;b&gt;" in page
    assert "Of 4 bins the data are outside of the replicated 90 % in" in page
    measured = predictive(found([0.1, 0.7, 1.1], shares))
    assert "√" not in measured and "share of rows" in measured


def test_two_labels_have_no_picture_and_other_models_no_section():
    page = predictive(found([0.5, 1.5], [[0.5, 0.5, 0.0]] * 3))
    assert "<svg" not in page and "share of zeros" in page
    assert predictive(None) == ""


def test_a_mixed_model_has_a_report_with_the_users_columns():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"x": rng.normal(size=900), "g": rng.choice(["AA", "B6", "UA"], 900)})
    frame["late"] = (rng.random(900) < 1 / (1 + np.exp(-frame.x))).astype(int)
    coreset = cb.build(*cb.from_formula("late ~ x + (1 | g)", frame), size=40)
    page = cb.report(coreset, frame, draws=200).html
    assert "Does the model fit the data" in page
    assert "1|g[AA]" in page and "<td>B6</td>" in page
