"""Weight updates: how the weights of a fixed active set move."""

from corebayes.weights.gradient_descent import SGD, Adam
from corebayes.weights.natural_gradient import NaturalGradient
from corebayes.weights.update import WeightUpdate

__all__ = ["SGD", "Adam", "NaturalGradient", "WeightUpdate"]
