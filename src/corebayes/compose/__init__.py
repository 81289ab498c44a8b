"""Coresets of coresets: data that grows, shards that never meet, models that change."""

from corebayes.compose.merge import merge
from corebayes.compose.update import update

__all__ = ["merge", "update"]
