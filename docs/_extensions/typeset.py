"""Mathematics as docstrings have it, in Unicode, as the TeX that is set on the page.

In text only what carries an index or an exponent is set, π_w or e^{−rτ}: the rest reads as it is.
"""

from __future__ import annotations

import re

RAISED = dict(zip("⁰¹²³⁴⁵⁶⁷⁸⁹⁻⁺ᵀˣ", [*"0123456789", "-", "+", r"\top ", "x"], strict=True))
# Sums over something; Σ_w is a covariance.
SUMMED = "iknst"
LETTERS = {"−": "-", "½": r"\tfrac{1}{2}", "·": r"\cdot ", "‖": r"\Vert ", "√": r"\surd "}
FUNCTIONS = re.compile(r"\b(log|exp|min|max|argmin|argmax|corr|Cov|Var|KL)\b")
WORDS = re.compile(r"(?<![\\{\w])([^\W\d_]{2,})(?![\w}])")
CODE = re.compile(r"(``[^`]*``|`[^`]*`)")
# A letter that no word or name goes on before, its index or exponent, and a power behind it.
INDEXED = re.compile(
    r"(?<![\w^])([^\W\d_]′?)([_^])(\{[^{}]*\}|−?[A-Za-z0-9]+|−?[α-ω])([⁰¹²³⁴⁵⁶⁷⁸⁹⁻⁺ᵀ]*)(?![A-Za-z0-9_])"
)


def tex(text: str) -> str:
    """An equation in TeX; Greek letters and relations are what they are."""
    text = re.sub(f"[{''.join(RAISED)}]+", lambda found: f"^{{{_lowered(found[0])}}}", text)
    text = FUNCTIONS.sub(r"\\operatorname{\1}", text)
    text = WORDS.sub(r"\\text{\1}", text)
    return "".join(LETTERS.get(letter, letter) for letter in text)


def set_text(line: str) -> str:
    """A line of a docstring with its indexed letters set."""
    parts = CODE.split(line)
    parts[::2] = [INDEXED.sub(_indexed, part) for part in parts[::2]]
    return "".join(parts)


def is_equation(block: list[str]) -> bool:
    """Whether an indented paragraph is one equation, and no table or example."""
    text = " ".join(line.strip() for line in block)
    return len(block) == 1 and " = " in text and not re.search("[\"'`]|   |>>>", text)


def _lowered(raised: str) -> str:
    return "".join(RAISED[letter] for letter in raised)


def _indexed(found: re.Match[str]) -> str:
    letter, mark, index, power = found.groups()
    letter = r"\sum" if letter == "Σ" and index in SUMMED else letter
    inside = tex(index.strip("{}"))
    raised = f"^{{{_lowered(power)}}}" if power else ""
    # Between escaped blanks a role may stand beside any character.
    return rf"\ :math:`{letter}{mark}{{{inside}}}{raised}`\ "
