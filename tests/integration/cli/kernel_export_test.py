#!/usr/bin/python3
"""Kernels that runs verified: the library of them, what it is for as a baseline, and drop-ins with their own tests."""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

BIN = pathlib.Path(os.environ["KERNELMILL_BIN_DIR"])
SOURCE = pathlib.Path(os.environ["KERNELMILL_SOURCE_DIR"])
PATIENCE = 300
sys.path.insert(0, str(SOURCE / "launch/learning/client"))

import kernelmill  # noqa: E402


def python_with_torch():
    for python in (os.environ.get("KERNELMILL_PYTHON"), "/usr/bin/python3"):
        if python and subprocess.run([python, "-c", "import torch"], capture_output=True, check=False).returncode == 0:
            return python
    return None


def folder_of_class(case):
    folder = tempfile.TemporaryDirectory()
    case.addClassCleanup(folder.cleanup)
    return pathlib.Path(folder.name)


def run(folder, *words, expect=0):
    environment = {"PATH": os.environ["PATH"], "HOME": str(folder), "LC_ALL": "C.UTF-8"}
    for name in ("KERNELMILL_PYTHON", "KERNELMILL_HOME"):
        if name in os.environ:
            environment[name] = os.environ[name]
    done = subprocess.run(
        [str(x) for x in words],
        cwd=folder,
        env=environment,
        text=True,
        capture_output=True,
        check=False,
        timeout=PATIENCE,
    )
    if done.returncode != expect:
        raise AssertionError(f"{words}: {done.returncode}\n{done.stdout}{done.stderr}")
    return done


def record(folder, name, config, task, kernels, *more):
    """A run of one episode over one task: each kernel is a turn."""
    script = folder / f"{name}-script.json"
    replies = [{"task": task, "turn": i, "kernel": str(x)} for i, x in enumerate(kernels)]
    script.write_text(json.dumps({"model": "scripted", "replies": replies}))
    words = (f'tasks.ids=["{task}"]', "tasks.group_size=1", f"tasks.max_turns={len(kernels)}", "profile.enabled=false")
    run(
        folder,
        BIN / "kernelmill",
        "run",
        SOURCE / config,
        f"policy.script={script}",
        f"run.dir=runs/{name}",
        *words,
        *more,
    )


class Native(unittest.TestCase):
    """One run on a CPU: at first a wrong kernel, then a right one."""

    @classmethod
    def setUpClass(cls):
        cls.folder = folder_of_class(cls)
        kernels = SOURCE / "configs/policies/quickstart/row_sum"
        record(
            cls.folder,
            "first",
            "configs/quickstart.json",
            "native/row_sum",
            [kernels / "wrong_tail.cpp", kernels / "fast.cpp"],
            "retrieval.enabled=false",
        )

    def kernelmill(self, *words, expect=0):
        return run(self.folder, BIN / "kernelmill", *words, expect=expect)

    def listed(self, *words):
        return json.loads(self.kernelmill("kernels", *words, "--json").stdout)["kernels"]

    def test_the_library_names_the_kernel_with_what_it_was_measured_under(self):
        (row,) = self.listed()
        self.assertEqual((row["task"], row["turn"], row["language"]), ("native/row_sum", "g0.e0.t1", "cpp"))
        self.assertEqual(
            (row["licence"], row["baseline"], row["place"]), ("Apache-2.0", "eager", "runs/first/g0.e0.t1")
        )
        self.assertGreater(row["samples"], 0)
        self.assertIn("g++", row["toolchain"])
        self.assertFalse(row["stale"], row["stale_reasons"])
        self.assertEqual(self.listed("--task", "native/softmax"), [])
        self.assertEqual(self.listed("--gpu", "no such"), [])
        self.assertIn("LICENCE", self.kernelmill("kernels").stdout)

    def test_a_verdict_of_another_program_is_stale_and_names_the_next_step(self):
        old = self.folder / "old"
        shutil.copytree(self.folder / "runs", old)
        path = old / "first/manifest.json"
        manifest = json.loads(path.read_text())
        manifest["fingerprints"][0]["tool_versions"]["kernelmill"] = "0.0.1 (old)"
        manifest["tasks"][0]["digest"] = "0" * 64
        path.write_text(json.dumps(manifest))
        (row,) = self.listed("--root", "old")
        self.assertTrue(row["stale"])
        self.assertEqual(row["next"], "kernelmill replay old/first/g0.e0.t1")
        self.assertEqual([x.split(":")[0] for x in row["stale_reasons"]], ["task", "kernelmill"])
        said = self.kernelmill("kernel", "export", "old/first/best", "--out", "never", "--json", expect=2).stderr
        self.assertIn("task_changed", said)

    def test_the_best_turn_is_shown_by_the_word_that_exports_it(self):
        best = self.kernelmill("show", "runs/first/best", "--json").stdout
        self.assertEqual(best, self.kernelmill("show", "runs/first/g0.e0.t1", "--json").stdout)

    def test_a_module_builds_and_passes_its_own_test_which_finds_a_wrong_kernel(self):
        self.kernelmill("kernel", "export", "runs/first/best", "--form", "module", "--out", "module")
        module = self.folder / "module"
        verdict = json.loads((module / "verdict.json").read_text())
        self.assertEqual(verdict["outcome"], "accepted")
        self.assertGreater(verdict["speedup"]["high"], verdict["speedup"]["low"])
        self.assertIn("g++", verdict["conditions"]["toolchain"])
        provenance = json.loads((module / "provenance.json").read_text())
        self.assertEqual(provenance["policy"]["model"], "scripted")
        self.assertEqual(len(provenance["candidate_sha256"]), 64)
        self.assertEqual(provenance["licence"]["licence"], "Apache-2.0")
        hidden = [x.name for x in (module / "test/cases").iterdir() if x.name.startswith("odd_tail")]
        self.assertEqual(hidden, [], "hidden cases stay")
        run(module, "cmake", "-S", ".", "-B", "build")
        run(module, "cmake", "--build", "build")
        self.assertIn("100% tests passed", run(module, "ctest", "--test-dir", "build").stdout)
        wrong = (SOURCE / "configs/policies/quickstart/row_sum/wrong_tail.cpp").read_text()
        (module / "src/row_sum.cpp").write_text("#define solve row_sum\n" + wrong)
        run(module, "cmake", "--build", "build")
        self.assertIn("want", run(module, "build/row_sum_test", expect=1).stdout)

    def test_a_package_has_the_form_of_the_hub(self):
        self.kernelmill("kernel", "export", "runs/first/g0.e0", "--form", "package", "--out", "package")
        package = self.folder / "package"
        build = (package / "build.toml").read_text()
        for words in ('name = "row-sum"', "edition = 5", '[kernel.row_sum]\nbackend = "cpu"', "[torch]"):
            self.assertIn(words, build)
        self.assertIn("Tensor x, Tensor! y, int rows", (package / "torch-ext/torch_binding.cpp").read_text())
        self.assertIn("license: apache-2.0", (package / "README.md").read_text())

    def test_what_was_not_verified_or_is_for_evaluation_alone_is_refused(self):
        words = ("kernel", "export", "--out", "never", "--json")
        said = self.kernelmill(*words, "runs/first/g0.e0.t0", expect=2).stderr
        self.assertIn("not_verified", said)
        self.assertIn("kernelmill kernels", said)
        other = self.folder / "bound"
        shutil.copytree(self.folder / "runs", other)
        path = other / "first/manifest.json"
        manifest = json.loads(path.read_text())
        manifest["tasks"][0]["source"] = "sol-execbench"
        path.write_text(json.dumps(manifest))
        said = self.kernelmill(*words, "bound/first/best", expect=2).stderr
        self.assertIn("licence_forbids", said)
        self.assertFalse((self.folder / "never").exists())

    def evaluated(self, kernels):
        """The timing of the right kernel beside the best one of a folder."""
        kernel = SOURCE / "configs/policies/quickstart/row_sum/fast.cpp"
        words = ("--task", "native/row_sum", "--backend", "cpu", "--baseline", "best", "--best-kernels", kernels)
        done = self.kernelmill("eval", *words, kernel, "--json")
        return json.loads(done.stdout)["timing"]

    def test_the_best_kernel_is_the_baseline_of_the_next(self):
        timing = self.evaluated("runs")
        self.assertEqual(timing["baseline"], "best")
        self.assertIn("turn g0.e0.t1 of run first", timing["baseline_note"])

    def test_without_a_best_kernel_the_tasks_own_baseline_is_timed(self):
        other = self.folder / "elsewhere"
        shutil.copytree(self.folder / "runs", other)
        path = other / "first/manifest.json"
        manifest = json.loads(path.read_text())
        manifest["imported"] = {"system": "gpu_rl"}  # judged by another system
        path.write_text(json.dumps(manifest))
        timing = self.evaluated("elsewhere")
        self.assertIn(timing["baseline"], ("", "eager"))
        self.assertIn("no verified kernel", timing["baseline_note"])

    def test_best_without_a_run_is_refused(self):
        kernel = SOURCE / "configs/policies/quickstart/row_sum/fast.cpp"
        words = ("--task", "native/row_sum", "--backend", "cpu", "--baseline", "best", "--best-kernels", "nowhere")
        done = self.kernelmill("eval", *words, kernel, "--json", expect=3)
        self.assertIn("neither a run nor a folder of runs", done.stderr)
        config = SOURCE / "configs/quickstart.json"
        words = ("evaluation.baseline=best", "evaluation.best_kernels=", "run.dir=runs/never")
        self.assertIn("names no run", self.kernelmill("run", config, *words, expect=2).stderr)
        self.assertFalse((self.folder / "runs/never").exists())

    def test_a_server_answers_with_the_best_kernel(self):
        runs = str(self.folder / "runs")
        with kernelmill.serve(backend="cpu", options=["--kernels", runs], program=str(BIN / "kernelmill")) as client:
            schemas = json.loads((SOURCE / "docs/reference/openapi.json").read_text())["components"]["schemas"]
            (row,) = client._ask("GET", "/v1/kernels?operator=reduction")["kernels"]
            self.assertEqual(set(row), set(schemas["Kernel"]["properties"]))
            best = client.best_kernel("native/row_sum")
            self.assertEqual((best.turn, best.language, best.stale), ("g0.e0.t1", "cpp", False))
            self.assertEqual(client.best_kernel(operator="reduction"), best)
            self.assertEqual(client.best_kernel("native/row_sum", shape=best.shape, gpu=best.device), best)
            self.assertIsNone(client.best_kernel("native/row_sum", gpu="no such"))


@unittest.skipIf(python_with_torch() is None, "no Python here has torch")
class Torch(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = folder_of_class(cls)
        # The answer of the quickstart is the problem's own model, and a copy is no run's best.
        kernel = cls.folder / "own.py"
        copy = (SOURCE / "configs/policies/torch_quickstart/gelu_bias.py").read_text()
        kernel.write_text(copy.replace("F.gelu(x + self.bias) * scale", "F.gelu(torch.add(x, self.bias)).mul_(scale)"))
        small = cls.folder / "tasks/small/gelu_bias"  # so that timing takes moments
        shutil.copytree(SOURCE / "configs/tasks/torch/gelu_bias", small)
        document = json.loads((small / "task.json").read_text())
        (small / "task.json").write_text(json.dumps({**document, "id": "small/gelu_bias", "source": "own"}))
        problem = (small / "problem.py").read_text()
        (small / "problem.py").write_text(problem.replace("2048", "64").replace("1024", "64"))
        root = f"tasks.root={cls.folder}/tasks"
        record(cls.folder, "first", "configs/torch_quickstart.json", "small/gelu_bias", [kernel], root)

    def exported(self, form):
        run(self.folder, BIN / "kernelmill", "kernel", "export", "runs/first/best", "--form", form, "--out", form)
        return self.folder / form

    def test_a_module_passes_its_own_test_which_finds_a_wrong_kernel(self):
        module = self.exported("module")
        test = (python_with_torch(), "-B", "tests/test_gelu_bias.py")
        self.assertIn("OK", run(module, *test).stderr)
        source = module / "gelu_bias/__init__.py"
        broken = "\n\nclass GeluBias(GeluBias):\n    def forward(self, *x):\n        return super().forward(*x) + 1\n"
        source.write_text(source.read_text() + broken)
        self.assertIn("FAILED", run(module, *test, expect=1).stderr)

    def test_a_package_is_its_own_build_with_digests_of_its_files(self):
        import base64
        import hashlib

        package = self.exported("package")
        built = package / "build/torch-cpu"
        metadata = json.loads((built / "metadata.json").read_text())
        self.assertEqual((metadata["name"], metadata["backend"]["type"]), ("gelu-bias", "cpu"))
        for name, digest in metadata["digest"]["files"].items():
            wanted = base64.b64encode(hashlib.sha256((built / name).read_bytes()).digest()).decode()
            self.assertEqual(digest, wanted, name)
        self.assertIn("[torch-noarch]", (package / "build.toml").read_text())


if __name__ == "__main__":
    unittest.main()
