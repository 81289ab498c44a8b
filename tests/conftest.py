"""What every test starts from."""

import signal


def pytest_configure():
    # A run in the background of a shell is told to ignore Ctrl-C, and would test nothing of it.
    signal.signal(signal.SIGINT, signal.default_int_handler)
