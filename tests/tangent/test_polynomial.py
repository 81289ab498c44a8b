"""A polynomial is the same function from wherever it is seen."""

from math import comb, factorial

import numpy as np
import pytest
from numpy.polynomial.hermite_e import hermeval

from corebayes.coreset.missed import Missed, check_missed, num_numbers, read_missed
from corebayes.tangent.polynomial import element_at, polynomial_of, values_at
from corebayes.types import Gaussian

HERE = Gaussian(np.array([0.3, -0.2]), np.array([[0.5, 0.0], [0.2, 0.7]]))
THERE = Gaussian(np.array([-0.4, 0.5]), np.array([[0.9, 0.0], [-0.3, 0.4]]))


def _polynomial(order):
    numbers = np.random.default_rng(order).normal(size=num_numbers(2, order))
    return Missed(HERE, order, numbers)


def _value(polynomial, theta):
    """Σ_k ⟨c_k, He_k(z)⟩ / k! in two dimensions; an entry with b ones is there comb(k, b) times."""
    z = np.linalg.solve(polynomial.at.factor, (theta - polynomial.at.mean).T)
    total, place = 0.0, 0
    for degree in range(1, polynomial.order + 1):
        for ones in range(degree + 1):
            powers = (
                hermeval(z[0], np.eye(degree + 1)[degree - ones]),
                hermeval(z[1], np.eye(degree + 1)[ones]),
            )
            entry = comb(degree, ones) / factorial(degree) * polynomial.numbers[place]
            total, place = total + entry * powers[0] * powers[1], place + 1
    return total


@pytest.mark.parametrize("order", [1, 2, 3, 5])
def test_its_values_are_those_of_hermite_polynomials_up_to_a_constant(order):
    polynomial, places = _polynomial(order), np.random.default_rng(9).normal(size=(7, 2))
    values, truth = values_at(polynomial, places), _value(polynomial, places)
    np.testing.assert_allclose(values - values[0], truth - truth[0], rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("order", [1, 3, 4, 6])
def test_it_is_the_same_function_from_elsewhere(order):
    polynomial = _polynomial(order)
    moved = polynomial_of(THERE, order, element_at(polynomial, THERE, order))
    theta = np.random.default_rng(1).normal(size=(7, 2))
    difference = _value(polynomial, theta) - _value(moved, theta)
    # The constant is not kept.
    assert np.ptp(difference) < 1e-9 * np.ptp(_value(polynomial, theta))
    back = element_at(moved, HERE, order)
    assert np.allclose(back, element_at(polynomial, HERE, order), rtol=1e-9, atol=1e-9)


def test_degrees_that_are_not_there_are_zero_and_others_are_left_out():
    polynomial = _polynomial(2)
    whole = element_at(polynomial, THERE, 3)
    assert whole.size == 2 + 4 + 8 and not whole[6:].any() and whole[:6].all()
    assert np.array_equal(element_at(_polynomial(3), THERE, 2).shape, (6,))


def test_a_file_has_every_number_and_strangers_are_checked():
    polynomial = _polynomial(3)
    back = read_missed({name: np.array(v).tolist() for name, v in polynomial.stored().items()})
    check_missed(back, 2)
    assert np.array_equal(back.numbers, polynomial.numbers) and back.order == 3
    for changed, message in (
        (polynomial._replace(order=4), "no polynomial of 2 parameters"),
        (polynomial._replace(numbers=np.full(9, np.nan)), "not finite"),
        (polynomial._replace(at=Gaussian(HERE.mean, -HERE.factor)), "no Gaussian"),
    ):
        with pytest.raises(ValueError, match=message):
            check_missed(changed, 2)
    with pytest.raises(TypeError, match="must be a polynomial"):
        check_missed([1.0], 2)
