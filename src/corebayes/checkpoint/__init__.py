"""Checkpoints: the answers of passes, so that no run is lost."""

from corebayes.checkpoint.identity import points_digest, run_identity
from corebayes.checkpoint.journal import Journal, check_folder, open_journal
from corebayes.checkpoint.store import CheckpointError

__all__ = [
    "CheckpointError",
    "Journal",
    "check_folder",
    "open_journal",
    "points_digest",
    "run_identity",
]
