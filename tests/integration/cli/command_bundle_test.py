#!/usr/bin/env python3
"""--bundle of the commands that judge a candidate, on a CPU: a folder in the layout of a turn's bundle, whole and as
its schemas say; and the parts of a stored turn, one by one."""

import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

import json_schema

BIN = pathlib.Path(os.environ["KERNELMILL_BIN_DIR"])
SOURCE = pathlib.Path(os.environ["KERNELMILL_SOURCE_DIR"])
KERNELS = SOURCE / "configs/policies/quickstart/row_sum"
REPORTS = SOURCE / "tests/unit/profiler/golden"
PATIENCE = 500
SECTIONS = ("build", "profile", "sanitizer", "quality", "replay", "sass", "timing")
CUDA = """// launch: f<<<rows, 32>>>(x, y, rows, cols)
extern "C" __global__ void f(const float* x, float* y, int rows, int cols) {
  float s = 0;
  for (int j = 0; j < cols; ++j) s += x[long(blockIdx.x) * cols + j];
  if (threadIdx.x == 0) y[blockIdx.x] = s;
}
"""


def schema(name):
    return json.loads((SOURCE / f"configs/schemas/{name}.schema.json").read_text())


class CommandBundles(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="kernelmill-command-bundle-"))
        cls.addClassCleanup(shutil.rmtree, cls.folder, True)

    def call(self, *arguments, codes=(0,)):
        done = subprocess.run(
            [BIN / "kernelmill", *map(str, arguments)],
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
            cwd=self.folder,
        )
        self.assertIn(done.returncode, codes, f"{arguments}\n{done.stdout}\n{done.stderr}")
        return done

    def document(self, *arguments, codes=(0,)):
        return json.loads(self.call(*arguments, "--json", codes=codes).stdout)

    def check(self, folder, turns=1):
        """Whole, and as the schemas say."""
        verified = self.document("bundle", "verify", folder)
        self.assertTrue(verified["good"], verified)
        self.assertEqual(verified["turns"], turns)
        listed = json.loads((self.folder / folder / "hashes.json").read_text())
        self.assertEqual(list(json_schema.problems(schema("bundle-hashes"), listed)), [])
        for path in (self.folder / folder).rglob("*.json"):
            json.loads(path.read_text())
        for path in (self.folder / folder).rglob("trace.jsonl"):
            line = json.loads(path.read_text())
            self.assertEqual(list(json_schema.problems(schema("trace-line"), line)), [])
        everything = b"".join(x.read_bytes() for x in (self.folder / folder).rglob("*") if x.is_file())
        self.assertNotIn(str(self.folder).encode(), everything)
        return lambda name: json.loads((self.folder / folder / name).read_text())

    def test_eval(self):
        self.call("eval", "--task", "native/row_sum", "--bundle", "eval/new", KERNELS / "fast.cpp")
        read = self.check("eval/new")
        output = read("command/output.json")
        self.assertEqual(read("eval/eval_envelope.json")["correctness_gate"], "pass")
        self.assertEqual(read("correctness/correctness.json")["hidden_tests_ok"], True)
        timings = read("perf/raw_timings.json")
        if output["timing"]["measured"]:
            self.assertGreater(len(timings["timings"]), 1)
        else:  # on a busy machine
            self.assertEqual(timings["status"], "not_run")
        fingerprint = read("meta/hardware_fingerprint.json")
        self.assertEqual(fingerprint["host_kernel"], os.uname().release)
        self.assertEqual(
            (self.folder / "eval/new/candidate/source.txt").read_text(), (KERNELS / "fast.cpp").read_text()
        )
        # The command that it tells judges the same contents again.
        again = read("replay/command.json")["command"]
        self.assertEqual(again[:3], ["kernelmill", "eval", "fast.cpp"])
        shutil.copy(KERNELS / "fast.cpp", self.folder)
        self.assertEqual(self.document(*again[1:], "--no-timing")["cases"], output["cases"])

    def test_a_folder_that_holds_something_is_refused_before_the_work(self):
        (self.folder / "full").mkdir()
        (self.folder / "full/kept").write_text("1")
        for command in ("eval", "bench", "sanitize", "profile"):
            done = self.call(
                command, "--task", "native/row_sum", "--bundle", "full", KERNELS / "fast.cpp", codes=(2, 4)
            )
            self.assertIn("not an empty folder", done.stderr)
        self.assertEqual(os.listdir(self.folder / "full"), ["kept"])

    def test_build(self):
        self.call("build", KERNELS / "broken.cpp", "--bundle", "build")
        read = self.check("build")
        self.assertEqual(read("build/build_record.json")["status"], "failed")
        self.assertIn("error", (self.folder / "build/build/log.txt").read_text())
        self.assertEqual(read("summary.json")["status"], "open")
        self.assertEqual(read("correctness/correctness.json")["status"], "not_run")
        # It asked for no verdict, and so has no reward; that it does not compile is known all the same.
        envelope = read("eval/eval_envelope.json")
        self.assertEqual((envelope["compile_gate"], envelope["final_score"]), ("fail", None))

    def test_bench(self):
        self.call(
            *("bench", KERNELS / "fast.cpp", "--task", "native/row_sum", "--evaluations", "1", "--bundle", "bench"),
            *("--shapes", "rows=8,cols=64"),
            codes=(0, 1),
        )
        read = self.check("bench")
        self.assertEqual(len(read("command/output.json")["shapes"]), 1)
        self.assertEqual(read("correctness/correctness.json")["visible_tests_ok"], True)

    def test_sanitize(self):
        self.call(
            *("sanitize", KERNELS / "fast.cpp", "--task", "native/row_sum", "--backend", "cpu", "--tool", "memcheck"),
            *("--bundle", "sanitize"),
            codes=(0, 5),
        )
        summary = self.check("sanitize")("sanitize/memcheck_summary.json")
        self.assertEqual([x["check"] for x in summary["checks"]], ["memcheck"])
        self.assertIn(summary["status"], ("completed", "incomplete"))

    @unittest.skipUnless(os.access("/usr/local/cuda/bin/nvcc", os.X_OK), "no nvcc on this machine")
    def test_inspect(self):
        (self.folder / "kernel.cu").write_text(CUDA)
        self.call("inspect", "kernel.cu", "--arch", "sm_90", "--section", "quality", "--bundle", "inspect")
        read = self.check("inspect")
        view = read("build/tri_view.json")
        self.assertEqual([x["name"] for x in view["kernels"]], ["f"])
        self.assertGreater(read("build/source_map_summary.json")["kernels"][0]["ptx"]["with_line"], 0)
        self.assertGreater(len(read("build/source_ptx_sass_map.json")["kernels"][0]["lines"]), 1)
        self.assertEqual(read("build/build_record.json")["ptx_ref"], "build/kernel.ptx")
        self.assertIn(".entry f", (self.folder / "inspect/build/kernel.ptx").read_text())

    def test_profile_of_reports(self):
        self.call("profile", "read", REPORTS / "ncu_full_recorded.csv", "--bundle", "ncu")
        self.assertNotEqual(self.check("ncu")("bottlenecks/primary.json")["primary_bottleneck"], "")
        self.call("profile", "read", REPORTS / "racecheck_clean_recorded.txt", "--bundle", "racecheck")
        self.assertEqual(self.check("racecheck")("sanitize/memcheck_summary.json")["clean"], True)
        self.assertTrue((self.folder / "racecheck/reports/compute-sanitizer/report.txt").exists())
        (self.folder / "smi.json").write_text('{"card0": {"Temperature (Sensor edge) (C)": "40.0"}}')
        self.call("profile", "read", "smi.json", "--bundle", "smi")
        self.assertEqual(self.check("smi")("traces/system/summary.json")["tool"], "rocm-smi")

    def test_run_and_the_sections_of_its_turns(self):
        self.call(
            *("run", SOURCE / "configs/quickstart.json", 'tasks.ids=["native/row_sum"]', "tasks.group_size=1"),
            *("tasks.max_turns=2", "retrieval.enabled=false", "run.dir=runs/first", "--bundle", "whole"),
        )
        read = self.check("whole", turns=2)
        self.assertEqual(read("turns/g0.e0.t1/manifest.json")["run_id"], "first/g0.e0.t1")
        for name in SECTIONS:
            shown = self.document("show", "runs/first/g0.e0.t1", "--section", name)
            self.assertEqual(shown["section"], name)
            self.assertNotEqual(self.call("show", "runs/first/g0.e0.t1", "--section", name).stdout, "")
        timing = self.document("show", "runs/first/g0.e0.t1", "--section", "timing")
        self.assertEqual(bool(timing["pairs"]), timing["measured"])
        self.assertEqual(
            self.document("show", "runs/first/g0.e0.t1", "--section", "replay")["command"][:2], ["kernelmill", "replay"]
        )
        unknown = self.call("show", "runs/first/g0.e0.t1", "--section", "perf", codes=(2,)).stderr
        for name in SECTIONS:
            self.assertIn(name, unknown)
        self.call("show", "runs/first/g0.e0", "--section", "build", codes=(2,))
        # gpu_rl's word for all that there is.
        self.call("bundle", "keygen", "--out", "sign.pem")
        self.call("bundle", "make", "first", "--full", "--key", "sign.pem", "--out", "full.tar.zst")
        self.assertEqual(self.document("bundle", "verify", "full.tar.zst")["form"], "proof")


if __name__ == "__main__":
    unittest.main()
