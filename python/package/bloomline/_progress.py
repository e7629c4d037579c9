"""The progress of a long call, as a line on a terminal or in a notebook."""

import os
import sys
import time
from collections.abc import Sequence
from types import TracebackType
from typing import Self

# Seconds after which a call is a long one, and seconds between two drawings.
_LONG = 1.0
_PERIOD = 0.1


class Progress:
    """A line on standard error that is drawn over itself, and removed at the end.

    Args:
        wanted: True shows it at once, to any standard error. None shows it on a terminal or in a notebook, once the call takes long.
    """

    def __init__(self, wanted: bool | None) -> None:
        self.wanted = _is_seen() if wanted is None else wanted and sys.stderr is not None
        self._next = time.monotonic() + (_LONG if wanted is None else 0)
        self._drawn = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._drawn:
            self._draw("", "\r")

    def show(self, parts: Sequence[str], share: float | None = None) -> None:
        """Draws as many of these parts as fit, the most important one first, and a bar of this share."""
        now = time.monotonic()
        if not self.wanted or now < self._next:
            return
        self._next = now + _PERIOD
        room = _columns()
        text = "" if share is None else "#" * int(10 * share) + "-" * (10 - int(10 * share))
        for part in parts:
            longer = f"{text}  {part}" if text else part
            if len(longer) > room:
                break
            text = longer
        self._draw(text)

    def _draw(self, text: str, end: str = "") -> None:
        try:
            sys.stderr.write("\r" + text.ljust(self._drawn) + end)
            sys.stderr.flush()
        except (OSError, ValueError):
            # A closed terminal must not end the call.
            self.wanted, self._drawn = False, 0
            return
        self._drawn = len(text)


def _is_seen() -> bool:
    """True if standard error is a terminal that supports a carriage return, or the page of a notebook."""
    # Code in a notebook runs after IPython was imported.
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    is_terminal = sys.stderr is not None and sys.stderr.isatty() and os.environ.get("TERM") != "dumb"
    return is_terminal or hasattr(shell, "kernel")


def _columns() -> int:
    """Returns the number of columns for a line, without the room for ^C at its end."""
    try:
        columns = os.get_terminal_size(sys.stderr.fileno()).columns
    except (OSError, ValueError):
        columns = 0
    # Some terminals do not report their size.
    return (columns or 80) - 3
