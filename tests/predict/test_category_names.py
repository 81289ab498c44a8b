"""Categories are called in coefficients and predictions what the table calls them."""

from __future__ import annotations

import numpy as np
import pandas
import pytest

import corebayes as cb


def colours(num_rows: int = 300) -> pandas.DataFrame:
    rng = np.random.default_rng(0)
    x = rng.normal(size=num_rows)
    number = (x + rng.normal(size=num_rows) > 0).astype(int) + (rng.uniform(size=num_rows) < 0.3)
    return pandas.DataFrame({"x": x, "colour": np.array(["red", "green", "blue"])[number]})


@pytest.mark.slow
def test_names_of_levels_are_everywhere(tmp_path):
    frame = colours()
    model, data = cb.from_formula("colour ~ x", frame, family="categorical")
    coreset = cb.build(model, data, size=20, seed=0, progress=False)
    names = ("Intercept[green]", "x[green]", "Intercept[red]", "x[red]")
    assert coreset.model.parameter_names == names
    coreset.save(tmp_path / "c.parquet")
    again = cb.load(tmp_path / "c.parquet")
    assert again.model.parameter_names == names
    found = cb.predict(again, frame.head(5), seed=0)
    assert list(found.to_frame().columns)[:2] == ["likeliest", "p[blue]"]
    assert set(found.to_frame()["likeliest"]) <= {"red", "green", "blue"}
    out = tmp_path / "predicted.parquet"
    cb.predict(again, frame, seed=0, out=out)
    stored = pandas.read_parquet(out)
    whole = stored[["p[blue]", "p[green]", "p[red]"]]
    likeliest = np.array(["blue", "green", "red"])[whole.to_numpy().argmax(axis=1)]
    np.testing.assert_array_equal(stored["likeliest"].to_numpy(dtype=str), likeliest)
    # Red falls with x, and blue is what the others are compared with.
    drawn = cb.sample(again, draws=300, chains=2, seed=0, progress=False).posterior
    assert float(drawn["x[red]"].mean()) < float(drawn["x[green]"].mean()) < 0.0


def test_names_without_categories_are_refused():
    with pytest.raises(ValueError, match="give these too"):
        cb.CategoricalRegression(category_names=("a", "b"))
    with pytest.raises(ValueError, match="3 category_names of 2 categories"):
        cb.CategoricalRegression(categories=(0.0, 1.0), category_names=("a", "b", "c"))
