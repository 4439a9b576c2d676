"""Whether a module is the problem's own model under other names, with library flags besides: that is no code of its own."""

import ast
import contextlib
import warnings
from typing import Optional

PLAIN_LIBRARIES = {"torch", "math", "typing", "numpy", "os", "sys", "__future__"}
SETTERS = ("torch.set_", "torch.backends.", "torch.use_deterministic_algorithms", "torch._dynamo.config", "os.environ")
OF_PROBLEMS = {"get_inputs", "get_init_inputs"}


class Different(Exception):
    """Something is there that no problem's own model has."""


def is_own_model(source: str, problem: str, function: str = "") -> bool:
    """Whether `ModelNew` of a module does what `Model` of a problem says, word for word; or the function that it may define in place
    of that, what a function of the problem does. REQUIRES: it was parsed when it was built, in the sandbox."""
    if is_same(source, "ModelNew", problem, "Model"):
        return True
    return bool(function) and any(is_same(source, function, problem, x) for x in functions_of(problem))


def is_same(source: str, mine: str, problem: str, own: str) -> bool:
    with contextlib.suppress(SyntaxError, ValueError, RecursionError, MemoryError, Different):
        said, known = parts_of(source, mine), parts_of(problem, own)
        return said[""] == known[""] and all(known.get(name) == text for name, text in said.items())
    return False


def functions_of(problem: str) -> list[str]:
    """Names of the functions that a problem's module defines for its model."""
    tree = ast.parse(problem)
    return [x.name for x in tree.body if isinstance(x, ast.FunctionDef) and x.name not in OF_PROBLEMS]


def parts_of(source: str, model: str) -> dict[str, str]:
    """What a module's model is made of, by name, in words that do not hang on names of locals. The model has no name."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tree = ast.parse(source)
    imported: dict[str, str] = {}
    known: dict[str, ast.stmt] = {}
    for node in tree.body:
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            imported.update(names_of(node))
        elif not (is_setting(node, imported) or is_idle(node)):
            name = name_of(node)
            if name is None:
                raise Different
            if name not in OF_PROBLEMS:  # which answers may repeat
                known[name] = node
    itself = model_of(known, model)
    result = {}
    for name in used_by(known, itself):
        words = Words(imported, {itself: "Model", model: "Model"})
        result["" if name == itself else name] = ast.dump(words.visit(known[name]), annotate_fields=False)
    return result


def model_of(known: dict[str, ast.stmt], name: str) -> str:
    """The class or function that a name stands for: of another name for it, and of a class that only derives from it, that one."""
    for _ in known:
        node = known.get(name)
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Name):
            name = node.value.id
        elif isinstance(node, ast.ClassDef) and is_mere_name(node) and node.bases[0].id in known:
            name = node.bases[0].id
        else:
            break
    if not isinstance(known.get(name), (ast.ClassDef, ast.FunctionDef)):
        raise Different
    return name


def is_mere_name(node: ast.ClassDef) -> bool:
    plain = not node.decorator_list and not node.keywords and all(map(is_idle, node.body))
    return plain and len(node.bases) == 1 and isinstance(node.bases[0], ast.Name)


def used_by(known: dict[str, ast.stmt], name: str) -> set[str]:
    """A name, those that its definition names, and so on; besides, whatever may do something when the module is loaded."""
    found, waiting = set(), [name, *(x for x, node in known.items() if acts_when_loaded(node))]
    while waiting:
        x = waiting.pop()
        if x not in found:
            found.add(x)
            waiting += {y.id for y in ast.walk(known[x]) if isinstance(y, ast.Name) and y.id in known}
    return found


def acts_when_loaded(node: ast.stmt) -> bool:
    if isinstance(node, ast.FunctionDef):
        return bool(node.decorator_list) or calls(node.args)
    if isinstance(node, ast.ClassDef):
        parts = [*node.bases, *node.keywords, *node.body]
        return bool(node.decorator_list or node.keywords) or any(
            acts_when_loaded(x) if isinstance(x, ast.FunctionDef) else calls(x) for x in parts
        )
    return calls(node)


def calls(node: ast.AST) -> bool:
    return any(isinstance(x, (ast.Call, ast.Await, ast.NamedExpr)) for x in ast.walk(node))


def names_of(node: ast.stmt) -> dict[str, str]:
    """Names that an import binds, with what they stand for. Raises Different for libraries that may bring code."""
    module = node.module or "" if isinstance(node, ast.ImportFrom) else ""
    result = {}
    for x in node.names:
        path = f"{module}.{x.name}" if module else x.name
        if path.partition(".")[0] not in PLAIN_LIBRARIES or x.name == "*":
            raise Different
        if x.asname or module:
            result[x.asname or x.name] = path
        else:
            result[path.partition(".")[0]] = path.partition(".")[0]
    return result


def path_of(node: ast.expr, imported: dict[str, str]) -> str:
    """a.b.c, with what a stands for; empty for anything else."""
    if isinstance(node, ast.Name):
        return imported.get(node.id, node.id)
    if isinstance(node, ast.Attribute):
        before = path_of(node.value, imported)
        return f"{before}.{node.attr}" if before else ""
    if isinstance(node, ast.Subscript):
        return path_of(node.value, imported)
    return ""


def is_setting(node: ast.stmt, imported: dict[str, str]) -> bool:
    """Whether a statement sets how a library works, and nothing else."""
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        return path_of(node.value.func, imported).startswith(SETTERS)
    if isinstance(node, ast.Assign):
        return all(path_of(x, imported).startswith(SETTERS) for x in node.targets)
    if isinstance(node, ast.If):
        return all(is_setting(x, imported) for x in node.body + node.orelse)
    return False


def is_idle(node: ast.stmt) -> bool:
    return isinstance(node, ast.Pass) or isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def name_of(node: ast.stmt) -> Optional[str]:
    if isinstance(node, (ast.ClassDef, ast.FunctionDef)):
        return node.name
    if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
        return node.targets[0].id
    return None


class Words(ast.NodeTransformer):
    """Puts what imports mean in place of their names, and numbers in place of names of locals."""

    def __init__(self, imported: dict[str, str], renamed: dict[str, str]):
        self.imported, self.renamed, self.locals = imported, renamed, {}

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        node.name = self.renamed.get(node.name, node.name)
        node.body = self.kept(node.body)
        return self.generic_visit(node)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        node.name = self.renamed.get(node.name, node.name)
        outer, self.locals = self.locals, dict(self.locals)
        for x in [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs, node.args.vararg, node.args.kwarg]:
            if x is not None:
                self.number(x.arg)
        for x in ast.walk(node):
            if isinstance(x, ast.Name) and isinstance(x.ctx, ast.Store):
                self.number(x.id)
        node.returns, node.body = None, self.kept(node.body)
        node = self.generic_visit(node)
        self.locals = outer
        return node

    def kept(self, body: list[ast.stmt]) -> list[ast.stmt]:
        return [x for x in body if not is_idle(x) and not is_setting(x, self.imported)]

    def number(self, name: str) -> None:
        self.locals.setdefault(name, f"local {len(self.locals)}")

    def visit_arg(self, node: ast.arg) -> ast.AST:
        node.arg, node.annotation = self.locals.get(node.arg, node.arg), None
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        if node.value is None:
            return ast.Pass()
        return self.visit(ast.Assign(targets=[node.target], value=node.value))

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        path = path_of(node, self.imported)
        if path.partition(".")[0] in PLAIN_LIBRARIES:
            return ast.Name(id=path, ctx=ast.Load())
        return self.generic_visit(node)

    def visit_Name(self, node: ast.Name) -> ast.AST:
        name = self.locals.get(node.id) or self.renamed.get(node.id) or self.imported.get(node.id, node.id)
        return ast.Name(id=name, ctx=ast.Load())

    def visit_Call(self, node: ast.Call) -> ast.AST:
        if isinstance(node.func, ast.Name) and node.func.id == "super":
            node.args = []  # super() and super(Model, self) are one
        return self.generic_visit(node)
