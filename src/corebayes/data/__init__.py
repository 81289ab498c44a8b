"""Where the rows are."""

from corebayes.data.arrays import ArrayData
from corebayes.data.entry import as_data

__all__ = ["ArrayData", "as_data"]
