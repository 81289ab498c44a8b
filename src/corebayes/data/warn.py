"""Warnings that point at the line of the caller, however deep they come from."""

from __future__ import annotations

import sys
import warnings


class ToleranceWarning(UserWarning):
    """A coreset was not certified at the `tol` that was asked for."""


class TimeWarning(UserWarning):
    """The time ended before a construction had taken its first step: its rows are random ones."""


class ModeWarning(UserWarning):
    """The modes of a coreset's posterior do not have the masses or the shape of those of all rows,
    or it has a spike that they do not have."""


def warn(message: str, category: type[UserWarning] = UserWarning) -> None:
    """Warn at the first frame that is not of this package."""
    level, frame = 1, sys._getframe()  # pyright: ignore[reportPrivateUsage]
    while frame is not None and str(frame.f_globals.get("__name__")).startswith("corebayes"):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)
