"""The result: a few weighted rows, checked, saved and loaded."""

from corebayes.coreset.check import has_learned_rows
from corebayes.coreset.coreset import Coreset, check_coreset, load
from corebayes.coreset.files import CorruptFile
from corebayes.coreset.group_coreset import GroupCoreset

__all__ = ["Coreset", "CorruptFile", "GroupCoreset", "check_coreset", "has_learned_rows", "load"]
