"""The loop that runs every construction."""

from corebayes.build.groups import choose_groups
from corebayes.build.loop import build, build_path

__all__ = ["build", "build_path", "choose_groups"]
