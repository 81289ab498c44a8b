"""Models from other libraries, and coresets handed back to them."""

from corebayes.adapters.bambi import from_bambi, to_bambi
from corebayes.adapters.export_numpyro import to_numpyro
from corebayes.adapters.export_pymc import to_pymc
from corebayes.adapters.formula import from_formula
from corebayes.adapters.numpyro import from_numpyro
from corebayes.adapters.pymc import from_pymc
from corebayes.adapters.stan import to_stan
from corebayes.adapters.tables import to_columns, to_csv, to_parquet

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
