"""Tables and files that several tests read."""

import pyarrow.parquet as pq
import pytest

from tests.data.tables import NUM_ROWS, make_table


@pytest.fixture(scope="module")
def table():
    return make_table()


@pytest.fixture
def folder(tmp_path, table):
    """Three files of several row groups, the last with its columns in another order."""
    for k, (start, stop) in enumerate([(0, 1000), (1000, 1700), (1700, NUM_ROWS)]):
        part = table.slice(start, stop - start)
        if k == 2:
            part = part.select(["n", "y", "b", "a"])
        pq.write_table(part, tmp_path / f"part-{k}.parquet", row_group_size=300)
    return tmp_path
