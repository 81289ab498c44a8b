"""The house is as CONTRIBUTING.md draws it: imports go one way, and no module is too long."""

import functools
import importlib.util
import re
from collections import Counter
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
specification = importlib.util.spec_from_file_location("house", ROOT / "docs" / "house.py")
house = importlib.util.module_from_spec(specification)
specification.loader.exec_module(house)

MOST_LINES = 350
# Read by the worker that needs them.
imports = functools.cache(house.imports)


# `corebayes` itself, what a person imports, is a floor like any other.
TOP = "corebayes"


def room(module):
    return house.room_of(module) or TOP


def test_every_room_is_drawn():
    drawn = [room for floor in house.floors() for room in floor]
    assert sorted(drawn) == sorted({room(module) for module in imports()} - {"__main__"})


def test_rooms_import_from_below_only():
    level = {room: number for number, floor in enumerate(house.floors()) for room in floor}
    upwards = [
        f"{module} imports {target or TOP}"
        for module, targets in imports().items()
        for target in targets
        if module != "__main__" and room(module) != room(target)
        if level[room(target)] >= level[room(module)]
    ]
    assert upwards == []


def test_no_cycles_among_modules():
    graph = {name: targets - {""} for name, targets in imports().items() if name}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail(" → ".join(reversed(error.args[1])))


def test_no_module_is_longer_than_an_idea():
    others = [path for folder in ("tests", "benchmarks") for path in (ROOT / folder).rglob("*.py")]
    files = [*house.modules().values(), *others]
    assert [str(p) for p in files if len(p.read_text().splitlines()) > MOST_LINES] == []


def test_no_two_classes_share_a_name():
    """But for the state of every construction, which is named alike."""
    texts = [path.read_text() for path in house.modules().values()]
    found = Counter(name for t in texts for name in re.findall(r"^ *class (\w+)[(:]", t, re.M))
    assert [name for name, times in found.items() if times > 1] == ["State"]


def test_files_and_names_that_are_cited_exist():
    known, missing = house.modules(), []
    for module, path in known.items():
        text = path.read_text()
        near = path.parent, house.PACKAGE, house.ROOT
        cited = re.findall(r"`([\w/]+\.py)`", text)
        missing += [(module, one) for one in cited if not any((at / one).exists() for at in near)]
        for one, name in re.findall(r"`corebayes\.([a-z_.]+)\.(\w+)`", text):
            here = f"{one}.{name}" in known or (
                one in known and re.search(rf"\b{name}\b", known[one].read_text())
            )
            missing += [] if here else [(module, f"{one}.{name}")]
    assert missing == []
