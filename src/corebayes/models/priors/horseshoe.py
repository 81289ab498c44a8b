"""The regularised horseshoe: a prior for many coefficients of which few are thought to matter.

    β_j = u_j x_j,   x_j ~ N(0, v_j),   1/v_j = 1/(τ λ_j)² + 1/c²
    λ_j ~ t⁺_local(1),   τ ~ t⁺_global(global_scale),   c² ~ InvGamma(ν/2, ν s²/2)

(Piironen and Vehtari 2017). τ pulls all coefficients to zero, heavy tails of λ_j let single ones
go, and c, the width of the slab, keeps those from being anything at all. One τ for columns in
different units would mean nothing, so that u_j is sd(y)/sd(x_j) (or 1/sd(x_j) where the predictor
has no units), as default priors have it, unless `scaled=False`.

No row touches τ and c: they are further parameters of the posterior. The λ_j are integrated out
(`shrinkage`), and with them the narrow necks that make this prior hard to sample.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from corebayes.models.numbers import check_positive
from corebayes.models.priors.scale import Gamma, HalfStudentT, Reciprocal


@dataclass(frozen=True, kw_only=True)
class Horseshoe:
    """The prior of all coefficients that it is given to; equal ones share τ and c.

    `num_relevant` is a guess of how many coefficients matter, of D in N rows, and then
    global_scale = num_relevant / (D − num_relevant) / √N. Given for all coefficients it leaves out
    the intercept, which keeps its default.
    """

    global_scale: float = 1.0
    slab_scale: float = 2.5
    slab_df: float = 4.0
    global_df: float = 1.0
    local_df: float = 1.0
    num_relevant: float | None = None
    scaled: bool = True

    def __post_init__(self) -> None:
        for name in ("global_scale", "slab_scale", "slab_df", "global_df", "local_df"):
            check_positive(getattr(self, name), name)
        if self.num_relevant is not None:
            check_positive(self.num_relevant, "num_relevant")
            if self.global_scale != 1.0:
                raise ValueError("num_relevant says what global_scale is: give one of them")

    @property
    def tau(self) -> HalfStudentT:
        """The prior of τ."""
        return HalfStudentT(self.global_df, self.global_scale)

    @property
    def slab(self) -> Reciprocal:
        """The prior of c²: its reciprocal is Gamma."""
        half = 0.5 * self.slab_df
        return Reciprocal(Gamma(half, half * self.slab_scale**2))

    def for_rows(self, num_coefficients: int, num_rows: float) -> Horseshoe:
        """The same with a number instead of the guess, to three digits."""
        if self.num_relevant is None:
            return self
        if not self.num_relevant < num_coefficients:
            raise ValueError(
                f"num_relevant of the horseshoe prior must be below the {num_coefficients:,} "
                f"coefficients that have it, got {self.num_relevant:g}"
            )
        ratio = self.num_relevant / (num_coefficients - self.num_relevant)
        scale = float(f"{ratio / max(num_rows, 1.0) ** 0.5:.3g}")
        return replace(self, global_scale=scale, num_relevant=None)

    def config(self) -> dict[str, Any]:
        """Constructor arguments, and the class as `kind`."""
        return {"kind": type(self).__name__, **asdict(self)}

    def __str__(self) -> str:
        said = {k: v for k, v in asdict(self).items() if v != DEFAULTS[k]}
        return f"Horseshoe({', '.join(f'{k}={v:g}' for k, v in said.items())})"


DEFAULTS = asdict(Horseshoe())


@dataclass(frozen=True)
class Shrunk:
    """The prior of one coefficient of a bound model: its share of a horseshoe."""

    of: Horseshoe
    unit: float = 1.0

    def config(self) -> dict[str, Any]:
        return {**self.of.config(), "unit": self.unit}

    def __str__(self) -> str:
        return f"{self.of}" if self.unit == 1.0 else f"{self.unit:g} · {self.of}"


def is_horseshoe(config: Mapping[str, Any]) -> bool:
    """Whether a config is that of a horseshoe, or of a coefficient that has one."""
    return config.get("kind") == Horseshoe.__name__


def horseshoe_from_config(config: Mapping[str, Any]) -> Horseshoe | Shrunk:
    """What gave `config`."""
    arguments = {name: value for name, value in config.items() if name not in ("kind", "unit")}
    made = Horseshoe(**arguments)
    if "unit" not in config:
        return made
    unit = float(config["unit"])
    check_positive(unit, "unit")
    return Shrunk(made, unit)
