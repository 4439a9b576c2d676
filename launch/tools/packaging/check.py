#!/usr/bin/python3
"""Looks at every program and library of a package: is it hardened?

    check.py FOLDER|TARBALL [--json]

Ours must be position-independent, with full RELRO, a stack that cannot be executed, stack protectors
and fortified calls of the C library. Libraries that came with the build's Linux are what its
distribution made of them: those must have RELRO and such a stack. Each program looks for
libraries only in folders below its own ($ORIGIN) or in the system's. Prints a line for each, and ends
with 1 when one breaks a rule."""

import argparse
import json
import pathlib
import re
import subprocess
import sys
import tarfile
import tempfile

OURS = re.compile(r"^(libkernelmill.*|kernelmill.*)$")


def readelf(option, path):
    """What readelf says, in English."""
    return subprocess.run(
        ["readelf", "-W", option, path],
        capture_output=True,
        text=True,
        check=True,
        env={"LC_ALL": "C", "PATH": "/usr/bin:/bin"},
    ).stdout


def is_elf(path):
    """Whether a file is a program or a library."""
    with open(path, "rb") as file:
        return file.read(4) == b"\x7fELF"


def facts_of(path):
    """What one binary says of itself."""
    header, segments, dynamic = readelf("-h", path), readelf("-l", path), readelf("-d", path)
    symbols = readelf("--dyn-syms", path)
    names = set(re.findall(r"\s(\w+)(?:@@?[\w.]+)?(?: \(\d+\))?$", symbols, re.MULTILINE))
    stack = re.search(r"GNU_STACK(?:\s+0x[0-9a-f]+){5}\s+([RWE ]+?)\s+0x", segments)
    paths = re.findall(r"\((?:RPATH|RUNPATH)\)\s+Library r(?:un)?path: \[(.*?)\]", dynamic)
    return {
        "static": "INTERP" not in segments and "NEEDED" not in dynamic,
        "library": "(SONAME)" in dynamic or "INTERP" not in segments,
        "pie": "Type:" in header and "DYN" in header.split("Type:")[1].split("\n")[0],
        "relro": "GNU_RELRO" in segments,
        "bind_now": bool(re.search(r"BIND_NOW|FLAGS_1.*NOW|FLAGS\).*BIND_NOW", dynamic)),
        "nx": stack is not None and "E" not in stack.group(1),
        "writable_code": bool(re.search(r"LOAD.*RWE", segments)),
        "stack_protector": "__stack_chk_fail" in names,
        "fortified": sorted(x for x in names if re.fullmatch(r"__\w+_chk", x) and x != "__stack_chk_fail"),
        "fortifiable": sorted(x for x in names if x in FORTIFIABLE),
        "paths": [x for one in paths for x in one.split(":")],
    }


# Calls that _FORTIFY_SOURCE replaces where the compiler knows a buffer's size. Copies of memory are not
# among them: std::string makes them in every program, and knows no size while it is compiled.
FORTIFIABLE = {
    "strcpy",
    "strncpy",
    "strcat",
    "sprintf",
    "snprintf",
    "vsnprintf",
    "fprintf",
    "printf",
    "read",
    "recv",
    "pread",
    "pread64",
    "readlink",
    "poll",
}


def path_is_fine(path, within):
    """Whether a folder of libraries lies in the package, or is the system's."""
    if path in ("/lib", "/usr/lib", "/lib64", "/usr/lib64"):
        return True
    if path != "$ORIGIN" and not path.startswith("$ORIGIN/"):
        return False
    parts = [x for x in path.split("/")[1:] if x not in ("", ".")]
    depth = len(within)
    for part in parts:
        depth += -1 if part == ".." else 1
        if depth < 0:
            return False
    return True


def broken_rules(facts, ours, within):
    """The rules that a binary breaks, in words."""
    rules = [
        (facts["pie"], "it is not position-independent"),
        (facts["relro"], "it has no RELRO"),
        (facts["nx"], "its stack can be executed"),
        (not facts["writable_code"], "it has code that can be written"),
        (all(path_is_fine(x, within) for x in facts["paths"]), "it looks for libraries in " + ":".join(facts["paths"])),
    ]
    if ours:
        # A static program binds nothing later, and its symbols are gone with the stripping.
        rules.append((facts["bind_now"] or facts["static"] and not facts["library"], "its RELRO is partial"))
        if not facts["static"]:
            rules.append((facts["stack_protector"], "it has no stack protector"))
            rules.append((facts["fortified"] or not facts["fortifiable"], "it has no fortified call"))
    return [words for kept, words in rules if not kept]


def examine(root):
    """A row for each binary below a folder."""
    rows = []
    for path in sorted(root.rglob("*")):
        if path.is_symlink() or not path.is_file() or not is_elf(path):
            continue
        within = path.relative_to(root).parts[:-1]
        facts = facts_of(path)
        ours = bool(OURS.match(path.name))
        rows.append(
            {"file": str(path.relative_to(root)), "ours": ours, **facts, "broken": broken_rules(facts, ours, within)}
        )
    return rows


def shown(row):
    """A line for people."""
    words = [
        "PIE" if row["pie"] else "no PIE",
        "RELRO" if row["bind_now"] else "partial RELRO" if row["relro"] else "no RELRO",
        "NX" if row["nx"] else "no NX",
        "protector" if row["stack_protector"] else "-",
        f"{len(row['fortified'])} fortified",
        ":".join(row["paths"]) or "no path",
    ]
    return f"{row['file']}: {', '.join(words)}" + "".join(f"\n  BROKEN: {x}" for x in row["broken"])


def main():
    """Examines, prints, judges."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("package")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as unpacked:
        root = pathlib.Path(given.package)
        if root.is_file():
            with tarfile.open(root) as tar:
                tar.extractall(unpacked)
            root = pathlib.Path(unpacked)
        rows = examine(root)
    print(json.dumps(rows, indent=1) if given.json else "\n".join(map(shown, rows)))
    if not rows:
        print(f"check.py: there is no binary in {given.package}", file=sys.stderr)
    bad = sum(bool(x["broken"]) for x in rows)
    print(f"{len(rows)} binaries, {sum(x['ours'] for x in rows)} of them ours: {bad} break a rule", file=sys.stderr)
    return 1 if bad or not rows else 0


if __name__ == "__main__":
    sys.exit(main())
