"""Coresets of coresets: data that grows, shards that never meet, models that change."""

from corebayes.compose.merge import merge
from corebayes.compose.refit import Refit, refit
from corebayes.compose.update import update

__all__ = ["Refit", "merge", "refit", "update"]
