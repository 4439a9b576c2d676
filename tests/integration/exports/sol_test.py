#!/usr/bin/python3
"""Solutions and traces, validated by flashinfer-bench's own models."""

import importlib
import importlib.util
import json
import pathlib
import sys
import types
import unittest

import support

support.go_on_with_trainers_python()


def models(name: str):
    """A module of flashinfer_bench.data, without the package around it: that wants a GPU's worth of others."""
    package = types.ModuleType("flashinfer_data")
    spec = importlib.util.find_spec("flashinfer_bench")
    package.__path__ = [str(pathlib.Path(x) / "data") for x in spec.submodule_search_locations]
    sys.modules["flashinfer_data"] = package
    return importlib.import_module(f"flashinfer_data.{name}")


@unittest.skipUnless(support.has("flashinfer_bench", "pydantic"), support.missing("flashinfer_bench"))
class Sol(unittest.TestCase):
    def test_their_models_take_the_golden_files(self):
        solution, trace = models("solution").Solution, models("trace").Trace
        solutions = [solution.model_validate(x) for x in support.golden_rows("sol-solutions")]
        traces = [trace.model_validate(x) for x in support.golden_rows("sol-traces")]
        self.assertEqual([x.name for x in solutions], [x.solution for x in traces])
        self.assertEqual(
            [x.evaluation.status.value for x in traces], ["INCORRECT_NUMERICAL", "PASSED", "COMPILE_ERROR"]
        )

    def test_their_models_take_every_file(self):
        solution, trace = models("solution").Solution, models("trace").Trace
        folder = support.the_run().export("sol")
        solutions = {}
        for path in (folder / "solutions").rglob("*.json"):
            one = solution.model_validate_json(path.read_text())
            self.assertEqual(path.parent.name, one.definition)
            self.assertTrue(one.get_entry_source().content)
            solutions[one.name] = one
        traces = [
            trace.model_validate_json(x) for f in (folder / "traces").iterdir() for x in f.read_text().splitlines()
        ]
        self.assertEqual(sorted(solutions), sorted(x.solution for x in traces))
        self.assertGreater(sum(x.is_successful() for x in traces), 5)
        self.assertTrue(any(x.evaluation.status == "INCORRECT_NUMERICAL" for x in traces))
        provenance = json.loads((folder / "PROVENANCE.json").read_text())
        self.assertEqual(provenance["solutions"], len(traces))


if __name__ == "__main__":
    unittest.main()
