"""Which arguments of a model function hold one entry for each row, and how to pass others.

Arguments may be arrays, or dictionaries, lists and tuples of them; every array in there is a
leaf with a name such as `X`, `data.age` or `groups[0]`.
"""

from __future__ import annotations

import inspect
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Arguments:
    """The arguments a model was given, and the names of those of its leaves that hold rows."""

    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    names: tuple[str, ...]
    """What the positional arguments are called."""
    rows: frozenset[str]
    num_rows: int
    resize: bool
    """Whether whole numbers equal to the number of rows stand for it."""

    def row_arrays(self) -> dict[str, NDArray[Any]]:
        """The leaves that hold rows, by name."""
        leaves = {name: leaf for name, leaf in self._leaves() if name in self.rows}
        return {name: np.asarray(leaf) for name, leaf in leaves.items()}

    def with_rows(self, rows: Mapping[str, Any], number: int) -> tuple[list[Any], dict[str, Any]]:
        """The arguments (positional, keyword) for other rows, given by leaf name."""

        def replaced(name: str, leaf: Any) -> Any:
            if name in self.rows:
                return rows[name]
            if self.resize and _is_whole(leaf) and leaf == self.num_rows:
                return number
            return leaf

        positional = [
            _map(name, value, replaced) for name, value in zip(self.names, self.args, strict=True)
        ]
        keyword = {name: _map(name, value, replaced) for name, value in self.kwargs.items()}
        return positional, keyword

    def without_rows(self) -> Arguments:
        """The same with empty arrays instead of rows: small enough to be kept."""
        empty = {name: array[:0] for name, array in self.row_arrays().items()}
        args, kwargs = self.with_rows(empty, self.num_rows)
        return Arguments(tuple(args), kwargs, self.names, self.rows, self.num_rows, self.resize)

    def _leaves(self) -> list[tuple[str, Any]]:
        return _leaves(self.names, self.args, self.kwargs)


def candidates(
    function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]
) -> list[Arguments]:
    """The ways to read the arguments, likeliest first: the length that most arrays share (the
    longest of these) is the number of rows, and whole numbers equal to it stand for it or not."""
    names = _names(function, args)
    leaves = _leaves(names, args, kwargs)
    lengths = Counter(leaf.shape[0] for _, leaf in leaves if _is_array(leaf) and leaf.ndim)
    ordered = sorted(lengths, key=lambda length: (-lengths[length], -length))
    return [
        Arguments(
            args=tuple(args),
            kwargs=dict(kwargs),
            names=names,
            rows=frozenset(
                name
                for name, leaf in leaves
                if _is_array(leaf) and leaf.ndim and leaf.shape[0] == length
            ),
            num_rows=length,
            resize=resize,
        )
        for length in ordered
        for resize in (False, True)
        if not resize or any(_is_whole(leaf) and leaf == length for _, leaf in leaves)
    ]


def _names(function: Callable[..., Any], args: Sequence[Any]) -> tuple[str, ...]:
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        parameters = []
    plain = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    named = [parameter.name for parameter in parameters if parameter.kind in plain]
    return tuple(
        named[place] if place < len(named) else f"argument{place}" for place in range(len(args))
    )


def _leaves(
    names: Sequence[str], args: Sequence[Any], kwargs: Mapping[str, Any]
) -> list[tuple[str, Any]]:
    found: list[tuple[str, Any]] = []

    def keep(name: str, leaf: Any) -> Any:
        found.append((name, leaf))
        return leaf

    for name, value in (*zip(names, args, strict=True), *kwargs.items()):
        _map(name, value, keep)
    return found


def _map(name: str, value: Any, change: Callable[[str, Any], Any]) -> Any:
    """The value with every leaf changed; containers keep their type."""
    if isinstance(value, Mapping):
        entries = cast(Mapping[Any, Any], value)
        return {key: _map(f"{name}.{key}", entry, change) for key, entry in entries.items()}
    if isinstance(value, (list, tuple)) and any(_is_array(entry) for entry in cast(Any, value)):
        items = cast(Sequence[Any], value)
        mapped = [_map(f"{name}[{k}]", entry, change) for k, entry in enumerate(items)]
        if hasattr(items, "_fields"):
            return type(items)(*mapped)
        return type(items)(mapped)  # pyright: ignore[reportCallIssue]
    return change(name, value)


def _is_array(leaf: Any) -> bool:
    return hasattr(leaf, "shape") and hasattr(leaf, "dtype") and hasattr(leaf, "__array__")


def _is_whole(leaf: Any) -> bool:
    return isinstance(leaf, (int, np.integer)) and not isinstance(leaf, bool)
