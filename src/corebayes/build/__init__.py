"""The loop that runs every construction."""

from corebayes.build.loop import build, build_path
from corebayes.build.variants import Variant

__all__ = ["Variant", "build", "build_path"]
