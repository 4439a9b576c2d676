#!/usr/bin/env python3
"""Whether two commits judge alike what wants no language: exit 0 where gpu/torch differs only in words for people and in what
counts whose kernels ran, which is asked of nobody else."""

import ast
import subprocess
import sys

FOLDER = "gpu/torch/"
COUNTING_FUNCTIONS, COUNTING_MODULE, COUNTING_COMMAND = {"profile", "measure_share"}, "counted", "profile"


class WithoutCounting(ast.NodeTransformer):
    def visit_FunctionDef(self, node):
        return None if node.name in COUNTING_FUNCTIONS else self.generic_visit(node)

    def visit_ImportFrom(self, node):
        node.names = [x for x in node.names if x.name != COUNTING_MODULE]
        return node if node.names else None

    def visit_If(self, node):
        self.generic_visit(node)
        test = node.test
        is_command = (isinstance(test, ast.Compare) and isinstance(test.left, ast.Name) and test.left.id == "op"
                      and isinstance(test.comparators[0], ast.Constant) and test.comparators[0].value == COUNTING_COMMAND)
        return node.orelse if is_command else node


def without_words(tree):
    for node in ast.walk(tree):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)) and ast.get_docstring(node, clean=False) is not None:
            node.body = node.body[1:]
    return tree


def core_of(source):
    return ast.dump(WithoutCounting().visit(without_words(ast.parse(source))))


def file_of(commit, path):
    done = subprocess.run(["git", "show", f"{commit}:{path}"], capture_output=True, text=True)
    return done.stdout if done.returncode == 0 else ""


def is_alike(path, older, newer):
    if path.endswith(f"/{COUNTING_MODULE}.py"):
        return True
    return path.endswith(".py") and core_of(older) == core_of(newer)


def main(older, newer):
    done = subprocess.run(["git", "diff", "--name-only", older, newer, "--", FOLDER], capture_output=True, text=True, check=True)
    return all(is_alike(path, file_of(older, path), file_of(newer, path)) for path in done.stdout.split())


if __name__ == "__main__":
    sys.exit(0 if main(*sys.argv[1:3]) else 1)
