"""Models whose rows touch few parameters: a Gaussian with an arrow's precision.

The precision of a mixed model's posterior is block-diagonal over the groups of its largest term,
but for the few rows and columns of everything else: an arrow. `layout` says which parameters are
which, `sums` adds up what rows give, `gaussian` is the fit and its whitening, `fit` finds it. The
tangent space there is in `corebayes.tangent.arrow`.
"""
