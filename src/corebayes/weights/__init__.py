"""Weight updates: how the weights of a fixed active set move."""

from corebayes.weights.gradient_descent import SGD, Adam
from corebayes.weights.hot_dog import HotDoG
from corebayes.weights.line_search import LineSearch
from corebayes.weights.natural_gradient import NaturalGradient
from corebayes.weights.optimiser import WeightUpdate
from corebayes.weights.quadratic import Quadratic

__all__ = ["SGD", "Adam", "HotDoG", "LineSearch", "NaturalGradient", "Quadratic", "WeightUpdate"]
