"""`python -m flows` is the command `trellis`."""

import sys

from flows.cli.command import main

__all__ = ["main"]

if __name__ == "__main__":
    sys.exit(main())
