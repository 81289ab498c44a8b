"""What would bring a coreset nearer to its data, in words that end a sentence."""

from __future__ import annotations

from corebayes.coreset.coreset import Coreset

# Where the provenance says that the model is another than the rows were chosen for.
REFITTED = "refitted"


def nearer(coreset: Coreset, *, sized: bool = False) -> str:
    """To build with more rows, `sized` with how many; where there are no more, to do without.

    Rows that match every quadratic in θ, or twice as many as there are.
    """
    if coreset.size >= coreset.num_counted:
        number = coreset.num_counted
        return f"give each row the weight of its count, since the coreset has all {number:,}"
    if coreset.provenance.get(REFITTED):
        return "build for this model too, with models=[...], or for this one alone"
    if not sized:
        return "build with a larger size"
    dim = coreset.model.dim
    wanted = max(2 * coreset.size, dim * (dim + 3) // 2 + 1)
    if wanted >= coreset.num_counted:
        return f"build with more rows, up to all {coreset.num_counted:,}"
    return f"build with size={wanted:,} or more"


def sentence(words: str) -> str:
    """With a capital letter."""
    return words[:1].upper() + words[1:]
