"""A user's own model as tasks: the whole, and each submodule that takes a share of its time.

    python -m kernelmill_torch.model_tasks FILE.py OUTPUT [ENTRY [SHARE]]

FILE.py defines `model()`, or a model under that name, and `inputs()`. OUTPUT gets JSON: {"tasks": [{"id", "note", "files": {NAME: TEXT}}],
"refused": [{"place", "reason", "cause"}], "notes": [TEXT]}, or {"failed": TEXT}. Weights are not stored: Model draws its parameters."""

import json
import os
import re
import sys
from typing import Any, Optional

if __name__ == "__main__":
    sys.path[0:0] = [os.path.dirname(os.path.dirname(os.path.abspath(__file__)))]

NO_TORCH = 77  # exit code by which the caller tries its next Python, without words of ours

try:
    import torch
except ModuleNotFoundError as missing:
    if __name__ != "__main__" or missing.name != "torch":
        raise
    sys.exit(NO_TORCH)

from kernelmill_torch import model_trace  # noqa: E402
from kernelmill_torch.model_source import local_imports, needed_of  # noqa: E402
from kernelmill_torch.model_trace import ARGUMENTS, Made, NotUsable, Traced, positional  # noqa: E402

SHARE = 0.1  # of the whole model's time, from which a submodule is a task
MOST_SHAPES = 16  # of one task
MOST_TASKS = 32
SEED = 2026
ORIGIN = "# kernelmill-model: "


class Refused(Exception):
    """Why a submodule is no task: the same words for all of a kind, and a sentence."""

    def __init__(self, reason: str, cause: str):
        super().__init__(cause)
        self.reason, self.cause = reason, cause


# -- values as text ---------------------------------------------------------------------------------


def literal(x: Any) -> str:
    """A plain value as Python. Raises Refused."""
    if x is None or type(x) in (bool, int, str):
        return repr(x)
    if type(x) is float:
        return repr(x) if x == x and abs(x) != float("inf") else f'float("{x}")'
    if isinstance(x, (torch.dtype, torch.Size)):
        return repr(tuple(x)) if isinstance(x, torch.Size) else str(x)
    if type(x) in (tuple, list):
        parts = ", ".join(map(literal, x))
        return f"[{parts}]" if type(x) is list else f"({parts},)" if len(x) == 1 else f"({parts})"
    raise Refused("arguments that are no plain values", f"its constructor was given a {type(x).__name__}")


def drawn(x: torch.Tensor, shape: str) -> str:
    """How to draw a tensor like one that was seen."""
    dtype = str(x.dtype)
    if x.dtype == torch.bool:
        return f"torch.rand({shape}) > {1 - float(x.float().mean()):.3g}"
    if not x.is_floating_point():
        if x.is_complex():
            raise Refused("complex tensors", "it is called with complex numbers")
        low, high = (int(x.min()), int(x.max()) + 1) if x.numel() else (0, 1)
        return f"torch.randint({low}, {high}, {shape}, dtype={dtype})"
    wide = x.detach().double()
    mean, std = (float(wide.mean()), float(wide.std(unbiased=False))) if x.numel() else (0.0, 1.0)
    text = f"torch.randn({shape})"
    if not 0.98 < std < 1.02:
        text += f" * {std:.3g}"
    if abs(mean) > 0.02 * max(std, 1e-30):
        text += f" + {mean:.3g}"
    if x.dtype == torch.float32:
        return text
    return f"({text}).to({dtype})" if " " in text else f"{text}.to({dtype})"


# -- one submodule ----------------------------------------------------------------------------------


def class_text(module: torch.nn.Module, names: dict[str, Any]) -> str:
    """The name by which a file's text has the class of a module. Raises Refused."""
    kind = type(module)
    if kind.__module__.startswith("torch.nn"):
        return f"torch.nn.{kind.__name__}" if getattr(torch.nn, kind.__name__, None) is kind else ""
    if "<locals>" in kind.__qualname__:
        raise Refused("a class inside of a function", f"{kind.__name__} is defined inside of a function")
    return next((name for name, x in names.items() if x is kind), "")


def arguments_text(module: torch.nn.Module) -> str:
    made: Optional[Made] = module.__dict__.get(ARGUMENTS)
    if made is None:
        raise Refused("arguments that were not seen", "it was made before its file was read")
    parts = [literal(x) for x in made.args]
    return ", ".join([*parts, *(f"{name}={literal(x)}" for name, x in made.kwargs.items())])


def dtype_of(module: torch.nn.Module) -> Optional[torch.dtype]:
    """The one type of a module's floating parameters; None: there are several, or none."""
    found = {x.dtype for x in [*module.parameters(), *module.buffers()] if x.is_floating_point()}
    return found.pop() if len(found) == 1 else None


def model_text(module: torch.nn.Module, name: str) -> str:
    """The class Model, made like a module that was seen."""
    lines = [f"        super().__init__({arguments_text(module)})"]
    if (dtype := dtype_of(module)) not in (None, torch.float32):
        lines.append(f"        self.to({dtype})")
    if not module.training:
        lines.append("        self.eval()")
    return "class Model({}):\n    def __init__(self):\n{}\n".format(name, "\n".join(lines))


def shapes_of(calls: list[list[Any]]) -> list[list[Any]]:
    """Calls of different shapes, each once; those that came most often first."""
    seen: dict[str, tuple[int, list[Any]]] = {}
    for inputs in calls:
        key = repr([tuple(x.shape) if isinstance(x, torch.Tensor) else x for x in inputs])
        count, _ = seen.get(key, (0, inputs))
        seen[key] = (count + 1, inputs)
    return [inputs for _, inputs in sorted(seen.values(), key=lambda x: -x[0])]


def kind_of_call(inputs: list[Any]) -> str:
    """What calls that differ in shape alone have in common."""
    return repr([(str(x.dtype), x.dim()) if isinstance(x, torch.Tensor) else x for x in inputs])


def inputs_text(inputs: list[Any]) -> str:
    """Constants for the shapes, and get_inputs()."""
    constants, parts = [], []
    for i, x in enumerate(inputs):
        if not isinstance(x, torch.Tensor):
            parts.append(literal(x))
        elif x.dim():
            constants.append(f"INPUT_{i} = {literal(tuple(x.shape))}\n")
            parts.append(drawn(x, f"INPUT_{i}"))
        else:
            parts.append(drawn(x, "()"))
    body = ",\n        ".join(parts)
    return (
        "".join(constants)
        + f"\n\ndef get_inputs():\n    return [\n        {body},\n    ]\n\n\ndef get_init_inputs():\n    return []\n"
    )


def variants_of(shapes: list[list[Any]]) -> list[dict[str, Any]]:
    first, result = shapes[0], []
    for number, inputs in enumerate(shapes[1:MOST_SHAPES], 2):
        other = {
            f"INPUT_{i}": list(x.shape)
            for i, (x, y) in enumerate(zip(inputs, first))
            if isinstance(x, torch.Tensor) and x.shape != y.shape
        }
        result.append({"name": f"shape_{number}", "set": other, "timed": True})
    return result


def check_runs(text: str, outputs: Any) -> None:
    """Runs a problem by itself. Raises Refused where that does not go, or gives other shapes than the model did."""
    space: dict[str, Any] = {"__name__": "problem"}
    try:
        exec(compile(text, "problem.py", "exec"), space)
        with torch.no_grad():
            found = space["Model"](*space["get_init_inputs"]())(*space["get_inputs"]())
    except Exception as e:
        raise Refused("it does not run by itself", f"{type(e).__name__}: {e}") from None
    if form_of(found) != form_of(outputs):
        raise Refused("outputs that depend on the data", "alone it gives outputs of other shapes")


def form_of(out: Any) -> Any:
    """Shapes and types of what a model gives. Raises Refused for what cannot be compared."""
    items = list(out) if isinstance(out, (tuple, list)) else [out]
    if not items or not all(isinstance(x, torch.Tensor) for x in items):
        raise Refused("outputs that are no tensors", f"it gives a {type(out).__name__}")
    return [(tuple(x.shape), x.dtype) for x in items]


# -- tasks ------------------------------------------------------------------------------------------


class Tasks:
    """What becomes of one file."""

    def __init__(self, path: str, entry: str, share: float):
        with open(path, encoding="utf-8") as file:
            self.text = file.read()
        self.path, self.entry, self.share = path, entry, share
        self.name = re.sub(r"[^A-Za-z0-9_]", "_", os.path.splitext(os.path.basename(path))[0])[:60] or "model"
        beside = {os.path.splitext(x)[0] for x in os.listdir(os.path.dirname(os.path.abspath(path)))}
        if own := local_imports(self.text, beside - {os.path.splitext(os.path.basename(path))[0]}):
            raise NotUsable(
                f"it imports {own[0]} from beside it; candidates run where that is not: put it into one file"
            )
        end = model_trace.remember_arguments()
        try:
            torch.manual_seed(SEED)  # so that a second import says the same
            self.module = model_trace.load(path)
            self.model = model_trace.model_of(self.module, entry)
        finally:
            end()
        self.inputs = model_trace.inputs_of(self.module)
        self.traced = model_trace.trace(self.model, self.inputs)
        self.tasks: list[dict[str, Any]] = []
        self.refused: list[dict[str, str]] = []
        self.used: set[str] = set()

    def make(self) -> dict[str, Any]:
        """Raises NotUsable where not even the whole can be a task."""
        try:
            self.add_whole()
        except Refused as e:
            raise NotUsable(f"the model is no task: {e.cause}") from None
        groups: dict[str, list[Traced]] = {}
        for x in self.traced:
            if x.path and x.share > 0:
                groups.setdefault(self.key_of(x), []).append(x)
        for group in groups.values():  # in the model's order, so that names stay from one import to the next
            share = sum(x.share for x in group)
            if share < self.share or len(self.tasks) >= MOST_TASKS:
                continue
            try:
                self.add_part(group, f"{share:.0%} of the time")
            except Refused as e:
                place = f"{group[0].path} ({type(group[0].module).__name__}, {share:.0%} of the time)"
                self.refused.append({"place": place, "reason": e.reason, "cause": e.cause})
        return {"tasks": self.tasks, "refused": self.refused}

    @staticmethod
    def key_of(x: Traced) -> str:
        """Equal for submodules that are one task: of one class, made alike, called alike."""
        made = x.module.__dict__.get(ARGUMENTS)
        inputs = positional(x.module, *x.calls[0])
        return repr(
            (
                id(type(x.module)),
                repr(made) if made else x.path,
                str(dtype_of(x.module)),
                x.module.training,
                kind_of_call(inputs) if inputs is not None and all(map(model_trace.is_value, inputs)) else x.path,
            )
        )

    def add_whole(self) -> None:
        outputs = next(x for x in self.traced if not x.path).outputs[0]
        form_of(outputs)
        is_made = not isinstance(getattr(self.module, self.entry), torch.nn.Module)
        made = f"{self.entry}()" if is_made else f"copy.deepcopy({self.entry})"
        text = needed_of(self.text, {self.entry, "inputs"}) + ("" if is_made else "import copy\n")
        if "torch" not in vars(self.module):
            text = "import torch\n" + text
        text += (
            f"\n\nclass Model(torch.nn.Module):\n    def __init__(self):\n        super().__init__()\n"
            f"        self.model = {made}\n\n    def forward(self, *inputs):\n        return self.model(*inputs)\n\n\n"
            "def get_inputs():\n    found = inputs()\n"
            "    return list(found) if isinstance(found, (tuple, list)) else [found]\n\n\n"
            "def get_init_inputs():\n    return []\n"
        )
        check_runs(text, outputs)
        self.add("whole", text, "network", f"The model of {self.name}", [""], [], "the whole model")

    def add_part(self, group: list[Traced], note: str) -> None:
        first = group[0]
        name = class_text(first.module, vars(self.module))
        if not name:
            raise Refused("a class of another file", f"{type(first.module).__name__} is not defined in {self.path}")
        calls = [positional(first.module, *x) for one in group for x in one.calls]
        for inputs in calls:
            if inputs is None or not all(map(model_trace.is_value, inputs)):
                raise Refused("arguments that are no tensors", "forward takes other than tensors and plain values")
        shapes = shapes_of([x for x in calls if kind_of_call(x) == kind_of_call(calls[0])])
        is_own = not name.startswith("torch.")
        text = needed_of(self.text, {name}) if is_own else "import torch\n"
        if is_own and "torch" not in vars(self.module):
            text = "import torch\n" + text
        text += "\n\n" + model_text(first.module, name) + "\n\n" + inputs_text(shapes[0])
        by_shape = zip([y for one in group for y in one.outputs], calls)
        check_runs(text, next(out for out, inputs in by_shape if inputs is shapes[0]))
        title = f"{type(first.module).__name__} of {self.name}"
        self.add(type(first.module).__name__, text, "fusion", title, [x.path for x in group], variants_of(shapes), note)

    def add(
        self,
        name: str,
        text: str,
        family: str,
        title: str,
        paths: list[str],
        variants: list[dict[str, Any]],
        note: str,
    ) -> None:
        name = next(x for x in [name, *(f"{name}_{i}" for i in range(2, 100))] if x.lower() not in self.used)
        self.used.add(name.lower())
        origin = {"file": os.path.basename(self.path), "entry": self.entry, "paths": paths}
        is_plain = all(x.dtype == torch.float32 for x in self.floating())
        document = {
            "schema_version": 1,
            "id": f"model/{self.name}/{name}",
            "title": title[:120],
            "verb": "optimize",
            "operator_family": family,
            "contract": "torch",
            "difficulty": "hard" if name == "whole" else "medium",
            "backends": ["cpu", "cuda"],
            "suite": "model",
            "source": "own",
            "precision": "fp32" if is_plain else "own",
        }
        if variants:
            document["variants"] = variants
        count = "one place" if len(paths) == 1 else f"{len(paths)} places"
        where = "the whole model" if paths == [""] else f"in {count} of it"
        prompt = f"A user's own model. The module below is {where}.\n"
        self.tasks.append(
            {
                "id": document["id"],
                "note": note,
                "files": {
                    "task.json": json.dumps(document, indent=2) + "\n",
                    "prompt.md": prompt,
                    "problem.py": ORIGIN + json.dumps(origin) + "\n" + text,
                },
            }
        )

    def floating(self) -> list[torch.Tensor]:
        tensors = [*self.model.parameters(), *self.model.buffers()]
        tensors += [y for x in self.traced for call in x.calls for y in call[0] if isinstance(y, torch.Tensor)]
        return [x for x in tensors if x.is_floating_point()]


def main() -> int:
    path, output, *rest = sys.argv[1:]
    entry, share = (rest + ["", ""][len(rest) :])[:2]
    try:
        result = Tasks(path, entry or "model", float(share or SHARE)).make()
    except (NotUsable, OSError, UnicodeDecodeError, SyntaxError) as e:
        result = {"failed": f"{type(e).__name__}: {e}" if isinstance(e, SyntaxError) else str(e)}
    with open(output, "w", encoding="utf-8") as file:
        json.dump(result, file)
    return 0


if __name__ == "__main__":
    sys.exit(main())
