"""A kernel put back into a user's model.

    python model_patch.py KERNEL.py PROBLEM.py MODEL.py OUTPUT

PROBLEM.py is of a task that model_tasks.py made of MODEL.py; KERNEL.py is an answer to it. OUTPUT gets JSON: {"text": the module, "whole":
the id of the task by which it can be judged} or {"failed": TEXT}. The module is MODEL.py with more below: its model has the kernel in
place of the submodules that the task is of, with their parameters. Nothing of it is run here."""

import hashlib
import json
import os
import re
import sys

ORIGIN = "# kernelmill-model: "

PATCH = '''

# -- Below: {title}, put in place by `kernelmill task apply` --

import copy as _copy
import linecache as _linecache
import sys as _sys
import types as _types

import torch as _torch

_KERNEL_SOURCE = {source}
_PLACES = {places}


def _load_kernel():
    name = "{name}"
    module = _types.ModuleType(name)
    module.__file__ = "<" + name + ">"
    _linecache.cache[module.__file__] = (len(_KERNEL_SOURCE), None, _KERNEL_SOURCE.splitlines(True), module.__file__)
    _sys.modules[name] = module
    exec(compile(_KERNEL_SOURCE, module.__file__, "exec"), module.__dict__)
    return module


_kernel = _load_kernel()
_unpatched = {entry}


def _in_place_of(old):
    """The kernel's module with the parameters of another one, by name, else in their order."""
    new = _kernel.ModelNew()
    mine, own = ([*x.parameters(), *x.buffers()] for x in (new, old))
    shapes, wanted = ({{name: x.shape for name, x in y.state_dict().items()}} for y in (new, old))
    if shapes == wanted:
        new.load_state_dict(old.state_dict())
    elif [x.shape for x in mine] == [x.shape for x in own]:
        with _torch.no_grad():
            for x, y in zip(mine, own):
                x.copy_(y)
    else:
        raise RuntimeError("the kernel has other parameters than the module that it replaces")
    for x, y in zip(mine, own):
        x.data = x.data.to(device=y.device, dtype=y.dtype)
    return new.train(old.training)


def _patched(model):
    for place in _PLACES:
        if not place:
            return _in_place_of(model)
        parent, _, name = place.rpartition(".")
        setattr(model.get_submodule(parent), name, _in_place_of(model.get_submodule(place)))
    return model


def {entry}():
    """The model with the kernel in it."""
    if isinstance(_unpatched, _torch.nn.Module):
        return _patched(_copy.deepcopy(_unpatched))
    return _patched(_unpatched())


class ModelNew(_torch.nn.Module):
    """By which it is judged as an answer to {whole}."""

    def __init__(self):
        super().__init__()
        self.model = {entry}()

    def forward(self, *inputs):
        return self.model(*inputs)
'''


def read(path: str) -> str:
    with open(path, encoding="utf-8") as file:
        return file.read()


def without_main(text: str) -> str:
    """A module without the part that only a program runs, which would run before the kernel is in place."""
    import ast

    lines = text.splitlines(keepends=True)
    for node in reversed(ast.parse(text).body):
        if isinstance(node, ast.If) and any(
            isinstance(x, ast.Name) and x.id == "__name__" for x in ast.walk(node.test)
        ):
            del lines[node.lineno - 1 : node.end_lineno]
    return "".join(lines).rstrip("\n") + "\n"


def patched(kernel: str, problem: str, model_path: str) -> dict[str, str]:
    """Raises ValueError, SyntaxError and OSError."""
    first = problem.partition("\n")[0]
    if not first.startswith(ORIGIN):
        raise ValueError("its task was not made of a model; `kernelmill task import model FILE.py` makes such tasks")
    origin = json.loads(first[len(ORIGIN) :])
    if os.path.basename(model_path) != origin["file"]:
        raise ValueError(f"its task was made of {origin['file']}, and not of {os.path.basename(model_path)}")
    if not re.fullmatch(r"[A-Za-z_]\w*", origin["entry"]):
        raise ValueError("its task names no entry")
    compile(kernel, "kernel", "exec", dont_inherit=True)
    name = re.sub(r"[^A-Za-z0-9_]", "_", os.path.splitext(origin["file"])[0])[:60] or "model"
    whole = f"model/{name}/whole"
    digest = hashlib.sha256(kernel.encode()).hexdigest()[:8]
    text = without_main(read(model_path)) + PATCH.format(
        title="a kernel",
        source=repr(kernel),
        places=repr(origin["paths"]),
        name=f"kernelmill_kernel_{digest}",
        entry=origin["entry"],
        whole=whole,
    )
    compile(text, "patched", "exec", dont_inherit=True)
    return {"text": text, "whole": whole}


def main() -> int:
    kernel, problem, model, output = sys.argv[1:]
    try:
        result = patched(read(kernel), read(problem), model)
    except (OSError, SyntaxError, UnicodeDecodeError, ValueError, KeyError) as e:
        result = {"failed": str(e)}
    with open(output, "w", encoding="utf-8") as file:
        json.dump(result, file)
    return 0


if __name__ == "__main__":
    sys.exit(main())
