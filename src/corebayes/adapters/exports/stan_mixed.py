"""The Stan program of a mixed regression on weighted rows.

Effect e has the standard deviation `tau_e` and one entry of `b_e` for each group of term
`group_t`; comments in the program say what people call them.
"""

from __future__ import annotations

from typing import Any

from corebayes.adapters.exports import coefficient_parts
from corebayes.adapters.exports.mixed_parts import MixedParts
from corebayes.adapters.exports.prior_forms import in_stan
from corebayes.coreset import Coreset

# How Stan declares a number.
BOUNDS = {"log": "<lower=0>", "logit": "<lower=0, upper=1>", "identity": ""}

PROGRAM = """data {{
  int<lower=0> M;
  int<lower=1> D;
  matrix[M, {columns}] X;
  {target};
  vector<lower=0>[M] weight;
{data}}}
parameters {{
  vector[D] beta;
{parameters}}}
{transformed}model {{
  {eta};
{predictor}{priors}  for (i in 1:M)
    target += weight[i] * {line};
}}
"""


def mixed_program(parts: MixedParts, coreset: Coreset) -> tuple[dict[str, Any], str, str]:
    """Data, program, and the lines that weight the likelihood."""
    model, rows, family = parts.model, coreset.rows, parts.model.family
    groups, target = model.groups(rows), family.exported_target(rows)
    prior, declared, priors = coefficient_parts.in_stan(parts)
    data: dict[str, Any] = {
        "M": coreset.size,
        "D": model.num_fixed,
        "X": model.fixed_design(rows).tolist(),
        "y": target.tolist(),
        "weight": coreset.weights.tolist(),
        **prior,
    }
    linear, columns = len(family.linear), "D"
    eta = "vector[M] eta = X * beta"
    if linear > 1:
        columns = f"D %/% {linear}"
        eta = f"matrix[M, {linear}] eta = X * to_matrix(beta, {columns}, {linear})"
    parameters: list[str] = []
    predictor: list[str] = []
    constants = dict(family.constants)
    transformed = ""
    kinds = {one.name: BOUNDS[one.transform] for one in family.learnable}
    for learned in parts.learned:
        constants.pop(learned.constant, None)
        own, kind = learned.constant, kinds[learned.constant]
        if learned.inverse:
            transformed += f"  real<lower=0> {own} = inv({own}_inverse);\n"
            own = f"{own}_inverse"
        parameters.append(f"real{kind} {own};")
        priors.append(f"{own} ~ {in_stan(learned.prior)};")
    for shrunk in parts.shrinkages:
        for one in (shrunk.tau, shrunk.slab):
            parameters.append(f"real<lower=0> {one.name};")
            priors.append(f"{one.name} ~ {in_stan(one.prior)};")
    for name, value in constants.items():
        declared.append(f"real{kinds[name]} {name};")
        data[name] = value
    if (offset := model.offset(rows)) is not None:
        declared.append("vector[M] added;")
        data["added"] = offset.tolist()
        predictor.append(f"eta += {'added' if linear == 1 else f'rep_matrix(added, {linear})'};")
    for number, labels in enumerate(model.group_labels, 1):
        named = _comment(model.terms[number - 1].group)
        declared += [
            f"int<lower=1> G_{number};",
            f"array[M] int<lower=1, upper=G_{number}> group_{number};  // {named}",
        ]
        data |= {
            f"G_{number}": len(labels),
            f"group_{number}": (groups[:, number - 1] + 1).tolist(),
        }
    for number, (effect, column) in enumerate(
        zip(parts.effects, parts.columns(rows), strict=True), 1
    ):
        size, group = f"G_{effect.term + 1}", f"group_{effect.term + 1}"
        parameters += [
            f"real<lower=0> tau_{number};  // {_comment(effect.scale.name)}",
            f"vector[{size}] b_{number};  // {_comment(effect.name)}",
        ]
        slope = ""
        if effect.column is not None:
            declared.append(f"vector[M] z_{number};")
            data[f"z_{number}"] = column.tolist()
            slope = f"z_{number} .* "
        place = "eta" if linear == 1 else f"eta[, {effect.predictor + 1}]"
        predictor.append(f"{place} += {slope}b_{number}[{group}];")
        priors += [
            f"tau_{number} ~ {in_stan(effect.scale.prior)};",
            f"b_{number} ~ normal(0, tau_{number});",
        ]
    for name in set(family.row_columns) & {"trials", "event"}:
        declared.append(f"array[M] int<lower=0> {name};")
        data[name] = parts.row(rows)[name].astype(int).tolist()
    transformed += "".join(f"  {line}\n" for line in family.stan_transformed)
    whole = target.dtype.kind == "i"
    program = PROGRAM.format(
        target="array[M] int y" if whole else "vector[M] y",
        columns=columns,
        eta=eta,
        data=_lines(declared),
        parameters=_lines(parameters),
        transformed=f"transformed parameters {{\n{transformed}}}\n" if transformed else "",
        predictor=_lines(predictor),
        priors=_lines(priors),
        line=family.stan,
    )
    return data, program, f"for (i in 1:M)\n  target += weight[i] * {family.stan};\n"


def _lines(lines: list[str]) -> str:
    return "".join(f"  {line}\n" for line in lines)


def _comment(name: str) -> str:
    """A name that ends no comment."""
    return "".join(c if c.isprintable() else "?" for c in name)
