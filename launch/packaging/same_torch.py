#!/usr/bin/env python3
"""Whether two commits judge alike what wants no language: exit 0 where gpu/torch differs only in words for people, and in functions
that count whose kernels ran, which nobody else is asked."""

import ast
import subprocess
import sys

FOLDER = ":(top)gpu/torch/"
CANDIDATE, REFEREE, COUNTED = (f"gpu/torch/kernelmill_torch/{name}.py" for name in ("candidate", "referee", "counted"))
COUNTING_FUNCTIONS = {CANDIDATE: {"profile"}, REFEREE: {"measure_share"}, COUNTED: {"start", "stop", "_count", "_raise_failed", "microseconds_of"}}
COUNTING_COMMAND = "profile"


class WithoutCounting(ast.NodeTransformer):
    def __init__(self, path):
        self.path = path

    def visit_FunctionDef(self, node):
        return None if node.name in COUNTING_FUNCTIONS.get(self.path, ()) else self.generic_visit(node)

    def visit_ImportFrom(self, node):
        node.names = [x for x in node.names if x.name != "counted"]
        return node if node.names else None

    def visit_If(self, node):
        self.generic_visit(node)
        is_command = self.path == CANDIDATE and ast.unparse(node.test) == f"op == '{COUNTING_COMMAND}'"
        return node.orelse if is_command else node


def without_words(tree):
    for node in ast.walk(tree):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)) and ast.get_docstring(node, clean=False) is not None:
            node.body = node.body[1:]
    return tree


def core_of(path, source):
    return ast.dump(WithoutCounting(path).visit(without_words(ast.parse(source))))


def is_alike(path, older, newer):
    return path.endswith(".py") and core_of(path, older) == core_of(path, newer)


def git(*words):
    return subprocess.run(["git", *words], capture_output=True, text=True, check=True).stdout


def main(older, newer):
    for line in git("diff", "--name-status", "--no-renames", older, newer, "--", FOLDER).splitlines():
        state, path = line.split("\t")
        if state != "M" and path != COUNTED:  # its module's own statements are looked at where it is changed, not where it came
            return False
        if state == "M" and not is_alike(path, *(git("show", f"{commit}:{path}") for commit in (older, newer))):
            return False
    return True


if __name__ == "__main__":
    sys.exit(0 if main(*sys.argv[1:3]) else 1)
