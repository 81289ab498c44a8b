"""Ctrl-C and SIGTERM: at once, with what there is so far, and nobody left behind."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import corebayes as cb
from corebayes.cli import app as cli
from corebayes.rows import open_rows
from corebayes.scan.inline import Inline
from tests.opened import scan
from tests.problems import coins
from tests.scan.trouble import ColumnSums, is_running, wait_until


class Slow(ColumnSums):
    """A twentieth of a second for every thousand rows."""

    def answer(self, block, numbers):
        ANSWERED.append(int(numbers[0]))
        time.sleep(0.05)
        return super().answer(block, numbers)


ANSWERED: list[int] = []


@pytest.mark.parametrize("threads", [1, 2, None])
def test_ctrl_c_stops_an_inline_pass_in_the_midst_of_a_shard(tmp_path, threads):
    np.save(tmp_path / "X.npy", np.ones((90_000, 2)))
    np.save(tmp_path / "y.npy", np.ones(90_000))
    data = open_rows((tmp_path / "X.npy", tmp_path / "y.npy"))
    threading.Timer(0.3, os.kill, [os.getpid(), signal.SIGINT]).start()
    began = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        scan(Slow(), data, Inline(threads))
    # The pass takes 4.8 seconds on one thread, and a busy machine may be late to notice.
    assert time.monotonic() - began < 2.0
    answered = len(ANSWERED)
    time.sleep(0.2)
    assert len(ANSWERED) == answered


NUM_ROWS = 60_000
LINE = "build rows --target y --model logistic --method sparse-vi --size 150 --out coreset.parquet"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    a, b, c = rng.normal(size=(3, NUM_ROWS))
    y = coins(rng, 1.5 * a - 0.5 * b)
    (tmp_path / "rows").mkdir()
    table = pa.table({"a": a, "b": b, "c": c, "y": y})
    pq.write_table(table, "rows/0.parquet", row_group_size=10_000)
    return tmp_path


def children(process_id):
    """Of all its threads; one may end while it is looked at."""
    found = []
    for thread in Path(f"/proc/{process_id}/task").iterdir():
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            found += map(int, (thread / "children").read_text().split())
    return found


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kill", "options"),
    [("SIGINT", "--checkpoint kept"), ("SIGTERM", "--checkpoint kept --workers 2")],
)
def test_the_command_ends_within_five_seconds_with_all_there_is(folder, kill, options, capsys):
    line = f"{LINE} {options} --log json"
    # Ctrl-C must also reach a process that was started in the background.
    command = [sys.executable, "-m", "corebayes", *line.split()]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    steps = 0
    while steps < 4:
        steps += json.loads(process.stderr.readline()).get("event") == "step"
    workers = children(process.pid)
    assert len(workers) == (2 if "workers" in options else 0)
    began = time.monotonic()
    process.send_signal(signal.Signals[kill])
    out, err = process.communicate(timeout=30)
    assert time.monotonic() - began < 5.0
    assert process.returncode == 128 + signal.Signals[kill]
    assert not any(map(is_running, workers))
    last = err.splitlines()[-1]
    assert last.startswith("corebayes: interrupted, the ") and "goes on from the" in last
    assert "interrupted" in out
    coreset = cb.load("coreset.parquet")
    assert coreset.reason == "interrupted" and coreset.size >= 3
    assert np.all(coreset.weights > 0)
    # The checkpoint is whole: the same command, in another process, goes on from it.
    with pytest.raises(SystemExit) as exit_:
        cli.run(f"{LINE} --checkpoint kept --max-time 1e-9".split())
    assert exit_.value.code == 0, capsys.readouterr()


def test_workers_end_soon_after_their_caller_is_killed(tmp_path):
    program = """
import os, time
from corebayes.scan.processes import processes
from tests.scan.trouble import make_files, Trouble
from pathlib import Path
import sys
folder = Path(sys.argv[1])
data, query = make_files(folder)
(folder / "trouble").mkdir()
executor = processes(1)
from tests.opened import scan
scan(Trouble(query, folder / "trouble", "sleep 60"), data, executor)
"""
    process = subprocess.Popen([sys.executable, "-c", program, str(tmp_path)])
    trouble = tmp_path / "trouble"
    assert wait_until(lambda: trouble.is_dir() and any(trouble.iterdir()), 60.0)
    (worker,) = children(process.pid)
    process.kill()
    process.wait()
    # It sleeps in the midst of a shard and hears no pipe.
    assert wait_until(lambda: not is_running(worker), 3.0)


def test_the_exit_code_is_that_of_the_signal():
    program = (
        "import os, signal\nfrom corebayes.watch.interrupts import exit_code, listen\n"
        "listen()\nassert exit_code() == 130\n"
        "try:\n    os.kill(os.getpid(), signal.SIGTERM)\n    signal.pause()\n"
        "except KeyboardInterrupt:\n    raise SystemExit(exit_code())"
    )
    assert subprocess.run([sys.executable, "-c", program], env=os.environ).returncode == 143


def test_an_interrupt_while_python_tidies_up_is_not_dropped():
    program = """
import os, signal, time
from corebayes.watch.interrupts import exit_code, listen
class Tidy:
    def __del__(self):
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(60)
listen()
try:
    del (tidy := [Tidy()])[0]
    time.sleep(30)
except KeyboardInterrupt:
    raise SystemExit(exit_code())
"""
    assert subprocess.run([sys.executable, "-c", program], timeout=20).returncode == 143


def test_ctrl_c_does_not_wait_for_the_block_under_way(tmp_path):
    class Long(ColumnSums):
        def answer(self, block, numbers):
            time.sleep(3.0)
            return super().answer(block, numbers)

    # Several shards: one alone is asked without threads.
    data = open_rows((np.ones((40_000, 2)), np.ones(40_000)))
    assert data.num_shards > 1
    threading.Timer(0.2, os.kill, [os.getpid(), signal.SIGINT]).start()
    began = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        scan(Long(), data, Inline(2))
    assert time.monotonic() - began < 2.0
