#!/usr/bin/python3
"""Runs the commands of a page of the documentation, in order, as a reader would.

    run_blocks.py PAGE.md...

Blocks fenced as `sh` are run by one bash per page, in an empty directory, with the built programs on the PATH and
KERNELMILL_HOME at the source. A command that fails ends the page. A block fenced as `text` behind one is what it
prints: each line must occur in the output, in that order, once digits count as alike and runs of blanks as one. A
line `...` stands for any lines, and a line that ends in ` ...` for a line that begins so. Where the
output says that a kernel was not timed, which on a busy machine is right, a line that is missing is told and is no
fault. Blocks of other languages are not run.
"""

import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile

SOURCE = pathlib.Path(os.environ.get("KERNELMILL_SOURCE_DIR", pathlib.Path(__file__).parents[3]))
BIN = pathlib.Path(os.environ.get("KERNELMILL_BIN_DIR", SOURCE / "build/bin"))
SECONDS = 800  # for a page; less than ctest's own limit
UNTIMED = re.compile(r"\bnot[ _]timed\b")
MARK = "--block-ended--"
FENCE = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```$", re.M | re.S)


def blocks(text):
    """(line, commands, expected output or None) of each `sh` block."""
    result = []
    for found in FENCE.finditer(text):
        language, body = found.groups()
        line = text.count("\n", 0, found.start()) + 1
        if language == "sh":
            result.append([line, body, None])
        elif language == "text" and result and result[-1][2] is None:
            result[-1][2] = body
    return result


def alike(line):
    """A line as it is compared: digits, names made of them, and columns vary from run to run."""
    line = re.sub(r"\b[0-9a-f]*\d[0-9a-f]{7,}\b", "#", line)
    line = re.sub(r"\d+(?:\.\d+)?(?:e[-+]\d+)?", "#", line)
    line = re.sub(r"\b(?:us|ms|s)\b", "s", line)
    return re.sub(r"\s+", " ", line).strip()


def missing_line(expected, output):
    """The first line of `expected` that `output` lacks, or None."""
    left = [alike(line) for line in output.splitlines()]
    for line in expected.splitlines():
        if line.strip() in ("", "..."):
            continue
        begins = line.endswith(" ...")
        want = alike(line[:-4] if begins else line)
        while left and not (left[0].startswith(want) if begins else left[0] == want):
            left.pop(0)
        if not left:
            return line
        left.pop(0)
    return None


def end(process):
    """Ends all that the page started and left behind, background servers among it."""
    for how in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, how)
        except ProcessLookupError:
            return
        if how == signal.SIGTERM:
            try:
                process.wait(timeout=5)
            except subprocess.TimeoutExpired:
                pass


def run_page(page):
    """What is wrong with the page, as lines; none when all is well."""
    todo = blocks(page.read_text())
    if not todo:
        return [f"{page}: no block of commands"]
    script = "set -euo pipefail\n" + "".join(f"{commands}\necho; echo {MARK}\n" for _, commands, _ in todo)
    with tempfile.TemporaryDirectory(prefix="kernelmill-docs-") as folder:
        home = pathlib.Path(folder, "home")
        work = pathlib.Path(folder, "work")
        home.mkdir()
        work.mkdir()
        environment = {
            name: value for name, value in os.environ.items() if not name.startswith(("KERNELMILL_", "XDG_"))
        }
        environment |= {
            "HOME": str(home),
            "PATH": f"{BIN}:{os.environ['PATH']}",
            "NO_COLOR": "1",
            "KERNELMILL_HOME": str(SOURCE),
            "KERNELMILL_BIN_DIR": str(BIN),
            "KERNELMILL_PYTHON": os.environ.get("KERNELMILL_PYTHON", "/usr/bin/python3"),  # Debian's has torch
        }
        printed = pathlib.Path(folder, "printed")
        with printed.open("wb") as sink:
            # A file, not a pipe: a server that is left behind would keep a pipe open.
            process = subprocess.Popen(
                ["bash", "-c", script],
                cwd=work,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=sink,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            try:
                code = process.wait(timeout=SECONDS)
            except subprocess.TimeoutExpired:
                code = None
            finally:
                end(process)
        outputs = printed.read_text(errors="replace").split("\n" + MARK + "\n")
    wrong = []
    for index, (line, commands, expected) in enumerate(todo):
        output = outputs[index] if index < len(outputs) else ""
        if index + 1 >= len(outputs):
            how = f"still runs after {SECONDS} s" if code is None else f"ended with {code}"
            return wrong + [f"{page}:{line}: {how}:\n{commands}\nit printed:\n{output[-4000:]}"]
        lacks = missing_line(expected, output) if expected else None
        if lacks is not None and UNTIMED.search(output):
            print(f"{page}:{line}: not compared, since a kernel was not timed; missing is\n  {lacks}", flush=True)
        elif lacks is not None:
            wrong.append(f"{page}:{line}: the page says that it prints\n  {lacks}\nit printed:\n{output[-4000:]}")
    return wrong


def main():
    pages = [pathlib.Path(name) for name in sys.argv[1:]]
    if not pages:
        sys.exit(__doc__)
    wrong = [text for page in pages for text in run_page(page)]
    print("\n".join(wrong) or f"{len(pages)} pages: every command ran")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
