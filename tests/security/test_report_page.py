"""Whatever names the data has, a report page runs nothing and loads nothing: in a real browser."""

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import corebayes as cb
from corebayes.experiments.claims import Claim
from corebayes.experiments.figures import Figure
from corebayes.experiments.reproduce import write_report
from corebayes.report.html import escape
from tests.report.browser import Browser, needs_browser

HOSTILE = (
    "<script>window.ran=1</script>",
    '"><img src=x onerror="window.ran=2">',
    "</style><style>body{display:none}</style>",
    "</title><svg onload=window.ran=3>",
    "' onmouseover=window.ran=4 x='",
    "‮elif.mr⁦",
)
# Put into the finished page, as if nothing had been escaped.
INJECTED = (
    "<script>window.ran=1</script>",
    '<img src="data:image/png;base64,AA==" onerror="window.ran=1">',
    '<svg onload="window.ran=1"></svg>',
    '<iframe src="data:text/html,x"></iframe>',
    '<link rel="stylesheet" href="data:text/css,body{display:none}">',
    "<style>body{display:none}</style>",
    '<p style="display:none" id="hidden">x</p>',
    '<base href="http://example.invalid/">',
    '<img src="none.png">',
)


@pytest.fixture(scope="module")
def browser():
    with Browser() as browser:
        yield browser


@pytest.fixture(scope="module")
def coreset_page(tmp_path_factory):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, len(HOSTILE)))
    y = (rng.random(300) < 0.5).astype(np.int64)
    names = [f"{name}{k}" for k, name in enumerate(HOSTILE)]
    rows = pa.table({**dict(zip(names, X.T, strict=True)), "<b>y</b>": y})
    built = cb.build(
        cb.LogisticRegression(prior=cb.Normal()), rows, target="<b>y</b>", size=12, seed=0
    )
    told = {**built.provenance, "command": "".join(HOSTILE), "method": HOSTILE[1]}
    path = tmp_path_factory.mktemp("page") / "report.html"
    cb.report(
        replace(built, provenance=told),
        rows,
        target="<b>y</b>",
        draws=200,
        title="".join(HOSTILE),
        out=path,
    )
    return path


@pytest.fixture(scope="module")
def experiments_page(tmp_path_factory):
    folder = tmp_path_factory.mktemp("experiments")
    picture = bytes.fromhex(
        "89504e470d0a1a0a0000000d4948445200000001000000010806000000"
        "1f15c4890000000d49444154789c6360606060000000050001a5f64540"
        "0000000049454e44ae426082"
    )
    (folder / "f.png").write_bytes(picture)
    words = "".join(HOSTILE)
    write_report(
        folder / "report.html",
        command=words,
        claims=[Claim(words, words, words, words, True), Claim("4", "x", "y", "z", False)],
        figures=[Figure(folder / "f.png", words, words)],
        trials={words: 2},
        files={"ds1": Path(words), "synth_lr": None},
        quick=True,
    )
    return folder / "report.html"


@pytest.fixture(params=["coreset_page", "experiments_page"])
def page(request):
    return request.getfixturevalue(request.param)


def test_the_policy_comes_first_and_forbids_all_but_the_style(page):
    html = page.read_text(encoding="utf-8")
    head = html[html.index("<head>") + 6 :].lstrip()
    assert head.startswith('<meta http-equiv="Content-Security-Policy"')
    policy = re.search(r'content="([^"]*)"', head)[1]
    rules = dict(rule.split(" ", 1) for rule in policy.split("; "))
    assert rules["default-src"] == rules["form-action"] == rules["base-uri"] == "'none'"
    assert re.fullmatch(r"'sha256-[A-Za-z0-9+/]{43}='", rules["style-src"])
    assert rules["img-src"] == "data:" and "unsafe" not in policy and "script-src" not in rules
    # The charset must be within the first 1024 bytes.
    assert html.encode().index(b"charset") < 1024
    tags = re.sub(r'"[^"]*"', '""', "".join(re.findall(r"<[^>]*>", html)))
    assert tags.count('class=""') > 3 and not re.search(r"\sstyle=|\son[a-z]+=", tags)


def test_bidirectional_and_control_characters_are_written_out(page):
    text = page.read_text(encoding="utf-8")
    assert not set("\u202e\u2066\x00") & set(text)
    assert "\\u202eelif.mr\\u2066" in text
    assert escape("a\u202eb\x1b[0m\x00 β–é\n") == "a\\u202eb\\u001b[0m\\u0000 β–é\n"


@needs_browser
@pytest.mark.parametrize("width", [380, 1100])
def test_hostile_names_are_only_words(browser, page, width):
    browser.open(page, width=width)
    # Neither an error nor a violation of the policy, by the page's own parts or by the names.
    assert browser.complaints() == []
    assert browser.requests()[0] == page.resolve().as_uri()
    assert all(url.startswith("data:") for url in browser.requests()[1:])
    assert browser.evaluate("window.ran === undefined")
    assert browser.evaluate("document.querySelectorAll('script, iframe, object').length") == 0
    assert browser.evaluate("document.styleSheets.length") == 1
    assert browser.evaluate("getComputedStyle(document.querySelector('h1')).lineHeight") != "normal"
    shown = browser.evaluate("document.body.textContent")
    assert all(name in shown for name in HOSTILE[:-1])
    assert browser.evaluate("document.title === document.querySelector('h1').textContent")


@needs_browser
@pytest.mark.parametrize("injected", INJECTED)
def test_what_is_injected_all_the_same_does_not_run(browser, coreset_page, tmp_path, injected):
    html = coreset_page.read_text(encoding="utf-8")
    path = tmp_path / "injected.html"
    path.write_text(html.replace("<main>", f"<main>{injected}", 1), encoding="utf-8")
    browser.open(path, width=800)
    said = " ".join(str(event["params"]) for event in browser.complaints())
    assert "Content Security Policy" in said
    assert browser.evaluate("window.ran === undefined")
    assert browser.evaluate("getComputedStyle(document.body).display") == "block"
    assert browser.evaluate("document.baseURI").startswith("file:")
    assert browser.evaluate("document.getElementById('hidden')?.offsetHeight ?? 1") > 0
    # The browser counts a request that it blocks; none comes back.
    answered = [e for e in browser.events if e["method"] == "Network.responseReceived"]
    assert [e["params"]["response"]["url"] for e in answered if "none.png" in str(e)] == []
