"""Many Stan programs as one, so that Stan compiles once.

Every program keeps its blocks with names of its own; the density is the product of all, and
what one of them says is seen by moving its parameters only.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

BLOCKS = ("data", "parameters", "transformed parameters", "model")
# A declaration ends with its name: real<lower=0> scale;  matrix[M, 2] eta = …;
DECLARED = re.compile(
    r"^\s*(?:int|real|vector|matrix|array|cov_matrix|ordered)\b[^;=]*?(\w+)\s*[;=]"
)


def together(programs: Mapping[str, str]) -> str:
    """One program of all, names followed by the key of theirs."""
    blocks = {name: "" for name in BLOCKS}
    for key, program in programs.items():
        for name, lines in _blocks(_renamed(program, key)).items():
            blocks[name] += f"{{\n{lines}}}\n" if name == "model" else lines
    return "".join(f"{name} {{\n{lines}}}\n" for name, lines in blocks.items() if lines)


def together_data(exports: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    return {f"{name}_{key}": v for key, data in exports.items() for name, v in data.items()}


def _blocks(program: str) -> dict[str, str]:
    found = re.findall(r"^([a-z ]+) \{\n(.*?)^\}\n", program, flags=re.DOTALL | re.MULTILINE)
    assert found and set(dict(found)) <= set(BLOCKS)
    return dict(found)


def _renamed(program: str, key: str) -> str:
    """A name that a parenthesis follows is a function: beta ~ beta(2, 2) has both."""
    plain = re.sub(r"//.*", "", program)
    # Limits may hold an equals sign.
    without = re.sub(r"<[^>]*>", "", plain)
    names = {found[1] for line in without.splitlines() if (found := DECLARED.match(line))}
    pattern = r"\b(" + "|".join(sorted(names, key=len, reverse=True)) + r")\b(?!\()"
    return re.sub(pattern, rf"\1_{key}", plain)
