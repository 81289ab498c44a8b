"""Models from other libraries, and coresets handed back to them."""

from corebayes.adapters.bambi.adapter import from_bambi, to_bambi
from corebayes.adapters.exports.numpyro import to_numpyro
from corebayes.adapters.exports.pymc import to_pymc
from corebayes.adapters.exports.stan import to_stan
from corebayes.adapters.exports.tables import to_columns, to_csv, to_parquet
from corebayes.adapters.formula import from_formula
from corebayes.adapters.numpyro.adapter import from_numpyro
from corebayes.adapters.pymc.adapter import from_pymc

__all__ = [
    "from_bambi",
    "from_formula",
    "from_numpyro",
    "from_pymc",
    "to_bambi",
    "to_columns",
    "to_csv",
    "to_numpyro",
    "to_parquet",
    "to_pymc",
    "to_stan",
]
