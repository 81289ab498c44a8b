"""Small weighted data sets with the same Bayesian posterior as the large one, and proof of it.

>>> import numpy as np
>>> import corebayes as cb
>>> rng = np.random.default_rng(0)
>>> X = rng.normal(size=(1000, 3))
>>> y = X @ [1.0, -2.0, 0.5] + rng.normal(size=1000)
>>> coreset = cb.build(cb.LinearRegression(noise_sd=1.0), (X, y), size=9, seed=0)
>>> coreset.size, coreset.num_rows
(9, 1000)
"""

from corebayes import diagnostics
from corebayes.build import build
from corebayes.certify import Certificate, certify
from corebayes.constructions import AnnealedSparseVI, SparseVI, Uniform
from corebayes.files import load
from corebayes.models import (
    CustomModel,
    GaussianMean,
    LinearRegression,
    LogisticRegression,
    NegativeBinomialRegression,
    Normal,
    PoissonRegression,
    StudentTRegression,
    radial_basis,
)
from corebayes.sample import sample
from corebayes.samplers import Exact, Laplace
from corebayes.samplers.nuts import NUTS
from corebayes.tangent import ClosedForm, Hermite, MonteCarlo
from corebayes.types import Coreset
from corebayes.version import __version__
from corebayes.weights import SGD, Adam, NaturalGradient

__all__ = [
    "NUTS",
    "SGD",
    "Adam",
    "AnnealedSparseVI",
    "Certificate",
    "ClosedForm",
    "Coreset",
    "CustomModel",
    "Exact",
    "GaussianMean",
    "Hermite",
    "Laplace",
    "LinearRegression",
    "LogisticRegression",
    "MonteCarlo",
    "NaturalGradient",
    "NegativeBinomialRegression",
    "Normal",
    "PoissonRegression",
    "SparseVI",
    "StudentTRegression",
    "Uniform",
    "__version__",
    "build",
    "certify",
    "diagnostics",
    "load",
    "radial_basis",
    "sample",
]
