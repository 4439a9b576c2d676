#!/usr/bin/python3
"""Our C++ is as clang-format of Debian 12 writes it. Exit code 77: there is none, or one of another version."""

import re
import shutil
import subprocess
import sys

import tree

VERSION = "14"  # others write some lines in another way
# Candidates and tasks are a policy's words, and digested.
NOT_OURS = ("tests/exploits/", "tests/bench/kernelbench_candidates/", "configs/")


def main():
    tool = shutil.which(f"clang-format-{VERSION}") or shutil.which("clang-format")
    said = subprocess.run([tool, "--version"], check=True, capture_output=True, text=True).stdout if tool else ""
    if not re.search(rf"version {VERSION}\.", said):
        print(f"clang-format {VERSION} is not here: {said.strip() or 'none'}; launch/packages.sh test installs it")
        return 77
    files = [x for x in tree.files() if x.endswith((".cpp", ".hpp")) and not x.startswith(NOT_OURS)]
    if len(files) < 1000:
        print(f"only {len(files)} files were found below {tree.SOURCE}")
        return 1
    code = 0
    for at in range(0, len(files), 200):
        part = files[at : at + 200]
        code |= subprocess.run([tool, "--dry-run", "-Werror", *part], cwd=tree.SOURCE, check=False).returncode
    if code:
        print(f"next: {tool} -i FILE")
    return code


if __name__ == "__main__":
    sys.exit(main())
