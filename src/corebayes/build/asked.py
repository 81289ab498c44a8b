"""What `build` is asked for: checked once, with the value in the message."""

from __future__ import annotations

from collections.abc import Iterable
from numbers import Integral
from typing import Any, cast

from corebayes.arguments import checked_whole
from corebayes.constructions.construction import Construction
from corebayes.coreset import Coreset, check_coreset
from corebayes.models.structure import is_structured
from corebayes.problem import Problem
from corebayes.types import Data


def check_model(model: Any) -> None:
    """Whether something can be bound to rows."""
    if isinstance(model, type):
        raise TypeError(f"model must be an object: write {model.__name__}(), with parentheses")
    if not callable(getattr(model, "bind", None)):
        raise TypeError(
            f"model must be one such as LogisticRegression(), or what from_pymc, from_numpyro, "
            f"from_bambi or from_formula gives first of its pair, got {model!r}"
        )


def check_method(method: Any) -> None:
    if isinstance(method, type):
        raise TypeError(f"method must be an object: write {method.__name__}(), with parentheses")
    if not isinstance(method, Construction):
        raise TypeError(
            f"method must be a construction such as SparseVI() or GIGA(), got {method!r}"
        )


def check_can_start(method: Construction, start: Any, size: int | None) -> None:
    if start is None:
        return
    if not isinstance(start, Coreset):
        raise TypeError(f"start must be a coreset, got {type(start).__name__}")
    check_coreset(start)
    if not method.can_start:
        raise TypeError(
            f"{type(method).__name__} begins from nothing and cannot go on from a coreset; "
            "SparseVI() and AnnealedSparseVI() can"
        )
    if size is not None and size <= start.size:
        raise ValueError(f"size must be larger than the {start.size} rows of start, got {size}")
    if start.indices.min(initial=0) < 0:
        raise ValueError("start has learned rows, which are none of the data's to go on from")


def check_reserve(reserve: Any, size: int | None) -> None:
    if reserve is None:
        return
    checked_whole("reserve", reserve, 0, of="rows")
    if size is not None and 0 < reserve <= size:
        raise ValueError(f"reserve must be larger than size, {size}, or 0 for none, got {reserve}")


def check_enough_rows(size: int | None, data: Data) -> None:
    if size is not None and size > data.num_rows:
        raise ValueError(f"size must be at most the number of rows, {data.num_rows}, got {size}")


def checked_sizes(sizes: Any) -> list[int]:
    if isinstance(sizes, (str, Integral)) or not isinstance(sizes, Iterable):
        raise TypeError(f"sizes must be a list of whole numbers of rows, got {sizes!r}")
    wanted = sorted({checked_size(size, None) or 0 for size in cast(Iterable[Any], sizes)})
    if not wanted:
        raise ValueError("sizes must name at least one number of rows")
    return wanted


def checked_size(size: Any, tol: float | None) -> int | None:
    if size is None or size == "auto":
        if tol is None:
            raise ValueError("give a size (how many rows to keep) or a tol (how small KL must be)")
        return None
    return checked_whole("size", size, of="rows")


def check_rows_per_group(number: Any, size: int | None) -> None:
    if number is None:
        return
    checked_whole("rows_per_group", number, of="rows")
    if size is not None:
        raise ValueError(f"give a size or rows_per_group, not both: got {size} and {number}")


def size_for_groups(problem: Problem, rows_per_group: int) -> int:
    """So many rows for each group of the model's largest group term."""
    model = problem.model
    terms = model.structure.terms if is_structured(model) else ()
    if not terms:
        raise ValueError(
            f"rows_per_group is for models with group terms, which {type(model).__name__} has not: "
            "give a size"
        )
    return min(rows_per_group * max(term.num_groups for term in terms), problem.data.num_rows)
