"""kill -9 at random moments: the run that is taken up again ends with the same bits."""

import multiprocessing
import time
from functools import partial

import numpy as np
import pytest

from tests.checkpoint import runs
from tests.scan.trouble import is_running, wait_until

# A server that has imported everything, so that a killed process costs no import.
context = multiprocessing.get_context("forkserver")
context.set_forkserver_preload(["tests.checkpoint.runs"])


def newest(folder):
    """The number of the newest checkpoint."""
    names = [path.name for path in (folder / "checkpoint").glob("checkpoint-*.cb")]
    return max((int(name[11:-3]) for name in names), default=0)


def reached(folder, wanted):
    return newest(folder) >= wanted


def all_ended(process_ids):
    return not any(map(is_running, process_ids))


def killed_at_random(folder, rng, num_workers, num_kills):
    """Runs that are killed, each after some more checkpoints, and one that is not."""
    for _ in range(num_kills):
        wanted = newest(folder) + int(rng.integers(2, 9))
        process = context.Process(target=runs.run, args=(folder, num_workers))
        process.start()
        assert wait_until(partial(reached, folder, wanted), 60.0)
        time.sleep(rng.uniform(0.0, 0.02))
        assert process.exitcode is None
        process.kill()
        process.join()
        assert not (folder / "result.npz").exists()
        if num_workers:
            workers = [int(number) for number in (folder / "workers").read_text().split()]
            assert workers and wait_until(partial(all_ended, workers), 5.0)
    process = context.Process(target=runs.run, args=(folder, num_workers))
    process.start()
    process.join()
    return np.load(folder / "result.npz")


@pytest.fixture(scope="module")
def expected(tmp_path_factory):
    folder = tmp_path_factory.mktemp("plain")
    runs.make_rows(folder)
    process = context.Process(target=runs.run, args=(folder, 0), kwargs={"checkpoint": False})
    process.start()
    process.join()
    return np.load(folder / "result.npz")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("num_workers", "num_kills"),
    [(0, 3), pytest.param(2, 2, id="processes")],
)
def test_the_same_bits_after_any_number_of_kills(tmp_path, expected, num_workers, num_kills):
    runs.make_rows(tmp_path)
    result = killed_at_random(tmp_path, np.random.default_rng(), num_workers, num_kills)
    assert np.array_equal(result["indices"], expected["indices"])
    assert result["weights"].tobytes() == expected["weights"].tobytes()
