"""launch/promises.sh: chooses promises, runs them, prints the table."""

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile
import textwrap
import time

from promises.measure import Bench, NotHere
from promises.rows import PROMISES, TARGETS, Row

NOT_HELD, USAGE = 5, 2
MARKS = {"held": "held", "broken": "NOT HELD", "elsewhere": "not run here"}


def chosen_ids(text: str) -> list:
    known = [x.id for x in PROMISES]
    ids = [x.strip().upper() for x in text.split(",") if x.strip()] or known
    unknown = [x for x in ids if x not in known]
    if unknown:
        print(f"promises.sh: there is no {unknown[0]}; there are {known[0]} to {known[-1]}", file=sys.stderr)
        sys.exit(USAGE)
    return [x for x in known if x in ids]


def show(row: Row, bench: Bench) -> dict:
    """One promise as a row of the table."""
    begin = time.monotonic()
    result = {"id": row.id, "promise": row.words, "goal": row.goal, "gpu": row.gpu, "here": bench.has_gpu()}
    try:
        found = row.measure(bench)
        result |= {
            "state": "held" if found.held else "broken",
            "figure": found.figure,
            "commands": found.commands,
            "logs": found.logs,
        }
    except NotHere as why:
        result |= {"state": "elsewhere", "figure": f"not run here: {why}", "commands": [], "logs": []}
    result["seconds"] = round(time.monotonic() - begin, 1)
    return result


def print_row(row: dict, widths=(4, 30, 44, 30)) -> None:
    command = "; ".join(row["commands"])
    if row["gpu"] and "gpu_check.sh" not in command:
        where = "this machine has one: run it by hand" if row["here"] else "not run here: no GPU"
        command += ("; " if command else "") + f"on a GPU: gpu_check.sh {row['gpu']}; {where}"
    cells = [row["id"], row["promise"], row["figure"], row["goal"]]
    wrapped = [textwrap.wrap(x, w) or [""] for x, w in zip(cells, widths)]
    for i in range(max(map(len, wrapped))):
        line = "  ".join((x[i] if i < len(x) else "").ljust(w) for x, w in zip(wrapped, widths))
        print((line + (f"  {MARKS[row['state']]}, {row['seconds']} s" if i == 0 else "")).rstrip())
    print(textwrap.indent("\n".join(textwrap.wrap(command, 130, break_on_hyphens=False)), "      "))
    if row["state"] == "broken":
        print(f"      see {', '.join(row['logs'])}")
    sys.stdout.flush()


def build(targets) -> None:
    print(f"building {', '.join(targets)}", file=sys.stderr, flush=True)
    bench = Bench(pathlib.Path("."), "quick")
    if not (bench.build / "build.ninja").exists():
        subprocess.run(
            ["cmake", "--preset", "default", "-DKERNELMILL_TESTS=ON"], cwd=bench.root, check=True, stdout=sys.stderr
        )
    done = subprocess.run(["cmake", "--build", bench.build, "--target", *targets], stdout=sys.stderr, check=False)
    if done.returncode:
        sys.exit("promises.sh: failed to build the tests; launch/packages.sh test installs what they need")


def main() -> int:
    parser = argparse.ArgumentParser(prog="launch/promises.sh", description=__doc__)
    size = parser.add_mutually_exclusive_group()
    size.add_argument("--quick", action="store_const", dest="size", const="quick", help="minutes")
    size.add_argument(
        "--full", action="store_const", dest="size", const="full", help="the goals' own sizes: a day or more"
    )
    parser.add_argument("--only", default="", metavar="P3,P7", help="these alone")
    parser.add_argument("--out", metavar="DIR", help="folder for raw results; default: a new one below /tmp")
    parser.add_argument("--json", action="store_true", help="one JSON document on stdout")
    parser.add_argument("--no-build", action="store_true", help="takes the tests as they are built")
    given = parser.parse_args()
    ids = chosen_ids(given.only)
    out = pathlib.Path(given.out or tempfile.mkdtemp(prefix="kernelmill-promises-")).resolve()
    out.mkdir(parents=True, exist_ok=True)
    if not given.no_build:
        build(sorted({x for i in ids for x in TARGETS.get(i, [])} | {"kernelmill"}))
    bench = Bench(out, given.size or "usual")
    rows = []
    if not given.json:
        print(f"{'':4}  {'PROMISE':30}  {'FIGURE OF THIS RUN':44}  {'GOAL':30}")
    for row in (x for x in PROMISES if x.id in ids):
        rows.append(show(row, bench))
        if not given.json:
            print_row(rows[-1])
        (out / "promises.json").write_text(json.dumps({"size": bench.size, "promises": rows}, indent=2) + "\n")
    broken = [x["id"] for x in rows if x["state"] == "broken"]
    if given.json:
        print((out / "promises.json").read_text(), end="")
    held = sum(x["state"] == "held" for x in rows)
    print(
        f"{held} held, {len(broken)} not held{': ' + ', '.join(broken) if broken else ''}, "
        f"{len(rows) - held - len(broken)} not run here; raw results: {out}",
        file=sys.stderr,
    )
    return NOT_HELD if broken else 0


if __name__ == "__main__":
    sys.exit(main())
