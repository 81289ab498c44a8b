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
from corebayes.adapters import (
    from_bambi,
    from_formula,
    from_numpyro,
    from_pymc,
    to_bambi,
    to_columns,
    to_csv,
    to_numpyro,
    to_parquet,
    to_pymc,
    to_stan,
)
from corebayes.build import build, build_path
from corebayes.certify import Certificate, certify
from corebayes.checkpoint import CheckpointError
from corebayes.constructions import (
    GIGA,
    L1,
    AnnealedSparseVI,
    CoresetMCMC,
    FrankWolfe,
    HardThresholding,
    ImportanceSampling,
    OrthogonalPursuit,
    PseudoCoreset,
    QuasiNewton,
    SparseVI,
    Uniform,
)
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
from corebayes.report import Report, report
from corebayes.rows import Rows
from corebayes.rows import open_rows as open
from corebayes.sample import sample
from corebayes.samplers import Exact, HitAndRun, Laplace
from corebayes.samplers.nuts import NUTS
from corebayes.scan.dask import dask
from corebayes.scan.processes import processes
from corebayes.tangent import (
    ClosedForm,
    FullPosterior,
    GivenDraws,
    Guard,
    Hermite,
    MonteCarlo,
    Realistic,
    SubsamplePosterior,
)
from corebayes.types import Coreset
from corebayes.version import __version__
from corebayes.weights import SGD, Adam, HotDoG, LineSearch, NaturalGradient, Quadratic

__all__ = [
    "GIGA",
    "L1",
    "NUTS",
    "SGD",
    "Adam",
    "AnnealedSparseVI",
    "Certificate",
    "CheckpointError",
    "ClosedForm",
    "Coreset",
    "CoresetMCMC",
    "CustomModel",
    "Exact",
    "FrankWolfe",
    "FullPosterior",
    "GaussianMean",
    "GivenDraws",
    "Guard",
    "HardThresholding",
    "Hermite",
    "HitAndRun",
    "HotDoG",
    "ImportanceSampling",
    "Laplace",
    "LineSearch",
    "LinearRegression",
    "LogisticRegression",
    "MonteCarlo",
    "NaturalGradient",
    "NegativeBinomialRegression",
    "Normal",
    "OrthogonalPursuit",
    "PoissonRegression",
    "PseudoCoreset",
    "Quadratic",
    "QuasiNewton",
    "Realistic",
    "Report",
    "Rows",
    "SparseVI",
    "StudentTRegression",
    "SubsamplePosterior",
    "Uniform",
    "__version__",
    "build",
    "build_path",
    "certify",
    "dask",
    "diagnostics",
    "from_bambi",
    "from_formula",
    "from_numpyro",
    "from_pymc",
    "load",
    "open",
    "processes",
    "radial_basis",
    "report",
    "sample",
    "to_bambi",
    "to_columns",
    "to_csv",
    "to_numpyro",
    "to_parquet",
    "to_pymc",
    "to_stan",
]
