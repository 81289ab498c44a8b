"""A budget of memory: read as a person writes it, kept, and refused before the pass."""

from __future__ import annotations

import re
import subprocess
import sys

import numpy as np
import pytest

import corebayes as cb
from corebayes.rows import open_rows
from corebayes.scan.budget import (
    ARRAYS_OF_A_BLOCK,
    LIBRARIES,
    Budget,
    MemoryBudgetError,
    as_budget,
    written,
)
from corebayes.scan.inline import Inline
from corebayes.scan.query import Totals
from corebayes.tangent.monte_carlo import MonteCarloSpace
from tests.opened import scan, table


@pytest.mark.parametrize(
    ("text", "num_bytes"),
    [
        ("500MB", 500_000_000),
        ("500 mb", 500_000_000),
        ("2G", 2_000_000_000),
        ("1.5GiB", 3 * 2**29),
        ("64KiB", 65_536),
        ("123", 123),
        ("7B", 7),
        (250e6, 250_000_000),
        (1024, 1024),
    ],
)
def test_sizes_are_read_as_they_are_written(text, num_bytes):
    assert as_budget(text) == Budget(num_bytes)


@pytest.mark.parametrize("text", ["", "MB", "500XB", "-5MB", "0MB", "five", "1e9", -3, 0, np.inf])
def test_other_sizes_are_refused_with_their_value(text):
    with pytest.raises(ValueError, match="memory must be") as caught:
        as_budget(text)
    assert repr(text) in str(caught.value)


@pytest.mark.parametrize("memory", [True, [1], object])
def test_what_is_no_size_is_a_type_error(memory):
    with pytest.raises(TypeError, match="memory must be a size"):
        as_budget(memory)


def test_none_is_no_budget_and_sizes_are_written_back():
    assert as_budget(None) is None
    assert as_budget(Budget(3)) == Budget(3)
    assert [written(n) for n in (7, 65_000, 500_000_000, 1_500_000_000)] == [
        "7B",
        "65kB",
        "500MB",
        "1.5GB",
    ]


@pytest.fixture(scope="module")
def asked():
    rng = np.random.default_rng(0)
    data = open_rows((rng.normal(size=(50_000, 3)), rng.random(50_000) < 0.4))
    model = cb.LogisticRegression(prior=cb.Normal()).bind(data)
    return data, model, Totals(MonteCarloSpace(model, rng.normal(size=(2000, 3))))


# A little, and twelve copies of 20,000 rows of five numbers.
HELD = 20_000_000 + 12 * 20_000 * 40


def part_bytes(data):
    return 3 * 8 * 5 * 16_384 + HELD


def test_a_small_budget_makes_small_blocks_and_a_large_one_changes_nothing(asked):
    data, _, query = asked
    assert Budget(10**12).block_rows(query, table(data)) == query.block_rows == 204
    rows = 40
    left = rows * 8 * ARRAYS_OF_A_BLOCK * 2000
    budget = Budget(LIBRARIES + part_bytes(data) + left)
    assert budget.block_rows(query, table(data)) == rows
    sizes = []

    class Watching(Totals):
        def answer(self, block, numbers):
            sizes.append(len(block))
            return super().answer(block, numbers)

    found = scan(Watching(query.space), data, Inline(threads=1), None, budget)
    assert max(sizes) == rows
    expected = scan(query, data, Inline())
    np.testing.assert_allclose(found.total, expected.total, rtol=1e-9, atol=1e-6)


def test_an_impossible_budget_is_refused_before_the_pass(asked):
    data, _, query = asked
    budget = Budget(LIBRARIES + part_bytes(data) + 15 * 8 * ARRAYS_OF_A_BLOCK * 2000)
    with pytest.raises(MemoryBudgetError, match=r"2,000 numbers for each row .* makes 353\.1MB"):
        open_rows(data, memory=budget).ask(query)
    with pytest.raises(MemoryBudgetError, match=r"memory=100MB is not enough: .* 16,384 rows"):
        open_rows(data, memory="100MB")


def test_threads_fit_side_by_side_and_do_not_change_the_answer(asked, monkeypatch):
    data, _, query = asked
    monkeypatch.setattr("os.cpu_count", lambda: 8)
    assert Budget(10**12).num_threads(table(data)) == 8
    one = part_bytes(data) - HELD + 8 * ARRAYS_OF_A_BLOCK * 409_600
    assert Budget(LIBRARIES + HELD + 3 * one + 5).num_threads(table(data)) == 3
    assert Budget(LIBRARIES + HELD + one // 2).num_threads(table(data)) == 1
    rows = open_rows(data, memory=Budget(LIBRARIES + HELD + 3 * one))
    assert rows.executor == Inline(threads=3)
    alone = open_rows(data, executor=Inline(threads=1), memory=Budget(LIBRARIES + HELD + 3 * one))
    assert np.array_equal(rows.ask(query).total, alone.ask(query).total)


HELD_IN = """
import re, sys
from pathlib import Path
import corebayes as cb
model = cb.LogisticRegression(prior=cb.Normal())
cb.build(model, sys.argv[1], target="y", size=60, memory=sys.argv[2])
# Not ru_maxrss, which begins with what the process that started this one held.
print(int(re.search(r"VmHWM:\\s*(\\d+) kB", Path("/proc/self/status").read_text())[1]) * 1024)
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="reads the peak of memory from /proc")
def test_the_budget_that_a_refusal_names_is_held(tmp_path):
    """In a process of its own, with all that the libraries take."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng = np.random.default_rng(1)
    X = rng.normal(size=(400_000, 8))
    y = (rng.random(len(X)) < 1.0 / (1.0 + np.exp(-X @ np.linspace(-1.0, 1.0, 8)))).astype(float)
    table = pa.table({**{f"x{k}": X[:, k] for k in range(8)}, "y": y})
    pq.write_table(table, tmp_path / "rows.parquet", row_group_size=100_000)

    def build_within(memory):
        command = [sys.executable, "-c", HELD_IN, tmp_path / "rows.parquet", memory]
        return subprocess.run(command, capture_output=True, text=True)

    refused = build_within("100MB").stderr.splitlines()[-1]
    named = re.search(r"that makes ([\d.]+)MB; give at least that", refused)
    assert named is not None, refused
    least = float(named[1]) * 1e6 + 1e5
    assert float(build_within(f"{least:.0f}").stdout) <= least
