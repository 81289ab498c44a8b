"""A regression as posteriordb's models are: written once, for corebayes and for NumPyro.

    η = Xβ + Σ_t z_t b_{t, g_t},   b_t ~ N(0, τ_t²),   y ~ N(η, σ) or Bernoulli(logit = η)

A flat prior is flat in NumPyro. corebayes has proper priors, so there it is N(0, s²) with s ten
thousand times the scale on which a coefficient matters: the two differ by less than 1e-6 nats.
"""

from __future__ import annotations

import itertools
from collections import Counter
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

import corebayes as cb

WIDE = 1e4


class Scale(NamedTuple):
    """The prior of a standard deviation: "flat", "normal", "cauchy" or "t3" on (0, ∞), or
    "uniform" on (0, width)."""

    kind: str
    width: float = 1.0

    def in_corebayes(self, spread: float) -> Any:
        if self.kind == "normal":
            return cb.HalfNormal(self.width)
        if self.kind in ("cauchy", "t3"):
            return cb.HalfStudentT(1.0 if self.kind == "cauchy" else 3.0, self.width)
        # Both are flat where the likelihood is not.
        return cb.HalfNormal(self.width if self.kind == "uniform" else WIDE * spread)

    def log_density(self, sd: float) -> float:
        """Up to a constant."""
        z = sd / self.width
        if self.kind == "normal":
            return -0.5 * z * z
        if self.kind in ("cauchy", "t3"):
            df = 1.0 if self.kind == "cauchy" else 3.0
            return -0.5 * (df + 1.0) * float(np.log1p(z * z / df))
        return 0.0

    def in_numpyro(self, name: str) -> Any:
        import numpyro
        from numpyro import distributions as dist

        found = {
            "flat": lambda: dist.ImproperUniform(dist.constraints.positive, (), ()),
            "normal": lambda: dist.HalfNormal(self.width),
            "cauchy": lambda: dist.HalfCauchy(self.width),
            "t3": lambda: dist.LeftTruncatedDistribution(dist.StudentT(3.0, 0.0, self.width), 0.0),
            "uniform": lambda: dist.Uniform(0.0, self.width),
        }
        return numpyro.sample(name, found[self.kind]())


class Term(NamedTuple):
    """Effects `name` of groups 0, 1, … on the intercept, or on the slope of a column of X."""

    name: str
    group: str
    groups: np.ndarray
    scale: Scale
    column: int | None = None

    @property
    def called(self) -> str:
        """As corebayes calls the effects."""
        return f"{self.effect}|{self.group}"

    @property
    def effect(self) -> str:
        return "1" if self.column is None else f"x{self.column}"


@dataclass(frozen=True, kw_only=True)
class Regression:
    """Rows, what they are called, and priors; `sigma=None` for binary targets."""

    X: np.ndarray
    y: np.ndarray
    names: tuple[str, ...]
    sigma: Scale | None = None
    sigma_name: str = "sigma"
    beta_sd: float | tuple[float, ...] | None = None
    """None: flat."""
    terms: tuple[Term, ...] = ()

    @property
    def num_rows(self) -> int:
        return len(self.y)

    @property
    def shared(self) -> tuple[str, ...]:
        """Names of what is compared one by one."""
        noise = () if self.sigma is None else (self.sigma_name,)
        return (*self.names, *noise, *(f"sd_{term.name}" for term in self.terms))

    @property
    def size(self) -> int | None:
        """Rows to match what is quadratic in what rows touch: of p shared parameters, of the q
        effects of each group with each of those, and of the effects of two groups that meet in a
        row; at most a half of all. None without groups."""
        if not self.terms:
            return None
        p = self.X.shape[1] + (self.sigma is not None)
        own, effects = 0, Counter(term.group for term in self.terms)
        numbers = {term.group: int(term.groups.max()) + 1 for term in self.terms}
        for group, q in effects.items():
            own += numbers[group] * (q + q * (q + 1) // 2 + p * q)
        level = {term.group: term.groups for term in self.terms}
        for a, b in itertools.combinations(effects, 2):
            meetings = len(np.unique(np.stack([level[a], level[b]]), axis=1).T)
            own += meetings * effects[a] * effects[b]
        return min(self.num_rows // 2, own + p * (p + 3) // 2 + 1)

    def in_corebayes(self) -> tuple[Any, Any]:
        """The model and its opened rows."""
        import pandas

        spread = 1.0 if self.sigma is None else float(self.y.std())
        frame = pandas.DataFrame(self.X, columns=[f"x{k}" for k in range(self.X.shape[1])])
        for term in self.terms:
            frame[term.group] = term.groups.astype(float)
        frame["y"] = self.y
        rms = np.sqrt(np.mean(self.X**2, axis=0))
        prior = cb.Normal(0.0, WIDE * spread / rms if self.beta_sd is None else self.beta_sd)
        logistic = self.sigma is None
        family = (
            cb.LogisticRegression(prior=prior) if logistic else cb.LinearRegression(prior=prior)
        )
        if self.sigma is None and not self.terms:
            return family, cb.open(frame, target="y")
        terms = [
            cb.GroupTerm(
                group=term.group,
                effects=(term.effect,),
                scale=term.scale.in_corebayes(spread),
            )
            for term in self.terms
        ]
        learned = None if self.sigma is None else self.sigma.in_corebayes(spread)
        model = cb.MixedRegression(family=family, terms=_joined(terms), learned=learned)
        return model, cb.open(frame, target="y")

    def named(self, model: Any, draws: np.ndarray) -> dict[str, np.ndarray]:
        """Draws (S, d) of the corebayes model by posteriordb's names."""
        if not hasattr(model, "constrain"):
            return dict(zip(self.names, draws.T, strict=True))
        values = model.constrain(draws)
        found = {name: values[f"x{k}"] for k, name in enumerate(self.names)}
        if self.sigma is not None:
            found[self.sigma_name] = values["noise_sd"]
        for term in self.terms:
            found[f"sd_{term.name}"] = values[f"{term.called}_sigma"]
            effects = values[term.called]
            found |= {f"{term.name}[{g}]": effects[:, g] for g in range(effects.shape[1])}
        return found

    def in_numpyro(self) -> Any:
        """The model as a NumPyro function of nothing, effects non-centred."""
        import jax.numpy as jnp

        function = self.numpyro_function()
        arrays = [jnp.asarray(values) for values in self.numpyro_arrays()]
        return lambda: function(*arrays)

    def numpyro_arrays(self) -> list[np.ndarray]:
        return [self.X, self.y, *(term.groups for term in self.terms)]

    def numpyro_function(self) -> Any:
        """The model as a function of X, y and the groups of each term."""
        import jax.numpy as jnp
        import numpyro
        from numpyro import distributions as dist

        counts = [int(term.groups.max()) + 1 for term in self.terms]
        number = self.X.shape[1]

        def model(X: Any, y: Any, *codes: Any) -> None:
            flat = dist.ImproperUniform(dist.constraints.real_vector, (), (number,))
            wide = jnp.broadcast_to(jnp.asarray(self.beta_sd or 1.0), number)
            proper = dist.Normal(0.0, wide).to_event(1)
            beta = numpyro.sample("coefficients", flat if self.beta_sd is None else proper)
            eta = X @ beta
            for term, own, groups in zip(self.terms, codes, counts, strict=True):
                scale = term.scale.in_numpyro(f"sd_{term.name}")
                unit = numpyro.sample(f"unit_{term.name}", dist.Normal().expand([groups]))
                effects = numpyro.deterministic(term.name, scale * unit)
                eta = eta + effects[own] * (1.0 if term.column is None else X[:, term.column])
            if self.sigma is None:
                numpyro.sample("y", dist.BernoulliLogits(eta), obs=y)
            else:
                sigma = self.sigma.in_numpyro(self.sigma_name)
                numpyro.sample("y", dist.Normal(eta, sigma), obs=y)

        return model

    def named_from_numpyro(self, values: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Samples {site: (chains, draws, …)} by posteriordb's names."""
        beta = np.asarray(values["coefficients"])
        found = {name: beta[..., k] for k, name in enumerate(self.names)}
        for name in self.shared[len(self.names) :]:
            found[name] = np.asarray(values[name])
        for term in self.terms:
            effects = np.asarray(values[term.name])
            found |= {f"{term.name}[{g}]": effects[..., g] for g in range(effects.shape[-1])}
        return found


def _joined(terms: list[cb.GroupTerm]) -> list[cb.GroupTerm]:
    """Terms of the same groups as one."""
    by_group: dict[str, list[cb.GroupTerm]] = {}
    for term in terms:
        by_group.setdefault(term.group, []).append(term)
    return [
        cb.GroupTerm(
            group=group,
            effects=[effect for term in some for effect in term.effects],
            scale=[scale for term in some for scale in term.scales],
        )
        for group, some in by_group.items()
    ]
