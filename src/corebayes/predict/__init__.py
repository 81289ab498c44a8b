"""Predictions for new rows, and checks of all rows, from draws of the posterior."""

from corebayes.predict.check import Check, check
from corebayes.predict.predict import predict
from corebayes.predict.prediction import Prediction

__all__ = ["Check", "Prediction", "check", "predict"]
