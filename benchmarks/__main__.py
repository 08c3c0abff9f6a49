"""`python -m benchmarks NAME …` is `python -m benchmarks.NAME …`."""

import importlib
import importlib.util
import sys


def main(arguments: list[str]) -> int:
    """Run a benchmark by its name; 2 where there is none of that name."""
    name = arguments[0] if arguments else ""
    if not name.isidentifier() or importlib.util.find_spec(f"benchmarks.{name}") is None:
        print(
            f"There is no benchmark {name!r}. Name a module of benchmarks/, as in: natural --data DIR", file=sys.stderr
        )
        return 2
    return int(importlib.import_module(f"benchmarks.{name}").main(arguments[1:]))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
