"""Predictions for new rows, from draws of the posterior."""

from corebayes.predict.predict import predict
from corebayes.predict.prediction import Prediction

__all__ = ["Prediction", "predict"]
