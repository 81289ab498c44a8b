"""docs/security.md names tests: they are there."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "security.md").read_text()


def test_every_test_that_the_page_names_exists():
    files = set(re.findall(r"`(tests/[\w/]+\.py)`", PAGE))
    assert len(files) >= 6
    assert [name for name in sorted(files) if not (ROOT / name).is_file()] == []


def test_every_function_that_the_page_names_is_in_the_file_it_names():
    named = re.findall(r"`(test_\w+)` in `(tests/[\w/]+\.py)`", PAGE)
    assert len(named) == len(re.findall(r"`test_\w+`", PAGE)) >= 2
    for function, file in named:
        assert f"def {function}(" in (ROOT / file).read_text()


def test_options_that_the_page_names_exist():
    from corebayes.cli import app as cli

    assert cli.build.__annotations__["tls"] and "--tls keys" in PAGE
