"""What every test starts from."""

import os
import signal

from hypothesis import settings

# The same examples at every run, so that a run tells about the change and not about luck;
# HYPOTHESIS_PROFILE=default looks for new ones.
settings.register_profile("same", derandomize=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "same"))


def pytest_configure():
    # A run in the background of a shell is told to ignore Ctrl-C, and would test nothing of it.
    signal.signal(signal.SIGINT, signal.default_int_handler)
