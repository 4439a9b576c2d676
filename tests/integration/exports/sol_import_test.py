#!/usr/bin/python3
"""Problems of the flashinfer-trace family become tasks, and tasks are again what the suite's own models take."""

import json
import pathlib
import re
import subprocess
import tempfile
import unittest

import support
from sol_test import models

support.go_on_with_trainers_python()

DEFINITION = {
    "name": "row_scale",
    "op_type": "elementwise",
    "axes": {"rows": {"type": "var"}, "cols": {"type": "const", "value": 32}},
    "inputs": {
        "x": {"shape": ["rows", "cols"], "dtype": "bfloat16"},
        "factor": {"shape": None, "dtype": "float32"},
    },
    "outputs": {"y": {"shape": ["rows", "cols"], "dtype": "bfloat16"}},
    "reference": "import torch\n\ndef run(x, factor):\n    return x * factor\n",
}


def workload(rows: int, factor: float) -> dict:
    inputs = {"x": {"type": "random"}, "factor": {"type": "scalar", "value": factor}}
    return {"uuid": f"rows-{rows}", "axes": {"rows": rows}, "inputs": inputs}


WORKLOADS = [workload(8, 0.5), workload(64, 2.0), workload(5, 0.5)]


def data_set(root: pathlib.Path) -> pathlib.Path:
    for part in ("definitions", "workloads"):
        (root / part / "elementwise").mkdir(parents=True)
    (root / "definitions/elementwise/row_scale.json").write_text(json.dumps(DEFINITION))
    lines = [{"definition": "row_scale", "workload": x, "solution": None, "evaluation": None} for x in WORKLOADS]
    (root / "workloads/elementwise/row_scale.jsonl").write_text("".join(json.dumps(x) + "\n" for x in lines))
    return root


def workloads_of(folder: pathlib.Path) -> list:
    """The workloads of a task, as the suite writes them: from its constants and its variants."""
    code = (folder / "problem.py").read_text()
    constants = {k: json.loads(v) for k, v in re.findall(r"^((?:AXIS|VALUE)_\w+) = ([\d.e+-]+)$", code, re.MULTILINE)}
    variants = json.loads((folder / "task.json").read_text()).get("variants", [])
    result = []
    for one in [{"name": WORKLOADS[0]["uuid"], "set": {}}, *variants]:
        values = constants | one["set"]
        made = workload(values["AXIS_rows"], values["VALUE_factor"])
        result.append(made | {"uuid": one["name"]})
    return result


class Import(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        self.told = json.loads(
            support.program(
                "task", "import", "flashinfer", str(data_set(self.root / "set")), "--to", str(self.root / "t"), "--json"
            )
        )
        self.task = self.root / "t/flashinfer-trace/elementwise/row_scale"

    def test_a_task_holds_the_definition_and_its_workloads(self):
        self.assertEqual((self.told["imported"], self.told["left_out"]), (1, 0))
        self.assertEqual(json.loads((self.task / "definition.json").read_text()), DEFINITION)
        self.assertEqual(workloads_of(self.task), WORKLOADS)
        shown = json.loads(
            support.program(
                "task", "show", "flashinfer-trace/elementwise/row_scale", "--root", str(self.root / "t"), "--json"
            )
        )
        self.assertEqual(len(shown["variants"]), 2)

    @unittest.skipUnless(support.has("flashinfer_bench", "pydantic"), support.missing("flashinfer_bench"))
    def test_their_models_take_what_a_task_holds(self):
        definition = models("definition").Definition.model_validate_json((self.task / "definition.json").read_text())
        theirs = models("workload").Workload
        ours = [theirs.model_validate(x) for x in workloads_of(self.task)]
        self.assertEqual(ours, [theirs.model_validate(x) for x in WORKLOADS])
        shapes = [definition.get_input_shapes(x.axes) for x in ours]
        self.assertEqual(len(shapes), 3)

    def test_a_solution_for_another_definition_is_refused(self):
        file = self.root / "solution.json"
        spec = {"languages": ["pytorch"], "entry_point": "k.py::run", "target_hardware": ["LOCAL"]}
        sources = [{"path": "k.py", "content": "def run(x, factor, y):\n    y.copy_(x * factor)\n"}]
        file.write_text(json.dumps({"name": "s", "definition": "other", "spec": spec, "sources": sources}))
        done = subprocess.run(
            [support.PROGRAM, "eval", "--task", "flashinfer-trace/elementwise/row_scale", "--root",
             str(self.root / "t"), "--json", str(file)],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        self.assertEqual(done.returncode, 2)
        self.assertIn("bad_solution", done.stdout + done.stderr)


if __name__ == "__main__":
    unittest.main()
