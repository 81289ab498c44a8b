"""Rows for functions of a person's own: every column by its name, `block.event`, `block["age"]`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from corebayes.types import Array, Block


class Naming(NamedTuple):
    """What the columns of the fields X and y are called."""

    columns: tuple[str, ...] = ()
    target: str = "y"
    num_features: int | None = None
    """Columns of X that the function sees as X; those after them it has by name only."""


@dataclass(frozen=True)
class NamedBlock(Block):
    """A block that knows the names of its columns; fields come first, then columns of X."""

    naming: Naming = field(default_factory=Naming)

    @property
    def X(self) -> Array:
        wide = self.fields["X"]
        kept = self.naming.num_features
        return wide if kept is None else wide[:, :kept]

    def __getitem__(self, name: str) -> Array:
        if name == "X":
            return self.X
        if name in self.fields:
            return self.fields[name]
        if name in self.naming.columns:
            return self.fields["X"][:, self.naming.columns.index(name)]
        if name == self.naming.target and "y" in self.fields:
            return self.fields["y"]
        have = [*self.fields, *self.naming.columns]
        known = ", ".join(map(repr, have[:12])) + ", …" * (len(have) > 12)
        raise KeyError(f"the rows have no column {name!r}; they have {known}")

    def __getattr__(self, name: str) -> Array:
        # Only what is no field of the class comes here; Python asks for names of its own, too.
        if name.startswith("__"):
            raise AttributeError(name)
        try:
            return self[name]
        except KeyError as error:
            raise AttributeError(str(error.args[0])) from None


@dataclass(frozen=True)
class OnNamedRows:
    """A function of (draws, block, …) that is handed blocks with names."""

    function: Callable[..., Any]
    naming: Naming

    def __call__(self, draws: Any, block: Block, *others: Any) -> Any:
        return self.function(draws, NamedBlock(block.fields, block.counts, self.naming), *others)

    @property
    def __name__(self) -> str:  # pyright: ignore[reportIncompatibleVariableOverride]
        return getattr(self.function, "__name__", repr(self.function))


def named(function: Any, naming: Naming) -> Any:
    """The function on named rows; one that is that already gets the new names."""
    if function is None:
        return None
    return OnNamedRows(getattr(function, "function", function), naming)
