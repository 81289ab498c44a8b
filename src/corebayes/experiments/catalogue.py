"""The experiments by name, and the data that they run on here."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from corebayes.experiments import gaussian, housing, regression
from corebayes.experiments.experiment import Experiment
from corebayes.experiments.registry import DataUnavailableError, locate

# With trials; `geometry` has none.
EXPERIMENTS = ("gaussian", "rbf", "logistic", "poisson")


@dataclass(frozen=True, kw_only=True)
class Sources:
    """The files of the sets at hand; None for a set that is generated instead."""

    files: Mapping[str, Path | None]
    housing: str = housing.SETS[0]
    """Which house prices these are."""


def make_experiment(name: str, *, quick: bool, housing_set: str) -> Experiment:
    """An experiment by its name on the command line."""
    if name == "gaussian":
        return gaussian.experiment(quick=quick)
    if name == "rbf":
        return housing.experiment(quick=quick, name=housing_set)
    if name == "logistic":
        return regression.logistic(quick=quick)
    return regression.poisson(quick=quick)


def find_sources(names: Iterable[str], folder: Path | None, say: Callable[[str], None]) -> Sources:
    """All files that the named experiments need, before any of them begins."""
    files: dict[str, Path | None] = {}
    housing_set = housing.SETS[0]
    names = list(names)
    if "rbf" in names:
        housing_set, files[housing_set] = _house_prices(folder, say)
    for name in names:
        if name == "rbf":
            continue
        for needed in make_experiment(name, quick=True, housing_set=housing_set).files:
            files[needed] = _file_or_none(needed, folder, say)
    return Sources(files=files, housing=housing_set)


def _house_prices(folder: Path | None, say: Callable[[str], None]) -> tuple[str, Path]:
    """The paper's data where it can be had, else what stands in for it."""
    paper, stand_in = housing.SETS
    try:
        return paper, locate(paper, folder)
    except DataUnavailableError as refused:
        try:
            path = locate(stand_in, folder)
        except DataUnavailableError:
            raise refused from None
        say(f"rbf: {stand_in} stands in for {paper}: {refused}")
        return stand_in, path


def _file_or_none(name: str, folder: Path | None, say: Callable[[str], None]) -> Path | None:
    """The file of a set, or None where it can be generated and must be."""
    try:
        return locate(name, folder)
    except DataUnavailableError as refused:
        if name not in regression.GENERATORS:
            raise
        say(f"{name} is generated as the paper describes it: {refused}")
        return None
