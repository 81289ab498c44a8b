"""The result: a few weighted rows, checked, saved and loaded."""

from corebayes.coreset.check import has_learned_rows
from corebayes.coreset.coreset import Coreset, check_coreset, load
from corebayes.coreset.files import CorruptFile

__all__ = ["Coreset", "CorruptFile", "check_coreset", "has_learned_rows", "load"]
