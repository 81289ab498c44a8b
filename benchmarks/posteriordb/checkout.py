"""Data and reference draws of posteriordb, from a checkout or from a folder with its files.

A checkout has them under `posterior_database/data/data` and
`posterior_database/reference_posteriors/draws/draws`, a folder under `data` and `draws`, each as
`NAME.json.zip` or `NAME.json`.
"""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

DATA = ("data", "posterior_database/data/data", ".")
DRAWS = ("draws", "posterior_database/reference_posteriors/draws/draws")


def data_of(folder: Path, name: str) -> dict[str, Any] | None:
    """The scalars and lists of a data set; None if it is not there."""
    return _found(folder, DATA, name)


def reference_of(folder: Path, posterior: str) -> dict[str, np.ndarray] | None:
    """Reference draws {parameter: (chains, draws)}; None if there are none."""
    chains = _found(folder, DRAWS, posterior)
    if chains is None:
        return None
    return {name: np.array([chain[name] for chain in chains]) for name in chains[0]}


def _found(folder: Path, places: tuple[str, ...], name: str) -> Any:
    for place in places:
        plain = folder / place / f"{name}.json"
        if plain.is_file():
            return json.loads(plain.read_text(encoding="utf-8"))
        zipped = plain.with_name(f"{name}.json.zip")
        if zipped.is_file():
            with zipfile.ZipFile(zipped) as archive:
                return json.loads(archive.read(archive.namelist()[0]))
    return None
