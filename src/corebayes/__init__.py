"""Small weighted data sets with the same Bayesian posterior as the large one, and how close it is.

>>> import numpy as np
>>> import corebayes as cb
>>> rng = np.random.default_rng(0)
>>> X = rng.normal(size=(1000, 3))
>>> y = X @ [1.0, -2.0, 0.5] + rng.normal(size=1000)
>>> coreset = cb.build(cb.LinearRegression(noise_sd=1.0), (X, y), size=9, seed=0)
>>> coreset.size, coreset.num_rows
(9, 1000)
"""

import typing

from corebayes import constructions, diagnostics, models
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
from corebayes.build import Variant, build, build_path, choose_groups
from corebayes.certify import Certificate, certify, with_certificate
from corebayes.checkpoint import CheckpointError
from corebayes.compose import Refit, merge, refit, update
from corebayes.constructions import *  # noqa: F403
from corebayes.coreset import Coreset, GroupCoreset, load, unrolled
from corebayes.data.warn import ModeWarning, TimeWarning, ToleranceWarning
from corebayes.exact import correct, laplace, log_evidence, loo
from corebayes.models import *  # noqa: F403
from corebayes.predict import Check, Prediction, check, predict
from corebayes.report import Report, report, summary
from corebayes.rows import Rows
from corebayes.rows import open_rows as open
from corebayes.sample import sample
from corebayes.samplers import (
    Automatic,
    Draws,
    Exact,
    HitAndRun,
    Independence,
    Laplace,
    Posterior,
)
from corebayes.samplers.group_effects import group_effects
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
from corebayes.version import __version__
from corebayes.weights import SGD, Adam, HotDoG, LineSearch, NaturalGradient, Quadratic

__all__ = [
    "NUTS",
    "SGD",
    "Adam",
    "Automatic",
    "Certificate",
    "Check",
    "CheckpointError",
    "ClosedForm",
    "Coreset",
    "Draws",
    "Exact",
    "FullPosterior",
    "GivenDraws",
    "GroupCoreset",
    "Guard",
    "Hermite",
    "HitAndRun",
    "HotDoG",
    "Independence",
    "Laplace",
    "LineSearch",
    "ModeWarning",
    "MonteCarlo",
    "NaturalGradient",
    "Posterior",
    "Prediction",
    "Quadratic",
    "Realistic",
    "Refit",
    "Report",
    "Rows",
    "SubsamplePosterior",
    "TimeWarning",
    "ToleranceWarning",
    "Variant",
    "__version__",
    "build",
    "build_path",
    "certify",
    "check",
    "choose_groups",
    "correct",
    "dask",
    "diagnostics",
    "from_bambi",
    "from_formula",
    "from_numpyro",
    "from_pymc",
    "group_effects",
    "laplace",
    "load",
    "log_evidence",
    "loo",
    "merge",
    "open",
    "predict",
    "processes",
    "refit",
    "report",
    "sample",
    "summary",
    "to_bambi",
    "to_columns",
    "to_csv",
    "to_numpyro",
    "to_parquet",
    "to_pymc",
    "to_stan",
    "unrolled",
    "update",
    "with_certificate",
]

if not typing.TYPE_CHECKING:
    # A type checker reads the star imports instead.
    __all__ += constructions.__all__ + models.__all__
