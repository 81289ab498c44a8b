"""Worker processes: the bits of one process, whatever happens to a worker, and none left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from contextlib import nullcontext
from dataclasses import dataclass

import numpy as np
import pytest

import corebayes as cb
from corebayes.data.watch import ChangedDataError
from corebayes.scan import dispatch, processes
from corebayes.scan.inline import Inline
from corebayes.scan.query import BadPotentialError, BestRows, Totals
from corebayes.tangent.monte_carlo import MonteCarloSpace
from tests.opened import scan, table

from .trouble import (
    NUM_ROWS,
    ROW,
    ColumnSums,
    Trouble,
    is_running,
    make_files,
    same_bits,
    wait_until,
)

SHARD = r"shard 3 of 6 \(rows 32,768 to 49,151\) failed 3 times"


SUMS = ColumnSums()


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    return make_files(tmp_path_factory.mktemp("rows"))


@pytest.fixture(scope="module")
def data(files):
    return files[0]


@pytest.fixture(scope="module")
def expected(data):
    return scan(SUMS, data, Inline())


@pytest.fixture(scope="module")
def pool():
    """Two workers that the tests share; what one test breaks is mended for the next."""
    with cb.processes(2, deadline=60.0) as executor:
        yield executor
        ids = executor.process_ids()
    assert ids and not any(map(is_running, ids))


def test_every_number_of_workers_and_threads_gives_the_same_bits(files, pool):
    data, totals = files
    expected = scan(totals, data, Inline())
    assert same_bits(scan(totals, data, Inline(threads=1)), expected)
    assert same_bits(scan(totals, data, pool), expected)
    with cb.processes(1) as one:
        assert same_bits(scan(totals, data, one), expected)
    rows = np.sort(np.random.default_rng(1).choice(NUM_ROWS, 5000, replace=False))
    assert same_bits(scan(totals, data, pool, rows), scan(totals, data, Inline(), rows))
    best = BestRows(totals.space, expected.total, 20, np.array([5, 77]))
    ours, theirs = scan(best, data, pool), scan(best, data, Inline())
    assert np.array_equal(ours.points.indices, theirs.points.indices)
    assert np.array_equal(ours.points.rows.X, theirs.points.rows.X)
    assert np.array_equal(ours.scores, theirs.scores)


def test_a_build_on_workers_has_the_bits_of_a_build_without(data, pool):
    state = np.random.get_state()[1].copy()
    expected = cb.build(cb.LogisticRegression(prior=cb.Normal()), data, size=8, seed=5)
    found = cb.build(cb.LogisticRegression(prior=cb.Normal()), data, size=8, seed=5, executor=pool)
    assert np.array_equal(found.indices, expected.indices)
    assert np.array_equal(found.weights, expected.weights)
    assert np.array_equal(np.random.get_state()[1], state)


def test_a_worker_killed_in_the_middle_of_a_pass(data, expected, pool, tmp_path):
    trouble = Trouble(SUMS, tmp_path, "signal SIGKILL")
    assert same_bits(scan(trouble, data, pool), expected)
    (killed,) = trouble.process_ids()
    assert not is_running(killed) and len(pool.process_ids()) == 2


@pytest.mark.parametrize("number", [2, 3])
def test_two_in_a_row_may_die_before_they_are_up(data, expected, monkeypatch, number):
    """The third ends the run, as docs/larger-than-memory.md says."""
    start, killed = processes._start, []

    def start_and_kill(events):
        worker = start(events)
        if len(killed) < number:
            killed.append(worker)
            worker.process.kill()
        return worker

    monkeypatch.setattr(processes, "_start", start_and_kill)
    with cb.processes(1) as executor:
        if number < 3:
            assert same_bits(scan(SUMS, data, executor), expected)
        else:
            with pytest.raises(RuntimeError, match="3 in a row ended before they were ready"):
                scan(SUMS, data, executor)
    assert len(killed) == number


def test_an_idle_worker_killed_between_passes(data, expected, pool):
    scan(SUMS, data, pool)
    for process_id in pool.process_ids():
        os.kill(process_id, signal.SIGKILL)
    assert same_bits(scan(SUMS, data, pool), expected)


@pytest.mark.slow
def test_a_stopped_worker_is_noticed_at_its_deadline(data, expected, tmp_path):
    trouble = Trouble(SUMS, tmp_path, "signal SIGSTOP")
    with cb.processes(2, deadline=3.0) as executor:
        scan(SUMS, data, executor)
        began = time.monotonic()
        assert same_bits(scan(trouble, data, executor), expected)
        assert 3.0 < time.monotonic() - began < 6.0
        (stopped,) = trouble.process_ids()
        assert not is_running(stopped)
        assert same_bits(scan(SUMS, data, executor), expected)


def test_a_worker_has_loaded_what_queries_are_made_of_when_it_is_ready():
    program = processes.PROGRAM.format(caller=os.getpid(), path=sys.path)
    told = program.replace("\nserve()", "\nprint('corebayes.tangent.hermite' in sys.modules)")
    assert told != program
    found = subprocess.run([sys.executable, "-c", told], capture_output=True, text=True)
    assert found.stdout == "True\n", found.stderr


def test_the_default_deadline_follows_the_shards(data, expected, tmp_path, monkeypatch):
    monkeypatch.setattr(dispatch, "MIN_SECONDS", 1.0)
    trouble = Trouble(SUMS, tmp_path, "signal SIGSTOP", row=NUM_ROWS - 1)
    with cb.processes(2) as executor:
        assert same_bits(scan(trouble, data, executor), expected)
    book = dispatch._Book(crew=None, shards=[None], deadline=None)
    sending = dispatch._Sending(0, 0.0)
    book._progress[0].tries = 1
    book._times = [5.0, 1.0, 0.5]
    assert book._limit(sending) == 20.0
    book._progress[0].tries = 3
    assert book._limit(sending) == 80.0


def test_a_slow_shard_is_sent_twice_and_counts_once(data, expected, tmp_path):
    trouble = Trouble(SUMS, tmp_path, "sleep 2.5", times=2)
    with cb.processes(2, deadline=0.6) as executor:
        scan(SUMS, data, executor)
        assert same_bits(scan(trouble, data, executor), expected)
    assert len(set(trouble.process_ids())) == 2


@pytest.mark.parametrize(
    ("what", "reason"),
    [
        ("signal SIGKILL", "killed by signal 9"),
        pytest.param(
            "sleep 60",
            "no answer within 1 s; no answer within 2 s; no answer within 4 s",
            marks=pytest.mark.slow,
        ),
        ("disk", "the disk is away; the disk is away"),
    ],
)
def test_a_shard_that_always_fails_is_named_after_three_tries(
    data, request, tmp_path, what, reason
):
    trouble = Trouble(SUMS, tmp_path, what, times=99)
    impatient = "sleep" in what
    pool = cb.processes(2, deadline=1.0) if impatient else request.getfixturevalue("pool")
    with pool if impatient else nullcontext(pool) as executor:
        scan(SUMS, data, executor)
        with pytest.raises(dispatch.ShardError, match=f"{SHARD}: .*{reason}"):
            scan(trouble, data, executor)
        assert len(trouble.process_ids()) == 3
        assert not any(map(is_running, trouble.process_ids())) or what == "disk"


def test_a_disk_that_comes_back(data, expected, pool, tmp_path):
    assert same_bits(scan(Trouble(SUMS, tmp_path, "disk", times=2), data, pool), expected)


def test_an_exception_of_the_model_is_raised_at_once_and_unchanged(data, expected, pool, tmp_path):
    trouble = Trouble(SUMS, tmp_path, "error", times=99)
    with pytest.raises(BadPotentialError) as caught:
        scan(trouble, data, pool)
    assert caught.value.row == ROW and len(trouble.process_ids()) == 1
    assert str(caught.value) == str(BadPotentialError(ROW))
    assert same_bits(scan(SUMS, data, pool), expected)


def test_what_a_worker_prints_or_reads_does_not_disturb_the_pass(
    data, expected, pool, tmp_path, capfd
):
    assert same_bits(scan(Trouble(SUMS, tmp_path, "chat", times=99), data, pool), expected)
    assert capfd.readouterr().out == ""


def test_a_file_that_changed_is_refused_by_the_workers(pool, tmp_path):
    data, _ = make_files(tmp_path)
    content = np.load(tmp_path / "y.npy")
    np.save(tmp_path / "y.npy", ~content)
    with pytest.raises(ChangedDataError, match=r"y.npy changed since the data was opened"):
        scan(SUMS, data, pool)


@dataclass(frozen=True)
class Counted:
    """Data that counts how often it is packed."""

    inner: object
    log: list

    def __getattr__(self, name):
        return getattr(self.inner, name)

    def __reduce__(self):
        self.log.append("packed")
        return _unwrapped, (self.inner,)


def _unwrapped(inner):
    return inner


def test_data_is_packed_once_for_each_worker(data, expected):
    counted = Counted(table(data), [])
    with cb.processes(2) as executor:
        for _ in range(4):
            assert same_bits(scan(SUMS, counted, executor), expected)
    assert 1 <= len(counted.log) <= 2


def test_functions_of_a_script_travel_or_are_refused_with_advice(data, pool, monkeypatch):
    scale = 0.5

    def log_likelihood(draws, block):
        return -scale * np.square(block.X[:, :1] - draws[:, 0])

    model = cb.CustomModel(log_likelihood, lambda draws: -(draws[:, 0] ** 2), 1)
    totals = Totals(MonteCarloSpace(model.bind(data), np.linspace(-1.0, 1.0, 9)[:, None]))
    assert same_bits(scan(totals, data, pool), scan(totals, data, Inline()))
    monkeypatch.setitem(sys.modules, "cloudpickle", None)
    with pytest.raises(TypeError, match=r"cannot be sent to other processes: .*corebayes\[clust"):
        scan(totals, data, pool)


@pytest.mark.parametrize("arguments", [(0,), (-1,), (2.5,), (True,)])
def test_numbers_of_workers_are_checked(arguments):
    with pytest.raises(ValueError, match=f"at least 1, got {arguments[0]}"):
        cb.processes(*arguments)


@pytest.mark.parametrize("deadline", [0, -1.0, "soon", float("nan")])
def test_deadlines_are_checked(deadline):
    with pytest.raises(ValueError, match="deadline must be a positive number of seconds"):
        cb.processes(2, deadline=deadline)


# No `if __name__ == "__main__"`: workers do not run the script again.
SCRIPT = """
import sys, threading, time
import numpy as np
import corebayes as cb

print("started", flush=True)
seconds, after = map(float, sys.argv[1:])

class Sleep:
    block_rows = 10_000_000

    def answer(self, block, numbers):
        time.sleep(seconds)
        return numbers.size

    def merge(self, first, second):
        return first + second

pool = cb.processes(2)
threading.Timer(after, lambda: print(*pool.process_ids(), flush=True)).start()
print("rows", cb.open(np.zeros((50_000, 1)), executor=pool).ask(Sleep()), flush=True)
"""


def run_script(folder, seconds, after):
    (folder / "script.py").write_text(SCRIPT)
    return subprocess.Popen(
        [sys.executable, str(folder / "script.py"), str(seconds), str(after)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_a_script_needs_no_guard_and_leaves_no_worker(tmp_path):
    out, err = run_script(tmp_path, 0.0, after=0.0).communicate(timeout=60)
    assert (out.count("started"), err) == (1, "") and "rows 50000" in out


@pytest.mark.parametrize(
    "end",
    [
        *(pytest.param(s, marks=pytest.mark.slow) for s in (signal.SIGINT, signal.SIGTERM)),
        signal.SIGKILL,
    ],
)
def test_however_the_program_ends_no_worker_stays(tmp_path, end):
    script = run_script(tmp_path, 3.0, after=1.5)
    assert script.stdout.readline() == "started\n"
    ids = [int(word) for word in script.stdout.readline().split()]
    assert len(ids) == 2 and all(map(is_running, ids))
    script.send_signal(end)
    script.communicate(timeout=10)
    # Its own end is noticed by a worker after the shard it is at.
    assert wait_until(lambda: not any(map(is_running, ids)), 0.5 if end == signal.SIGINT else 5.0)
