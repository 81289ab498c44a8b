"""How far a coreset posterior is from the full one, with the draws that say so."""

from corebayes.certify.certificate import Certificate
from corebayes.certify.measure import certify

__all__ = ["Certificate", "certify"]
