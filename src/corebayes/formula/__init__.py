"""Formulas in Wilkinson's notation, which name columns and functions and never run code.

    tree, transforms ← splines ← functions ← expressions ← left ← parser, evaluate ← groups,
    factors ← seen ← design ← stored, source ← rows

A formula is parsed to a tree of five kinds of nodes; only functions of a closed list are in it.
One look at a table makes a `Design`: levels, means, knots as plain numbers. Applying it to rows is
arithmetic, and its JSON form is what a coreset stores in order to make the same columns again.
"""

from corebayes.formula.design import Design

__all__ = ["Design"]
