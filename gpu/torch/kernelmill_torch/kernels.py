"""Whose kernels ran: those that the candidate's own source defines, or a library's."""

import ast
import re
import warnings
from typing import Iterator

ATTRIBUTES = r"(?:__launch_bounds__\s*\([^)]{0,200}\)\s*|\w+\s+){0,8}?"
TRITON_KERNEL = re.compile(r"@(?:\w+\.)?jit\b(?:\([^)\n]{0,200}\))?\s*\n\s*def\s+(\w+)")  # in a string, which a module may write to a file
CUDA_KERNEL = re.compile(r"__global__\s+" + ATTRIBUTES + r"void\s+(?:__launch_bounds__\s*\([^)]{0,200}\)\s*)?(\w+)\s*\(")
# Comments, strings and characters of C++. What is left open goes on to the end, so that this takes time in proportion to the text.
NO_CODE = re.compile(r"""//(?:\\\n|[^\n])*|/\*.*?(?:\*/|\Z)|"(?:\\.|[^"\\\n])*"?|'(?:\\.|[^'\\\n])*'?""", re.DOTALL)
COMPILES_WHEN_CALLED = re.compile(r"\btriton\b|\bcompile\b|\bjit\b")
LANGUAGES = ("cuda", "hip", "triton")

ANONYMOUS = "(anonymous namespace)::"
CLOSES = {">": "<", ")": "(", "]": "[", "}": "{"}
# Namespaces in which no kernel is a candidate's, whatever it is called.
THEIRS = re.compile(r"at|at_\w+|c10\w*|caffe2|torch|std|cub|thrust|cutlass|(?:cublas|cudnn|cusparse|cufft|cask|xmma|pytorch_)\w*")
# Names that Inductor makes. Modules that were written after its output have such names, too, and are theirs if nothing in them compiles.
INDUCTORS = re.compile(r"triton_(?:[a-z]{3}_(?:fused_\w+|_\d+))?")
COMPILES = re.compile(r"\bcompile\b")
# Names that NVIDIA's libraries make of types, tiles and numbers. A function of that name need not be what ran.
MADE = re.compile(r"(?:_5x_cudnn_)?(?:maxwell|volta|turing|ampere|ada|hopper|blackwell)_\w*\d+x\d+\w*"
                  r"|(?:sm\d+_)?xmma_\w+|cutlass\w*_\d+x\d+\w*|cudnn_generated_\w+|nvjet_\w+|fmha_cutlass\w+|gemm(?:SN|k1)\w*|cunn_\w+")
# Kernels of theirs in no namespace, by types of their arguments; torch's softmax by how many template arguments it has.
MADE_FOR = re.compile(r"\bcu(?:blas|dnn)[A-Z]\w*|\bPyTorchMemEffAttention\b|\bsoftmax_warp_(?:for|back)ward<(?:[^,<>]*,){5}")
# Which Triton put behind a name until 3.0: the numbers of a kernel's arguments, and letters for those that are divisible.
TRITON_SUFFIX = re.compile(r"_0\d*[cde][cde\d]*$")


def own_kernels(source: str, language: str) -> set[str]:
    """Names of the kernels that a module's code defines, in one language or in all. REQUIRES: it was parsed when it was built, in the
    sandbox: a source can crash Python's parser."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # as those of escapes that are none
            tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):  # its import says why
        return set()
    names: set[str] = set()
    if language not in ("cuda", "hip"):
        found = triton_kernels(tree).union(*(TRITON_KERNEL.findall(text) for text in strings(tree)))
        names |= {x for x in found if not (INDUCTORS.fullmatch(x) and COMPILES.search(source))}
    if language != "triton":
        names.update(name for text in strings(tree) for name in CUDA_KERNEL.findall(NO_CODE.sub(" ", text)))
    return names


def triton_kernels(tree: ast.AST) -> set[str]:
    """Functions that are decorated by a `jit`: triton.jit, by whatever name the module has it."""
    def is_jit(decorator: ast.expr) -> bool:
        named = decorator.func if isinstance(decorator, ast.Call) else decorator
        return getattr(named, "attr", getattr(named, "id", "")) == "jit"

    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and any(map(is_jit, node.decorator_list))}


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


def own_share(profile: list[list], own: set[str], language: str) -> float:
    """The share of the GPU's time in kernels of these names, copies left out; `profile` is [[name, microseconds]]."""
    total = mine = 0.0
    for name, us in profile:
        if name.startswith(("Memcpy", "Memset")):
            continue
        total += us
        if is_own(name, own, language):
            mine += us
    return mine / total if total > 0 else 0.0


def is_own(name: str, own: set[str], language: str) -> bool:
    """Whether a kernel that ran is one of these, by its name as CUPTI and a demangler have it."""
    *namespaces, last = path_of(name)
    names = {last, TRITON_SUFFIX.sub("", last)}
    if MADE_FOR.search(name) or any(map(MADE.fullmatch, names)) or any(map(THEIRS.fullmatch, namespaces)):
        return False
    is_plain = last == name  # as Triton's are
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
        elif CLOSES[x] in open_ones and (x != ">" or open_ones[-1] == "<"):  # else it is an operator: greater, or an arrow
            while open_ones.pop() != CLOSES[x]:
                pass
    words = "".join(outside).split() or [""]
    return words[-1].split("::")
