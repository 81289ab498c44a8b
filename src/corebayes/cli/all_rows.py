"""Commands that look at all rows of a coreset: the arguments and options that they share."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import wraps
from typing import Any, NamedTuple

import corebayes as cb
from corebayes.cli.inputs import columns_of, make_executor
from corebayes.cli.options import (
    AllRowsFiles,
    CoresetFile,
    Counts,
    Features,
    Formula,
    Memory,
    Scheduler,
    Target,
    Tls,
    Workers,
    read,
    told,
)
from corebayes.rows import Rows


@dataclass(frozen=True)
class Named:
    """What the command line says about the coreset, its rows and who reads them.

    The columns are those the coreset was built with unless others are named.
    """

    coreset: CoresetFile
    rows: AllRowsFiles
    target: Target = None
    features: Features = None
    counts: Counts = None
    formula: Formula = None
    workers: Workers = None
    scheduler: Scheduler = None
    tls: Tls = None
    memory: Memory = None


class RowsOfCoreset(NamedTuple):
    """A coreset and the rows that it stands for, which are not read before they are opened."""

    coreset: cb.Coreset
    named: Named

    @contextmanager
    def opened(self) -> Generator[tuple[Rows, dict[str, Any]]]:
        """The rows, and the arguments that say how functions of the library are to read them."""
        named = self.named
        columns = columns_of(
            self.coreset, named.target, named.features, named.counts, named.formula
        )
        data = read(named.rows, columns)
        with make_executor(named.workers, named.scheduler, named.tls) as executor:
            yield data, {"memory": named.memory, "executor": executor}

    def told(self, command: str) -> dict[str, Any]:
        """The first lines of what the command prints as JSON."""
        return {
            "command": command,
            "coreset": str(self.named.coreset),
            "rows": told(self.named.rows),
        }


def of_all_rows(command: Callable[..., Any], *, or_none: bool = False) -> Callable[..., Any]:
    """The command with the options of `Named` instead of its first argument, the rows
    of a coreset, which may be none at all for a command that can do without.

    Typer reads a command's options from its signature, so the signature is put together here.
    """
    shared = dict(inspect.signature(Named, eval_str=True).parameters)
    if or_none:
        shared["rows"] = shared["rows"].replace(default=None)
    _, *own = inspect.signature(command, eval_str=True).parameters.values()

    @wraps(command)
    def run(**given: Any) -> Any:
        named = Named(**{name: given.pop(name) for name in shared})
        return command(RowsOfCoreset(cb.load(named.coreset), named), **given)

    options = [*shared.values(), *own]
    run.__signature__ = inspect.Signature(options)  # pyright: ignore[reportAttributeAccessIssue]
    run.__annotations__ = {one.name: one.annotation for one in options}
    return run
