"""The page in a real browser: on a phone, on a desk, in the dark and on paper."""

import pytest

from tests.report.browser import Browser, needs_browser
from tests.report.pages import full_report

pytestmark = needs_browser

# Boxes of all figures, and how many of their marks can be seen.
FIGURES = """
Array.from(document.querySelectorAll("svg")).map(svg => {
  const box = svg.getBoundingClientRect();
  const marks = Array.from(svg.querySelectorAll("path, circle, rect")).filter(mark => {
    const style = getComputedStyle(mark);
    return style.visibility === "visible" && (style.stroke !== "none" || style.fill !== "none");
  });
  const words = Array.from(svg.querySelectorAll("text")).filter(t => {
    const own = t.getBoundingClientRect();
    return own.left < box.left - 1 || own.right > box.right + 1;
  }).map(t => t.textContent);
  return {left: box.left, right: box.right, height: box.height, marks: marks.length, words};
})
"""
COLOURS = "[getComputedStyle(document.body).backgroundColor, getComputedStyle(document.body).color]"


@pytest.fixture(scope="module")
def browser():
    with Browser() as browser:
        yield browser


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    path = tmp_path_factory.mktemp("report") / "report.html"
    full_report().save(path)
    return path


def brightness(colour: str) -> float:
    return sum(float(part) for part in colour[4:-1].split(",")) / 3 / 255


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("width", [320, 380, 1100])
def test_the_page_fits_and_its_figures_are_seen(browser, path, width, dark):
    browser.open(path, width=width, dark=dark)
    assert browser.complaints() == []
    assert browser.requests() == [path.resolve().as_uri()]
    assert browser.evaluate("document.documentElement.scrollWidth") <= width
    figures = browser.evaluate(FIGURES)
    assert len(figures) == 8
    for figure in figures:
        assert 0 <= figure["left"] < figure["right"] <= width
        assert figure["height"] > 60 and figure["marks"] >= 3
        # No words are cut off at the sides.
        assert figure["words"] == []
    paper, ink = map(brightness, browser.evaluate(COLOURS))
    assert (paper < 0.2 and ink > 0.8) if dark else (paper > 0.9 and ink < 0.2)


def test_text_can_be_read_on_a_phone(browser, path):
    browser.open(path, width=380)
    smallest = """Math.min(...Array.from(document.querySelectorAll("svg text")).map(t =>
      parseFloat(getComputedStyle(t).fontSize) * t.getScreenCTM().a))"""
    assert browser.evaluate(smallest) >= 8.5


def test_paper_is_white_also_in_the_dark(browser, path):
    browser.open(path, width=700, dark=True, media="print")
    paper, ink = map(brightness, browser.evaluate(COLOURS))
    assert paper == 1.0 and ink == 0.0
    assert browser.evaluate("document.documentElement.scrollWidth") <= 700
    pdf = browser.pdf()
    assert pdf.startswith(b"%PDF") and pdf.count(b"/Type /Page\n") <= 8


def test_a_screenshot_has_colours(browser, path, tmp_path):
    browser.open(path, width=380)
    browser.screenshot(tmp_path / "page.png")
    assert (tmp_path / "page.png").stat().st_size > 50_000


def test_the_check_itself_sees_trouble(browser, tmp_path):
    """A page with an error, a request and a wide table fails every one of these tests."""
    bad = tmp_path / "bad.html"
    bad.write_text('<p style="width:900px">x</p><img src="none.png"><script>nothing()</script>')
    browser.open(bad, width=380)
    assert browser.complaints() and len(browser.requests()) == 2
    assert browser.evaluate("document.documentElement.scrollWidth") > 380
