"""Files as a stranger could make them, and what a refusal must be."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import corebayes as cb
from corebayes.coreset import Coreset, files
from corebayes.rows import open_rows

rng = np.random.default_rng(4)
FEATURES = rng.standard_normal((50, 3))
DATA = open_rows((FEATURES, rng.integers(0, 2, 50)))
INDICES = np.array([41, 7, 19])
PLAIN = Coreset(
    indices=INDICES,
    weights=np.array([10.0, 25.0, 15.0]),
    rows=DATA.take(INDICES),
    model=cb.LogisticRegression(intercept=True, prior=cb.Normal()).bind(DATA),
    num_rows=50,
    total_count=50.0,
    reason="size",
    trace=({"step": 1, "kl": 0.25},),
    provenance={"seed": 3, "method": "SparseVI()", "columns": {"target": "y"}},
)


def content_of(path: Path) -> dict[str, Any]:
    return json.loads(pq.read_schema(path).metadata[b"corebayes"])


def forge(path: Path, columns=None, text: bytes | None = None, compression="none", **changes):
    """A file as a person with the source could write it: the SHA-256 has no key."""
    PLAIN.save(path)
    content = {**content_of(path), **changes}
    table = pq.read_table(path)
    arrays = {name: table.column(name).to_numpy() for name in table.column_names}
    arrays.update(columns or {})
    content.pop("sha256")
    content["sha256"] = files._digest(content, arrays)
    written = json.dumps(content).encode() if text is None else text
    table = pa.table(arrays).replace_schema_metadata({b"corebayes": written})
    pq.write_table(table, path, compression=compression)


def model_of(path: Path, **config: Any) -> dict[str, Any]:
    PLAIN.save(path)
    saved = content_of(path)["model"]
    return {**saved, "config": {**saved["config"], **config}}


def sparse_footer(path):
    with path.open("wb") as file:
        file.write(b"PAR1")
        file.seek(2 * 10**9)
        file.write((19 * 10**8).to_bytes(4, "little") + b"PAR1")


def varint(number: int) -> bytes:
    """A whole number as a footer has it."""
    value, groups = 2 * number, []
    while value:
        groups.append(value & 127)
        value >>= 7
    return bytes([*(group | 128 for group in groups[:-1]), groups[-1]])


def edit_footer(path: Path, old: int, new: int) -> None:
    """Put another number in all places of the footer that have the old one."""
    whole = path.read_bytes()
    length = int.from_bytes(whole[-8:-4], "little")
    footer = whole[-8 - length : -8]
    assert varint(old) in footer
    footer = footer.replace(varint(old), varint(new))
    path.write_bytes(whole[: -8 - length] + footer + len(footer).to_bytes(4, "little") + b"PAR1")


def page_bomb(path):
    """Three rows, says the footer, in a page of kilobytes that unpacks to 160 MB."""
    number = 20_000_001
    pq.write_table(
        pa.table({"row_id": np.zeros(number, np.int64)}),
        path,
        compression="zstd",
        use_dictionary=False,
        data_page_size=1 << 30,
        max_rows_per_page=number,
        row_group_size=number,
        write_statistics=False,
    )
    edit_footer(path, number, 3)


def assert_refused(found: dict[str, Any], kinds: tuple[str, ...], says: str) -> None:
    assert found["failed"] in kinds, found
    assert re.search(says, found["message"]), found
    assert "\n" not in found["message"] and len(found["message"]) < 600, found
    assert found["message"].isprintable()
    assert found["seconds"] < 2.0, found
    assert found["megabytes"] < 100.0, found
