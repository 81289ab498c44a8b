"""Coresets from files."""

from __future__ import annotations

from dataclasses import replace
from os import PathLike

from corebayes.coreset.check import check_parts, check_words
from corebayes.coreset.coreset import Coreset
from corebayes.coreset.files import CorruptFile, read_coreset
from corebayes.coreset.group_coreset import GROUPS, with_groups
from corebayes.files.reading import first_line
from corebayes.models import CustomModel, MixedRegression
from corebayes.models.base import NormalPriorModel
from corebayes.types import Model


def load(
    path: str | PathLike[str], model: Model | None = None, *, limit: str | int | None = None
) -> Coreset:
    """Read a coreset back bit for bit, or raise `CorruptFile`.

    A model made of Python functions is not in the file, since files hold no code: pass it as
    `model`. Tuples and arrays in trace and provenance come back as lists, as JSON has them.
    A file that would take more than `limit` bytes ("100MB", or what the environment variable
    COREBAYES_LIMIT says) is refused before they are allocated. A coreset of groups comes back as
    one.
    """
    coreset = Coreset(**read_coreset(path, model, limit))
    try:
        check_words(coreset)
        coreset = _named(coreset)
        check_parts(coreset, as_built=True)
        if GROUPS in coreset.provenance:
            return with_groups(coreset)
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise CorruptFile(f"{path} does not hold a valid coreset: {first_line(error)}") from error
    return coreset


def _named(coreset: Coreset) -> Coreset:
    """With a model that knows what y is called, and one of one's own what all columns are."""
    known, model = coreset.provenance, coreset.model
    columns, number = known.get("column_names") or (), known.get("num_features")
    target = str(known.get("target_name") or "y")
    if isinstance(model, NormalPriorModel | MixedRegression):
        right = model.bound is None or model.bound.target == target
        return coreset if right else replace(coreset, model=model.with_target(target))
    if not columns or not isinstance(model, CustomModel) or model.is_named:
        return coreset
    return replace(coreset, model=model.named(columns, target, number))
