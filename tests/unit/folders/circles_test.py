#!/usr/bin/python3
"""No module imports itself by way of others: neither a Python module nor a module of the page.

Imports inside functions and below TYPE_CHECKING count. A package's __init__ counts as a module; that a module's own
packages are imported before it does not. Break a circle by moving what both modules need below both.
"""

import ast
import os
import pathlib
import re
import unittest

SOURCE = pathlib.Path(os.environ.get("KERNELMILL_SOURCE_DIR", pathlib.Path(__file__).resolve().parents[3]))
FLOORS = ("messages", "storage", "retrieval", "gpu", "actors", "launch", "tests")
PAGE = "launch/server/page/assets"
IMPORT = re.compile(r"""(?:^|[\s;])(?:import|export)\s*(?:\(\s*|[^'"();]*?\sfrom\s*)?['"](\./[^'"]+)['"]""")


def python_modules(files):
    """{module: path, text}. `files` is {path: text}. A module's name begins at its topmost package, or is the file's.
    A script may import modules of its own folder, so names are told apart by the folder that they begin in."""
    result = {}
    for path in files:
        parts = list(pathlib.PurePosixPath(path).with_suffix("").parts)
        top = len(parts) - 1
        while top > 0 and "/".join([*parts[:top], "__init__.py"]) in files:
            top -= 1
        name = parts[top:]
        if name[-1] == "__init__":
            name = name[:-1]
        result["/".join(parts[:top]), ".".join(name)] = path
    return result


def python_imports(files):
    """{path: paths that it imports}, of the files themselves."""
    modules = python_modules(files)
    result = {}
    for (folder, name), path in modules.items():
        found = set()

        def take(wanted):
            """The longest part of a dotted name that is a file, in the importer's folder first."""
            parts = wanted.split(".")
            for end in range(len(parts), 0, -1):
                target = modules.get((folder, ".".join(parts[:end])))
                if target is None:
                    others = [x for (at, each), x in modules.items() if each == ".".join(parts[:end]) and "." in wanted]
                    target = others[0] if len(others) == 1 else None
                if target is not None:
                    found.add(target)
                    return

        package = name if path.endswith("/__init__.py") else name.rpartition(".")[0]
        for node in ast.walk(ast.parse(files[path])):
            if isinstance(node, ast.Import):
                for each in node.names:
                    take(each.name)
            elif isinstance(node, ast.ImportFrom):
                base = node.module or ""
                if node.level:
                    above = package.split(".")[: len(package.split(".")) - node.level + 1]
                    base = ".".join([*above, *([node.module] if node.module else [])])
                for each in node.names:
                    take(f"{base}.{each.name}" if base else each.name)
        result[path] = found - {path}
    return result


def page_imports(files):
    result = {}
    for path, text in files.items():
        folder = pathlib.PurePosixPath(path).parent
        result[path] = {str(folder / x) for x in IMPORT.findall(text)} & set(files)
    return result


def circles(imports):
    """Groups of modules each of which reaches the others, sorted (Tarjan)."""
    order, low, stack, result = {}, {}, [], []

    def visit(x):
        order[x] = low[x] = len(order)
        stack.append(x)
        for y in sorted(imports[x]):
            if y not in order:
                visit(y)
                low[x] = min(low[x], low[y])
            elif y in stack:
                low[x] = min(low[x], order[y])
        if low[x] == order[x]:
            group = stack[stack.index(x) :]
            del stack[stack.index(x) :]
            if len(group) > 1:
                result.append(sorted(group))

    for x in sorted(imports):
        if x not in order:
            visit(x)
    return sorted(result)


def read(folder, pattern):
    """The tree's own modules: candidates of corpora are no code of ours."""
    result = {}
    for path in sorted((SOURCE / folder).rglob(pattern)):
        name = path.relative_to(SOURCE)
        if not any("corpus" in x or "candidates" in x for x in name.parts[:-1]):
            result[name.as_posix()] = path.read_text()
    return result


class Circles(unittest.TestCase):
    def test_python_has_none(self):
        files = {}
        for floor in FLOORS:
            files |= read(floor, "*.py")
        imports = python_imports(files)
        self.assertGreater(sum(map(len, imports.values())), 300)
        self.assertEqual(circles(imports), [], "these import each other; move what both need below both")

    def test_the_page_has_none(self):
        imports = page_imports(read(PAGE, "*.js"))
        self.assertGreater(sum(map(len, imports.values())), 10)
        self.assertEqual(circles(imports), [], "these import each other; move what both need below both")

    def test_a_circle_of_python_is_found(self):
        files = {
            "p/__init__.py": "from .a import x",
            "p/a.py": "def f():\n    from .deep import b\n",
            "p/deep/__init__.py": "",
            "p/deep/b.py": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from ..a import x\n",
            "p/c.py": "from . import a\n",
            "q/script.py": "import helper, json\nfrom p.c import a\n",
            "q/helper.py": "import os\n",
            "r/helper.py": "import script\n",
        }
        self.assertEqual(circles(python_imports(files)), [["p/a.py", "p/deep/b.py"]])
        files["q/helper.py"] = "import script"
        self.assertEqual(circles(python_imports(files))[1:], [["q/helper.py", "q/script.py"]])

    def test_a_circle_through_a_package_is_found(self):
        files = {"p/__init__.py": "from .a import x", "p/a.py": "from . import y", "p/b.py": "import p.a"}
        self.assertEqual(circles(python_imports(files)), [["p/__init__.py", "p/a.py"]])

    def test_a_circle_of_the_page_is_found(self):
        files = {
            "a.js": "import {x,\n  y} from './b.js';\n",
            "b.js": "export {z} from './c.js';\n",
            "c.js": "const f = () => import('./a.js');\n",
            "d.js": "import './a.js';\n// from './e.js'\n",
            "e.js": "import {q} from './d.js';\n",
        }
        self.assertEqual(circles(page_imports(files)), [["a.js", "b.js", "c.js"]])


if __name__ == "__main__":
    unittest.main()
