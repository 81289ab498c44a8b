"""Axes: where numbers go, and which are written."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from corebayes.report.svg import AxisScale, number, spanning, with_powers


def test_ends_go_to_ends_and_the_middle_between():
    even = AxisScale(low=2.0, high=6.0, start=100.0, stop=20.0)
    assert np.allclose(even([2.0, 3.0, 6.0]), [100.0, 80.0, 20.0])
    log = AxisScale(low=1e-3, high=1e3, start=0.0, stop=60.0, log=True)
    assert np.allclose(log([1e-3, 1.0, 100.0]), [0.0, 30.0, 50.0])


def labels(scale, most=5):
    return [tick.label for tick in scale.ticks(most)]


def test_ticks_are_round_numbers():
    assert labels(AxisScale(low=0.0, high=10.0, start=0, stop=1)) == ["0", "2", "4", "6", "8", "10"]
    assert labels(AxisScale(low=-0.27, high=0.13, start=0, stop=1), 4) == [
        "−0.2",
        "−0.1",
        "0.0",
        "0.1",
    ]
    assert labels(AxisScale(low=900, high=4100, start=0, stop=1), 4) == [
        "1,000",
        "2,000",
        "3,000",
        "4,000",
    ]
    assert labels(AxisScale(low=0.05, high=2e4, start=0, stop=1, log=True), 9) == [
        "0.1",
        "1",
        "10",
        "100",
        "1,000",
        "10⁴",
    ]
    assert labels(AxisScale(low=1e-9, high=1e-2, start=0, stop=1, log=True), 4) == [
        "10⁻⁹",
        "10⁻⁷",
        "10⁻⁵",
        "10⁻³",
    ]
    assert labels(AxisScale(low=15.0, high=90.0, start=0, stop=1, log=True)) == ["20", "50"]


def test_numbers_are_as_people_write_them():
    values = [29961.7, 0.01234567, -1.5, 0.0, 1e6, 2.5e-7, -3e12, 99.999, 9.9999e-5, np.inf]
    assert [number(value) for value in values] == [
        *("29,962", "0.01235", "−1.5", "0", "1,000,000", "2.5×10⁻⁷", "−3×10¹²", "100"),
        *("1×10⁻⁴", "inf"),
    ]
    assert with_powers("Normal(0, 2.5e+07)") == "Normal(0, 2.5×10⁷)"
    assert with_powers("StudentT(3, -4e-05, 1)") == "StudentT(3, −4×10⁻⁵, 1)"
    assert with_powers("Normal(0, age-25_sigma)") == "Normal(0, age-25_sigma)"
    assert number(0.0144, 2) == "0.014" and number(1234.5, 2) == "1,234"


@given(low=st.floats(-1e5, 1e5), width=st.floats(1e-4, 1e5), room=st.floats(60, 400))
def test_labels_do_not_touch(low, width, room):
    scale = AxisScale(low=low, high=low + width, start=0.0, stop=room)
    ticks = scale.apart_ticks(5)
    assert 1 <= len(ticks) <= 6
    ends = [(float(scale(t.value)), 3.3 * len(t.label)) for t in ticks]
    assert all(b - w > a + v for (a, v), (b, w) in pairwise(ends))


@given(
    low=st.floats(-1e5, 1e5),
    width=st.floats(1e-4, 1e5),
    most=st.integers(2, 8),
)
@example(low=1.0, width=4001.0, most=2)
def test_ticks_lie_inside_and_are_few(low, width, most):
    scale = AxisScale(low=low, high=low + width, start=0.0, stop=1.0)
    ticks = scale.ticks(most)
    assert 1 <= len(ticks) <= most + 1
    slack = 1e-6 * width
    assert all(low - slack <= tick.value <= low + width + slack for tick in ticks)
    assert len({round(tick.value / width, 6) for tick in ticks}) == len(ticks)


@pytest.mark.parametrize("log", [False, True])
@pytest.mark.parametrize("values", [[1.0, 5.0, 3.0], [2.0, 2.0], [7.0]])
def test_spanning_shows_all_values_with_room(values, log):
    scale = spanning(values, start=0.0, stop=100.0, log=log)
    places = scale(values)
    assert np.all((places > 0.0) & (places < 100.0))
