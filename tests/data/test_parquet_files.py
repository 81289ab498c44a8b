"""Files are known by name, layout and content, and must stay as they were opened."""

from __future__ import annotations

import os
import pickle

import numpy as np
import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet as pq
import pytest

from corebayes.data.watch import ChangedDataError
from corebayes.scan.every_row import Counts
from tests.data.tables import NUM_ROWS
from tests.opened import checked, read


def test_the_fingerprint_is_of_names_layout_and_content(folder, table, tmp_path_factory):
    def fingerprint(source=folder, **options):
        return checked(source, **{"target": "y", **options}).fingerprint()

    same = fingerprint()
    assert fingerprint() == same and len(same) == 64
    moved = tmp_path_factory.mktemp("moved")
    for file in folder.iterdir():
        (moved / file.name).write_bytes(file.read_bytes())
    assert fingerprint(moved) == same
    others = [
        fingerprint(target="n"),
        fingerprint(features=["a"]),
        fingerprint(features=["n", "b", "a"]),
        fingerprint(counts="n"),
        fingerprint(counts=np.ones(NUM_ROWS)),
        fingerprint(folder / "part-0.parquet"),
    ]
    a = table.column("a").to_numpy()[:1000].copy()
    a[500] = np.nextafter(a[500], 9.0)
    changed = table.slice(0, 1000).set_column(0, "a", pa.array(a))
    pq.write_table(changed, folder / "part-0.parquet", row_group_size=300)
    others.append(fingerprint())
    assert len({same, *others}) == 1 + len(others)


@pytest.mark.parametrize("how", ["content", "shorter", "gone"])
def test_a_file_that_changed_since_opening_is_refused(folder, table, how):
    data = checked(folder, target="y")
    copy = pickle.loads(pickle.dumps(data))
    file = folder / "part-1.parquet"
    if how == "gone":
        file.unlink()
    elif how == "shorter":
        pq.write_table(table.slice(1000, 600), file, row_group_size=300)
    else:
        content = bytearray(file.read_bytes())
        content[300] ^= 1
        file.write_bytes(content)
        os.utime(file, ns=(1, 1))
    assert len(read(data, 0, 1000)) == 1000
    message = r"part-1.parquet (changed since the data was opened|is gone)"
    # In the process that opened it, and in another that gets it afterwards.
    for reader in (data, copy):
        with pytest.raises(ChangedDataError, match=message):
            read(reader, 900, 1100)
        with pytest.raises(ChangedDataError, match=message):
            reader.ask(Counts())


def test_a_copy_elsewhere_with_another_time_is_the_same_file(folder):
    data = checked(folder, target="y")
    shipped = pickle.dumps(data._behind.table)
    assert len(shipped) < 3000
    for file in folder.iterdir():
        os.utime(file, ns=(1, 1))
    copy = pickle.loads(shipped)
    assert read(copy, 0, 5).X.shape == (5, 3)
    assert checked(copy).fingerprint() == data.fingerprint()
