"""Libraries that are imported when a test first uses them.

PyMC and Bambi take several seconds, and a worker that runs none of their tests need not wait.
"""

import importlib
from typing import Any


class Later:
    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        return getattr(importlib.import_module(self._name), name)


arviz, arviz_base, bambi, pymc = map(Later, ("arviz", "arviz_base", "bambi", "pymc"))
