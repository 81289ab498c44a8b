"""What every test starts from."""

import os
import signal

# A worker has a core, and so a thread: two workers of two threads each wait for each other and
# take several times the CPU. Before NumPy is imported, which reads it once.
for library in ("OMP", "OPENBLAS", "MKL"):
    os.environ.setdefault(f"{library}_NUM_THREADS", "1")

from hypothesis import settings  # noqa: E402

# The same examples at every run, so that a run tells about the change and not about luck;
# HYPOTHESIS_PROFILE=default looks for new ones.
settings.register_profile("same", derandomize=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "same"))


def pytest_configure():
    # A run in the background of a shell is told to ignore Ctrl-C, and would test nothing of it.
    signal.signal(signal.SIGINT, signal.default_int_handler)
