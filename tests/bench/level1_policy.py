"""Writes a scripted policy for a run over a whole level of KernelBench, and the run's configuration.

Groups of two episodes with two turns each. Member 0 fails first (a syntax error, a wrong result or an
exception, by the problem's number) and then answers in plain PyTorch; member 1 answers in plain PyTorch and
then with one of kernelbench_candidates or, where there is none, in PyTorch once more, written differently.

    python level1_policy.py --problems problems.jsonl --out DIR [--kernelmill build/bin/kernelmill]
    build/bin/kernelmill run DIR/level1.json

    python level1_policy.py --compare RUN --out DIR

DIR gets script.json, level1.json and expected.json (what each turn should come to), and with --kernelmill
the imported tasks. Answers hold code of the benchmark's problems: DIR stays outside of this project's tree.
"""

from __future__ import annotations

import argparse
import ast
import json
import pathlib
import subprocess
import sys
from collections import Counter

HERE = pathlib.Path(__file__).resolve().parent
BROKEN = ("syntax_error", "wrong_result", "exception")


class Renamed(ast.NodeTransformer):
    """Calls the class Model by another name, in its own super() too."""

    def __init__(self, name: str) -> None:
        self.name = name

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        self.generic_visit(node)
        if node.name == "Model":
            node.name = self.name
        return node

    def visit_Name(self, node: ast.Name) -> ast.AST:
        return ast.Name(self.name, node.ctx) if node.id == "Model" else node


def without_docstrings(tree: ast.Module) -> ast.Module:
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if (
            isinstance(node, (ast.ClassDef, ast.FunctionDef, ast.Module))
            and body
            and isinstance(body[0], ast.Expr)
            and isinstance(body[0].value, ast.Constant)
        ):
            node.body = body[1:] or [ast.Pass()]
    return tree


def plain(code: str, name: str = "ModelNew") -> str:
    """Returns the problem's own model under another name, without what makes its inputs."""
    tree = without_docstrings(ast.parse(code))
    tree.body = [
        x for x in tree.body if not (isinstance(x, ast.FunctionDef) and x.name in ("get_inputs", "get_init_inputs"))
    ]
    return ast.unparse(ast.fix_missing_locations(Renamed(name).visit(tree))) + "\n"


def around(code: str, forward: str) -> str:
    """Returns the problem's model with another `forward` around its own, which is `base(*inputs)`."""
    return (
        plain(code, "Plain")
        + f"""

class ModelNew(Plain):
    def forward(self, *inputs):
        base = super().forward
{forward}
"""
    )


def broken(code: str, kind: str) -> str:
    """Returns an answer that fails in the way that `kind` names."""
    if kind == "syntax_error":
        return plain(code).replace("def forward(self", "def forward(self,, ", 1)
    if kind == "exception":
        return around(code, "        raise NotImplementedError('the kernel is not written yet')")
    return around(code, "        return base(*inputs) + 1")


def otherwise(code: str) -> str:
    """Returns a right answer that is written differently: contiguous inputs and output."""
    return around(
        code,
        "        dense = [x.contiguous() if hasattr(x, 'stride') else x for x in inputs]\n"
        "        return base(*dense).contiguous()",
    )


def own_answers(folder: pathlib.Path, level: int) -> dict[int, list[tuple[str, str]]]:
    """Returns the right answers of ours by problem: their file and their source."""
    found: dict[int, list[tuple[str, str]]] = {}
    for row in json.loads((folder / "manifest.json").read_text()):
        if row["level"] == level and row["kind"] == "right" and row["language"] != "torch":
            found.setdefault(row["problem_id"], []).append((row["file"], (folder / row["file"]).read_text()))
    return found


def completion(thought: str, source: str) -> str:
    return f"<think>\n{thought}\n</think>\n<KERNEL>\n```python\n{source.rstrip()}\n```\n</KERNEL>"


def replies_of(task: str, number: int, code: str, own: list[tuple[str, str]]) -> list[tuple[dict, dict]]:
    """Returns the four replies to a task, each with what its turn should come to."""
    kind = BROKEN[number % len(BROKEN)]
    file, source = own[number % len(own)] if own else ("PyTorch, contiguous", otherwise(code))
    wanted = {"syntax_error": "compile_error", "wrong_result": "wrong_result", "exception": "runtime_error"}
    turns = [
        (0, 0, "A first attempt.", broken(code, kind), "rejected", wanted[kind], kind),
        (0, 1, "Back to the framework's operators, which are right.", plain(code), "accepted", "", "PyTorch"),
        (1, 0, "The framework's operators first.", plain(code), "accepted", "", "PyTorch"),
        (1, 1, "Now something of our own.", source, "accepted", "", file),
    ]
    result = []
    for member, turn, thought, answer, outcome, category, what in turns:
        where = {"task": task, "member": member, "turn": turn}
        result.append(
            (
                where | {"text": completion(thought, answer)},
                where | {"outcome": outcome, "category": category, "answer": what},
            )
        )
    return result


def configuration(options: argparse.Namespace, ids: list[str]) -> dict:
    evaluation = {"backend": options.backend, "contract": "torch", "language": "any"}
    if options.python:
        evaluation["python"] = str(options.python.absolute())
    return {
        "run": {"name": "", "seed": 1},
        "tasks": {"root": "tasks", "ids": ids, "groups": 1, "group_size": 2, "max_turns": 2},
        "policy": {
            "kind": "scripted",
            "script": "script.json",
            "model": "scripted-level1",
            "timeout_ms": 60000,
            "sampling": {"temperature": 1.0, "max_tokens": 65536},
        },
        "retrieval": {"enabled": False},
        "evaluation": evaluation,
        "profile": {"enabled": False},
        # Few episodes at once: a turn's deadline runs while it waits for the GPU.
        "episode": {"gamma": 0.4, "turn_deadline_ms": 900000, "deadline_ms": 3600000, "max_live": 32},
        "reward": {"preset": "kevin"},
        "advantage": "normalized",
    }


def compare(run: pathlib.Path, expected: pathlib.Path) -> int:
    """Prints what the turns of a run came to beside what they should have; returns how many differ."""
    known = {(x["task"], x["member"], x["turn"]): x for x in json.loads(expected.read_text())}
    table: Counter = Counter()
    odd = []
    for line in (run / "traces.jsonl").read_text().splitlines():
        turn = json.loads(line)
        if turn["kind"] != "turn":
            continue
        wanted = known.pop((turn["task"], turn["member"], turn["turn"]))
        got = turn["eval_result"]
        table[wanted["outcome"], wanted["category"], got["outcome"], got["category"]] += 1
        if (wanted["outcome"], wanted["category"] or got["category"]) != (got["outcome"], got["category"]):
            odd.append(
                f"{turn['task']} member {turn['member']} turn {turn['turn']} ({wanted['answer']}): "
                f"{got['outcome']}, {got['category']}"
            )
    for (outcome, category, *got), count in sorted(table.items()):
        print(f"{count:4}  wanted {outcome} {category:15} got {' '.join(got)}")
    print(f"{sum(table.values())} turns, {len(known)} missing, {len(odd)} unlike what was wanted", *odd, sep="\n  ")
    return len(odd) + len(known)


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    path = pathlib.Path
    parser.add_argument("--problems", type=path, help="problems.jsonl of KernelBench")
    parser.add_argument("--out", type=path, required=True, help="folder to write to, outside of the project")
    parser.add_argument("--candidates", type=path, default=HERE / "kernelbench_candidates")
    parser.add_argument("--level", type=int, default=1)
    parser.add_argument("--only", type=lambda x: {int(y) for y in x.split(",")}, help="numbers of problems")
    parser.add_argument("--backend", default="cuda", help="evaluation.backend. Default: cuda")
    parser.add_argument("--python", type=path, help="evaluation.python")
    parser.add_argument("--kernelmill", type=path, help="imports the tasks and validates the configuration")
    parser.add_argument(
        "--compare", type=path, metavar="RUN", help="compares a run's traces with expected.json in --out"
    )
    options = parser.parse_args(arguments)
    if not options.problems and not options.compare:
        parser.error("the problems come from --problems")
    return options


def main(arguments: list[str]) -> int:
    options = parse(arguments)
    if options.compare:
        return 1 if compare(options.compare, options.out / "expected.json") else 0
    root = HERE.parents[1]
    if options.out.resolve().is_relative_to(root):
        print(
            f"failed to write to {options.out}: it is inside of {root}, and the benchmark's code does not belong there",
            file=sys.stderr,
        )
        return 64
    rows = [json.loads(line) for line in options.problems.read_text().splitlines() if line.strip()]
    rows = [
        x for x in rows if x["level"] == options.level and (options.only is None or x["problem_id"] in options.only)
    ]
    own = own_answers(options.candidates, options.level)
    pairs = []
    for row in sorted(rows, key=lambda x: x["problem_id"]):
        task = f"kernelbench/level{row['level']}/{row['name']}"
        pairs += replies_of(task, row["problem_id"], row["code"], own.get(row["problem_id"], []))
    ids = (
        [f"kernelbench/level{options.level}/*"]
        if options.only is None
        else sorted({reply["task"] for reply, _ in pairs})
    )
    options.out.mkdir(parents=True, exist_ok=True)
    name = f"level{options.level}.json"
    script = {"model": "scripted-level1", "latency_ms": 20, "replies": [x for x, _ in pairs]}
    (options.out / "script.json").write_text(json.dumps(script, indent=1) + "\n")
    (options.out / name).write_text(json.dumps(configuration(options, ids), indent=2) + "\n")
    (options.out / "expected.json").write_text(json.dumps([x for _, x in pairs], indent=1) + "\n")
    kinds = Counter(x["answer"] if "/" not in x["answer"] else "candidates" for _, x in pairs)
    print(
        f"{len(pairs)} replies to {len(rows)} problems: "
        + ", ".join(f"{count} {kind}" for kind, count in kinds.items())
    )
    if options.kernelmill:
        tasks = options.out / "tasks"
        if not tasks.exists():
            subprocess.run(
                [options.kernelmill, "task", "import", "kernelbench", options.problems, "--to", tasks], check=True
            )
        subprocess.run([options.kernelmill, "config", "validate", options.out / name], check=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
