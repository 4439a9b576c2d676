#!/usr/bin/python3
"""ComputeEval's forms through the program: packs, hostile files, solutions and graded solutions.

Every problem here is made up. What comes from elsewhere is refused with its place and a next step, and
nothing of it is written.
"""

import gzip
import hashlib
import io
import json
import os
import pathlib
import shutil
import subprocess
import tarfile
import tempfile
import unittest

PROGRAM = os.path.join(os.environ["KERNELMILL_BIN_DIR"], "kernelmill")
TEST = """#include "twice.h"
#include <cstdio>
int main() {
  for (int i = -3; i < 4; ++i)
    if (twice(i) != 2 * i) return 1;
  std::puts("all right");
}
"""


def file(path, content):
    return {"path": path, "content": content}


def problem(task_id="CUDA/7", **more):
    return {
        "type": "cuda_cpp",
        "schema_version": 2,
        "task_id": task_id,
        "date": "2026-01-02",
        "prompt": "Write `twice` of `twice.h` in `solution.cpp`.",
        "metadata": {"difficulty": "easy", "tags": [], "releases": ["2026-1"], "do_not_release": False},
        "group": "cuda-kernels",
        "context_files": [file("include/twice.h", "int twice(int x);\n")],
        "test_files": [file("test/test_main.cpp", TEST)],
        "source_references": None,
        "build_command": "g++ -I include -o test.out solution.cpp test/*.cpp",
        "test_command": "./test.out",
        "benchmark_command": None,
        "timing_mode": {"type": "process"},
        "min_cuda_toolkit": None,
        "compute_capability": None,
        "requires_datacenter_gpu": False,
        "timeout_seconds": 60.0,
        "baseline_solution": {
            "schema_version": 1,
            "type": "file",
            "task_id": task_id,
            "files": [file("solution.cpp", '#include "twice.h"\nint twice(int x) { return 2 * x; }\n')],
        },
    } | more


def lines(records):
    return "".join(json.dumps(x) + "\n" for x in records)


def pack(path, records, release="2026-1", **metadata):
    text = lines(records)
    hashes = {
        x["task_id"]: hashlib.md5(line.encode()).hexdigest()
        for x, line in zip(records, text.splitlines(True), strict=True)
    }
    facts = {"release": release, "total_count": len(records), "task_id_hashes": hashes} | metadata
    with tarfile.open(path, "w:gz") as tar:
        for name, content in (("metadata.json", json.dumps(facts)), ("problems.jsonl", text)):
            info = tarfile.TarInfo(name)
            info.size, info.mtime = len(content.encode()), 1.5  # an extended header, as Python's tar writes them
            tar.addfile(info, io.BytesIO(content.encode()))
    return path


class ComputeEval(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="kernelmill-compute-eval-"))
        self.tasks = self.folder / "tasks"

    def tearDown(self):
        shutil.rmtree(self.folder)

    def run_program(self, *words):
        return subprocess.run([PROGRAM, *map(str, words)], text=True, capture_output=True, cwd=self.folder)

    def take(self, path, *more):
        return self.run_program("task", "import", "compute-eval", path, "--to", self.tasks, "--json", *more)

    def write(self, name, content):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    def test_a_pack_becomes_tasks_and_a_second_time_changes_nothing(self):
        path = pack(self.folder / "2026-1-problems.tar.gz", [problem(), problem("cudnn/3", group="cudnn")])
        done = self.take(path)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(json.loads(done.stdout)["imported"], 2)
        task = json.loads((self.tasks / "compute-eval/2026-1/CUDA_7/task.json").read_text())
        self.assertEqual(task["program"]["answer_file"], "solution.cpp")
        self.assertEqual(json.loads(self.take(self.folder).stdout)["unchanged"], 2)
        self.assertEqual(json.loads(self.take(path, "--group", "cudnn").stdout)["unchanged"], 1)
        self.assertEqual(self.take(path, "--group", "none").returncode, 2)

    def test_hostile_files_are_refused_with_their_place_and_leave_nothing(self):
        good = problem()
        cut = pack(self.folder / "whole.tar.gz", [good]).read_bytes()
        linked = io.BytesIO()
        with tarfile.open(fileobj=linked, mode="w:gz") as tar:
            info = tarfile.TarInfo("problems.jsonl")
            info.type, info.linkname = tarfile.SYMTYPE, "/etc/passwd"
            tar.addfile(info)
        outside = self.write("secret", "token\n")
        spec = "task_id: a/1\nproblem_type: cuda_cpp\n"
        (self.folder / "spec-link/context").mkdir(parents=True)
        (self.folder / "spec-link/context/x.h").symlink_to(outside)
        self.write("spec-link/problem-spec.yaml", spec)
        bomb = "a: &a [1, 1, 1, 1, 1, 1, 1, 1, 1]\n" + "".join(
            f"{b}: &{b} [{', '.join(['*' + a] * 9)}]\n" for a, b in zip("abcdefg", "bcdefgh", strict=True)
        )
        self.write("spec-bomb/problem-spec.yaml", bomb)
        self.write("spec-broken/problem-spec.yaml", "task_id: [\n")
        cases = {
            "cut off": self.write("cut-problems.tar.gz", cut[:-40]),
            "damaged": self.write("hurt-problems.tar.gz", cut[:60] + b"\xff\xff\xff" + cut[63:]),
            "no tar": self.write("no-problems.tar.gz", gzip.compress(b"x" * 2048)),
            "a link": self.write("linked-problems.tar.gz", linked.getvalue()),
            "another count": pack(self.folder / "count-problems.tar.gz", [good], total_count=2),
            "another hash": pack(self.folder / "hash-problems.tar.gz", [good], task_id_hashes={"CUDA/7": "0" * 32}),
            "no metadata": self.write("bare-problems.tar.gz", b""),
            "twice one id": self.write("twice.jsonl", lines([good, good])),
            "no JSON": self.write("json.jsonl", lines([good]) + "{\n"),
            "no UTF-8": self.write("bytes.jsonl", b'{"task_id": "\xff\xfe"}\n'),
            "deep": self.write("deep.jsonl", "[" * 200_000 + "\n"),
            "an id that leaves": self.write("id.jsonl", lines([problem("../../../etc/cron")])),
            "a huge number": self.write("huge.jsonl", lines([problem(timeout_seconds=1e300)])),
            "a path that leaves": self.write("path.jsonl", lines([problem(test_files=[file("../../x", "")])])),
            "a wrong type": self.write("type.jsonl", lines([problem(prompt=["a"])])),
            "a missing key": self.write("missing.jsonl", lines([{"task_id": "CUDA/7"}])),
            "an unknown key": self.write("unknown.jsonl", lines([problem(hook="x")])),
            "a link out of a folder": self.folder / "spec-link",
            "aliases without end": self.folder / "spec-bomb",
            "broken YAML": self.folder / "spec-broken",
        }
        for name, path in cases.items():
            with self.subTest(name):
                done = self.take(path)
                self.assertEqual(done.returncode, 2, f"{done.stdout} {done.stderr}")
                fault = json.loads(done.stderr)["error"]
                self.assertIn(fault["category"], ("bad_problem", "bad_task"))
                self.assertIn(pathlib.Path(path).name, fault["message"])
                self.assertFalse(self.tasks.exists(), name)
                self.assertNotIn("token", done.stdout + done.stderr)

    def test_lines_of_another_system_are_lines(self):
        done = self.take(self.write("crlf.jsonl", lines([problem()]).replace("\n", "\r\n")))
        self.assertEqual(json.loads(done.stdout)["imported"], 1, done.stderr)

    def test_what_is_left_out_is_counted_and_the_rest_is_there(self):
        odd = [problem("CUDA/1", type="opencl"), problem("CUDA/2", type="opencl"), problem("CUDA/3", timeout_seconds=0)]
        done = self.take(self.write("some.jsonl", lines([problem(), *odd])))
        self.assertEqual(done.returncode, 0, done.stderr)
        document = json.loads(done.stdout)
        self.assertEqual(document["imported"], 1)
        self.assertEqual(document["reasons"], {"its timeout is not allowed": 1, "its type is not known": 2})

    def test_solutions_are_judged_and_graded_in_the_suites_form(self):
        self.take(self.write("p.jsonl", lines([problem()])), "--release", "2026-1")
        own = problem()["baseline_solution"]

        def solution(content, path="solution.cpp"):
            return own | {"files": [file(path, content)], "model": "made up"}

        solutions = [
            own,
            solution("int twice(int x) { return x; }\n"),
            solution("int twice(int x) {\n"),
            solution("int main() { return 0; }\n", "test/test_main.cpp"),
            solution("a\n// file: b\n"),
        ]
        path = self.write("solutions.jsonl", lines(solutions))
        words = ["--suite", "compute-eval", "--graded", "graded.jsonl", "--root", self.tasks, "--backend", "cpu"]
        done = self.run_program("judge", path, *words, "--no-timing")
        if 'unknown key "program"' in done.stderr:
            self.skipTest("this program has no contract `program`")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("1 of 5 answers were refused", done.stderr)
        self.assertEqual(len(done.stdout.splitlines()), 4)
        graded = [json.loads(x) for x in (self.folder / "graded.jsonl").read_text().splitlines()]
        self.assertEqual([x["passed"] for x in graded], [True, False, False, False, False])
        self.assertEqual([x["skipped"] for x in graded], [False] * 5)
        self.assertEqual([x["solution"] for x in graded], solutions)
        for x in graded:
            self.assertEqual(x["problem"], problem())
            self.assertIsNone(x["speedup"])
        self.assertIn("error", graded[2]["build_output"])

    def test_solutions_need_tasks_and_a_suite(self):
        self.take(self.write("p.jsonl", lines([problem("CUDA/8")])))
        path = self.write("s.jsonl", lines([problem()["baseline_solution"]]))
        done = self.run_program("judge", path, "--suite", "compute-eval", "--root", self.tasks, "--json")
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("task import", done.stderr)
        for words in (["--graded", "x"], ["--release", "r"], ["--suite", "none"]):
            self.assertEqual(self.run_program("judge", path, *words).returncode, 2)


if __name__ == "__main__":
    unittest.main()
