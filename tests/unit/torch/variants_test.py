"""The same problem at other shapes, as a task names them."""

import os
import tempfile
import unittest
import unittest.mock

try:
    import torch
except ImportError:
    torch = None
if torch is not None:
    from fakes import FakeBench
    from kernelmill_torch import init_inputs
    from kernelmill_torch import referee as referee_module
    from kernelmill_torch.faults import Fault
    from kernelmill_torch.judgement import Judgement
    from kernelmill_torch.problem import BadProblem, Problem

PROBLEM = """
import torch
class Model(torch.nn.Module):
    def __init__(self, dim, bias):
        super().__init__()
        self.linear = torch.nn.Linear(dim, 8, bias=bias)
    def forward(self, x):
        return self.linear(x)
rows = 4 * 2
height, width = 4, 8
dim = height * width
shape = (rows, dim)
scale = 1.0
bias = True
def get_inputs():
    return [torch.rand(*shape) * scale]
def get_init_inputs():
    return [dim, bias]
"""


def request(folder, *given, **more):
    named = [{"name": f"v{i}", "constants": x} for i, x in enumerate(given)]
    return {"directory": folder, "digest": "a", "variants": named, **more}


@unittest.skipIf(torch is None, "there is no torch here")
class Varied(unittest.TestCase):
    def folder(self, text=PROBLEM):
        result = tempfile.TemporaryDirectory()
        self.addCleanup(result.cleanup)
        with open(os.path.join(result.name, "problem.py"), "w") as file:
            file.write(text)
        return result.name

    def problem(self, constants, text=PROBLEM):
        return Problem(self.folder(text), "cpu", "fp32", (), constants)

    def refusal(self, constants, text=PROBLEM):
        with self.assertRaises(BadProblem) as raised:
            self.problem(constants, text)
        self.assertEqual(raised.exception.category, "bad_problem")
        return str(raised.exception)

    def test_constants_are_replaced_before_what_hangs_on_them(self):
        x = self.problem({"rows": 3, "width": 2, "bias": False})
        self.assertEqual(x.init_inputs, [8, False])
        self.assertEqual(x.draw(1)[0].shape, (3, 8))
        self.assertEqual(x.layout("cpu").outputs[0].shape, (3, 8))
        plain = self.problem(None)
        self.assertEqual((plain.init_inputs, plain.draw(1)[0].shape), ([32, True], (8, 32)))

    def test_tuples_and_fractions_take_what_json_has_of_them(self):
        self.assertEqual(self.problem({"shape": [2, 32]}).draw(1)[0].shape, (2, 32))
        self.assertGreater(float(self.problem({"scale": 1000}).draw(1)[0].max()), 1)

    def test_what_is_no_variant_is_refused_by_name(self):
        self.assertIn("no constant depth", self.refusal({"depth": 3}))
        self.assertIn("of another type", self.refusal({"rows": "3"}))
        self.assertIn("of another type", self.refusal({"bias": 0}))
        self.assertIn("of another type", self.refusal({"rows": [1, 2]}))
        self.assertIn("the values that are there without it", self.refusal({"rows": 8, "width": 8}))
        self.assertIn("rows does not keep the value 3", self.refusal({"rows": 3}, PROBLEM + "globals()['rows'] = 8\n"))

    def test_a_constant_that_the_model_reads_itself_could_be_known_to_no_candidate(self):
        for text in (
            PROBLEM.replace("self.linear(x)", "self.linear(x) + height"),
            PROBLEM.replace("self.linear(x)", "self.linear(x) + dim"),
            PROBLEM.replace("self.linear(x)", "self.linear(x) + more()") + "def more():\n    return dim\n",
            PROBLEM.replace("dim, bias):", "dim, bias, h=None):")
            .replace("h=None", "h=dim")
            .replace("import torch\n", "import torch\nheight = 4\ndim = height\n", 1),
        ):
            self.assertIn("Model reads height itself", self.refusal({"height": 2}, text))
        # An argument of the same name is none of it.
        self.assertEqual(self.problem({"height": 2}).init_inputs, [16, True])

    def test_the_recorder_is_told_of_those_that_it_is_given(self):
        folder = self.folder()
        path, output = os.path.join(folder, "problem.py"), os.path.join(folder, "init.pt")
        with unittest.mock.patch("sys.argv", ["init_inputs.py", path, output, '[{"width": 2}]']):
            self.assertEqual(init_inputs.main(), 0)
        values = torch.load(output)
        self.assertEqual(values["init"], [32, True])
        self.assertEqual([x["init"] for x in values["variants"]], [[8, True]])
        with unittest.mock.patch("sys.argv", ["init_inputs.py", path, output, "7"]):
            init_inputs.main()
        self.assertEqual(torch.load(output)["inputs"][0].shape, (8, 32))

    def referee(self):
        x = referee_module.Referee(None, None, "cpu", 0)
        self.addCleanup(x.close_benches)
        return x

    def test_every_shape_is_looked_at_before_a_candidate_comes_and_once(self):
        x, folder, looks = self.referee(), self.folder(), []
        unfit = referee_module.problem_check.unfit
        with unittest.mock.patch.object(
            referee_module.problem_check, "unfit", lambda *given: looks.append(given) or unfit(*given)
        ):
            for _ in range(2):
                self.assertIsNone(x.prepare(request(folder, {"rows": 3}, {"height": 2}), [])["fault"])
        self.assertEqual(len(looks), 3)
        self.assertEqual(len(x.benches), 3)

    def test_a_shape_that_cannot_judge_is_the_tasks_fault_by_name(self):
        folder = self.folder(PROBLEM.replace("* scale", "* scale if rows != 5 else torch.full(shape, float('nan'))"))
        for given, category, words in (
            ([{"rows": 3}, {"rows": 5}], "unfit_task", "variant v1: "),
            ([{"depth": 3}], "bad_problem", "variant v0: "),
            ([{"rows": 8}], "bad_problem", "without it"),
            ([{"rows": 3}, {"shape": [3, 32]}], "bad_problem", "variant v1 has the inputs and arguments of variant v0"),
            ([{"scale": 2.0}], "bad_problem", "variant v0 has the inputs and arguments of the problem as it is"),
        ):
            fault = self.referee().prepare(request(folder, *given), [])["fault"]
            self.assertEqual((fault["class"], fault["category"]), ("configuration", category))
            self.assertIn(words, fault["message"])

    def test_a_check_says_which_variant_has_what_problem(self):
        found = self.referee().check(request(self.folder(), {"rows": 3}, {"depth": 3}, {"scale": 2.0}), [])
        self.assertEqual(len(found["problems"]), 2)
        self.assertIn("variant v1: ", found["problems"][0])
        self.assertIn("variant v2 has the inputs", found["problems"][1])
        self.assertTrue(any(x.startswith("variant v0: inputs float32[3, 32]") for x in found["notes"]))

    def test_benches_of_two_shapes_are_two(self):
        x, folder = self.referee(), self.folder()
        base = x.bench(request(folder))
        other = x.bench(request(folder, constants={"rows": 3}))
        self.assertIsNot(base, other)
        self.assertIs(x.bench(request(folder)), base)
        self.assertIs(x.bench(request(folder, constants={"rows": 3})), other)
        self.assertEqual(other.layout.inputs[0].shape, (3, 32))

    def test_an_axis_of_a_suite_may_change_contents_alone(self):
        text = PROBLEM.replace("scale", "AXIS_scale")
        x, folder, plain = self.referee(), self.folder(text), self.folder()
        for where, constants, is_refused in ((folder, {"AXIS_scale": 2.0}, False), (plain, {"scale": 2.0}, True)):
            answer, seen = x.prepare(request(where, constants), []), "has the inputs and arguments of"
            self.assertEqual(bool(answer["fault"]) and seen in answer["fault"]["message"], is_refused, answer)

    def test_an_input_may_be_a_short_list(self):
        text = PROBLEM.replace("return [torch.rand(*shape) * scale]", "return [torch.rand(*shape), (2, 1), GIVEN]")
        text = text.replace("def forward(self, x):", "def forward(self, x, repeats, other):")
        self.assertEqual(self.problem(None, text.replace("GIVEN", "[]")).draw(1)[1:], [(2, 1), []])
        for given in ("[[1]]", "[torch.ones(1)]", "[0] * 65", "{}"):
            with self.assertRaises(BadProblem, msg=given):
                self.problem(None, text.replace("GIVEN", given)).draw(1)

    def test_the_seed_of_another_shape_is_no_replay(self):
        options = {"seconds": 60, "seed": "00" * 32, "constants": {"rows": 3}}
        self.assertFalse(Judgement(FakeBench(), None, {**options, "replays": False}).replays)
        self.assertTrue(Judgement(FakeBench(), None, {**options, "replays": True}).replays)

    def test_a_fault_of_too_little_memory_is_tried_alone(self):
        x, tries = self.referee(), []

        def work():
            tries.append(len(x.benches))
            if len(tries) == 1:
                raise Fault("configuration", "unsupported_problem", "does not fit")
            return "done"

        x.bench(request(self.folder()))
        self.assertEqual((x.with_room(work), tries), ("done", [1, 0]))


if __name__ == "__main__":
    unittest.main()
