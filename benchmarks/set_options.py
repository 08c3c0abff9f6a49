"""The options that benchmarks over several sets share: the folder, which sets, how many questions, where to keep."""

import argparse
from collections.abc import Collection, Sequence
from functools import partial
from pathlib import Path


def set_parser(name: str, told: str, known: Sequence[str], default: Sequence[str]) -> argparse.ArgumentParser:
    """`name` is the module's below `benchmarks`; of the `known` sets the `default` ones are asked unless others are
    named."""
    parser = argparse.ArgumentParser(prog=f"python -m benchmarks.{name}", description=told)
    parser.add_argument("--data", type=Path, metavar="DIR", help="the folder that holds the sets")
    sets_of = partial(chosen, known)
    parser.add_argument("--sets", type=sets_of, default=list(default), metavar="A,B", help=", ".join(known))
    parser.add_argument("--limit", type=int, metavar="N", help="ask the first N questions of each set only")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="keep the workspaces there and use them again")
    return parser


def chosen(known: Collection[str], text: str) -> list[str]:
    """Names that are known, "A,B"."""
    unknown = [name for name in text.split(",") if name not in known]
    if unknown:
        raise argparse.ArgumentTypeError(f"{unknown[0]!r} is none of {', '.join(known)}")
    return text.split(",")
