"""How many rows of a group are candidates where crossed terms have many pairs."""

from __future__ import annotations

import numpy as np

import corebayes as cb
from corebayes.arrow.start import layout_of
from corebayes.constructions.grouped_choice import candidates, is_implicit
from corebayes.rows import open_rows


def test_a_group_has_candidates_enough_for_what_is_its_own():
    """With forty of each of 120 groups, a coreset of 600 flights was nowhere near the posterior;
    four times what a group must match (or 200) are enough, however few rows are asked for."""
    import pandas

    first, second = (values.ravel() for values in np.meshgrid(np.arange(40), np.arange(120)))
    x = np.linspace(-1.0, 1.0, first.size)
    y = np.arange(first.size) % 3 > 0
    frame = pandas.DataFrame({"x": x, "g": first, "h": second, "y": y}).astype(float)
    rows = open_rows(frame, target="y")
    terms = [cb.GroupTerm(group="g"), cb.GroupTerm(group="h")]
    layout = layout_of(
        cb.MixedRegression(family=cb.LogisticRegression(prior=cb.Normal()), terms=terms).bind(rows)
    )
    assert is_implicit(layout, 600) and layout.num_groups == 120
    own = layout.num_own + layout.num_own * (layout.num_own + 1) // 2
    own += layout.num_wide * layout.num_own
    number = candidates(layout, 600)[layout.structure.main]
    assert number >= min(4 * own, 200) > 600 * 8 // 120
