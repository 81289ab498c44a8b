"""The `corebayes` command, also as `python -m corebayes`."""

from __future__ import annotations

import sys

from corebayes.extras import install


def main() -> None:
    """Run the command line, or say what to install when its libraries are missing."""
    try:
        from corebayes.cli.app import run
    except ImportError as error:
        if error.name is None or error.name.startswith("corebayes"):
            raise
        print(
            f"corebayes: the command line needs {error.name}, which is not installed: "
            f"{install('cli')}",
            file=sys.stderr,
        )
        sys.exit(2)
    from corebayes.watch.interrupts import leave_at_once, listen

    listen()
    with leave_at_once():
        run(sys.argv[1:])


if __name__ == "__main__":
    main()
