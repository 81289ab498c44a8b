"""The tangent space of mixed models, at the Gaussian of `corebayes.arrow`."""
