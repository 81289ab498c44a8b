"""What every built-in model has apart from its likelihood: a Normal prior and names."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from corebayes.files.markup import model_html
from corebayes.models.prior import GaussianPrior, Normal
from corebayes.types import Array, Data


class Bound(NamedTuple):
    """What a model learns from its data: parameter names and the prior on that many."""

    names: tuple[str, ...]
    prior: GaussianPrior


@dataclass(frozen=True, kw_only=True, eq=False)
class NormalPriorModel(ABC):
    """A model whose prior is Normal and whose constructor arguments are plain values."""

    command_line: ClassVar[Mapping[str, Mapping[str, Any]]] = {}
    """Names on the command line, each with the arguments that it stands for."""
    also: ClassVar[tuple[str, ...]] = ()
    """What Bambi, brms and R call it; the first name on the command line is meant."""
    flags: ClassVar[Mapping[str, str]] = {}
    """Which numbers of the command line it takes, and as which argument."""

    prior: Normal = field(default_factory=Normal)
    bound: Bound | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if not isinstance(self.prior, Normal):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError(f"prior must be a Normal(mean, sd_or_cov), got {self.prior!r}")

    def _repr_html_(self) -> str:
        return model_html(self)

    @abstractmethod
    def bind(self, data: Data) -> Self:
        """This model for these rows, which are checked."""

    def _bound(self) -> Bound:
        if self.bound is None:
            raise ValueError(
                f"{type(self).__name__} does not know its data yet: call model.bind(data) first"
            )
        return self.bound

    @property
    def gaussian_prior(self) -> GaussianPrior:
        """The prior on this data's parameters."""
        return self._bound().prior

    @property
    def dim(self) -> int:
        return len(self._bound().names)

    @property
    def parameter_names(self) -> tuple[str, ...]:
        return self._bound().names

    def log_prior(self, draws: Array) -> Array:
        return self.gaussian_prior.log_density(draws)

    def log_prior_gradient(self, theta: Array) -> Array:
        return self.gaussian_prior.gradient(theta)

    def log_prior_hessian(self, theta: Array) -> Array:
        return self.gaussian_prior.hessian(theta)

    def with_names(self, names: tuple[str, ...]) -> Self:
        """This model on parameters of these names."""
        return replace(self, bound=Bound(names, self.prior.bind(len(names))))

    def config(self) -> dict[str, Any]:
        """Constructor arguments as JSON has them, and `names` when the model is bound."""
        arguments = {
            entry.name: np.asarray(getattr(self, entry.name)).tolist()
            for entry in fields(self)
            if entry.name not in ("prior", "bound")
        }
        names = None if self.bound is None else list(self.bound.names)
        return {**arguments, "prior": self.prior.config(), "names": names}

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> Self:
        """The model that `config` describes, bound when it has names."""
        arguments: dict[str, Any] = {**config, "prior": Normal(**config["prior"])}
        names = arguments.pop("names", None)
        model = cls(**arguments)
        return model if names is None else model.with_names(tuple(names))


def check_positive(value: float, argument: str) -> None:
    """Refuse anything but a positive, finite number."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise TypeError(f"{argument} must be a number, got {value!r}")
    if not (value > 0 and math.isfinite(value)):
        raise ValueError(f"{argument} must be positive and finite, got {value!r}")
