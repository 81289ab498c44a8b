"""Every construction has a style of its own, the same in every figure."""

import numpy as np

import corebayes as cb
from corebayes.figures.methods import STYLES, Medians, draw_methods, place_of, style_of


def test_every_exported_construction_has_a_style_of_its_own():
    assert {"GIGA", "Uniform", "AnnealedSparseVI"} <= set(STYLES) <= set(cb.__all__)
    assert len({style.marker for style in STYLES.values()}) == len(STYLES)
    assert len({style.color for style in STYLES.values()}) == len(STYLES)


def test_variants_keep_the_colour_and_marker_of_their_method():
    plain, refit, other = (style_of(n) for n in ("GIGA", "GIGA + refit", "GIGA, realistic"))
    assert plain.color == refit.color == other.color and plain.marker == refit.marker
    assert len({(style.dashes, style.fill) for style in (plain, refit, other)}) == 3
    assert style_of("AnnealedSparseVI") != style_of("SparseVI")
    assert place_of("AnnealedSparseVI") < place_of("SparseVI") < place_of("GIGA") < place_of("new")


def test_figures_are_written_with_zero_and_huge_divergences(tmp_path):
    sizes, seconds = np.array([5, 10]), np.array([0.1, 0.2])
    curves = {
        "Uniform": Medians(sizes, np.array([np.inf, 3.0]), seconds, 2.0 * seconds),
        "GIGA + refit": Medians(sizes, np.array([1.0, 0.0]), seconds, 2.0 * seconds),
    }
    png, svg = draw_methods(tmp_path / "set", "a set", curves, prior_kl=10.0)
    text = svg.read_text(encoding="utf-8")
    assert png.read_bytes().startswith(b"\x89PNG")
    assert "GIGA + refit" in text and "rows asked for" in text and "prior" in text
