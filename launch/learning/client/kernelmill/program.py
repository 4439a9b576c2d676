"""Where the program is: the wheel for Linux on x86-64 carries it; the pure one looks for it."""

import os
import pathlib
import sys
from typing import Iterator, NoReturn, Optional

from .transport import KernelmillError

INSTALLATION = pathlib.Path(__file__).parent / "installation"


def is_program(path: str) -> bool:
    """Whether it can be run, and is no script: this package's own command has the same name."""
    try:
        with open(path, "rb") as file:
            return file.read(4) == b"\x7fELF" and os.access(path, os.X_OK)
    except OSError:
        return False


def candidates() -> Iterator[str]:
    """The wheel's own, then those on PATH."""
    yield str(INSTALLATION / "bin" / "kernelmill")
    for folder in os.environ.get("PATH", "").split(os.pathsep):
        yield os.path.join(folder or ".", "kernelmill")


def find_program(given: Optional[str] = None) -> str:
    """The path of kernelmill. What is named, here or by $KERNELMILL, is taken as it is."""
    named = given or os.environ.get("KERNELMILL")
    if named:
        return named
    for path in candidates():
        if is_program(path):
            return path
    raise KernelmillError(
        0,
        "program_missing",
        "failed to find the program kernelmill",
        "install the wheel for Linux on x86-64, put kernelmill on PATH, or set KERNELMILL to its path",
    )


def main() -> NoReturn:
    """The command `kernelmill`, and `python -m kernelmill`: becomes the program."""
    try:
        path = find_program()
        os.execv(path, [path, *sys.argv[1:]])
    except (KernelmillError, OSError) as error:
        print(f"kernelmill: {error}", file=sys.stderr)
        sys.exit(1)
