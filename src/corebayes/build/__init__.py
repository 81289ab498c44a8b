"""The loop that runs every construction."""

from corebayes.build.groups import choose_groups
from corebayes.build.loop import build, build_path
from corebayes.build.variants import Variant

__all__ = ["Variant", "build", "build_path", "choose_groups"]
