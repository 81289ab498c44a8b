"""The posterior of all rows through a coreset: exact draws, evidence, cross-validation."""


