"""The sampler that a user insists on: by name, or one of their own."""

from __future__ import annotations

from corebayes.samplers.draws import Sampler, is_sampler
from corebayes.samplers.exact import Exact
from corebayes.samplers.independence import Independence
from corebayes.samplers.nuts import NUTS


def insisted(sampler: str | Sampler, chains: int = 4, tune: int = 500) -> Sampler:
    wanted = 'sampler must be "exact", "independence", "nuts" or one such as NUTS(), got '
    if not isinstance(sampler, str):
        if not is_sampler(sampler):
            raise TypeError(f"{wanted}{sampler!r}")
        return sampler
    named: dict[str, Sampler] = {
        "exact": Exact(),
        "independence": Independence(chains=chains),
        "nuts": NUTS(num_tune=tune, chains=chains),
    }
    if sampler not in named:
        raise ValueError(f"{wanted}{sampler!r}")
    return named[sampler]
