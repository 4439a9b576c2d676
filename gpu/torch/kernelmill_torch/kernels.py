"""Whose kernels ran: those that the candidate's own source defines, or a library's."""

import ast
import functools
import re
import warnings
from typing import AbstractSet, Iterator

from kernelmill_torch import languages

TRITON_KERNEL = re.compile(
    r"@(?:\w+\.)?jit\b(?:\([^)]{0,200}\))?[^\S\n]*\n\s*def\s+(\w+)"
)  # in a string, which a module may write to a file
ARGUMENTS = (
    r"__\w+__\s*\((?:[^()]|\([^()]{0,100}\)){0,200}\)\s*"  # of __launch_bounds__, __cluster_dims__, __attribute__
)
CUDA_KERNEL = re.compile(
    rf"__global__\s+(?:{ARGUMENTS}|\w+\s+){{0,8}}?void\s+(?:{ARGUMENTS}){{0,4}}(?!__\w+__\b)(\w+)\s*\("
)
# Comments, strings and characters of C++. What is left open goes on to the end, so that this takes time in proportion to the text.
NO_CODE = re.compile(
    r"""//(?:\\\n|[^\n])*|/\*.*?(?:\*/|\Z)|"(?:\\.|[^"\\\n])*"?|(?<![0-9a-fA-F])'(?:\\.|[^'\\\n])*'?""", re.DOTALL
)
COMPILES_WHEN_CALLED = re.compile(r"\btriton\b|\bcompile\b|\bjit\b|\bcutlass\b|\bcuda\.tile\b|\btilelang\b|\bhelion\b")
LANGUAGES = ("cuda", "hip", "triton", *languages.LANGUAGES)

ANONYMOUS = "(anonymous namespace)::"
CLOSES = {">": "<", ")": "(", "]": "[", "}": "{"}
# Namespaces in which no kernel is a candidate's, whatever it is called.
THEIRS = re.compile(
    r"at|at_\w+|c10\w*|caffe2|torch|std|cub|thrust|cutlass|cutlass_\w*cudnn\w*|(?:cublas|cudnn|cusparse|cufft|cask|xmma|pytorch_)\w*"
)
# Names that Inductor makes. Modules that were written after its output have such names, too, and are theirs if nothing in them compiles.
INDUCTORS = re.compile(r"triton_(?:[a-z]{3}_(?:fused_\w+|_\d+))?")
COMPILERS = {"compile", "compile_fx", "aot_compile", "_dynamo.optimize"}
# Names that NVIDIA's libraries make of types, tiles and numbers, and of which no argument is told.
MADE = re.compile(
    r"(?:_5x_cudnn_|cudnn_\w+?_)?(?:maxwell|volta|turing|ampere|ada|hopper|blackwell)_\w*\dx\d\w*"
    r"|(?:sm\d+_)?xmma_\w+|cutlass\w*_\d{1,4}x\d\w*|cudnn_generated_\w+|nvjet_\w+|gemm(?:SN|k1)\w*"
)
# Kernels of theirs in no namespace, by their names, by types of their arguments; torch's softmax by how many template arguments it has.
MADE_FOR = re.compile(
    r"\bcu(?:blas|dnn)[A-Z]\w*|\bPyTorchMemEffAttention\b|\bfmha_cutlass\w+|\bgemmSN_\w+|\bcunn_\w+"
    r"|\bsoftmax_warp_(?:for|back)ward<(?:[^,<>]*,){5}"
)
# Which Triton put behind a name until 3.0: the numbers of a kernel's arguments, and letters for those that are divisible.
TRITON_SUFFIX = re.compile(r"_0\d*[cde][cde\d]*$")


@functools.lru_cache(maxsize=2)
def own_kernels(source: str, language: str) -> frozenset[str]:
    """Names of the kernels that a module's code defines, in one language or in all. REQUIRES: it was parsed when it was built, in the
    sandbox: a source can crash Python's parser."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # as those of escapes that are none
            tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):  # its import says why
        return frozenset()
    if language in languages.LANGUAGES:
        return frozenset(languages.marked(tree, language) - in_others(tree, language))
    names: set[str] = set()
    if language not in ("cuda", "hip"):
        found = triton_kernels(tree).union(*(TRITON_KERNEL.findall(text) for text in strings(tree)))
        names |= found if not compiles(tree) else {x for x in found if not INDUCTORS.fullmatch(x)}
    if language != "triton":
        names.update(name for text in strings(tree) for name in CUDA_KERNEL.findall(NO_CODE.sub(" ", text)))
    return frozenset(names)


def in_others(tree: ast.AST, language: str) -> set[str]:
    """Names of kernels in Triton or C++ that the GPU would show as it shows those of a language: which of two ran it does not say."""
    found = set().union(*(TRITON_KERNEL.findall(x) + CUDA_KERNEL.findall(NO_CODE.sub(" ", x)) for x in strings(tree)))
    marked = languages.marked(tree, language)
    found |= triton_kernels(tree, languages.marks_of(tree, language))
    return {
        x for x in marked if any(y.fullmatch(z) for y in languages.shown_as(frozenset({x}), language) for z in found)
    }


def triton_kernels(tree: ast.AST, but: AbstractSet[ast.FunctionDef] = frozenset()) -> set[str]:
    """Functions that are decorated by a `jit`: triton.jit, by whatever name the module has it; `but` those of another language."""

    def is_jit(decorator: ast.expr) -> bool:
        named = decorator.func if isinstance(decorator, ast.Call) else decorator
        return getattr(named, "attr", getattr(named, "id", "")) == "jit"

    return {
        node.name
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef) and node not in but and any(map(is_jit, node.decorator_list))
    }


def compiles(tree: ast.AST) -> bool:
    """Whether code names a compiler of torch's: as a name, an attribute, an import or a string. `re.compile` is none."""
    named: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            owner = getattr(node.value, "attr", getattr(node.value, "id", ""))
            named |= {f"{owner}.{node.attr}", node.attr if owner != "re" else ""}
        elif isinstance(node, ast.Name):
            named.add(node.id)
        elif isinstance(node, ast.ImportFrom) and node.module != "re":
            named |= {x.name for x in node.names} | {
                f"{str(node.module).rpartition('.')[2]}.{x.name}" for x in node.names
            }
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            named.add(node.value)
    return not named.isdisjoint(COMPILERS)


def strings(tree: ast.AST) -> Iterator[str]:
    """A module's strings, which may be C++, but for those that are statements of their own, as docstrings are. Where an f-string has a
    value stands a character of no name."""
    nodes = list(ast.walk(tree))
    parts = {id(x) for node in nodes if isinstance(node, ast.JoinedStr) for x in node.values}
    statements = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
    for node in nodes:
        if id(node) in parts or id(node) in statements:
            continue
        if isinstance(node, ast.JoinedStr):
            yield "\0".join(str(x.value) for x in node.values if isinstance(x, ast.Constant))
        elif isinstance(node, ast.Constant) and isinstance(node.value, (str, bytes)):
            yield node.value if isinstance(node.value, str) else node.value.decode("latin-1")


def may_compile_when_called(source: str) -> bool:
    """Whether a module's first call may take as long as compilers do: Triton's, torch.compile, torch.jit."""
    return bool(COMPILES_WHEN_CALLED.search(source))


def own_share(profile: list[list], own: AbstractSet[str], language: str) -> float:
    """The share of the GPU's time in kernels of these names, copies left out; `profile` is [[name, microseconds]]."""
    total = mine = 0.0
    for name, us in profile:
        if name.startswith(("Memcpy", "Memset")):
            continue
        total += us
        if is_own(name, own, language):
            mine += us
    return mine / total if total > 0 else 0.0


def is_own(name: str, own: AbstractSet[str], language: str) -> bool:
    """Whether a kernel that ran is one of these, by its name as CUPTI and a demangler have it."""
    *namespaces, last = path_of(name)
    names = {last, TRITON_SUFFIX.sub("", last)}
    is_plain = last == name  # as Triton's are
    made = [MADE] * is_plain + [INDUCTORS] * (language != "triton")
    if (
        MADE_FOR.search(name)
        or any(x.fullmatch(one) for x in made for one in names)
        or any(map(THEIRS.fullmatch, namespaces))
    ):
        return False
    if language in languages.LANGUAGES:
        return last == name and any(x.fullmatch(name) for x in languages.shown_as(frozenset(own), language))
    return (is_plain or language != "triton") and not own.isdisjoint(names)


def path_of(name: str) -> list[str]:
    """["at", "native", "relu"] of "void at::native::relu<float, (int)4>(float const*)": without what is returned, template arguments
    and parameters. A name may have been cut off anywhere."""
    outside: list[str] = []
    open_ones: list[str] = []
    for x in name.replace(ANONYMOUS, ""):
        if x == "(" and not open_ones:
            break
        if x in CLOSES.values():
            open_ones.append(x)
        elif x not in CLOSES:
            outside.append("" if open_ones else x)
        elif CLOSES[x] in open_ones and (
            x != ">" or open_ones[-1] == "<"
        ):  # else it is an operator: greater, or an arrow
            while open_ones.pop() != CLOSES[x]:
                pass
    words = "".join(outside).split() or [""]
    return words[-1].split("::")
