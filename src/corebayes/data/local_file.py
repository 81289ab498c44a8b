"""A Parquet file on this machine, as its footer describes it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

from corebayes.data.footer import check_data_footer
from corebayes.data.frames import import_pyarrow
from corebayes.files.reading import check_regular, first_line


class RowGroup(NamedTuple):
    id: int
    num_rows: int


@dataclass(frozen=True)
class LocalFile:
    """What a fragment of a pyarrow dataset says of a file, by the same names."""

    path: str
    physical_schema: Any
    metadata: Any
    filesystem: None = None

    @classmethod
    def open(cls, path: str) -> LocalFile:
        """Cost: the footer."""
        check_file(path)
        parquet = import_pyarrow("pyarrow.parquet")
        try:
            with parquet.ParquetFile(path) as file:
                return cls(path, file.schema_arrow, file.metadata)
        except (import_pyarrow().ArrowException, OSError) as error:
            raise unreadable(path, error) from error

    @property
    def row_groups(self) -> list[RowGroup]:
        numbers = range(self.metadata.num_row_groups)
        return [RowGroup(number, self.metadata.row_group(number).num_rows) for number in numbers]


def check_file(path: str) -> None:
    """Refuse what is no file, or whose footer would harm who reads it."""
    try:
        check_regular(path)
        check_data_footer(path)
    except (OSError, ValueError) as error:
        raise unreadable(path, error) from error


def unreadable(path: str, error: Exception) -> ValueError:
    return ValueError(f"cannot read {path} as parquet: {first_line(error)}")
