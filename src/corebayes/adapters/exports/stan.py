"""A coreset for Stan: its rows and weights as data, and what to add to a program.

Stan adds up log densities over a vector; a weighted program adds them one row at a time,

    target += weight[i] * lpdf(y[i] | …);

For the built-in regressions the whole program is written. Stan programs are compiled outside
Python, so this exporter cannot evaluate what it writes: the tests do that, for every family.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from corebayes.adapters.exports.glm_parts import GlmParts, glm_parts
from corebayes.adapters.exports.mixed_parts import mixed_parts
from corebayes.adapters.exports.stan_mixed import mixed_program
from corebayes.coreset import Coreset, GroupCoreset, as_rows
from corebayes.files.atomic import write_atomically
from corebayes.models.families.glm import GLM

PROGRAM = """data {{
  int<lower=0> M;
  int<lower=1> D;
  matrix[M, D] X;
  {target};
  vector<lower=0>[M] weight;
  vector[D] prior_mean;
  cov_matrix[D] prior_covariance;
{constants}}}
parameters {{
  vector[D] beta;
}}
model {{
  vector[M] eta = X * beta;
  beta ~ multi_normal(prior_mean, prior_covariance);
  for (i in 1:M)
    target += weight[i] * {line};
}}
"""

OWN_PROGRAM = """data {
  int<lower=0> M;
  vector<lower=0>[M] weight;
}
model {
  // Instead of  y ~ distribution(...)  over all rows:
  for (i in 1:M)
    target += weight[i] * distribution_lpdf(y[i] | ...);
}
"""


@dataclass(frozen=True, kw_only=True)
class StanExport:
    """Data for Stan and the program, or the lines to add to a program of one's own."""

    data: dict[str, Any]
    """What Stan's data block declares, as lists and numbers."""
    program: str | None
    """A complete program; None where only the user has one."""
    lines: str
    """What declares the weights and adds the weighted terms."""

    def write(self, folder: str | os.PathLike[str]) -> None:
        """Write `data.json`, and the program as `model.stan` when there is one."""
        place = Path(folder)
        write_atomically(place / "data.json", json.dumps(self.data).encode())
        if self.program is not None:
            write_atomically(place / "model.stan", self.program.encode())


def to_stan(coreset: Coreset) -> StanExport:
    """The coreset's rows and weights as Stan data, with a program for the built-in regressions,
    mixed ones too.

    Models from elsewhere get the data, field by field, and the lines that weight the likelihood
    of a program of one's own. `export.write(folder)` makes files of it; with pystan:
    `stan.build(export.program, data=export.data)`.
    """
    if isinstance(coreset, GroupCoreset):
        raise TypeError(
            "to_stan has no program for a coreset of groups, whose weights are of integrals over "
            "effects and not of rows: take to_numpyro or to_pymc, or export coreset.level_one, the "
            "weighted rows of all groups"
        )
    coreset = as_rows(coreset)
    if mixed := mixed_parts(coreset):
        data, program, lines = mixed_program(mixed, coreset)
        return StanExport(data=data, program=program, lines=lines)
    if isinstance(coreset.model, GLM):
        return _regression(glm_parts(coreset, "to_stan"), coreset)
    data: dict[str, Any] = {"M": coreset.size, "weight": coreset.weights.tolist()}
    dtypes = {field.name: field.dtype for field in getattr(coreset.model, "fields", ())}
    for name, values in coreset.rows.fields.items():
        whole = dtypes.get(name, np.dtype(float)).kind in "biu"
        data[_identifier(name)] = (values.astype(np.int64) if whole else values).tolist()
    return StanExport(data=data, program=None, lines=OWN_PROGRAM)


def _regression(parts: GlmParts, coreset: Coreset) -> StanExport:
    model, prior = parts.model, parts.model.gaussian_prior
    design, target = model.design(coreset.rows), model.exported_target(coreset.rows)
    data = {
        "M": coreset.size,
        "D": design.shape[1],
        "X": design.tolist(),
        "y": target.tolist(),
        "weight": coreset.weights.tolist(),
        "prior_mean": prior.mean.tolist(),
        "prior_covariance": prior.covariance.tolist(),
        **model.constants,
    }
    whole = target.dtype.kind == "i"
    program = PROGRAM.format(
        target="array[M] int y" if whole else "vector[M] y",
        constants="".join(f"  real<lower=0> {name};\n" for name in model.constants),
        line=model.stan,
    )
    lines = f"for (i in 1:M)\n  target += weight[i] * {model.stan};\n"
    return StanExport(data=data, program=program, lines=lines)


def _identifier(name: str) -> str:
    """A name Stan allows: letters, digits and underscores, a letter first."""
    plain = "".join(c if c.isascii() and c.isalnum() else "_" for c in name).strip("_")
    return plain if plain[:1].isalpha() else f"field_{plain}"
