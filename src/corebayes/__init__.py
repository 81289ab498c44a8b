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

import importlib
import importlib.util
import sys
import typing
from types import ModuleType

from corebayes.version import __version__ as __version__

if typing.TYPE_CHECKING:
    from corebayes import diagnostics as diagnostics
    from corebayes.adapters import from_bambi as from_bambi
    from corebayes.adapters import from_formula as from_formula
    from corebayes.adapters import from_numpyro as from_numpyro
    from corebayes.adapters import from_pymc as from_pymc
    from corebayes.adapters import to_bambi as to_bambi
    from corebayes.adapters import to_columns as to_columns
    from corebayes.adapters import to_csv as to_csv
    from corebayes.adapters import to_numpyro as to_numpyro
    from corebayes.adapters import to_parquet as to_parquet
    from corebayes.adapters import to_pymc as to_pymc
    from corebayes.adapters import to_stan as to_stan
    from corebayes.build import Variant as Variant
    from corebayes.build import build as build
    from corebayes.build import build_path as build_path
    from corebayes.build import choose_groups as choose_groups
    from corebayes.certify import Certificate as Certificate
    from corebayes.certify import certify as certify
    from corebayes.certify import with_certificate as with_certificate
    from corebayes.checkpoint import CheckpointError as CheckpointError
    from corebayes.compose import Refit as Refit
    from corebayes.compose import merge as merge
    from corebayes.compose import refit as refit
    from corebayes.compose import update as update
    from corebayes.constructions import *  # noqa: F403
    from corebayes.coreset import Coreset as Coreset
    from corebayes.coreset import GroupCoreset as GroupCoreset
    from corebayes.coreset import load as load
    from corebayes.coreset import unrolled as unrolled
    from corebayes.data.warn import ModeWarning as ModeWarning
    from corebayes.data.warn import TimeWarning as TimeWarning
    from corebayes.data.warn import ToleranceWarning as ToleranceWarning
    from corebayes.exact import correct as correct
    from corebayes.exact import laplace as laplace
    from corebayes.exact import log_evidence as log_evidence
    from corebayes.exact import loo as loo
    from corebayes.models import *  # noqa: F403
    from corebayes.predict import Check as Check
    from corebayes.predict import Prediction as Prediction
    from corebayes.predict import check as check
    from corebayes.predict import predict as predict
    from corebayes.report import Report as Report
    from corebayes.report import report as report
    from corebayes.report import summary as summary
    from corebayes.rows import Rows as Rows
    from corebayes.rows import open_rows
    from corebayes.sample import sample as sample
    from corebayes.samplers import Automatic as Automatic
    from corebayes.samplers import Draws as Draws
    from corebayes.samplers import Exact as Exact
    from corebayes.samplers import HitAndRun as HitAndRun
    from corebayes.samplers import Independence as Independence
    from corebayes.samplers import Laplace as Laplace
    from corebayes.samplers import Posterior as Posterior
    from corebayes.samplers.mixed.group_effects import group_effects as group_effects
    from corebayes.samplers.nuts import NUTS as NUTS
    from corebayes.scan.dask import dask as dask
    from corebayes.scan.processes import processes as processes
    from corebayes.tangent import ClosedForm as ClosedForm
    from corebayes.tangent import FullPosterior as FullPosterior
    from corebayes.tangent import GivenDraws as GivenDraws
    from corebayes.tangent import Guard as Guard
    from corebayes.tangent import Hermite as Hermite
    from corebayes.tangent import MonteCarlo as MonteCarlo
    from corebayes.tangent import Realistic as Realistic
    from corebayes.tangent import SubsamplePosterior as SubsamplePosterior
    from corebayes.weights import SGD as SGD
    from corebayes.weights import Adam as Adam
    from corebayes.weights import HotDoG as HotDoG
    from corebayes.weights import LineSearch as LineSearch
    from corebayes.weights import NaturalGradient as NaturalGradient
    from corebayes.weights import Quadratic as Quadratic

    open = open_rows

# Where the public names live, but for those of models and constructions, which say their own.
_HOMES = {
    "adapters": "from_bambi from_formula from_numpyro from_pymc to_bambi to_columns to_csv"
    " to_numpyro to_parquet to_pymc to_stan",
    "build": "Variant build build_path choose_groups",
    "certify": "Certificate certify with_certificate",
    "checkpoint": "CheckpointError",
    "compose": "Refit merge refit update",
    "coreset": "Coreset GroupCoreset load unrolled",
    "data.warn": "ModeWarning TimeWarning ToleranceWarning",
    "exact": "correct laplace log_evidence loo",
    "predict": "Check Prediction check predict",
    "report": "Report report summary",
    "rows": "Rows open",
    "sample": "sample",
    "samplers": "Automatic Draws Exact HitAndRun Independence Laplace Posterior",
    "samplers.mixed.group_effects": "group_effects",
    "samplers.nuts": "NUTS",
    "scan.dask": "dask",
    "scan.processes": "processes",
    "tangent": "ClosedForm FullPosterior GivenDraws Guard Hermite MonteCarlo Realistic"
    " SubsamplePosterior",
    "weights": "SGD Adam HotDoG LineSearch NaturalGradient Quadratic",
}
_FOUND_IN = {name: home for home, names in _HOMES.items() for name in names.split()}
_RENAMED = {"open": "open_rows"}
# These have one line for each of theirs.
_LISTS = "models", "constructions"


class _Package(ModuleType):
    """The package, which loads a public name when it is first asked for.

    `import corebayes` would otherwise wait for SciPy and four hundred modules. Type checkers read
    the imports above.
    """

    def __getattr__(self, name: str) -> typing.Any:
        value = self.__dict__[name] = _found(name)
        return value

    def __setattr__(self, name: str, value: typing.Any) -> None:
        # Importing the package `corebayes.build` would hide the function of that name.
        if name not in _FOUND_IN or not isinstance(value, ModuleType):
            super().__setattr__(name, value)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *self.__all__})

    def __reduce__(self) -> tuple[typing.Any, ...]:
        # Functions that go to other processes may name the package.
        return importlib.import_module, (__name__,)


def _found(name: str) -> typing.Any:
    if name in _FOUND_IN:
        return getattr(_module(_FOUND_IN[name]), _RENAMED.get(name, name))
    if name == "__all__":
        lists = (_module(home).__all__ for home in _LISTS)
        return sorted({"__version__", "diagnostics", *_FOUND_IN}.union(*lists))
    if not name.startswith("_"):
        if importlib.util.find_spec(f"{__name__}.{name}"):
            return _module(name)
        for home in _LISTS:
            if name in _module(home).__all__:
                return getattr(_module(home), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def _module(home: str) -> ModuleType:
    return importlib.import_module(f"{__name__}.{home}")


sys.modules[__name__].__class__ = _Package
