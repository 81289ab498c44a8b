"""Which columns of a design are zero, repeated or linearly dependent, from its Gram matrix."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from corebayes.types import Array, Indices

# Eigenvalues of the Gram matrix of unit columns that rounding alone can make. Columns closer to
# dependent than this cannot be told from dependent ones.
TOLERANCE = 3e-15
MOST_NAMED = 10


def describe_deficiency(gram: Array, names: Sequence[str]) -> str | None:
    """A clause that names the columns that make XᵀX singular, None when it is not.

    Nothing is said when XᵀX has overflowed. Cost: d³.
    """
    norms = np.sqrt(np.diag(gram))
    if not np.all(np.isfinite(gram)):
        return None
    zero = np.flatnonzero(norms == 0.0)
    kept = np.flatnonzero(norms > 0.0)
    correlation = gram[np.ix_(kept, kept)] / np.outer(norms[kept], norms[kept])
    tolerance = TOLERANCE * max(len(names), 10)
    clauses: list[str] = []
    if zero.size:
        clauses.append(f"{_listed(zero, names)} {'is' if zero.size == 1 else 'are'} all zero")
    groups = _parallel(correlation, tolerance)
    for group in groups:
        same = np.ptp(norms[kept[group]]) <= 1e-12 * norms[kept[group[0]]]
        relation = "the same" if same else "proportional"
        clauses.append(f"{_listed(kept[group], names)} are {relation} up to sign")
    # What depends on the others once one column of each group is left.
    repeated = [column for group in groups for column in group[1:].tolist()]
    distinct = np.setdiff1d(np.arange(kept.size), repeated)
    kept = kept[distinct]
    values, vectors = np.linalg.eigh(correlation[np.ix_(distinct, distinct)])
    null = vectors[:, values <= tolerance]
    if null.size:
        involved = kept[np.abs(null).max(axis=1) > 1e-6]
        clauses.append(f"{_listed(involved, names)} are linearly dependent")
    return "; ".join(clauses) or None


def _parallel(correlation: Array, tolerance: float) -> list[Indices]:
    """Groups of columns with correlation ±1."""
    if correlation.size == 0:
        return []
    parallel = np.abs(correlation) >= 1.0 - 0.5 * tolerance
    leaders = np.argmax(parallel, axis=1)
    groups = [np.flatnonzero(leaders == leader) for leader in np.unique(leaders)]
    return [group for group in groups if group.size > 1]


def _listed(columns: Indices, names: Sequence[str]) -> str:
    quoted = [repr(names[column]) for column in columns[:MOST_NAMED]]
    rest = columns.size - len(quoted)
    if rest:
        quoted.append(f"{rest} more")
    last = quoted.pop()
    word = "columns" if quoted else "column"
    return f"{word} {', '.join(quoted)} and {last}" if quoted else f"{word} {last}"
