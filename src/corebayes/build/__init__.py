"""The loop that runs every construction."""

from corebayes.build.loop import build, build_path

__all__ = ["build", "build_path"]
