"""Tasks whose choices matter, and texts to pretrain on, all made by templates.

Each task is a loop over a matrix with a function f of its own. How fast an answer is depends on what no prompt tells:
how many partial results it keeps, how large its tiles are, in which order it walks. Templates write answers of every
kind, slow and wrong ones too, as often as fast ones: which of them pays is for the policy to find out.
"""

import json
import pathlib
import random
import re
from typing import Any, Dict, List, NamedTuple, Sequence, Set, Tuple

from . import cuda_answers

ATOMS = ["v", "v * v", "std::fabs(v)", "std::max(v, 0.0f)", "std::min(v, 1.0f)", "std::max(v, -0.5f)"]
FACTORS = ["", "0.25f * ", "0.5f * ", "0.75f * ", "1.5f * ", "2.0f * ", "3.0f * "]
SIZES = [2, 4, 8, 16, 32, 64]
WORDS = {
    "row_sum": (
        "Sum a function of the elements of each row of a matrix: `y[i]` is the sum of `f(x[i * cols + j])` over j."
    ),
    "row_max": (
        "Find the largest value of a function on each row of a matrix: "
        "`y[i]` is the maximum of `f(x[i * cols + j])` over j."
    ),
    "col_sum": (
        "Sum a function of the elements of each column of a matrix: `y[j]` is the sum of `f(x[i * cols + j])` over i."
    ),
    "turned": "Apply a function to a matrix and transpose it: `y[j * rows + i]` is `f(x[i * cols + j])`.",
}
OUTPUT = {"row_sum": "rows", "row_max": "rows", "col_sum": "cols", "turned": "cols * rows"}
WITHOUT_SIZE = {"plain": "in order", "order": "the other order", "simd": "simd", "warp": "a warp"}
HEAD = "#include <algorithm>\n#include <cmath>\n\nstatic float f(float v) {{ return {}; }}\n\n"
SOLVE = 'extern "C" void solve(const float* x, float* y, int rows, int cols) {\n'


class Task(NamedTuple):
    id: str
    family: str
    terms: Tuple[str, ...]  # f is their sum
    rows: int
    cols: int
    backend: str = "cpu"

    @property
    def f(self) -> str:
        return " + ".join(self.terms)

    @property
    def shape(self) -> str:
        return f"rows = {self.rows}, cols = {self.cols}"


# -- what there is ----------------------------------------------------------------------------------


def make_terms(draw: random.Random, family: str, taken: Set[str]) -> Tuple[str, ...]:
    """Terms of a function that is not taken."""
    # The maximum of what is cut off above would be the same on every row.
    atoms = [x for x in ATOMS if family != "row_max" or "min" not in x]
    while True:
        terms = tuple(draw.choice(FACTORS) + draw.choice(atoms) for _ in range(draw.randint(1, 2)))
        if len(set(terms)) == len(terms) and " + ".join(terms) not in taken:
            return terms


def make_tasks(part: str, count: int, seed: int, taken: Sequence[Task] = (), backend: str = "cpu") -> List[Task]:
    """`count` tasks of every family. None has the function or the timed shape of a task that is `taken`."""
    draw = random.Random(f"{part}/{seed}")
    functions, shapes = {x.f for x in taken}, {(x.rows, x.cols) for x in taken}
    result = []
    for family in WORDS:
        for number in range(count):
            terms = make_terms(draw, family, functions)
            shape = (0, 0)
            while shape in shapes or not shape[0]:
                # Rows that are a power of two times a line's floats share places of the cache when they are walked
                # down.
                rows = draw.choice([256, 384, 512]) if family == "turned" else draw.randrange(128, 321, 16)
                # An odd number of lines a row: walked down 144 rows of 52 lines, a baseline is at the edge of what its
                # cache's sets hold, and slower after a candidate that ran before it (`slows_baseline`).
                shape = (
                    (rows, draw.randrange(528, 1025, 32))
                    if backend == "cpu"
                    else (8 * rows, 4 * draw.randrange(512, 1025, 16))
                )
            if part != "practice":  # tasks that count differ from each other too
                functions.add(" + ".join(terms))
                shapes.add(shape)
            result.append(Task(f"{part}/{family}_{number}", family, terms, *shape, backend))
    return result


def in_double(code: str) -> str:
    return re.sub(r"(\d)f\b", r"\1", code)


def truth(task: Task) -> Tuple[str, str]:
    """f, and the scale of the error that honest float arithmetic makes: f's terms may cancel, their sizes do not."""
    return in_double(task.f), " + ".join(f"std::fabs({in_double(x)})" for x in task.terms)


def reference(task: Task) -> str:
    value, size = truth(task)
    head = (
        "#include <algorithm>\n#include <cmath>\n\n"
        f"static double f(double v) {{ return {value}; }}\nstatic double size(double v) {{ return {size}; }}\n\n"
        'extern "C" void reference(const double* x, double* y, double* y_scale, int rows, int cols) {\n'
    )
    if task.family == "turned":
        return head + (
            "  for (long i = 0; i < rows; ++i)\n    for (long j = 0; j < cols; ++j) {\n"
            "      y[j * rows + i] = f(x[i * cols + j]);\n"
            "      y_scale[j * rows + i] = size(x[i * cols + j]);\n    }\n}\n"
        )
    outer, inner, place = (
        ("cols", "rows", "j * cols + i") if task.family == "col_sum" else ("rows", "cols", "i * cols + j")
    )
    if task.family == "row_max":
        start, step, scale = (
            "-INFINITY",
            "result = std::max(result, f(v));\n      sizes = std::max(sizes, size(v));",
            "sizes",
        )
    else:
        start, scale = "0", f"sizes + std::sqrt(double({inner})) * most"
        step = "result += f(v);\n      sizes += size(v);\n      most = std::max(most, std::fabs(result));"
    return head + (
        f"  for (long i = 0; i < {outer}; ++i) {{\n    double result = {start}, sizes = 0, most = 0;\n"
        f"    for (long j = 0; j < {inner}; ++j) {{\n      const double v = x[{place}];\n      {step}\n    }}\n"
        f"    y[i] = result;\n    y_scale[i] = {scale};\n  }}\n}}\n"
    )


def baseline(task: Task, backend: str) -> str:
    """What speedups are measured against: right, and in an order of memory that is easy to improve on."""
    return kernel(task._replace(backend=backend), "plain" if task.family == "turned" else "order", 0)


def write_task(root: pathlib.Path, task: Task) -> None:
    folder = root / task.id
    folder.mkdir(parents=True, exist_ok=True)
    cuda = task.backend == "cuda"
    timed = {"scalars": {"rows": task.rows, "cols": task.cols}}
    case = lambda name, rows, cols, fill="", hidden=True: {  # noqa: E731
        "name": name,
        "scalars": {"rows": rows, "cols": cols},
        **({"hidden": True} if hidden else {}),
        **({"fills": {"x": fill}} if fill else {}),
    }
    (folder / "task.json").write_text(
        json.dumps(
            {
                "schema_version": 1,
                "id": task.id,
                "title": WORDS[task.family].split(":")[0],
                "verb": "optimize",
                "source": "own",
                "operator_family": "layout" if task.family == "turned" else "reduction",
                "backends": ["cpu"] + ["cuda"] * cuda,
                "arguments": [
                    {"name": "x", "role": "input", "type": "f32", "shape": ["rows", "cols"], "fill": "normal"},
                    {"name": "y", "role": "output", "type": "f32", "shape": [OUTPUT[task.family]]},
                    {"name": "rows", "role": "scalar", "type": "i32"},
                    {"name": "cols", "role": "scalar", "type": "i32"},
                ],
                "cases": [
                    case("small", 4, 8, hidden=False),
                    case("odd", 5, 37, hidden=False),
                    case("one", 1, 1),
                    case("primes", 67, 127),
                    case("tail", 33, 259, "outlier"),
                    case("tall", 1021, 3, "positive"),
                    case("wide", 3, 1025, "signs"),
                    case("beyond", 65, 33, "sparse"),
                ],
                **({"timed": {"scalars": {"rows": 97, "cols": 401}}, "timed_gpu": timed} if cuda else {"timed": timed}),
                "tolerance": 8,
                "bytes": f"4*rows*cols + 4*{OUTPUT[task.family].replace(' ', '')}",
                "flops": "rows*cols",
            },
            indent=1,
        )
    )
    (folder / "prompt.md").write_text(
        WORDS[task.family] + f"\n\n```cpp\nfloat f(float v) {{ return {task.f}; }}\n```\n\n"
        "`rows` and `cols` are at least 1 and otherwise arbitrary.\n"
    )
    (folder / "reference.cpp").write_text(reference(task))
    (folder / "baseline.cpp").write_text(baseline(task, "cpu"))
    if cuda:
        (folder / "reference.cu").write_text(cuda_answers.reference(task, *truth(task)))
        (folder / "baseline.cu").write_text(baseline(task, "cuda"))


# -- answers ----------------------------------------------------------------------------------------


def fold(family: str, to: str, value: str) -> str:
    return f"{to} = std::max({to}, {value});" if family == "row_max" else f"{to} += {value};"


def row_body(task: Task, kind: str) -> str:
    first = "f(a[0])" if task.family == "row_max" else "0"
    open_row = "  for (int i = 0; i < rows; ++i) {\n    const float* a = x + long(i) * cols;\n"
    if kind == "order":  # walks down the columns
        start = "f(x[long(i) * cols])" if task.family == "row_max" else "0"
        return (
            f"  for (int i = 0; i < rows; ++i) y[i] = {start};\n  for (int j = 0; j < cols; ++j)\n"
            f"    for (int i = 0; i < rows; ++i) {fold(task.family, 'y[i]', 'f(x[long(i) * cols + j])')}\n"
        )
    if kind in ("plain", "simd"):
        how = "max" if task.family == "row_max" else "+"
        mark = f"#pragma omp simd reduction({how} : s)\n" if kind == "simd" else ""
        return (
            f"{open_row}    float s = {first};\n"
            f"{mark}    for (int j = 0; j < cols; ++j) {fold(task.family, 's', 'f(a[j])')}\n"
            "    y[i] = s;\n  }\n"
        )
    start = (
        "    float s[n];\n    for (int k = 0; k < n; ++k) s[k] = f(a[0]);\n"
        if task.family == "row_max"
        else "    float s[n] = {};\n"
    )
    tail = "" if kind == "no tail" else f"    for (; j < cols; ++j) {fold(task.family, 's[0]', 'f(a[j])')}\n"
    return (
        f"{open_row}{start}    int j = 0;\n    for (; j + n <= cols; j += n)\n"
        f"      for (int k = 0; k < n; ++k) {fold(task.family, 's[k]', 'f(a[j + k])')}\n{tail}"
        f"    for (int k = 1; k < n; ++k) {fold(task.family, 's[0]', 's[k]')}\n    y[i] = s[0];\n  }}\n"
    )


def column_body(kind: str) -> str:
    if kind == "plain":
        return (
            "  for (int j = 0; j < cols; ++j) y[j] = 0;\n  for (int i = 0; i < rows; ++i)\n"
            "    for (int j = 0; j < cols; ++j) y[j] += f(x[long(i) * cols + j]);\n"
        )
    if kind == "order":
        return (
            "  for (int j = 0; j < cols; ++j) {\n    float s = 0;\n"
            "    for (int i = 0; i < rows; ++i) s += f(x[long(i) * cols + j]);\n    y[j] = s;\n  }\n"
        )
    tail = (
        (
            "    else\n      for (int i = 0; i < rows; ++i)\n"
            "        for (int k = 0; k < w; ++k) s[k] += f(x[long(i) * cols + j + k]);\n"
        )
        if kind != "no tail"
        else ""
    )
    return (
        "  for (int j = 0; j < cols; j += n) {\n    float s[n] = {};\n"
        "    const int w = std::min(n, cols - j);\n    if (w == n)\n"
        "      for (int i = 0; i < rows; ++i)\n"
        "        for (int k = 0; k < n; ++k) s[k] += f(x[long(i) * cols + j + k]);\n"
        f"{tail}    for (int k = 0; k < w; ++k) y[j + k] = s[k];\n  }}\n"
    )


def turned_body(kind: str) -> str:
    body = "y[long(j) * rows + i] = f(x[long(i) * cols + j]);\n"
    if kind in ("plain", "order"):
        outer, inner = (("i", "rows"), ("j", "cols")) if kind == "plain" else (("j", "cols"), ("i", "rows"))
        return (
            f"  for (int {outer[0]} = 0; {outer[0]} < {outer[1]}; ++{outer[0]})\n"
            f"    for (int {inner[0]} = 0; {inner[0]} < {inner[1]}; ++{inner[0]}) {body}"
        )
    ends = ("p + n", "q + n") if kind == "no tail" else ("std::min(p + n, rows)", "std::min(q + n, cols)")
    return (
        "  for (int p = 0; p < rows; p += n)\n    for (int q = 0; q < cols; q += n)\n"
        f"      for (int j = q; j < {ends[1]}; ++j)\n        for (int i = p; i < {ends[0]}; ++i)\n          {body}"
    )


def kernel(task: Task, kind: str, size: int) -> str:
    if task.backend == "cuda":
        return cuda_answers.kernel(task, kind, size)
    body = {"col_sum": column_body, "turned": turned_body}.get(task.family, lambda x: row_body(task, x))(kind)
    return HEAD.format(task.f) + SOLVE + (f"  constexpr int n = {size};\n" if size else "") + body + "}\n"


def answer(task: Task, draw: random.Random) -> str:
    """An answer in the form that Kernelmill asks for: right or wrong, fast or slow, as it comes."""
    kinds = ["plain", "order", "parts", "parts", "parts", "no tail"] + (
        ["simd"] if task.family.startswith("row") else []
    )
    sizes, language = SIZES, "cpp"
    if task.backend == "cuda":
        kinds, sizes, language = cuda_answers.kinds(task.family), cuda_answers.sizes(task.family), "cuda"
    kind = draw.choice(kinds)
    size = draw.choice(sizes) if kind not in WITHOUT_SIZE else 0
    plan = ("split, " if kind == "split" else "") + f"{size} at a time" if size else WITHOUT_SIZE[kind]
    return f"<think>\n{plan}\n</think>\n<KERNEL>\n```{language}\n{kernel(task, kind, size)}```\n</KERNEL>\n"


# -- what must stay unseen ---------------------------------------------------------------------------


class Leak(Exception):
    """A text for training has what was held out."""


def check_held_out(texts: Sequence[str], held_out: Sequence[Task]) -> int:
    """How many texts were searched for the held-out tasks' names, functions and shapes;
    raises Leak where one occurs."""
    for task in held_out:
        rows, cols, between = rf"\b{task.rows}\b", rf"\b{task.cols}\b", r"\D{1,12}"
        shape = re.compile(f"{rows}{between}{cols}|{cols}{between}{rows}")
        for text in texts:
            found = (
                task.id in text
                and task.id
                or f"return {task.f};" in text
                and task.f
                or shape.search(text)
                and task.shape
            )
            if found:
                raise Leak(f'a text for training has "{found}" of the held-out task {task.id}')
    return len(texts)


def write_all(
    root: pathlib.Path, train: int = 3, held_out: int = 1, practice: int = 100, seed: int = 1, backend: str = "cpu"
) -> Dict[str, Any]:
    """Writes the folders of all tasks; returns them by part: held_out, train, and practice for the texts."""
    parts = {"held_out": make_tasks("held_out", held_out, seed, (), backend)}
    parts["train"] = make_tasks("train", train, seed, parts["held_out"], backend)
    parts["practice"] = make_tasks("practice", practice, seed, parts["held_out"], backend)
    for tasks in parts.values():
        for task in tasks:
            write_task(root, task)
    return parts
