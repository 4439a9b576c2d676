"""What the part `hip` of gpu_check asks to be judged, without judging it."""

import pathlib
import tempfile
import unittest

from gpu_check import hip


class Candidates(unittest.TestCase):
    def test_every_native_task_has_a_right_and_a_wrong_one(self):
        tasks = hip.hip_tasks()
        native = [x for x, _ in tasks if x.startswith("native/")]
        self.assertEqual(len(native), len(list(hip.TASKS.glob("native/*/task.json"))))
        self.assertIn("verbs/port_cuda_to_hip", [x for x, _ in tasks])
        with tempfile.TemporaryDirectory() as folder:
            rows = hip.rows_of(tasks, pathlib.Path(folder))
            for task, spec in tasks:
                kinds = {name.rsplit(" ", 1)[1] for name, of, _, _ in rows if of == task}
                self.assertLessEqual({"right", "wrong"}, kinds, task)
                wrong = pathlib.Path(folder, f"{task.replace('/', '-')}-wrong.hip").read_text()
                self.assertIn(f'extern "C" void {spec.get("function", "solve")}(', wrong.split("spoil(", 1)[1])
        device = [x for x in rows if x[3] == "device"]
        self.assertGreaterEqual(len(device), 5)
        self.assertTrue(all(x[2].is_file() for x in device))

    def test_a_wrong_one_spoils_an_output(self):
        spec = {
            "arguments": [
                {"name": "x", "role": "input", "type": "f32"},
                {"name": "y", "role": "output", "type": "i32"},
                {"name": "n", "role": "scalar", "type": "i32"},
            ]
        }
        text = hip.spoiled(spec, "// the source\n")
        self.assertIn('extern "C" void solve(const float* x, int* y, int n) {', text)
        self.assertIn("right_solve(x, y, n);", text)
        self.assertIn("0, 0, y);", text)

    def test_a_reformulate_tasks_baseline_must_be_told_apart_from_an_answer(self):
        unchanged = {"outcome": "rejected", "category": "not_reformulated"}
        spec = {"verb": "reformulate"}
        self.assertTrue(hip.is_as_wanted("t right", spec, unchanged))
        self.assertFalse(hip.is_as_wanted("t right", spec, {"outcome": "accepted"}))
        self.assertFalse(hip.is_as_wanted("t right", {}, unchanged))
        self.assertTrue(hip.is_as_wanted("t wrong", spec, {"outcome": "rejected"}))
        self.assertFalse(hip.is_as_wanted("t wrong", spec, {}))
        self.assertTrue(hip.is_as_wanted("t device", spec, {"outcome": "accepted"}))


if __name__ == "__main__":
    unittest.main()
