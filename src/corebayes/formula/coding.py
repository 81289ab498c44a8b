"""Which categories of a term are coded in full, so that no column is implied by others.

A category coded in full is 1 plus its reduced coding, g = 1 + g⁻, so a term spans the products of
these. What earlier terms span already is left out, and the rest is put together again by
a + a:g⁻ = a:g. This is patsy's rule, which formulaic follows.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

# Factors of a term, by number, and whether each is coded with a level less.
Scoped = tuple[tuple[int, bool], ...]


def scope_terms(terms: Sequence[Sequence[int]], spans_one: Sequence[bool]) -> list[Scoped]:
    """The terms in order, each as one or more products; `spans_one` says of which factors the
    columns add up to one."""
    spanned: set[frozenset[tuple[int, bool]]] = set()
    result: list[Scoped] = []
    for term in terms:
        parts = [((f, True), None) if spans_one[f] else ((f, False),) for f in term]
        span = [
            tuple(part for part in product if part is not None)
            for product in itertools.product(*parts)
        ]
        fresh = [scoped for scoped in span if frozenset(scoped) not in spanned]
        result += _join(fresh)
        spanned.update(map(frozenset, fresh))
    return result


def _join(span: Sequence[Scoped]) -> list[Scoped]:
    terms: list[Scoped] = []
    for term in sorted(span, key=len):
        for known in terms:
            extra = set(term) - set(known)
            if len(known) == len(term) - 1 and len(extra) == 1 and next(iter(extra))[1]:
                whole = tuple((f, reduced and (f, reduced) not in extra) for f, reduced in term)
                terms = _join([*(other for other in terms if other != known), whole])
                break
        else:
            terms.append(term)
    return terms
