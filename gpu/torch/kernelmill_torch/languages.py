"""Languages for kernels in Python beside Triton: what marks a kernel of each, what the GPU calls it, and how the package is had.

A mark is a decorator by where it was imported from, whatever name the module gives it. A candidate that imports such a package and
has torch do the work launches nothing by these names."""

import ast
import importlib.util
import re
from dataclasses import dataclass
from typing import Iterator, Optional


@dataclass(frozen=True)
class Language:
    module: str  # that is imported
    package: str  # on PyPI
    marks: tuple[str, ...]  # decorators of kernels
    shown: str  # a pattern of what the GPU calls the kernel {}
    least: str = ""  # version of the package

    @property
    def install(self) -> str:
        return f"pip install '{self.package}>={self.least}'" if self.least else f"pip install {self.package}"

    def is_installed(self) -> bool:
        """Without running it: it may take seconds and look for a GPU."""
        try:
            return importlib.util.find_spec(self.module) is not None
        except (ImportError, ValueError):
            return False


LANGUAGES = {
    "gluon": Language("triton.experimental.gluon", "triton", ("triton.experimental.gluon.jit",), r"{}", "3.6"),
    "cute_dsl": Language(
        "cutlass.cute", "nvidia-cutlass-dsl", ("cutlass.cute.kernel",), r"kernel_cutlass_{}_\w*|kernel_cutlass_{}"
    ),
    "cutile": Language("cuda.tile", "cuda-tile", ("cuda.tile.kernel",), r"{}(?:_K\w*)?"),
    # A function that @tilelang.jit marks is a kernel, or makes one that prim_func marks.
    "tilelang": Language(
        "tilelang", "tilelang", ("tilelang.language.prim_func", "tilelang.jit"), r"{}_kernel(?:_\d+)?"
    ),
    "helion": Language("helion", "helion", ("helion.kernel", "helion.jit"), r"_helion_{}(?:_\d+)?"),
}


def missing() -> list[str]:
    """Languages whose packages this interpreter lacks."""
    return [name for name, x in LANGUAGES.items() if not x.is_installed()]


def marked(tree: ast.AST, language: str) -> set[str]:
    """Functions of a module that are kernels in a language."""
    return {node.name for node in marks_of(tree, language)}


def marks_of(tree: ast.AST, language: str) -> set[ast.FunctionDef]:
    marks, paths = LANGUAGES[language].marks, imported(tree)
    return {
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef) and any(path_of(x, paths) in marks for x in node.decorator_list)
    }


def imported(tree: ast.AST) -> dict[str, str]:
    """Names that imports bind, with the paths that these stand for."""
    found: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for x in node.names:
                found[x.asname or x.name.partition(".")[0]] = x.name if x.asname else x.name.partition(".")[0]
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            for x in node.names:
                found[x.asname or x.name] = f"{node.module}.{x.name}"
    return found


def path_of(node: ast.expr, paths: dict[str, str]) -> Optional[str]:
    """What a decorator is by its imports: "helion.kernel" of `hl.kernel(config=...)`. None where no import says it."""
    if isinstance(node, ast.Call):
        node = node.func
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name) or node.id not in paths:
        return None
    return ".".join([paths[node.id], *reversed(parts)])


def shown_as(names: frozenset[str], language: str) -> Iterator[re.Pattern]:
    """Patterns of what the GPU calls these kernels."""
    for name in names:
        yield re.compile(LANGUAGES[language].shown.replace("{}", re.escape(name)))
