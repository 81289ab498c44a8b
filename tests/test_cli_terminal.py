"""The command line at a terminal: colours and bars there, plain text in a pipe, completion."""

import os
import pty
import select
import subprocess
import sys
import time

import numpy as np
import pytest

COMMANDS = ["build", "certify", "demo", "report", "reproduce", "sample"]
PROGRAM = [sys.executable, "-m", "corebayes"]


def in_a_pipe(*arguments: str, **environment: str) -> str:
    result = subprocess.run(
        [*PROGRAM, *arguments],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, **environment},
    )
    assert result.returncode == 0, result.stderr
    return result.stdout


def at_a_terminal(*arguments: str) -> str:
    """Everything written to a terminal of 100 columns."""
    ours, theirs = pty.openpty()
    environment = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "100"}
    environment.pop("NO_COLOR", None)
    process = subprocess.Popen(
        [*PROGRAM, *arguments], stdin=theirs, stdout=theirs, stderr=theirs, env=environment
    )
    os.close(theirs)
    seen, deadline = b"", time.monotonic() + 120
    try:
        while select.select([ours], [], [], max(deadline - time.monotonic(), 0.0))[0]:
            part = os.read(ours, 65536)
            if not part:
                break
            seen += part
    except OSError:
        # The other end is closed: the program is done.
        pass
    finally:
        os.close(ours)
    assert process.wait(60) == 0, seen.decode()
    return seen.decode()


def test_alone_it_shows_what_one_can_do_in_plain_text():
    said = in_a_pipe()
    for command in COMMANDS:
        assert f"\n  {command} " in said
    assert "corebayes build rows.csv" in said and "\x1b" not in said and "│" not in said


def test_at_a_terminal_help_has_colours_and_boxes():
    said = at_a_terminal("build", "--help")
    assert "\x1b[" in said and "╭" in said and "Example: corebayes build" in said


@pytest.mark.slow
def test_at_a_terminal_a_long_step_has_a_bar_and_the_verdict_a_colour(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 2))
    rows, coreset = str(tmp_path / "rows.npz"), str(tmp_path / "c.parquet")
    np.savez(rows, X=X, y=X @ [1.0, -0.5] + rng.normal(size=400))
    built = at_a_terminal("build", rows, "--model", "linear", "--size", "20", "--out", coreset)
    # Once, above the bar; in a pipe with the result.
    assert built.count("y ~ Normal") == 1
    assert "reading the rows" in built and "━" in built and "rows/s" in built
    certified = at_a_terminal("certify", coreset, rows)
    assert "certifying" in certified and "\x1b[1;32m" in certified
    plain = in_a_pipe("certify", coreset, rows)
    assert plain.startswith("The coreset posterior") and "\x1b" not in plain


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        # What Typer does by itself.
        pytest.param("corebayes re", ["refit", "report", "reproduce"], marks=pytest.mark.slow),
        pytest.param("corebayes report --da", ["--dask", "--data"], marks=pytest.mark.slow),
        ("corebayes build --model poi", ["poisson", "poisson-log", "poisson-softplus"]),
    ],
)
def test_the_shell_completes_commands_options_and_names(words, offered):
    said = in_a_pipe(
        _COREBAYES_COMPLETE="complete_bash",
        COMP_WORDS=words,
        COMP_CWORD=str(len(words.split()) - 1),
    )
    assert sorted(said.split()) == offered


def test_completion_can_be_installed():
    # Without this Typer asks which shell is its parent, and refuses a plain sh.
    named = {"_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"}
    script = in_a_pipe("--show-completion", "bash", **named)
    assert "complete -o default -F _corebayes_completion corebayes" in script
    assert "--install-completion" in in_a_pipe("--help")
