"""Variants of a problem: the same model at other shapes. A task names constants of the problem's module; each is replaced where the
module assigns it, so that what is derived from it changes, too. A model must not read such a constant itself: a candidate is told of
a variant by arguments and inputs alone."""

import ast
import json
import symtable
import types
from typing import Any, Optional

OF_SHAPES = "get_inputs", "get_init_inputs"
AXIS = "AXIS_"  # how names of constants begin that a suite's importer made


def label_of(variant: dict[str, Any]) -> str:
    return f"variant {variant['name']}"


def version_of(request: dict[str, Any]) -> str:
    """What tells the files of a request's problem, and its variant, from others."""
    constants = request.get("constants")
    return request.get("digest", "") + (json.dumps(constants, sort_keys=True) if constants else "")


def bound_by(node: ast.stmt) -> list[str]:
    """Names that an assignment binds, in order."""
    if not isinstance(node, (ast.Assign, ast.AnnAssign, ast.AugAssign)) or node.value is None:
        return []
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    return [x.id for target in targets for x in ast.walk(target) if isinstance(x, ast.Name)]


def as_type_of(name: str, own: Any, value: Any) -> Any:
    """A value of task.json as the module has it. Raises ValueError where it is of another type."""
    if isinstance(own, (tuple, list)) and isinstance(value, list):
        return type(own)(value)
    if type(own) is float and type(value) is int:
        return float(value)
    if type(own) is type(value):
        return value
    raise ValueError(f"{name} is {own!r} there, and {value!r} is of another type")


def fitted(module: types.ModuleType, constants: dict[str, Any]) -> dict[str, Any]:
    """Constants of a variant as the module has them. Raises ValueError for what it has not, and where nothing would change."""
    result = {}
    for name, value in constants.items():
        if not hasattr(module, name):
            raise ValueError(f"there is no constant {name}")
        result[name] = as_type_of(name, getattr(module, name), value)
    if all(getattr(module, name) == value for name, value in result.items()):
        raise ValueError("its constants have the values that are there without it")
    return result


def with_constants(text: str, path: str, constants: dict[str, Any]) -> types.CodeType:
    """The module's code, with constants that have other values from their assignments on."""
    tree = ast.parse(text, path)
    body: list[ast.stmt] = []
    for node in tree.body:
        body.append(node)
        for name in bound_by(node):
            if name in constants:
                body += ast.parse(f"{name} = {constants[name]!r}").body
    tree.body = body
    return compile(tree, path, "exec")


def globals_of(table: symtable.SymbolTable) -> set[str]:
    """Names of the module that a function or class reads, and those in it."""
    names = {x.get_name() for x in table.get_symbols() if x.is_global() and x.is_referenced()}
    return names.union(*map(globals_of, table.get_children()))


def read_by_model(text: str) -> set[str]:
    """Names of a problem's module that its model is made of, those that these hang on, and so on."""
    reads: dict[str, set[str]] = {}
    for table in symtable.symtable(text, "problem.py", "exec").get_children():
        reads.setdefault(table.get_name(), set()).update(globals_of(table))
    for node in ast.parse(text).body:
        outside = []
        if isinstance(node, ast.ClassDef):
            outside = [*node.bases, *node.keywords, *node.decorator_list]
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            outside = [node.args, *node.decorator_list]
        elif isinstance(node, (ast.Assign, ast.AnnAssign, ast.AugAssign)) and node.value is not None:
            outside = [node.value]
        names = {x.id for part in outside for x in ast.walk(part) if isinstance(x, ast.Name)}
        for name in [*bound_by(node), *filter(None, [getattr(node, "name", None)])]:
            reads.setdefault(name, set()).update(names)
    found, waiting = set(), ["Model"]
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += reads.get(name, ())
    return found


def varied(module: types.ModuleType, text: str, path: str, constants: dict[str, Any]) -> types.ModuleType:
    """The module of a problem with other constants. Raises ValueError where these make no variant, and whatever the module raises."""
    values = fitted(module, constants)
    if hidden := sorted(values.keys() & read_by_model(text)):
        raise ValueError(
            f"Model reads {hidden[0]} itself, so that no candidate could know of it; hand it over by get_init_inputs()"
        )
    result = types.ModuleType(module.__name__)
    result.__file__ = path
    exec(with_constants(text, path, values), result.__dict__)
    for name, value in values.items():
        if getattr(result, name, None) != value:
            raise ValueError(f"{name} does not keep the value {value!r}")
    return result


def shape_of(bench: Any) -> str:
    """All that a candidate is given at the shape of a bench, and gives, without the numbers."""
    layout = bench.layout
    inputs = [x.text() if x else repr(other) for x, other in zip(layout.inputs, layout.constants)]
    return repr((inputs, [x.text() for x in layout.outputs], bench.problem.init_inputs))


class Seen:
    """Shapes of one task, each of which must be another one. A suite's axes may change contents alone: how many values are
    equal, or how large they are."""

    def __init__(self, base: Any):
        self.shapes = {shape_of(base): "the problem as it is"}

    def add(self, label: str, bench: Any) -> Optional[str]:
        """What the shape is that of, where it is not new."""
        if any(x.startswith(AXIS) for x in bench.problem.constants or ()):
            return None
        shape = shape_of(bench)
        other = self.shapes.get(shape)
        self.shapes.setdefault(shape, label)
        return other and f"{label} has the inputs and arguments of {other}"
