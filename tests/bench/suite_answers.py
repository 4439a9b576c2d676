"""Problems of GPU MODE and robust-kbench, and answers that Kernelmill and the suite's own harness both take.

Of each problem there is an honest answer, which is the suite's own where it has one, and the same answer spoiled:
`element` has one wrong element, `scaled` is 1.01 times what is right, `zeros` is nothing but zeros.
"""

from __future__ import annotations

import ast
import fnmatch
import json
import pathlib
import re
from dataclasses import dataclass

SUITES = ("gpu-mode", "robust-kbench")
KINDS = ("honest", "element", "scaled", "zeros")
CHANGES = {  # what is done in place to an output, in Python and in C++
    "element": (
        "at = tuple(n // 2 for n in x.shape); x[at] = x[at] * 1.5 + 1",
        "auto one = x.flatten().slice(0, x.numel() / 2, x.numel() / 2 + 1); one.copy_(one * 1.5 + 1);",
    ),
    "scaled": ("x.mul_(1.01) if x.is_floating_point() else x.add_(1)", "x.mul_(1.01);"),
    "zeros": ("x.zero_()", "x.zero_();"),
}
SPOIL = """

def spoiled(out):
    for x in out if isinstance(out, (tuple, list)) else [out]:
        CHANGE
    return out
"""
KERNEL = (
    SPOIL
    + """

honest_kernel = custom_kernel


def custom_kernel(data):
    return spoiled(honest_kernel(data))
"""
)
FUNCTION = """

def forward(*inputs, **named):
    return MADE


class ModelNew(Model):
    def forward(self, *inputs):
        return super().forward(*inputs, fn=forward)
"""
LOADED = """

from torch.utils.cpp_extension import load_inline

SOURCE = TEXT
_module = load_inline(name="answer", cpp_sources="", cuda_sources=SOURCE,
                      extra_cuda_cflags=["-O3", "--use_fast_math"])


class ModelNew(Model):
    def forward(self, *inputs):
        return super().forward(*inputs, fn=_module.forward)
"""  # as `kernelmill judge --suite robust-kbench` has it
NATIVE = """
template <auto F> struct spoiled;
template <class... A, torch::Tensor (*F)(A...)> struct spoiled<F> {
  static torch::Tensor run(A... a) {
    auto x = F(a...).contiguous();
    CHANGE
    return x;
  }
};

"""
TASK_TYPES = re.compile(r"^from task import (\w+(?:, *\w+)*)", re.MULTILINE)
BINDING = re.compile(r'(m\.def\(\s*"forward"\s*,\s*)&?(\w+)')
LISTED = re.compile(r"^\s*-\s*(\{.*\})\s*$")


@dataclass(frozen=True)
class Problem:
    suite: str
    name: str  # such as pmpp_v2/sort_py
    folder: pathlib.Path  # in the suite's checkout
    task: str  # as Kernelmill calls it


@dataclass(frozen=True)
class Answer:
    problem: Problem
    kind: str
    file: pathlib.Path  # what the suite's harness reads
    module: pathlib.Path  # what Kernelmill reads: the same, or a module that loads it

    @property
    def name(self) -> str:
        return f"{self.problem.suite} {self.problem.name} {self.kind}"


def listed(problem: pathlib.Path, key: str) -> list[dict]:
    """The one-line records below a key of task.yml, read without a YAML package."""
    result, inside = [], False
    for line in (problem / "task.yml").read_text().splitlines():
        if re.match(r"\S", line):
            inside = line.startswith(key + ":")
        elif inside and (found := LISTED.match(line)):
            result.append(ast.literal_eval(re.sub(r"\b(true|false)\b", lambda x: x[0].title(), found[1])))
    return result


def reference_as_answer(text: str) -> str:
    """A reference.py without its inputs, its check and the suite's modules, as a module with `custom_kernel`."""
    left_out = ("generate_input", "check_implementation")
    kept = []
    for x in ast.parse(text).body:
        names = [getattr(y, "id", "") for y in getattr(x, "targets", [])] + [getattr(x, "name", "")]
        if any(y in left_out for y in names) or getattr(x, "module", "") in ("task", "utils"):
            continue
        kept.append(x)
    before = "import contextlib\n\nDeterministicContext = contextlib.nullcontext\ninput_t = output_t = object\n"
    return before + "\n".join(ast.unparse(x) for x in kept) + "\n\n\ncustom_kernel = ref_kernel\n"


def kernel_text(problem: Problem, kind: str) -> str:
    """An answer to GPU MODE: the problem's submission, or its reference where that needs a package of its own."""
    text = (problem.folder / "submission.py").read_text()
    if re.search(r"^import helion", text, re.MULTILINE):
        text = reference_as_answer((problem.folder / "reference.py").read_text())
    text = TASK_TYPES.sub(lambda x: x[1].replace(",", " =") + " = object", text)  # an answer of ours has no such module
    if kind == "honest":
        return text
    return text + "\n\nimport torch\n" + KERNEL.replace("CHANGE", CHANGES[kind][0])


def native_kernel(problem: Problem, checkout: pathlib.Path) -> str | None:
    """The suite's own kernel of a problem of robust-kbench, where it has one that can be spoiled."""
    for file in (checkout / "highlighted" / problem.name / "forward/kernel.cu", problem.folder / "forward.cu"):
        if file.is_file() and BINDING.search(text := file.read_text()):
            return text
    return None


def native_text(text: str, kind: str) -> str:
    """A .cu file whose `forward` is spoiled."""
    if kind == "honest":
        return text
    before, macro, after = text.partition("PYBIND11_MODULE")
    bound = BINDING.sub(r"\1&spoiled<&\2>::run", after, count=1)
    return before + NATIVE.replace("CHANGE", CHANGES[kind][1]) + macro + bound


def function_text(imported: str, kind: str) -> str:
    """An answer to robust-kbench in Python: ours calls its ModelNew, the harness its `forward`."""
    made = "forward_fn(*inputs, **named)"
    if kind == "honest":
        return imported + FUNCTION.replace("MADE", made)
    return imported + SPOIL.replace("CHANGE", CHANGES[kind][0]) + FUNCTION.replace("MADE", f"spoiled({made})")


def answers_to(problem: Problem, kinds, checkout: pathlib.Path, tasks: pathlib.Path, to: pathlib.Path, native: bool):
    """Writes and returns the answers to a problem; `native` allows a .cu file."""
    robust = problem.suite == "robust-kbench"
    kernel = native_kernel(problem, checkout) if native and robust else None
    imported = (tasks / problem.task / "problem.py").read_text()
    result = []
    for kind in kinds:
        folder = to / problem.suite / problem.name / kind
        folder.mkdir(parents=True)
        file = module = folder / "answer.py"
        if kernel:
            file = folder / "forward.cu"
            file.write_text(native_text(kernel, kind))
            module.write_text(imported + LOADED.replace("TEXT", repr(file.read_text())))
        else:
            module.write_text(function_text(imported, kind) if robust else kernel_text(problem, kind))
        result.append(Answer(problem, kind, file, module))
    return result


def problems_of(suite: str, checkout: pathlib.Path, imported: list[str], patterns: list[str], count: int):
    """The first `count` imported problems that a pattern names, in the order of the patterns."""
    root = checkout / ("problems" if suite == "gpu-mode" else "tasks")
    names = [x.removeprefix(suite + "/") for x in sorted(imported) if not x.endswith("_backward")]
    result = []
    for pattern in patterns:
        for x in names:
            alike = fnmatch.fnmatch(x, pattern) and x.count("/") == pattern.count("/")
            if alike and x not in [y.name for y in result]:
                result.append(Problem(suite, x, root / x, f"{suite}/{x}"))
    return result[:count]


def batch_of(answers: list[Answer]) -> str:
    """Lines for `kernelmill judge`."""
    return "".join(json.dumps({"name": x.name, "task": x.problem.task, "file": str(x.module)}) + "\n" for x in answers)
