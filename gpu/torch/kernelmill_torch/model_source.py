"""The text of a user's module, and what of it a class needs."""

import ast
import builtins


def names_bound(node: ast.stmt) -> set[str]:
    """Names that a statement of a module's level binds."""
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return {node.name}
    if isinstance(node, (ast.Import, ast.ImportFrom)):
        return {(x.asname or x.name).partition(".")[0] for x in node.names}
    return {x.id for x in ast.walk(node) if isinstance(x, ast.Name) and isinstance(x.ctx, ast.Store)}


def names_used(node: ast.AST) -> set[str]:
    return {x.id for x in ast.walk(node) if isinstance(x, ast.Name)} - set(dir(builtins))


def is_main(node: ast.stmt) -> bool:
    """Whether a statement is the part that only a program runs."""
    return isinstance(node, ast.If) and "__name__" in {x.id for x in ast.walk(node.test) if isinstance(x, ast.Name)}


def needed_of(text: str, wanted: set[str]) -> str:
    """The statements of a module that some of its names need, as they stand there, in order. A statement that binds no name, such as a
    setting of torch, is needed, too. Raises SyntaxError."""
    tree = ast.parse(text)
    lines = text.splitlines(keepends=True)
    body = [x for x in tree.body if not is_main(x)]
    needed, waiting = set(), set(wanted)
    while waiting:
        name = waiting.pop()
        for i, node in enumerate(body):
            if i not in needed and name in names_bound(node):
                needed.add(i)
                waiting |= names_used(node)
    for i, node in enumerate(body):
        is_text = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        if not names_bound(node) and not is_text:
            needed.add(i)
            needed |= {j for j, other in enumerate(body) if names_bound(other) & names_used(node)}
    result = ""
    for i in sorted(needed):
        node = body[i]
        first = min([node.lineno, *(x.lineno for x in getattr(node, "decorator_list", []))]) - 1
        is_block = isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef))
        result += ("\n\n" if is_block and result else "") + "".join(lines[first : node.end_lineno]).rstrip("\n") + "\n"
        result += "\n\n" if is_block else ""
    while "\n\n\n\n" in result:
        result = result.replace("\n\n\n\n", "\n\n\n")
    return result.strip("\n") + "\n"


def local_imports(text: str, folder_names: set[str]) -> list[str]:
    """Modules that lie beside the user's file and that it imports: where candidates run they are not there."""
    found = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            found |= {x.name.partition(".")[0] for x in node.names}
        elif isinstance(node, ast.ImportFrom):
            found.add("." if node.level else (node.module or "").partition(".")[0])
    return sorted(found & (folder_names | {"."}))
