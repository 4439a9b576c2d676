#!/usr/bin/python3
"""Fragments of the changelog: changelog/README.md has the rule.

    changelog.py check                    names each error of the fragments; exit code 1 if there is one
    changelog.py join VERSION DATE        writes the fragments as a section of CHANGELOG.md and removes them

`--root FOLDER` takes another tree than this one."""

import argparse
import datetime
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[3]
KINDS = ("added", "changed", "fixed", "removed")
MAX_LINES = 3
MAX_LENGTH = 120
FIRST = re.compile(rf"({'|'.join(KINDS)}): \S")
NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*\.md")
SECTION = re.compile(r"^## \[(.+?)\]", re.M)


class Wrong(Exception):
    """What is wrong, a line for each error."""


def fragments_of(root):
    folder = root / "changelog/unreleased"
    return sorted(x for x in folder.iterdir() if x.name != "README.md")


def errors_of(path, where):
    """The errors of a fragment, each `FILE:LINE: error`."""
    if not NAME.fullmatch(path.name):
        return [f"{where}:1: the name must be words of a-z and 0-9, joined by -, and end with .md"]
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except UnicodeDecodeError:
        return [f"{where}:1: the file is not UTF-8"]
    found = []
    if not lines or not FIRST.match(lines[0]):
        found.append(f"{where}:1: the first line must be `{'|'.join(KINDS)}: what the user sees`")
    for number, line in enumerate(lines, 1):
        if len(line) > MAX_LENGTH:
            found.append(f"{where}:{number}: {len(line)} characters; at most {MAX_LENGTH} are allowed")
        if not line.strip() and number > 1:
            found.append(f"{where}:{number}: the line is empty")
        if number > 1 and FIRST.match(line):
            found.append(f"{where}:{number}: a second entry; give it a fragment of its own")
    if len(lines) > MAX_LINES:
        found.append(f"{where}:{MAX_LINES + 1}: {len(lines)} lines; at most {MAX_LINES} are allowed")
    return found


def check(root):
    """The fragments; raises Wrong if one breaks the rule."""
    paths = fragments_of(root)
    found = [error for path in paths for error in errors_of(path, path.relative_to(root))]
    if found:
        raise Wrong("\n".join(found))
    return paths


def entry_of(lines):
    """(kind, entry): words of a fragment as an item of a list."""
    kind, _, words = lines[0].partition(": ")
    words = words[0].upper() + words[1:] if words[0].isalpha() else words
    return kind, "\n".join([f"- {words.rstrip()}", *(f"  {x.strip()}" for x in lines[1:])])


def section_of(paths, version, date):
    entries = [entry_of(path.read_text(encoding="utf-8").splitlines()) for path in paths]
    parts = [f"## [{version}] {date}"]
    for kind in KINDS:
        if mine := [entry for of, entry in entries if of == kind]:
            parts.append(f"### {kind.capitalize()}\n\n" + "\n".join(mine))
    return "\n\n".join(parts) + "\n"


def join(root, version, date):
    """Writes the section in front of the newest one; returns how many fragments it took."""
    if not re.fullmatch(r"\d+\.\d+\.\d+", version):
        raise Wrong(f"VERSION must be MAJOR.MINOR.PATCH, not {version!r}")
    try:
        if datetime.date.fromisoformat(date).isoformat() != date:
            raise ValueError
    except ValueError:
        raise Wrong(f"DATE must be YYYY-MM-DD, not {date!r}") from None
    paths = check(root)
    if not paths:
        raise Wrong("changelog/unreleased has no fragments")
    page = root / "CHANGELOG.md"
    text = page.read_text(encoding="utf-8")
    for found in SECTION.finditer(text):
        if found[1] == version:
            line = text.count("\n", 0, found.start()) + 1
            raise Wrong(f"CHANGELOG.md:{line}: there is a section {version} already")
    newest = SECTION.search(text)
    at = newest.start() if newest else len(text)
    before = text[:at].rstrip("\n") + "\n\n" if text[:at].strip() else ""
    rest = "\n" + text[at:] if newest else ""
    page.write_text(before + section_of(paths, version, date) + rest, encoding="utf-8")
    for path in paths:
        path.unlink()
    return len(paths)


def main(words=None):
    parser = argparse.ArgumentParser(description="Checks and joins the fragments of changelog/unreleased.")
    parser.add_argument("--root", type=pathlib.Path, default=ROOT, help="the tree (this one)")
    verbs = parser.add_subparsers(dest="verb", required=True)
    verbs.add_parser("check", help="name each error of the fragments")
    joining = verbs.add_parser("join", help="write the fragments as a section of CHANGELOG.md, and remove them")
    joining.add_argument("version", metavar="VERSION", help="such as 0.3.0")
    joining.add_argument("date", metavar="DATE", help="such as 2027-01-31")
    options = parser.parse_args(words)
    try:
        if options.verb == "check":
            print(f"{len(check(options.root))} fragments keep the rule")
        else:
            taken = join(options.root, options.version, options.date)
            print(f"CHANGELOG.md has the section {options.version} with {taken} fragments")
    except Wrong as error:
        print(error, file=sys.stderr)
        return 1
    except OSError as error:
        print(f"{error.filename}: {error.strerror}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
