"""A coreset as a plain table for any other tool: `row_id`, `weight`, then what the rows hold."""

from __future__ import annotations

import csv
import io
import os
import re
from typing import Any

import numpy as np
from numpy.typing import NDArray

from corebayes.coreset import Coreset, as_rows
from corebayes.data import layout
from corebayes.data.frames import import_pyarrow
from corebayes.files.atomic import write_atomically

# Where spreadsheets would begin to evaluate a text (OWASP, "CSV injection"): at the start of a
# cell, or after what they may take for the end of one.
FORMULA = re.compile(r"^(?=\s*[=+\-@＝＋－＠]|[\t\r\n])|(?<=[;\t\r\n])(?=\s*[=+\-@＝＋－＠])")


def to_columns(coreset: Coreset) -> dict[str, NDArray[Any]]:
    """`row_id` (numbered from 0), `weight`, and one column for every number of a row.

    Features and target are called as in the data the coreset was built from. Any frame takes it:
    `pandas.DataFrame(to_columns(coreset))`.
    """
    coreset = as_rows(coreset)
    fields = layout.plan(
        coreset.rows,
        column_names=coreset.provenance.get("column_names") or (),
        target_name=coreset.provenance.get("target_name") or "y",
        reserved=("row_id", "weight"),
    )
    return {
        "row_id": np.asarray(coreset.indices, dtype=np.int64),
        "weight": np.asarray(coreset.weights, dtype=np.float64),
        **layout.flatten(coreset.rows, fields),
    }


def to_csv(coreset: Coreset, path: str | os.PathLike[str]) -> None:
    """Write the columns as comma-separated values with a header; every digit is kept.

    In names, an apostrophe goes before what a spreadsheet would run: = + - @ or their full-width
    forms at the start or after a semicolon, tab or line break, and a tab or line break at the
    start. All other cells are numbers, and numbers stay as they are, -1.5 too.
    """
    columns = to_columns(coreset)
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    # The writer quotes a line feed by itself, but not what else ends a line.
    quoting = csv.QUOTE_ALL if "\r" in "".join(columns) else csv.QUOTE_MINIMAL
    csv.writer(text, lineterminator="\n", quoting=quoting).writerow(
        [FORMULA.sub("'", name) for name in columns]
    )
    writer.writerows(zip(*(values.tolist() for values in columns.values()), strict=True))
    write_atomically(path, text.getvalue().encode())


def to_parquet(coreset: Coreset, path: str | os.PathLike[str]) -> None:
    """Write the columns as a Parquet table. `coreset.save` also keeps the model and the trace."""
    pyarrow, parquet = import_pyarrow(), import_pyarrow("pyarrow.parquet")
    sink: Any = pyarrow.BufferOutputStream()
    parquet.write_table(pyarrow.table(to_columns(coreset)), sink)
    write_atomically(path, memoryview(sink.getvalue()))
