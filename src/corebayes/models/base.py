"""What every built-in model has apart from its likelihood: a Normal prior and names."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from corebayes.files.markup import model_html
from corebayes.models.numbers import check_positive as check_positive
from corebayes.models.numbers import is_given
from corebayes.models.priors.given import (
    Given,
    check_given,
    given_config,
    given_from_config,
)
from corebayes.models.priors.normal import GaussianPrior, Normal
from corebayes.models.priors.stated import StatedPriors, normal_rows
from corebayes.models.priors.table import statement
from corebayes.types import Array, Data


class Bound(NamedTuple):
    """What a model learns from its data: parameter names and the prior on that many."""

    names: tuple[str, ...]
    prior: GaussianPrior
    stated: StatedPriors | None = None
    """The prior of each by name, where it is not one Normal for all."""
    given: Given = None
    """The model's `prior` that this was made of: with another one it does not count."""
    target: str = "y"
    """What y is called in the data."""


@dataclass(frozen=True, kw_only=True, eq=False)
class NormalPriorModel(ABC):
    """A model whose prior is Normal and whose constructor arguments are plain values."""

    command_line: ClassVar[Mapping[str, Mapping[str, Any]]] = {}
    """Names on the command line, each with the arguments that it stands for."""
    also: ClassVar[tuple[str, ...]] = ()
    """What Bambi, brms and R call it; the first name on the command line is meant."""
    flags: ClassVar[Mapping[str, str]] = {}
    """Which numbers of the command line it takes, and as which argument."""

    prior: Given = None
    bound: Bound | None = field(default=None, repr=False)

    def __init_subclass__(cls) -> None:
        # A dataclass writes a repr for every subclass that has none.
        if "__repr__" not in cls.__dict__:
            cls.__repr__ = NormalPriorModel.__repr__
        super().__init_subclass__()

    def __post_init__(self) -> None:
        check_given(self.prior)

    def __repr__(self) -> str:
        values = {entry.name: getattr(self, entry.name) for entry in fields(self) if entry.repr}
        # A formula's intercept is one of its columns: intercept=False would read as if it had none.
        said = [f"{name}={value!r}" for name, value in values.items() if is_given(value)]
        text = f"{type(self).__name__}({', '.join(said)})"
        return text if self.bound is None else f"{text}\n{self.statement()}"

    def statement(self) -> str:
        """The bound model as one would write it: the likelihood, and a table of priors."""
        return statement(self._bound().target, self.likelihood, (), self.priors())

    @property
    def likelihood(self) -> str:
        """The distribution of the target, such as Normal(η, 1)."""
        return type(self).__name__

    def priors(self) -> list[tuple[str, str, str]]:
        """Parameter, prior, and from where it is, for every parameter of the bound model."""
        known = self._bound()
        if known.stated is not None:
            return known.stated.rows()
        return normal_rows(known.names, known.prior)

    def _repr_html_(self) -> str:
        return model_html(self)

    @abstractmethod
    def bind(self, data: Data) -> Any:
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
        """This model on parameters of these names, its prior one Normal for all."""
        if not isinstance(self.prior, Normal):
            raise ValueError(
                f"the default prior of a {type(self).__name__} is on the scale of its data: call "
                "model.bind(data), or give a Normal prior"
            )
        return replace(self, bound=Bound(names, self.prior.bind(len(names)), None, self.prior))

    def with_priors(self, stated: StatedPriors) -> Self:
        """This model on the parameters of these priors, which are all Normal."""
        normal = stated.normal
        if not isinstance(normal, GaussianPrior):
            raise ValueError("not all priors are Normal")
        return replace(self, bound=Bound(stated.names, normal, stated, self.prior))

    def with_target(self, target: str) -> Self:
        """This bound model, y under the name that it has in the data."""
        return replace(self, bound=self._bound()._replace(target=target))

    def config(self) -> dict[str, Any]:
        """Constructor arguments as JSON has them, and `names` and `priors` when it is bound."""
        arguments = {
            entry.name: np.asarray(getattr(self, entry.name)).tolist()
            for entry in fields(self)
            if entry.name not in ("prior", "bound")
        }
        bound = self.bound
        stated = None if bound is None or bound.stated is None else bound.stated.config()
        return {
            **arguments,
            "prior": given_config(self.prior),
            "names": None if bound is None else list(bound.names),
            "priors": stated,
        }

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> Self:
        """The model that `config` describes, bound when it has names."""
        arguments: dict[str, Any] = {**config, "prior": given_from_config(config["prior"])}
        names, stated = arguments.pop("names", None), arguments.pop("priors", None)
        model = cls(**arguments)
        if stated is not None:
            priors = StatedPriors.from_config(stated)
            if names is None or priors.names != tuple(names):
                raise ValueError("its priors are not of its parameters")
            return model.with_priors(priors)
        return model if names is None else model.with_names(tuple(names))
