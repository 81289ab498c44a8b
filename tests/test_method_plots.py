"""Every construction has a look of its own, the same in every figure."""

from dataclasses import is_dataclass

import numpy as np

import corebayes.constructions as constructions
from corebayes.method_plots import LOOKS, Medians, draw_methods, look_of, place_of


def exported():
    kinds = {name: getattr(constructions, name) for name in constructions.__all__}
    return {name for name, kind in kinds.items() if hasattr(kind, "step") and is_dataclass(kind)}


def test_every_exported_construction_has_a_look_of_its_own():
    assert exported() <= set(LOOKS)
    assert len({look.marker for look in LOOKS.values()}) == len(LOOKS)
    assert len({look.color for look in LOOKS.values()}) == len(LOOKS)


def test_variants_keep_the_colour_and_marker_of_their_method():
    plain, refit, other = (look_of(n) for n in ("GIGA", "GIGA + refit", "GIGA, realistic"))
    assert plain.color == refit.color == other.color and plain.marker == refit.marker
    assert len({(look.dashes, look.fill) for look in (plain, refit, other)}) == 3
    assert look_of("AnnealedSparseVI") != look_of("SparseVI")
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
