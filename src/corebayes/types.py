"""The nouns of corebayes and what they mean.

A model gives every row n a potential f_n(θ) = log p(x_n | θ). Weights w ≥ 0 on few rows
give the coreset posterior

    π_w(θ) ∝ exp(Σ_n w_n f_n(θ)) π_0(θ),        π_c = the full posterior,

where c_n is how often row n counts (1 unless a `counts` column says otherwise). The
coreset posteriors are an exponential family with Fisher metric G(w) = Cov_w[f], so

    ∇_w KL(π_w ‖ π_c) = −Cov_w[f, r],           r = Σ_n (c_n − w_n) f_n    (the residual)

and everything a construction does happens in the tangent space at π_w: the centred
potentials g_n = f_n − E_w f_n with ⟨g_n, g_m⟩ = Cov_w[f_n, f_m].

`Model` knows mathematics, `Data` knows rows, a `Query` is what one pass over the rows
answers, a `Geometry` makes the `TangentSpace` at π_w, a `Construction` moves the weights.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Indices = NDArray[np.int64]
Rng = np.random.Generator


@dataclass(frozen=True)
class Block:
    """Some rows: named arrays that share their first axis, and how often each row counts.

    Regression models use the fields `X` (n, d) and `y` (n,); a custom model sees whatever
    fields its data has. `counts is None` means that every row counts once; a row that
    counts zero times is passed over everywhere.
    """

    fields: Mapping[str, Array]
    counts: Array | None = None

    def __len__(self) -> int:
        return next(iter(self.fields.values())).shape[0]

    def __getitem__(self, name: str) -> Array:
        return self.fields[name]

    @property
    def X(self) -> Array:
        return self.fields["X"]

    @property
    def y(self) -> Array:
        return self.fields["y"]

    @property
    def num_bytes(self) -> int:
        counts = 0 if self.counts is None else self.counts.nbytes
        return counts + sum(values.nbytes for values in self.fields.values())

    def multiplicity(self) -> Array:
        """The counts, written out."""
        return np.ones(len(self)) if self.counts is None else self.counts

    def take(self, rows: Indices | slice) -> Block:
        """The given rows of this block (a view for a slice)."""
        counts = None if self.counts is None else self.counts[rows]
        return Block({name: values[rows] for name, values in self.fields.items()}, counts)

    def append(self, other: Block) -> Block:
        """This block's rows, then the other's."""
        counts = None
        if self.counts is not None or other.counts is not None:
            counts = np.concatenate([self.multiplicity(), other.multiplicity()])
        fields = {name: np.concatenate([a, other.fields[name]]) for name, a in self.fields.items()}
        return Block(fields, counts)


class Data(Protocol):
    """What a model sees of the rows when it is bound; `corebayes.rows.Rows` is all there is."""

    @property
    def num_rows(self) -> int: ...

    @property
    def total_count(self) -> float:
        """Σ_n c_n: the number of rows when there are no counts."""
        ...

    @property
    def column_names(self) -> tuple[str, ...]:
        """Names of the columns of `X`; empty when they have none."""
        ...

    @property
    def target_name(self) -> str:
        """The name of the column `y`, for messages and files."""
        ...

    @property
    def template(self) -> Block:
        """The fields without a row: names and shapes."""
        ...

    def some(self, rng: Rng, size: int) -> Indices:
        """`size` different row numbers at random, sorted."""
        ...

    def check(self, question: Any = None) -> Any:
        """Ask every row a question that may end in an error, in the pass that checks all values
        if it is still to come; see `corebayes.data.table.RowCheck`."""
        ...

    def learn(self, question: Any) -> Any:
        """What the question concludes, asked as in `check`."""
        ...

    def take(self, numbers: Indices) -> Block:
        """The rows with these numbers, in this order."""
        ...

    def fingerprint(self) -> str:
        """A hash of layout and content that changes when the rows do."""
        ...


class Model(Protocol):
    """A prior and one potential per row. Draws are (S, d), potentials (n, S).

    `bind` fixes what depends on the data (dimension, names, prior) and checks every row;
    all other methods are for bound models. Potentials may leave out terms that do not
    depend on θ; `log_base` gives them back.
    """

    @property
    def dim(self) -> int: ...

    @property
    def parameter_names(self) -> tuple[str, ...]: ...

    @property
    def log_concave(self) -> bool:
        """Whether every potential and the prior are log-concave: one mode for every w ≥ 0."""
        ...

    def bind(self, data: Data) -> Model: ...

    def potentials(self, draws: Array, block: Block, out: Array | None = None) -> Array:
        """f_n(θ_s), shape (n, S); written into `out` when it is given."""
        ...

    def sum_potentials(self, draws: Array, block: Block, weights: Array | None = None) -> Array:
        """Σ_n w_n f_n(θ_s), shape (S,); weights of one when not given."""
        ...

    def gradient(self, theta: Array, block: Block, weights: Array) -> Array:
        """∇ Σ_n w_n f_n(θ), without the prior, shape (d,)."""
        ...

    def gradient_and_hessian(
        self, theta: Array, block: Block, weights: Array
    ) -> tuple[Array, Array]:
        """∇ and ∇² of Σ_n w_n f_n(θ), without the prior, shapes (d,) and (d, d)."""
        ...

    def log_base(self, block: Block) -> Array:
        """What the potentials leave out: log p(x_n | θ) − f_n(θ), shape (n,)."""
        ...

    def log_prior(self, draws: Array) -> Array:
        """log π_0(θ_s), shape (S,)."""
        ...

    def log_prior_gradient(self, theta: Array) -> Array: ...

    def log_prior_hessian(self, theta: Array) -> Array: ...


class Gaussian(NamedTuple):
    """N(mean, factor factorᵀ): an exact or Laplace posterior."""

    mean: Array
    factor: Array

    def draw(self, rng: np.random.Generator, num_draws: int) -> Array:
        return self.mean + rng.standard_normal((num_draws, self.mean.size)) @ self.factor.T

    def draw_matched(self, rng: np.random.Generator, num_draws: int) -> Array:
        """Draws whose mean is exact, and whose covariance is too if they are more than d.

        Cost: num_draws·d² flops.
        """
        noise = rng.standard_normal((num_draws, self.mean.size))
        noise -= noise.mean(axis=0)
        if num_draws > self.mean.size:
            # noiseᵀ noise = num_draws · I
            noise = np.linalg.qr(noise)[0] * np.sqrt(num_draws)
        return self.mean + noise @ self.factor.T


class Points(NamedTuple):
    """Some rows: their numbers in the data and the rows themselves."""

    indices: Indices
    rows: Block

    def append(self, other: Points) -> Points:
        return Points(np.concatenate([self.indices, other.indices]), self.rows.append(other.rows))

    def take(self, positions: Indices) -> Points:
        return Points(self.indices[positions], self.rows.take(positions))

    def weighted(self, weights: Array | None = None) -> WeightedPoints:
        """These rows with weights, zero when none are given."""
        return WeightedPoints(*self, np.zeros(self.indices.size) if weights is None else weights)


class WeightedPoints(NamedTuple):
    """Some rows and their weights: what π_w is made of."""

    indices: Indices
    """Their numbers in the data; −1, −2, … for rows that are learned."""
    rows: Block
    weights: Array

    @property
    def size(self) -> int:
        return self.weights.size

    def at(self, weights: Array) -> WeightedPoints:
        """The same rows with other weights."""
        return self._replace(weights=weights)

    def scaled(self, factor: float) -> WeightedPoints:
        return self.at(factor * self.weights)

    def append(self, other: WeightedPoints) -> WeightedPoints:
        return WeightedPoints(
            np.concatenate([self.indices, other.indices]),
            self.rows.append(other.rows),
            np.concatenate([self.weights, other.weights]),
        )

    def take(self, positions: Indices) -> WeightedPoints:
        rows = self.rows.take(positions)
        return WeightedPoints(self.indices[positions], rows, self.weights[positions])

    def nonzero(self) -> WeightedPoints:
        """Those whose weight is anything but zero."""
        return self.take(np.flatnonzero(self.weights != 0.0))

    def positive(self) -> WeightedPoints:
        """Those with a positive weight."""
        kept = np.flatnonzero(self.weights > 0.0)
        return self if kept.size == self.size else self.take(kept)


class Total(NamedTuple):
    """A sum over rows, in a tangent space."""

    element: Array
    """Σ_n c_n g_n."""
    mean: float
    """Σ_n c_n E_w f_n, what the centring took away, up to a constant free of w."""


class TangentSpace(Protocol):
    """Centred potentials at one π_w with ⟨g_n, g_m⟩ = Cov_w[f_n, f_m].

    An element of the space is a flat vector whose dot product is the inner product. Rows
    are embedded a block at a time, in whatever form makes the other operations cheap: only
    those operations need to know it. A space is small and pure, so a pass can send it to
    any worker.
    """

    @property
    def width(self) -> int:
        """Numbers held of a row while it is embedded."""
        ...

    @property
    def location(self) -> Array:
        """Where π_w lies, to warm-start the space at the next weights."""
        ...

    def embed(self, block: Block, *, reuse: bool = False) -> Any:
        """The vectors g_n of a block of rows, in the space's own form.

        With `reuse` they may lie in a buffer that the thread's next such call writes over.
        """
        ...

    def take(self, vectors: Any, positions: Indices) -> Any:
        """Some of the vectors, in the same form."""
        ...

    def combine(self, vectors: Any, weights: Array) -> Array:
        """The element Σ_n w_n g_n."""
        ...

    def project(self, vectors: Any, element: Array) -> Array:
        """⟨g_n, element⟩ for every row."""
        ...

    def squared_norms(self, vectors: Any) -> Array:
        """‖g_n‖² = Var_w f_n; exactly zero for a row whose potential is constant."""
        ...

    def gram(self, vectors: Any, others: Any = None) -> Array:
        """⟨g_n, g_m⟩ for every pair of these vectors, or of these and others."""
        ...

    def third_moments(self, vectors: Any, element: Array) -> Array:
        """E_w[g_n g_m e] for every pair and one element e."""
        ...

    def total(self, block: Block) -> Total:
        """Σ_n c_n g_n and Σ_n c_n E_w f_n over a block of rows."""
        ...

    def free_energy(self, total: Total) -> float:
        """KL(π_w ‖ π) up to a constant that is the same for all w.

        −Σ_n c_n E_w f_n − E_w log π_0 − entropy, where π_w counts as Gaussian for its entropy.
        """
        ...


class Estimate(NamedTuple):
    """A number and its standard error (zero when it is exact)."""

    value: float
    standard_error: float
