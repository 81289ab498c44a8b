"""The output of docs/weights.R, which docs/weights.md shows: a coreset in rstanarm, brms and lme4.

    python docs/in_r.py

runs the script on the coreset of the page where R and these packages are there, and writes
docs/weights.R.txt; elsewhere the recorded output stays. `make docs` runs it.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

DOCS = Path(__file__).parent
NEEDED = (
    "quit(status = !all(sapply(c('rstanarm', 'brms', 'lme4'), requireNamespace, quietly = TRUE)))"
)


def coreset_of_the_page() -> Any:
    """The weighted rows that the first cell of the page makes."""
    page = (DOCS / "weights.md").read_text(encoding="utf-8")
    found = re.search(r"```\{code-cell\} python\n(.*?)```", page, re.DOTALL)
    assert found is not None
    names: dict[str, Any] = {}
    exec(found[1], names)
    return names["kept"]


def main() -> None:
    program = shutil.which("Rscript")
    if program is None or subprocess.run([program, "-e", NEEDED], capture_output=True).returncode:
        print("no R with rstanarm, brms and lme4 here: docs/weights.R.txt stays as it was recorded")
        return
    with tempfile.TemporaryDirectory() as folder:
        coreset_of_the_page().to_csv(Path(folder) / "coreset.csv", index=False)
        ran = subprocess.run(
            [program, str(DOCS / "weights.R")],
            cwd=folder,
            capture_output=True,
            text=True,
            check=False,
        )
    if ran.returncode:
        # An R that cannot compile Stan's programs, say; the page has what was recorded.
        print(f"docs/weights.R failed, its recorded output stays:\n{ran.stderr}")
        return
    (DOCS / "weights.R.txt").write_text(ran.stdout, encoding="utf-8")
    print(ran.stdout)


if __name__ == "__main__":
    main()
