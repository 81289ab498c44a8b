"""Patients as units: whole, or not at all, with one weight."""

import numpy as np
import pytest

import corebayes as cb
from corebayes.models.units import Units
from corebayes.samplers.laplace import full_posterior


def visits(num_units=1500, seed=0, longest=6):
    rng = np.random.default_rng(seed)
    lengths = rng.integers(1, longest, num_units)
    patient = rng.permutation(np.repeat(np.arange(num_units) * 7 + 3, lengths)).astype(float)
    X = rng.normal(size=(patient.size, 2))
    y = (rng.random(patient.size) < 1.0 / (1.0 + np.exp(-X @ [1.0, -0.4]))).astype(float)
    return X, y, patient


def opened(seed=0, **options):
    X, y, patient = visits(seed=seed, **options)
    return cb.open((X, y), unit=patient)


@pytest.fixture(scope="module")
def coreset():
    return cb.build(cb.LogisticRegression(prior=cb.Normal()), opened(), size=10, seed=0)


def test_a_unit_is_the_sum_of_its_rows():
    X, y, patient = visits(40)
    counts = np.random.default_rng(1).uniform(0.0, 2.0, len(y))
    counts[patient == 3.0] = 0.0
    rows = cb.open((X, y), unit=patient, counts=counts)
    assert rows.num_rows == 39
    plain = cb.open((X, y), counts=counts)
    inner = cb.LogisticRegression(prior=cb.Normal()).bind(plain)
    model = Units(cb.LogisticRegression(prior=cb.Normal())).bind(rows)
    draws = np.random.default_rng(2).normal(size=(4, 2))
    each = counts[:, None] * inner.potentials(draws, plain.take(np.arange(len(y))))
    expected = np.array([each[patient == p].sum(axis=0) for p in np.unique(patient) if p != 3.0])
    block = rows.take(np.arange(39))
    assert np.allclose(model.potentials(draws, block), expected)
    weights = np.random.default_rng(3).uniform(size=39)
    assert np.allclose(model.sum_potentials(draws, block, weights), weights @ expected)
    gradient, hessian = model.gradient_and_hessian(draws[0], block, weights)
    step = 1e-5
    for k in range(2):
        ends = draws[0] + step * np.outer([1.0, -1.0], np.eye(2)[k])
        values = model.sum_potentials(ends, block, weights)
        assert gradient[k] == pytest.approx((values[0] - values[1]) / (2 * step), rel=1e-6)
    assert np.allclose(gradient, model.gradient(draws[0], block, weights))
    assert np.all(np.linalg.eigvalsh(hessian) < 0)
    ours, full = full_posterior(model, rows), full_posterior(inner, plain)
    assert np.allclose(ours.mean, full.mean, atol=1e-8)


def test_whole_units_enter_with_one_weight(coreset, tmp_path):
    X, y, patient = visits()
    assert coreset.size <= 10 and coreset.num_rows == 1500
    assert cb.certify(coreset, opened()).certified
    rows = cb.unrolled(coreset)
    assert np.array_equal(X[rows.indices], rows.rows.X) and np.array_equal(
        y[rows.indices], rows.rows.y
    )
    chosen = np.unique(patient[rows.indices])
    assert chosen.size == coreset.size
    assert np.array_equal(np.flatnonzero(np.isin(patient, chosen)), rows.indices)
    for one in chosen:
        assert np.unique(rows.weights[patient[rows.indices] == one]).size == 1
    assert cb.certify(rows, (X, y)).certified
    coreset.save(tmp_path / "units.parquet")
    back = cb.load(tmp_path / "units.parquet")
    assert isinstance(back.model, Units) and np.array_equal(back.rows.X, coreset.rows.X)
    assert set(cb.to_columns(rows)) == {"row_id", "weight", "x0", "x1", "y"}


def test_rows_of_units_are_rows(table):
    """They were called units, and a table that they were certified with was opened as units."""
    data = cb.open(table, target="y", features=["a", "b"], unit="patient")
    rows = cb.unrolled(cb.build(cb.LogisticRegression(), data, size=10, seed=0))
    assert repr(rows).startswith(f"Coreset({rows.size} of {len(table):,} rows")
    assert cb.certify(rows, table, draws=200).certified


def test_units_of_other_lengths_are_added(coreset):
    more = opened(seed=1, longest=9)
    grown = cb.update(coreset, more, size=10, reserve=0)
    assert grown.num_rows == 3000
    assert cb.certify(grown, [opened(), more]).certified
    with pytest.raises(ValueError, match="several sources"):
        cb.unrolled(grown)


def test_sources_of_units_are_built_from_at_once(coreset):
    """As for updates: each has its own lengths, and everything counts units."""
    sources = [opened(), opened(seed=1, longest=9)]
    whole = cb.build(cb.LogisticRegression(prior=cb.Normal()), sources, size=10, seed=0)
    assert whole.num_rows == 3000 and whole.noun == "units"
    assert whole.provenance["unit_rows"] == sum(rows.flat.num_rows for rows in sources)
    assert cb.certify(whole, sources).certified
    assert "10 of 3,000 units" in cb.certify(whole, sources).verdict


@pytest.mark.slow
def test_a_report_counts_units(coreset, tmp_path):
    sources = [opened(), opened(seed=1, longest=9)]
    grown = cb.update(coreset, sources[1], size=10)
    page = tmp_path / "page.html"
    cb.report(grown, sources, out=page, draws=100)
    text = page.read_text()
    assert "3,000 units compressed to 10 weighted units" in text and ", from 1 update" in text
    assert "units kept" in text and "rows of the unit" in text


def test_columns_and_fields_may_be_units():
    pandas = pytest.importorskip("pandas")
    X, y, patient = visits(30)
    frame = pandas.DataFrame({"a": X[:, 0], "patient": patient, "b": X[:, 1], "y": y})
    by_array = cb.open((X, y), unit=patient)
    for rows in (
        cb.open(frame, target="y", unit="patient"),
        cb.open(frame, target="y", features=["a", "b"], unit="patient"),
        cb.open({"X": X, "y": y, "patient": patient}, unit="patient"),
    ):
        assert rows.num_rows == 30
        assert np.array_equal(rows.take([0, 7]).X, by_array.take([0, 7]).X)
    assert cb.open(frame, target="y", unit="patient").column_names == ("a", "b")
    with pytest.raises(ValueError, match="unit: there is no column 'patent'"):
        cb.open(frame, target="y", unit="patent")
    with pytest.raises(ValueError, match="one value for each"):
        cb.open((X, y), unit=patient[:-1])
    bad = y.copy()
    bad[4] = 7.0
    with pytest.raises(ValueError, match=r"7\.0 is not a target"):
        cb.build(cb.LogisticRegression(prior=cb.Normal()), cb.open((X, bad), unit=patient), size=5)


@pytest.fixture
def table():
    pandas = pytest.importorskip("pandas")
    X, y, patient = visits(300)
    frame = pandas.DataFrame({"a": X[:, 0], "b": X[:, 1], "y": y, "patient": patient})
    frame["who"] = [f"P{int(number):05}" for number in patient]
    frame["kind"] = frame["who"].astype("category")
    frame["when"] = pandas.to_datetime("2020-01-01") + pandas.to_timedelta(patient, unit="D")
    return frame


@pytest.mark.parametrize("stored", ["pandas", "arrow", "file", "folder"])
@pytest.mark.parametrize("unit", ["patient", "who", "kind", "when"])
def test_labels_of_any_kind_from_tables_and_files(table, tmp_path, stored, unit):
    pyarrow = pytest.importorskip("pyarrow")
    source = table
    if stored == "arrow":
        source = pyarrow.Table.from_pandas(table)
    elif stored == "file":
        source = tmp_path / "visits.parquet"
        table.to_parquet(source, row_group_size=100)
    elif stored == "folder":
        source = tmp_path
        for part in range(3):
            table[part * 300 : (part + 1) * 300 if part < 2 else None].to_parquet(
                tmp_path / f"{part}.parquet"
            )
    rows = cb.open(source, target="y", features=["a", "b"], unit=unit)
    X, y, patient = visits(300)
    expected = cb.open((X, y), unit=patient)
    everything = np.arange(300)
    assert rows.num_rows == 300 and rows.column_names == ("a", "b")
    assert np.array_equal(rows.take(everything).X, expected.take(everything).X)
    assert rows.table.unit_name == unit and rows.table.labels.size == 300


def test_a_table_is_known_again(table, tmp_path):
    """Certificates, updates and other passes find units and columns without being told."""
    columns = ["a", "b", "y", "who"]
    coreset = cb.build(
        cb.LogisticRegression(prior=cb.Normal()),
        table[columns],
        target="y",
        unit="who",
        size=10,
        seed=0,
    )
    assert "10 of 300 units, LogisticRegression" in repr(coreset)
    coreset.save(tmp_path / "units.parquet")
    coreset = cb.load(tmp_path / "units.parquet")
    table.to_parquet(tmp_path / "visits.parquet")
    for source in (table, tmp_path / "visits.parquet"):
        found = cb.certify(coreset, source)
        assert found.certified and "(10 of 300 units)" in str(found)
    assert cb.certify(coreset, table[columns], target="y").certified
    assert cb.loo(coreset, table, draws=200).n_data_points == 300
    more = table.assign(y=1.0 - table["y"], who="Q" + table["who"])
    with pytest.warns(UserWarning, match="widths from where what stands"):
        grown = cb.update(coreset, more, size=10)
    assert grown.num_rows == 600 and cb.certify(grown, [table, more]).certified
    # Exports are of rows, also where those of two tables have the same numbers.
    flat = cb.to_columns(grown)
    assert set(flat) == {"row_id", "weight", "a", "b", "y"}
    assert len(set(flat["row_id"].tolist())) == len(flat["weight"]) > grown.size
    exported = cb.to_stan(grown)
    assert exported.data["D"] == 2 and exported.data["M"] == len(flat["weight"])


def test_formulas_have_units(table):
    pytest.importorskip("pyarrow")
    model, rows = cb.from_formula("y ~ a * b", table, unit="who", prior=cb.Normal())
    coreset = cb.build(model, rows, size=20, seed=0)
    assert coreset.num_rows == 300 and coreset.model.dim == 4
    assert cb.certify(coreset, table).certified
    assert cb.predict(coreset, table[:3]).mean.shape[0] == 3
    with pytest.raises(ValueError, match="rows that are independent"):
        cb.from_formula("y ~ a + (1 | kind)", table, unit="who")


def test_a_row_of_no_unit_is_named(table):
    table.loc[[4, 9], "who"] = None
    with pytest.raises(ValueError, match="unit: row 4 has no value in column 'who'"):
        cb.open(table, target="y", features=["a", "b"], unit="who")
    with pytest.raises(ValueError, match="unit: there is no column 'whom'"):
        cb.open(table, target="y", features=["a", "b"], unit="whom")
    with pytest.raises(ValueError, match="leave one of them out"):
        cb.open(table, target="y", features=["a", "b"], unit="kind", duplicates="count")


@pytest.mark.parametrize("asked", [{"size": 60}, {"tol": 0.02}])
def test_what_ended_a_build_counts_units(asked):
    built = cb.build(cb.LogisticRegression(prior=cb.Normal()), opened(), seed=0, **asked)
    assert f"{built.size} units" in built.reason and "rows" not in built.reason


def test_units_on_processes(coreset):
    with cb.processes(2) as executor:
        other = cb.build(
            cb.LogisticRegression(prior=cb.Normal()), opened(), size=10, seed=0, executor=executor
        )
    assert np.array_equal(other.weights, coreset.weights)


@pytest.mark.slow
def test_units_whose_model_has_learned_constants(table):
    """The noise of a linear regression is learned beside its coefficients."""
    table["t"] = 1.0 + table["a"] + 0.3 * np.random.default_rng(0).normal(size=len(table))
    model, rows = cb.from_formula("t ~ a + b", table, family="gaussian", unit="who")
    coreset = cb.build(model, rows, size=40, seed=0)
    assert cb.certify(coreset, rows).certified


@pytest.mark.parametrize("features", [None, [0]])
def test_another_prior_or_fewer_columns_for_units(coreset, features):
    wide = cb.LogisticRegression(prior=cb.Normal(0.0, 3.0))
    found = cb.refit(coreset, wide, opened(), features=features, draws=250)
    assert found.certificate.certified and "of 1,500 units" in found.verdict
    alone = cb.refit(coreset, wide, features=features, draws=250)
    assert alone.coreset.model.dim == (2 if features is None else 1)
    means = [
        np.concatenate([v.values.ravel() for v in one.posterior.values()]).mean()
        for one in (found, alone)
    ]
    assert np.isclose(*means)
