"""The page: complete, well formed, accessible, and with nobody else's markup in it."""

import re
from collections import Counter
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest

import corebayes as cb
from tests.coresets import linear, near, posteriors, weighted
from tests.report.pages import NAMES, TARGET, coreset, full_report, table

VOID = {"meta", "link"}


class Reader(HTMLParser):
    """Counts elements, collects text, and insists that all that is opened is closed."""

    def __init__(self, page: str):
        super().__init__()
        self.open: list[str] = []
        self.tags: Counter = Counter()
        self.attributes: list[tuple[str, dict]] = []
        self.words: list[str] = []
        self.feed(page)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.tags[tag] += 1
        self.attributes.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags[tag] += 1
        self.attributes.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if not self.open or self.open[-1] != "style":
            self.words.append(data)

    @property
    def text(self) -> str:
        return " ".join(self.words)


@pytest.fixture(scope="module")
def page():
    return Reader(full_report().html)


def test_the_page_says_what_was_done_and_how_good_it_is(page):
    certificate = full_report().findings.measured.certificate
    assert certificate.certified and certificate.verdict in page.text
    assert "600 rows compressed to 15 weighted rows (40 to 1)" in page.text
    for heading in (
        "How far from the full posterior",
        "Posterior",
        "Rows and weights",
        "Sampler",
        "Time and cost",
        "How to reproduce",
    ):
        assert heading in page.text
    assert "Not measured" not in page.text
    provenance = coreset().provenance
    for recorded in ("method", "data", "version"):
        assert provenance[recorded] in page.text
    assert "seed=4" in page.text and "the rows of this report have the same" in page.text


def test_all_figures_are_there(page):
    titles = [
        "KL divergence against the number of rows kept",
        "Weights of the coreset's rows",
        "Where the chosen rows lie among all rows",
        "Seconds of each step, on a logarithmic axis",
        *(f"Posterior of {name}" for name in (*NAMES, "intercept")),
    ]
    assert page.tags["svg"] == len(titles)
    for title in titles:
        assert title in page.text
    assert page.tags["circle"] >= 15 + 1


def test_names_of_the_user_are_words_and_never_markup(page):
    html = full_report().html
    assert page.tags["script"] == 0 and "<script" not in html
    for name in (*NAMES, TARGET, "Late <trains>"):
        assert name in page.text and (name == "speed" or name not in html)


def test_nothing_is_fetched(page):
    sources = [
        value
        for _, attributes in page.attributes
        for name, value in attributes.items()
        if name in ("src", "href", "xlink:href")
    ]
    assert sources == ["data:,"]
    assert not re.search(r"url\(|@import|https?:", full_report().html)


def test_the_page_is_accessible(page):
    ids = [attributes["id"] for _, attributes in page.attributes if "id" in attributes]
    assert len(ids) == len(set(ids))
    for tag, attributes in page.attributes:
        for label in attributes.get("aria-labelledby", "").split():
            assert label in ids
        if tag == "svg":
            assert attributes["role"] == "img" and attributes["aria-labelledby"]
        if tag == "th":
            assert attributes["scope"] in ("row", "col")
    assert page.tags["caption"] == page.tags["table"] >= 5
    assert page.tags["h1"] == 1 and ("html", {"lang": "en"}) in page.attributes


def test_without_rows_the_page_says_what_is_missing(tmp_path):
    path = tmp_path / "report.html"
    report = cb.report(coreset(), out=path, draws=400)
    assert path.read_text(encoding="utf-8") == report.html
    page = Reader(report.html)
    assert "written without the rows" in page.text and "needs the rows" in page.text
    assert report.findings.measured is None
    assert all(parameter.corrected is None for parameter in report.findings.parameters)
    assert page.tags["svg"] == 4 + 2


def test_a_coreset_that_is_far_off_is_corrected_by_exact_draws():
    model, data = linear()
    far = weighted(model, data, [1, 2], 3.0)
    found = cb.report(far, data, draws=400)
    page = Reader(found.html)
    assert found.findings.measured.shares is None
    assert "Not certified" in page.text and "exact draws of the posterior of all rows" in page.text
    full = posteriors(far, data)[1]
    sd = np.sqrt(np.square(full.factor).sum(axis=1))
    for parameter, mean, width in zip(found.findings.parameters, full.mean, sd, strict=True):
        assert parameter.corrected[0] == pytest.approx(mean, abs=0.25 * width)
        assert parameter.corrected[1] == pytest.approx(width, rel=0.2)
    assert "verdict bad" in found.html
    assert "not recorded" in page.text


def test_a_growing_construction_shows_its_trace():
    model, data = linear()
    grown = cb.build(model, data, size=5, method=cb.SparseVI(), seed=0)
    report = cb.report(grown, data, draws=400)
    assert not report.findings.sizes.measured
    assert report.findings.sizes.ours.sizes[-1] == grown.size
    assert "as the construction saw it" in report.html


def test_an_infinite_kl_is_drawn_as_an_arrow():
    from corebayes.report.curves import Curve
    from corebayes.report.figures import kl_figure
    from corebayes.report.findings import Sizes

    sizes = Sizes(
        ours=Curve([2, 5], [np.inf, 0.1]), uniform=Curve([10, 20], [3.0, 1.0]), measured=True
    )
    model, data = linear()
    drawing = kl_figure(sizes, None, weighted(model, data, [0, 1], 1.0))
    assert drawing.count("l-4 -8Z") == 1 and "nan" not in drawing and "inf" not in drawing[200:]


def test_the_call_to_reproduce_is_what_was_asked_for():
    model, data = linear()
    by_tol = cb.build(model, data, tol=0.5, seed=3)
    assert by_tol.provenance["asked"] == {"tol": 0.5}
    text = Reader(cb.report(by_tol, draws=100).html).text
    assert "build(model, data, tol=0.5, method=" in text and f"size={by_tol.size}" not in text
    first = cb.build_path(model, data, sizes=[3, 6], seed=3)[0]
    text = Reader(cb.report(first, draws=100).html).text
    assert "build_path(model, data, sizes=[3, 6]," in text


def test_the_prior_is_at_the_top():
    model, data = linear()
    sds = 5.0 * 10.0 ** np.arange(model.dim)
    for prior, words in (
        (cb.Normal(0.0, 1.0), "Normal(0, 1) given"),
        (cb.Normal(sds, sds), f"Normal({sds[-1]:g}, {sds[-1]:g}) given"),
    ):
        own = replace(model, prior=prior, bound=None).bind(data)
        page = Reader(cb.report(replace(near(model, data), model=own), draws=100).html)
        assert words in " ".join(page.text[: page.text.index("How far")].split())


def test_numbers_and_names_are_as_people_write_them(page):
    text = " ".join(page.text.split())
    assert "−0.000" not in text and "'entries'" not in text and "sd_or_cov" not in text
    assert not re.search(r"\b\d+\.0 passes|\d{3,}\.\d ms|about [\d,]*[1-9] gradients", text)


def test_a_long_name_keeps_its_level():
    from corebayes.report.figures import LONGEST, title_of

    assert title_of("age") == "age"
    assert title_of("C(education, ref='hs')[T.hs drop out]") == "C(educatio…[T.hs drop out]"
    for name in ("x" * 80, f"g[{'y' * 80}]", "gender[T.male]:insurance[T.yes]"):
        assert len(title_of(name)) <= LONGEST and "…" in title_of(name)


def test_an_effective_size_above_the_number_of_draws_is_explained():
    from corebayes.report.sections import _effective

    assert _effective(843.2, 1000) == "843 of 1,000"
    assert _effective(1747.0, 1000).startswith("1,000 of 1,000 (worth 1,747")


@pytest.mark.parametrize("size", [0, 1])
def test_tiny_coresets_have_a_page(size):
    model, data = linear()
    tiny = weighted(model, data, list(range(size)), 80.0)
    page = Reader(cb.report(tiny, data, draws=400).html)
    assert ("has no rows" in page.text) == (size == 0)


def test_learned_rows_are_called_so():
    model, data = linear()
    some = near(model, data)
    learned = replace(some, indices=-1 - np.arange(some.size), provenance={"learned": True})
    heaviest = 1 + int(np.argmax(some.weights))
    assert f'<th scope="row">learned {heaviest}</th>' in cb.report(learned, draws=400).html


def test_a_certificate_is_shown_as_it_is():
    certificate = cb.certify(coreset(), table(), target=TARGET, draws=200, tol=0.05)
    found = cb.report(coreset(), table(), target=TARGET, draws=400, certificate=certificate)
    assert found.findings.measured.certificate is certificate
    assert found._repr_html_().startswith("<iframe") and "&lt;h1&gt;" in found._repr_html_()


def test_wrong_arguments_are_refused(tmp_path):
    with pytest.raises(ValueError, match="draws must be at least 100, got 5"):
        cb.report(coreset(), draws=5)
    with pytest.raises(FileNotFoundError, match=r"the folder .*nowhere is not there"):
        cb.report(coreset(), out=tmp_path / "nowhere" / "report.html")
    with pytest.raises(ValueError, match="600 rows"):
        cb.report(coreset(), table().slice(0, 500), target=TARGET)
