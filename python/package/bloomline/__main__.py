"""The command `bloomline`, which is `python -m bloomline` too."""

import signal
import sys

from bloomline._bloomline import _run_command_line


def main() -> int:
    # The command handles Ctrl-C itself. Python's handler would raise KeyboardInterrupt after the command has ended.
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    return _run_command_line(["bloomline", *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
