"""A pass that checks the rows on its way, since it reads them anyway."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from corebayes.models.design import TargetCheck
from corebayes.scan.query import Executor, scan
from corebayes.types import Block, Data, Indices, Model


@dataclass(frozen=True)
class Checked:
    """Another query, and the model's own rules for the rows it is asked of."""

    query: Any
    check: TargetCheck

    @property
    def width(self) -> int:
        return self.query.width

    @property
    def block_rows(self) -> int:
        return self.query.block_rows

    def answer(self, block: Block, numbers: Indices) -> tuple[Any, Any]:
        return self.check.answer(block, numbers), self.query.answer(block, numbers)

    def merge(self, first: tuple[Any, Any], second: tuple[Any, Any]) -> tuple[Any, Any]:
        checked, answer = zip(first, second, strict=True)
        return self.check.merge(*checked), self.query.merge(*answer)


def scan_checked(
    model: Model, query: Any, data: Data, executor: Executor, budget: Any = None
) -> Any:
    """The answer of one pass, in which every row is one that `build` would take."""
    regression: Any = model
    if not hasattr(regression, "check_target"):
        return scan(query, data, executor, budget=budget)
    check = TargetCheck(regression, data.target_name)
    return scan(Checked(query, check), data, executor, budget=budget)[1]
