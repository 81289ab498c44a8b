"""Ways to make a formula, or a file that holds one, run something: none does."""

from __future__ import annotations

import builtins
import copy
import functools
import os
import time

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from corebayes.formula import Design
from corebayes.formula.columns import read
from corebayes.formula.rows import design_rows
from corebayes.formula.stored import design_from_data
from tests.formula.grammar import FORMULAS, check_same, table

SLOW = [HealthCheck.too_slow]

pytestmark = pytest.mark.usefixtures("sentinel")


WAYS_IN = """
y ~ __import__('os').system('touch pwned')
y ~ I(__import__('os').system('touch pwned') * x)
y ~ I(np.f2py.os.system('touch pwned') * x)
y ~ np.lib.os.system('touch pwned')
y ~ os.system('touch pwned')
y ~ I(eval("open('pwned', 'w')"))
y ~ exec("open('pwned', 'w')")
y ~ open('pwned', 'w')
y ~ I(open('pwned', 'w') * x)
y ~ x.__class__.__mro__
y ~ I(x.__class__)
y ~ I(().__class__.__bases__)
y ~ `x`.__class__
y ~ `__class__`
y ~ __builtins__
y ~ I(getattr(x, '__class__'))
y ~ I((lambda: open('pwned', 'w'))())
y ~ lambda: x
y ~ I([open('pwned', 'w') for k in [1]])
y ~ I({open('pwned', 'w')})
y ~ {open('pwned', 'w')}
y ~ I(f"{open('pwned', 'w')}")
y ~ f'{x}'
y ~ I((w := open('pwned', 'w')))
y ~ x[0]
y ~ I(x['__class__'])
y ~ I(x if x else open('pwned', 'w'))
y ~ I(x or open('pwned', 'w'))
y ~ I(*x)
y ~ log(**x)
y ~ log(x, out=open('pwned', 'w'))
y ~ np.fromfile('pwned')
y ~ np.load('pwned')
y ~ poly(x, degree=open('pwned', 'w'))
y ~ poly(x, 2, _state=x)
y ~ scale(x, _context=x)
y ~ bs(x, df=__import__('os'))
y ~ C(g, levels=[open('pwned', 'w')])
y ~ C(g, contr.__class__)
y ~ C(g, Treatment(open('pwned', 'w')))
y ~ C(g, contr.treatment.__init__)
y ~ Q("__class__")
y ~ hashed(x)
y ~ stateful_transform(x)
y ~ np.np.log(x)
y ~ np.poly(x, 2)
y ~ ｏｐｅｎ('pwned', 'w')
y ~ ｌｏｇ(z)
y ~ x\u200b
y ~ l\u200dog(z)
y ~ x; import os
y ~ "'''" + open('pwned', 'w') + "'''"
y ~ I('a' * 999999999)
y ~ x # comment
y ~ x \\ z
open('pwned', 'w') ~ x
y.__class__ ~ x
log(open('pwned', 'w')) ~ x
""".strip().splitlines()


TOO_MUCH = {
    "long": "y ~ " + "x + " * 5000 + "x",
    "parentheses": "y ~ " + "(" * 4000 + "x" + ")" * 4000,
    "brackets": "y ~ I(" + "[" * 4000 + "1" + "]" * 4000 + ")",
    "calls": "y ~ " + "log(" * 2000 + "z" + ")" * 2000,
    "signs": "y ~ I(" + "-" * 5000 + "x)",
    "chain": "y ~ I(" + "+".join(["x"] * 4000) + ")",
    "tower": "y ~ I(x * 9**9**9**9**9)",
    "exponent": "y ~ (x + z)**999999999",
    "terms": "y ~ (" + "+".join(f"I(x+{k})" for k in range(300)) + ")**8",
    "factors": "y ~ " + ":".join(f"I(x + {k})" for k in range(30)),
    "columns": "y ~ C(n):C(m)",
    "degree": "y ~ poly(x, 1000000000)",
    "splines": "y ~ bs(x, df=1000000000)",
    "digits": "y ~ I(x + " + "9" * 9000 + ")",
    "huge": "y ~ I(x + 1e999)",
}


def check_sentence(formula: str, frame=None) -> None:
    with pytest.raises(ValueError) as caught:
        design_rows(formula, table() if frame is None else frame)
    message = str(caught.value)
    assert "\n" not in message and 10 < len(message) < 600, message


@pytest.mark.parametrize("formula", WAYS_IN)
def test_a_way_in_is_one_sentence(formula, monkeypatch):
    formula = formula.replace(r"\u200b", "\u200b").replace(r"\u200d", "\u200d")

    def caught(*_, **__):
        raise AssertionError("something ran")

    with monkeypatch.context() as patched:
        for name in ("eval", "exec", "open", "compile"):
            patched.setattr(builtins, name, caught)
        patched.setattr(os, "system", caught)
        check_sentence(formula)


@pytest.mark.parametrize("name", TOO_MUCH)
def test_too_much_is_one_sentence_at_once(name):
    frame = table().loc[np.arange(600) % 30].reset_index(drop=True)
    frame = frame.assign(n=np.arange(600), m=np.arange(600)[::-1])
    began = time.process_time()
    check_sentence(TOO_MUCH[name], frame)
    assert time.process_time() - began < 2.0


@functools.cache
def plain_design() -> Design:
    return Design.fit("y ~ scale(x) + poly(z, 2) + C(g) + h:x + bs(x, df=4)", table())


def hostile(change) -> dict:
    data = copy.deepcopy(plain_design().to_data())
    change(data)
    return data


def deep(depth: int) -> list:
    node: list = ["column", "x"]
    for _ in range(depth):
        node = ["unary", "-", node]
    return node


CALL = ["call", "exec", [["literal", "open('pwned', 'w')"]], {}]


HOSTILE = {
    "a call of something else": lambda d: d["factors"].append([CALL, None]),
    "a call on the left": lambda d: d.update(target=CALL),
    "a call in an argument": lambda d: d["factors"].append([["call", "log", [CALL], {}], None]),
    "a call in an option": lambda d: d["factors"].append(
        [["call", "poly", [["column", "x"]], {"degree": CALL}], None]
    ),
    "a dotted function": lambda d: d["factors"].append(
        [["call", "np.f2py.os.system", [["column", "x"]], {}], None]
    ),
    "text where a tree should be": lambda d: d.update(target="__import__('os')"),
    "another kind of node": lambda d: d.update(target=["attribute", ["column", "x"], "__class__"]),
    "another operator": lambda d: d.update(
        target=["binary", "@", ["column", "x"], ["column", "x"]]
    ),
    "a tree too deep": lambda d: d.update(target=deep(900)),
    "another key": lambda d: d.update(code="import os"),
    "a key less": lambda d: d.pop("states"),
    "no object": lambda d: d.update(factors="x"),
    "a factor out of range": lambda d: d["terms"].append([[99, False]]),
    "a negative factor": lambda d: d["terms"].append([[-1, False]]),
    "a factor that is a text": lambda d: d["terms"].append([["__class__", False]]),
    "numbers reduced": lambda d: d["terms"].append([[0, True]]),
    "too many factors": lambda d: d["terms"].append([[0, False]] * 99),
    "too many columns": lambda d: d["factors"][2].__setitem__(1, list(range(99_999))),
    "no state": lambda d: d["states"].pop("scale(x)"),
    "a state too many": lambda d: d["states"].update({"__class__": [1.0]}),
    "a state that is text": lambda d: d["states"].update({"scale(x)": ["a", "b"]}),
    "a state of NaN": lambda d: d["states"].update({"scale(x)": [float("nan"), 1.0]}),
    "a state that divides by zero": lambda d: d["states"].update({"scale(x)": [0.0, 0.0]}),
    "a short state": lambda d: d["states"].update({"poly(z, 2)": [1.0]}),
    "unsorted knots": lambda d: d["states"]["bs(x, df=4)"].reverse(),
    "levels twice": lambda d: d["factors"][2].__setitem__(1, ["a", "a"]),
    "levels of objects": lambda d: d["factors"][2].__setitem__(1, [{"a": 1}]),
    "levels of numbers": lambda d: d["factors"][0].__setitem__(1, ["a"]),
    "two columns of one name": lambda d: d["terms"].append(d["terms"][0]),
    "a degree that explodes": lambda d: d["factors"].append(
        [["call", "poly", [["column", "x"]], {"degree": ["literal", 10**15]}], None]
    ),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_design_is_one_sentence(name):
    with pytest.raises(ValueError, match="the stored design cannot be used: ") as caught:
        design_from_data(hostile(HOSTILE[name]))
    assert "\n" not in str(caught.value) and len(str(caught.value)) < 400


def test_a_term_without_columns_costs_nothing():
    """A factor of many levels times one of none must not be computed for every row."""
    many = [["column", "g"], [*"abc", *(f"level {k}" for k in range(9000))]]
    none = [["call", "C", [["column", "k"]], {}], [0]]
    data = hostile(lambda d: d["factors"].extend([many, none]))
    number = len(data["factors"])
    data["terms"] += [[[number - 2, False], [number - 1, True]]] * 9000
    began = time.process_time()
    design = design_from_data(data)
    frame = table()
    X = design.apply(read(frame, design.needs))
    assert X.shape == (len(frame), len(plain_design().column_names))
    assert time.process_time() - began < 2.0


@pytest.mark.parametrize("data", [None, 3, "x", [], {}, [[]], {"formula": 1}])
def test_what_is_no_design_is_one_sentence(data):
    with pytest.raises(ValueError, match="the stored design cannot be used: "):
        design_from_data(data)


@settings(max_examples=300, deadline=None, derandomize=True)
@given(st.data())
def test_a_design_with_something_exchanged_is_a_design_or_a_sentence(data):
    plain = hostile(lambda _: None)
    node = plain
    while isinstance(node, list | dict) and node:
        keys = list(node) if isinstance(node, dict) else range(len(node))
        key = data.draw(st.sampled_from(list(keys)))
        if not isinstance(node[key], list | dict) or data.draw(st.booleans()):
            junk = st.one_of(
                st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5),
                st.just([]), st.just({}), st.sampled_from(["call", "column", "exec", "**"]),
            )  # fmt: skip
            node[key] = data.draw(junk)
            break
        node = node[key]
    try:
        design_from_data(plain)
    except ValueError as error:
        assert "\n" not in str(error)


def check_grammar(formula: str) -> None:
    try:
        design_rows(formula, table())
    except ValueError as error:
        # formulaic keeps silent about a formula that makes no columns.
        assert "no columns" in str(error), (formula, error)
        return
    check_same(formula)


@settings(max_examples=100, deadline=None, derandomize=True)
@given(FORMULAS)
def test_formulas_of_a_grammar_give_the_columns_of_formulaic(formula):
    check_grammar(formula)


@pytest.mark.slow
@settings(max_examples=1000, deadline=None, derandomize=True, suppress_health_check=SLOW)
@given(FORMULAS)
def test_a_thousand_formulas_give_the_columns_of_formulaic(formula):
    check_grammar(formula)


PIECES = st.sampled_from(
    [*"()[]~+-*:/^.,=|`'{}%@é01xg", '"', "\n", "\\", "\0", "**", "np.", "__", "lambda ", "9e9"]
)


@settings(max_examples=300, deadline=None, derandomize=True, suppress_health_check=SLOW)
@given(FORMULAS, st.lists(st.tuples(st.integers(0, 200), st.integers(0, 4), PIECES), max_size=4))
def test_mutated_formulas_give_columns_or_a_sentence(formula, changes):
    for place, cut, piece in changes:
        place %= len(formula) + 1
        formula = formula[:place] + piece + formula[place + cut :]
    try:
        design_rows(formula, table())
    except ValueError as error:
        assert "\n" not in str(error), formula
