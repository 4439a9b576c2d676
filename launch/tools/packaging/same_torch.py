#!/usr/bin/env python3
"""Whether two commits judge alike what wants no language: exit 0 where gpu/torch differs only in words for people, and
in functions that count whose kernels ran: only tasks that want a language ask them."""

import ast
import subprocess
import sys

FOLDER = ":(top)gpu/torch/"
CANDIDATE, REFEREE, COUNTED, KERNELS, SHARE = (
    f"gpu/torch/kernelmill_torch/{name}.py" for name in ("candidate", "referee", "counted", "kernels", "kernel_share")
)
COUNTING_MODULES = {"counted", "kernel_share"}
# Functions, constants and imports, also of older commits, that only one another read, and `check_language`,
# which asks only where a language is wanted.
COUNTING = {
    CANDIDATE: {"profile"},
    REFEREE: {"measure_share", "LEAST_SHARE", "LEAST_SHARE_ELSEWHERE"},
    COUNTED: {"start", "stop", "_count", "_raise_failed", "microseconds_of"},
    KERNELS: {
        "ast",
        "functools",
        "warnings",
        "AbstractSet",
        "Iterator",
        "ANONYMOUS",
        "ARGUMENTS",
        "ATTRIBUTES",
        "CLOSES",
        "COMPILERS",
        "COMPILES",
        "CUDA_KERNEL",
        "IDENTIFIER",
        "INDUCTORS",
        "LANGUAGES",
        "MADE",
        "MADE_FOR",
        "NO_CODE",
        "THEIRS",
        "TRITON_KERNEL",
        "TRITON_SUFFIX",
        "own_kernels",
        "in_others",
        "languages",
        "triton_kernels",
        "compiles",
        "strings",
        "own_share",
        "is_own",
        "path_of",
    },
    SHARE: {"LEAST_SHARE", "LEAST_SHARE_ELSEWHERE", "TRIES", "FAILURES", "measure", "prepare", "make_calls", "listed"},
}
COUNTING_COMMAND = "profile"


class WithoutCounting(ast.NodeTransformer):
    def __init__(self, path):
        self.counting = COUNTING.get(path, set())
        self.has_command = path == CANDIDATE

    def visit_FunctionDef(self, node):
        return None if node.name in self.counting else self.generic_visit(node)

    def visit_Assign(self, node):
        return None if all(isinstance(x, ast.Name) and x.id in self.counting for x in node.targets) else node

    def visit_Import(self, node):
        node.names = [x for x in node.names if x.name not in self.counting]
        return node if node.names else None

    def visit_ImportFrom(self, node):
        node.names = [x for x in node.names if x.name not in COUNTING_MODULES | self.counting]
        return node if node.names else None

    def visit_If(self, node):
        self.generic_visit(node)
        is_command = self.has_command and ast.unparse(node.test) == f"op == '{COUNTING_COMMAND}'"
        return node.orelse if is_command else node


def without_words(tree):
    for node in ast.walk(tree):
        if (
            isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef))
            and ast.get_docstring(node, clean=False) is not None
        ):
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
        if state != "M" and path not in (
            COUNTED,
            SHARE,
        ):  # a module's own statements are looked at where it is changed, not where it came
            return False
        if state == "M" and not is_alike(path, *(git("show", f"{commit}:{path}") for commit in (older, newer))):
            return False
    return True


if __name__ == "__main__":
    sys.exit(0 if main(*sys.argv[1:3]) else 1)
