"""What a run has to say where nobody watches: one line a step through `logging`.

    logging.basicConfig(level=logging.INFO)      # or, for machines, in the command line's words:
    write_lines(sys.stderr, form="json")

Every record carries what it says as `record.fields` too, for handlers of one's own.
"""

from __future__ import annotations

import json
import logging
import math
import time
from typing import Any, TextIO

logger = logging.getLogger("corebayes")

FORMS = ("text", "json")


def say(event: str, text: str, **fields: Any) -> None:
    """Log one line; `fields` are the numbers in it."""
    if logger.isEnabledFor(logging.INFO):
        logger.info(text, extra={"fields": {"event": event, **fields}})


class JsonLines(logging.Formatter):
    """One JSON object a line: time (UTC), level, message, and the fields of the record."""

    def format(self, record: logging.LogRecord) -> str:
        stamp = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
        content: dict[str, Any] = {
            "time": f"{stamp}.{int(record.msecs):03d}Z",
            "level": record.levelname.lower(),
            "message": record.getMessage(),
            **getattr(record, "fields", {}),
        }
        # JSON has no infinity.
        endless = {n for n, v in content.items() if isinstance(v, float) and not math.isfinite(v)}
        return json.dumps({**content, **dict.fromkeys(endless)})


def write_lines(stream: TextIO, form: str) -> logging.Handler:
    """Write the lines of corebayes to a stream; the handler is returned, to be removed again."""
    if form not in FORMS:
        raise ValueError(f"logs are written as {' or '.join(FORMS)}, got {form!r}")
    handler = logging.StreamHandler(stream)
    plain = logging.Formatter("%(asctime)s %(message)s", datefmt="%H:%M:%S")
    handler.setFormatter(JsonLines() if form == "json" else plain)
    logger.addHandler(handler)
    if not logger.isEnabledFor(logging.INFO):
        logger.setLevel(logging.INFO)
    return handler
