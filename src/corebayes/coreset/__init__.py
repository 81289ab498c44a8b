"""The result: a few weighted rows, checked, saved and loaded."""

from corebayes.coreset.advice import nearer, sentence
from corebayes.coreset.check import has_learned_rows
from corebayes.coreset.coreset import Coreset, check_coreset
from corebayes.coreset.files import CorruptFile
from corebayes.coreset.group_coreset import GroupCoreset, grouped
from corebayes.coreset.loading import load
from corebayes.coreset.unrolled import as_rows, unrolled

__all__ = [
    "Coreset",
    "CorruptFile",
    "GroupCoreset",
    "as_rows",
    "check_coreset",
    "grouped",
    "has_learned_rows",
    "load",
    "nearer",
    "sentence",
    "unrolled",
]
