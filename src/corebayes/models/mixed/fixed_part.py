"""What the check of all rows sees of a mixed model: its fixed effects."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from corebayes.models.families.family import Family
from corebayes.models.families.glm import GLM
from corebayes.models.mixed.design import MixedDesign
from corebayes.types import Array, Block


@dataclass(frozen=True)
class FixedPart:
    """The fixed effects of a mixed model, for the check of its rows."""

    model: MixedDesign

    @property
    def family(self) -> Family:
        return self.model.family

    @property
    def dim(self) -> int:
        return len(self.model.design_names)

    @property
    def kind(self) -> str:
        return self.model.family.kind

    @property
    def parameter_names(self) -> tuple[str, ...]:
        return self.model.design_names

    def design(self, block: Block) -> Array:
        return self.model.fixed_design(block)

    def target(self, block: Block) -> Array:
        family = self.model.family
        if isinstance(family, GLM):
            return family.target(block)
        return family.level(self.model.row(block))[:, 0]

    def offset(self, block: Block) -> Array | None:
        return self.model.offset(block)

    def check_target(self, y: Array, lowest: float) -> Any:
        return self.model.family.check_target(y, lowest)

    def check_columns(self, block: Block) -> list[tuple[str, Array, NDArray[np.bool_], str]]:
        row = {name: values[:, 0] for name, values in self.model.row(block).items()}
        columns = self.model.row_names
        return [
            (columns[name], row[name], bad, rule)
            for name, bad, rule in self.model.family.check_row(row)
        ]

    def survey_of(self, block: Block) -> Array:
        return self.model.family.survey(self.model.row(block)).ravel()
