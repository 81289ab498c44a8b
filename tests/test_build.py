"""The loop: limits, reasons, trace, interrupts and bad arguments."""

import numpy as np
import pytest

import corebayes as cb
from corebayes.constructions import Construction, Info
from tests.problems import coins


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3))
    return X, coins(rng, X @ [1.0, -2.0, 0.5])


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ({"size": 0}, ValueError, "got 0"),
        ({"size": -1}, ValueError, "got -1"),
        ({"size": 2.5}, TypeError, "got 2.5"),
        ({"size": True}, TypeError, "got True"),
        ({"size": None}, ValueError, "size"),
        ({"size": "all"}, TypeError, "'all'"),
        ({"size": 301}, ValueError, "301"),
        ({"tol": float("nan")}, ValueError, "nan"),
        ({"tol": -0.1}, ValueError, "-0.1"),
        ({"size": 5, "max_time": 0}, ValueError, "max_time"),
        ({"size": 5, "seed": -1}, TypeError, "-1"),
        ({"size": 5, "seed": None}, TypeError, "None"),
        ({"size": 5, "on_bad": "ignore"}, ValueError, "on_bad"),
    ],
)
def test_bad_arguments(rows, arguments, error, words):
    with pytest.raises(error, match=words.replace(".", r"\.")):
        cb.build(cb.LogisticRegression(prior=cb.Normal()), rows, **arguments)


def test_reaches_the_size_and_says_so(rows):
    coreset = cb.build(cb.LogisticRegression(prior=cb.Normal()), rows, size=7, method=cb.SparseVI())
    assert coreset.size == 7 and coreset.reason == "reached size 7"
    kls = [entry["kl"] for entry in coreset.trace]
    assert kls[-1] < kls[0]
    assert "7 of 300 rows" in repr(coreset)


def test_tolerance_is_certified_on_fresh_draws(rows):
    coreset = cb.build(cb.LogisticRegression(prior=cb.Normal()), rows, tol=0.05)
    assert coreset.reason == f"certified KL(π_w ‖ π) ≤ 0.05, twice, with {coreset.size} rows"
    certificate = cb.certify(coreset, rows, seed=99, tol=0.05)
    assert certificate.reverse_kl.value < 0.05


def test_time_limit(rows):
    coreset = cb.build(cb.LogisticRegression(prior=cb.Normal()), rows, size=200, max_time=1e-9)
    assert len(coreset.trace) == 1 and coreset.reason == "time limit of 1e-09 s"


class Interrupting(Construction):
    """A construction during which Ctrl-C is pressed."""

    def __init__(self, after):
        self.inner, self.after = cb.SparseVI(), after

    def init(self, rng, problem, size):
        return self.inner.init(rng, problem, size)

    def step(self, rng, problem, state):
        if state.points.size == self.after:
            raise KeyboardInterrupt
        return self.inner.step(rng, problem, state)


def test_interrupt_returns_the_coreset_so_far(rows):
    coreset = cb.build(
        cb.LogisticRegression(prior=cb.Normal()), rows, size=50, method=Interrupting(6)
    )
    assert coreset.size == 6 and coreset.reason == "interrupted"
    with pytest.raises(KeyboardInterrupt):
        cb.build(cb.LogisticRegression(prior=cb.Normal()), rows, size=50, method=Interrupting(0))


def test_quiet_when_not_a_terminal_and_a_bar_on_request(rows, capsys):
    cb.build(cb.LogisticRegression(prior=cb.Normal()), rows, size=5)
    assert capsys.readouterr() == ("", "")
    cb.build(cb.LogisticRegression(prior=cb.Normal()), rows, size=5, progress=True)
    out, err = capsys.readouterr()
    assert out == "" and "5/5 rows" in err and "rows/s" in err and "KL" in err


def test_a_nan_potential_names_the_row(rows):
    X, y = rows

    def log_likelihood(draws, block):
        values = -0.5 * np.square(block.X @ draws.T - block.y[:, None])
        values[block["id"] == 123.0] = np.nan
        return values

    model = cb.CustomModel(log_likelihood, lambda draws: -0.5 * np.sum(draws**2, axis=1), 3)
    data = {"X": X, "y": y * 1.0, "id": np.arange(300.0)}
    with pytest.raises(ValueError, match="row 123"):
        cb.build(model, data, size=5)


@pytest.mark.parametrize("column", [pytest.param(0, marks=pytest.mark.slow), 2])
def test_bad_rows_are_named_or_dropped(rows, column):
    X, y = rows[0].copy(), rows[1]
    X[37, column] = np.nan
    with pytest.raises(ValueError, match=r"row 37.*column"):
        cb.build(cb.LogisticRegression(prior=cb.Normal()), (X, y), size=10)
    with pytest.warns(UserWarning, match="1 of 300 rows"):
        dropped = cb.build(
            cb.LogisticRegression(prior=cb.Normal()),
            (X, y),
            size=10,
            on_bad="drop",
            method=cb.SparseVI(),
        )
    keep = np.arange(300) != 37
    without = cb.build(
        cb.LogisticRegression(prior=cb.Normal()), (X[keep], y[keep]), size=10, method=cb.SparseVI()
    )
    assert np.array_equal(dropped.indices, np.arange(300)[keep][without.indices])
    assert np.allclose(dropped.weights, without.weights, rtol=1e-6)
    assert dropped.total_count == 299


def test_rank_deficient_designs_warn_once_and_work(rows):
    X, y = rows
    X = np.column_stack([X, X[:, 1], np.ones(300), np.ones(300)])
    with pytest.warns(UserWarning) as warned:
        coreset = cb.build(cb.LogisticRegression(prior=cb.Normal()), (X, y), size=30)
    assert len(warned) == 1
    assert np.all(np.isfinite(coreset.weights))


def test_a_user_construction_needs_only_init_and_step(rows):
    class FirstRows(Construction):
        def init(self, rng, problem, size):
            return cb.Uniform().init(rng, problem, size)

        def step(self, rng, problem, state):
            points = problem.points(np.arange(state.size), np.ones(state.size))
            return state._replace(points=points), Info(None, "done")

    coreset = cb.build(cb.LogisticRegression(prior=cb.Normal()), rows, size=4, method=FirstRows())
    assert np.array_equal(coreset.indices, [0, 1, 2, 3])


def test_permuted_rows_and_one_ulp_change_no_verdict():
    rng = np.random.default_rng(5)
    X = rng.normal(size=(3000, 3))
    y = coins(rng, X @ [1.0, -2.0, 0.5])
    order = rng.permutation(3000)
    variants = [(X, y), (np.nextafter(X, np.inf), y), (X[order], y[order])]
    certificates = []
    for variant in variants:
        coreset = cb.build(cb.LogisticRegression(prior=cb.Normal()), variant, size=12)
        certificates.append(cb.certify(coreset, variant))
    assert [certificate.certified for certificate in certificates] == [True, True, True]


def test_a_coreset_of_all_rows_is_the_data_itself():
    rng = np.random.default_rng(1)
    X, y, counts = rng.normal(size=(25, 9)), np.arange(25.0) % 2.0, rng.integers(0, 3, 25) * 1.0
    model, number = cb.LogisticRegression(), int(np.count_nonzero(counts))
    for options in ({"size": number}, {"tol": 1e-9}):
        coreset = cb.build(model, (X, y), counts=counts, progress=False, **options)
        assert coreset.size == number and coreset.reason.startswith("all rows")
        np.testing.assert_array_equal(coreset.weights, counts[counts > 0.0])
