"""How far a coreset posterior is from the full one, with the draws that say so."""

from corebayes.certify.certificate import Certificate
from corebayes.certify.measure import certify
from corebayes.certify.steps import with_certificate

__all__ = ["Certificate", "certify", "with_certificate"]
