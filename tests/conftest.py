"""What every test starts from."""

import atexit
import gc
import os
import shutil
import signal
import tempfile

# A worker has a core, and so a thread: two workers of two threads each wait for each other and
# take several times the CPU. Before NumPy is imported, which reads it once.
for library in ("OMP", "OPENBLAS", "MKL"):
    os.environ.setdefault(f"{library}_NUM_THREADS", "1")

# Many tests adapt the same models: a worker keeps what JAX compiled for them. Each has a folder of
# its own, since JAX may read what another process has half written.
if "JAX_COMPILATION_CACHE_DIR" not in os.environ or "PYTEST_XDIST_WORKER" in os.environ:
    folder = tempfile.mkdtemp(prefix="corebayes-jax-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    os.environ["JAX_COMPILATION_CACHE_DIR"] = folder
    os.environ["JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"] = "0"
    os.environ["JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES"] = "-1"

# Some million objects of libraries and tests live as long as the run: nobody looks for garbage
# among them, neither while they come nor later.
gc.disable()

from hypothesis import settings  # noqa: E402

# The same examples at every run, so that a run tells about the change and not about luck;
# HYPOTHESIS_PROFILE=default looks for new ones.
settings.register_profile("same", derandomize=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "same"))


def pytest_configure():
    # A run in the background of a shell is told to ignore Ctrl-C, and would test nothing of it.
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_finish():
    gc.freeze()
    gc.enable()


def pytest_unconfigure():
    # JAX counts what nobody takes away at the end as lost.
    gc.unfreeze()
