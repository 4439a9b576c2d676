#!/usr/bin/env python3
"""Bundles of a real run: made twice alike, checked where there is neither store nor system, damaged and found out;
imported again; and traces of kernel_rl, imported, shown, queried and exported."""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import unittest

import json_schema

BIN = pathlib.Path(os.environ["KERNELMILL_BIN_DIR"])
SOURCE = pathlib.Path(os.environ["KERNELMILL_SOURCE_DIR"])
PROGRAM = BIN / "kernelmill"
FIXTURES = SOURCE / "tests/integration/cli/foreign"
PATIENCE = 500


def call(*arguments, code=0, cwd=None):
    done = subprocess.run(
        [PROGRAM, *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
        cwd=cwd or Bundles.folder,
    )
    assert done.returncode == code, f"{arguments}: {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done


def document(*arguments, code=0):
    return json.loads(call(*arguments, "--json", code=code).stdout)


def found(condition, run):
    return [json.loads(x) for x in call("query", condition, run, "--json").stdout.splitlines()]


def paths_of(value, before=()):
    """Keys down to what is no object: ("seed_pack", "global_seed")."""
    if not isinstance(value, dict) or not value:
        return [before]
    return [x for key, item in value.items() for x in paths_of(item, (*before, key))]


class Bundles(unittest.TestCase):
    folder = None

    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="kernelmill-bundle-"))
        cls.addClassCleanup(shutil.rmtree, cls.folder, True)
        call(
            "run",
            SOURCE / "configs/quickstart.json",
            'tasks.ids=["native/row_sum"]',
            "tasks.group_size=2",
            "tasks.max_turns=2",
            "profile.enabled=false",
            "retrieval.enabled=false",
            "run.dir=runs/first",
        )
        call("bundle", "keygen", "--out", "sign.pem")
        call("bundle", "make", "first", "--form", "proof", "--key", "sign.pem", "--out", "proof.tar.zst")
        call("bundle", "make", "first/g0.e0.t1", "--out", "turn.tar.zst")

    def unpack(self, name):
        """Paths and bytes of a bundle, by other people's programs."""
        target = pathlib.Path(tempfile.mkdtemp(dir=self.folder))
        subprocess.run(["zstd", "-q", "-d", self.folder / name, "-o", target / "x.tar"], check=True, timeout=PATIENCE)
        with tarfile.open(target / "x.tar") as tar:
            return {m.name: tar.extractfile(m).read() for m in tar.getmembers()}

    def test_the_same_store_gives_the_same_bytes(self):
        call("bundle", "make", "first", "--form", "proof", "--key", "sign.pem", "--out", "again.tar.zst")
        self.assertEqual((self.folder / "proof.tar.zst").read_bytes(), (self.folder / "again.tar.zst").read_bytes())
        call("bundle", "make", "first", "--out", "again.tar.zst", code=4)

    def test_a_proof_is_good_and_says_by_whom(self):
        named = document("bundle", "verify", "proof.tar.zst", "--public-key", "sign.pem.pub")
        self.assertTrue(named["good"])
        self.assertTrue(named["key_was_named"])
        self.assertEqual(named["turns"], 4)
        self.assertEqual(named["records_checked"], 9)
        self.assertIn("a key that you did not name", call("bundle", "verify", "proof.tar.zst").stdout)
        self.assertIn("it has no signature", call("bundle", "verify", "turn.tar.zst").stdout)

    def test_is_verified_where_there_is_nothing_else(self):
        libraries = re.findall(
            r"(/\S+) \(0x", subprocess.run(["ldd", PROGRAM], capture_output=True, text=True, check=True).stdout
        )
        binds = []
        for path in [str(PROGRAM), *libraries]:
            binds += ["--ro-bind", os.path.realpath(path), path]
        for name in ("proof.tar.zst", "sign.pem.pub"):
            binds += ["--ro-bind", str(self.folder / name), f"/{name}"]
        done = subprocess.run(
            [
                "bwrap",
                "--unshare-all",
                "--clearenv",
                *binds,
                "--chdir",
                "/",
                "--",
                str(PROGRAM),
                "bundle",
                "verify",
                "/proof.tar.zst",
                "--public-key",
                "/sign.pem.pub",
                "--json",
            ],
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertTrue(json.loads(done.stdout)["good"])

    def solutions(self):
        folder = self.folder / "sol"
        if not folder.exists():
            call("export", "first", "--form", "sol", "--out", folder)
        return folder

    def test_documents_are_as_their_schemas_say(self):
        out = self.folder / "documents"
        call("export", "first", "--form", "sft", "--out", out)
        proof = self.unpack("proof.tar.zst")
        run = self.folder / "runs/first"
        documents = {
            "run-manifest": [json.loads((run / "manifest.json").read_text())],
            "trace-line": [json.loads(x) for x in (run / "traces.jsonl").read_text().splitlines()],
            "metrics-line": [json.loads(x) for x in (run / "metrics.jsonl").read_text().splitlines()],
            "provenance": [json.loads((out / "PROVENANCE.json").read_text())],
            "bundle-hashes": [json.loads(proof["hashes.json"]), json.loads(self.unpack("turn.tar.zst")["hashes.json"])],
            "bundle-signature": [json.loads(proof["signature.json"])],
            "bundle-verify": [document("bundle", "verify", "proof.tar.zst")],
            "sol-solution": [json.loads(x.read_text()) for x in (self.solutions() / "solutions").rglob("*.json")],
            "sol-trace": [
                json.loads(x) for f in (self.solutions() / "traces").iterdir() for x in f.read_text().splitlines()
            ],
            "query-line": found("turn >= 0", "first"),
            "compare": [
                document("compare", "first/g0.e0.t1", "first/g0.e1.t1"),
                document("compare", "first/g0.e0", "first/g0.e1"),
            ],
            "replay": [document("replay", "first/g0.e0.t1", "--no-timing")],
            "rescore": [document("rescore", "first", "--reward", "staged", "--name", "other")],
        }
        for name, those in documents.items():
            schema = json.loads((SOURCE / f"configs/schemas/{name}.schema.json").read_text())
            self.assertRegex(schema["$id"], rf"^urn:kernelmill:schema:{name}:\d+$")
            self.assertTrue(those)
            for one in those:
                self.assertEqual(list(json_schema.problems(schema, one)), [], name)
            broken = {k: v for k, v in those[0].items() if k != schema["required"][-1]}
            self.assertTrue(list(json_schema.problems(schema, broken)), name)

    def test_solutions_and_traces_of_flashinfers_family(self):
        solutions = [json.loads(x.read_text()) for x in (self.solutions() / "solutions").rglob("*.json")]
        traces = [json.loads(x) for f in (self.solutions() / "traces").iterdir() for x in f.read_text().splitlines()]
        self.assertEqual(sorted(x["name"] for x in solutions), sorted(x["solution"] for x in traces))
        states = sorted(x["evaluation"]["status"] for x in traces)
        # What this machine had no time to time is left out.
        timed = found("timed", "first")
        self.assertEqual(states, ["COMPILE_ERROR", "INCORRECT_NUMERICAL"] + len(timed) * ["PASSED"])
        self.assertEqual(solutions[0]["spec"]["entry_point"], "kernel.cpp::solve")
        for x in traces:  # what did not compile has no shape
            axes = set() if x["evaluation"]["status"] == "COMPILE_ERROR" else {"rows", "cols"}
            self.assertEqual(set(x["workload"]["axes"]), axes)
        call("export", "first", "--form", "sol", "--out", "-", code=2)

    def test_a_harbor_task_scores_its_answer(self):
        call("export", "first", "--form", "harbor-tasks", "--out", "tasks")
        task = self.folder / "tasks/native_row_sum"
        self.assertIn("/app/kernel.cpp", (task / "instruction.md").read_text())
        self.assertIn('kernelmill_task = "native/row_sum"', (task / "task.toml").read_text())
        self.assertNotIn("hidden", (task / "environment/Dockerfile").read_text())
        kernels = SOURCE / "configs/policies/quickstart/row_sum"
        for kernel, least, most in (("fast.cpp", 0.3, 100), ("broken.cpp", -1, 0.29), (None, 0, 0)):
            logs = self.folder / f"logs-{kernel}"
            answer = kernels / kernel if kernel else self.folder / "nothing.cpp"
            done = self.score(task, answer, logs, BIN)
            while done.returncode == 1 and "not timed" in done.stderr:  # on a busy machine
                done = self.score(task, answer, logs, BIN)
            self.assertEqual(done.returncode, 0, done.stderr)
            reward = float((logs / "reward.txt").read_text())
            self.assertTrue(least <= reward <= most, (kernel, reward))

    def score(self, task, answer, logs, programs):
        return subprocess.run(
            [task / "tests/test.sh"],
            check=False,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            cwd=self.folder,
            env={
                "PATH": f"{programs}:{os.environ['PATH']}",
                "HOME": str(self.folder),
                "HARBOR_LOGS": str(logs),
                "HARBOR_ANSWER": str(answer),
            },
        )

    def test_a_harbor_task_tells_a_verdict_without_a_reward_from_none(self):
        call("export", "first", "--form", "harbor-tasks", "--out", "unpaid")
        task, logs, programs = (
            self.folder / "unpaid/native_row_sum",
            self.folder / "logs-unpaid",
            self.folder / "programs",
        )
        answer = SOURCE / "configs/policies/quickstart/row_sum/fast.cpp"
        verdict = document("eval", "--task", "native/row_sum", "--no-timing", answer)
        programs.mkdir()
        for category, said in (("not_timed", "not timed (exit code 0)"), ("success", "no verdict (exit code 0)")):
            (programs / "said").write_text(json.dumps({**verdict, "reward": None, "category": category}, indent=2))
            (programs / "kernelmill").write_text(f"#!/bin/sh\ncat {programs}/said\n")
            (programs / "kernelmill").chmod(0o755)
            done = self.score(task, answer, logs, programs)
            self.assertEqual((done.returncode, done.stderr.strip()), (1, said))
            self.assertFalse((logs / "reward.txt").exists())

    def test_follow_tells_each_group_once(self):
        folder = self.folder / "runs/followed"
        run = subprocess.Popen(
            [
                PROGRAM,
                "run",
                SOURCE / "configs/quickstart.json",
                'tasks.ids=["native/row_sum"]',
                "tasks.groups=3",
                "tasks.group_size=2",
                "tasks.max_turns=1",
                "profile.enabled=false",
                "retrieval.enabled=false",
                f"run.dir={folder}",
            ],
            cwd=self.folder,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            # The run's folder is there when its manifest is; its store a moment later.
            while not (folder / "metrics.jsonl").exists() and run.poll() is None:
                try:
                    run.wait(timeout=0.1)
                except subprocess.TimeoutExpired:
                    pass
            live = call("export", folder, "--form", "trajectories", "--follow", "--out", "-").stdout.splitlines()
            self.assertEqual(run.wait(timeout=PATIENCE), 0)
        finally:
            if run.poll() is None:
                run.kill()
                run.wait()
        later = call("export", folder, "--form", "trajectories", "--out", "-").stdout.splitlines()
        self.assertEqual(sorted(live), sorted(later))
        self.assertEqual(len(set(live)), 6)

    def test_a_damaged_file_is_named(self):
        bytes_ = bytearray((self.folder / "proof.tar.zst").read_bytes())
        for at in (10, len(bytes_) // 2, len(bytes_) - 30):
            changed = bytearray(bytes_)
            changed[at] ^= 1
            (self.folder / "bad.tar.zst").write_bytes(changed)
            done = call("bundle", "verify", "bad.tar.zst", "--public-key", "sign.pem.pub", code=5)
            self.assertRegex(done.stdout + done.stderr, r"within \S+|was changed", at)

    def test_has_gpu_rls_files_and_marks_what_was_not_run(self):
        files = self.unpack("turn.tar.zst")
        for name in (
            "manifest.json",
            "events.jsonl",
            "summary.json",
            "summary.md",
            "prompt/task_spec.json",
            "meta/hardware_fingerprint.json",
            "correctness/correctness.json",
            "eval/eval_envelope.json",
            "perf/benchmark.json",
            "build/build_record.json",
            "patches/unified_diff.patch",
            "candidate/state.json",
            "candidate/transition.json",
            "replay/command.json",
            "replay/replay_pack.json",
        ):
            self.assertIn(name, files)
        self.assertEqual(json.loads(files["sanitize/memcheck_summary.json"])["status"], "not_run")
        self.assertEqual(json.loads(files["profiles/kernel/summary.json"])["status"], "not_run")
        self.assertEqual(json.loads(files["eval/eval_envelope.json"])["correctness_gate"], "pass")
        fingerprint = json.loads(files["meta/hardware_fingerprint.json"])
        self.assertEqual(fingerprint["opening"], 0)
        for key in (
            "vendor",
            "gpu_name",
            "arch",
            "driver_version",
            "runtime_version",
            "memory_gb",
            "power_limit_w",
            "clock_state",
            "mig_mode",
            "mps_mode",
            "host_kernel",
            "container_runtime",
            "tool_versions",
        ):
            self.assertIn(key, fingerprint)
        self.assertEqual(fingerprint["host_kernel"], os.uname().release)
        self.assertIn("g++", fingerprint["tool_versions"]["compiler"])
        everything = b"".join(files.values())
        self.assertNotIn(b"base_url", everything)
        self.assertNotIn(str(self.folder).encode(), everything)

    def test_every_key_of_gpu_rls_own_files_is_produced(self):
        files = self.unpack("turn.tar.zst")
        is_timed = "first/g0.e0.t1" in [x["name"] for x in found("timed", "first")]
        seen = 0
        for theirs in sorted((FIXTURES / "gpu_rl/run_b").rglob("*.json")):
            name = theirs.relative_to(FIXTURES / "gpu_rl/run_b").as_posix()
            ours = json.loads(files[name])
            if name == "perf/benchmark.json" and not is_timed:
                self.assertEqual(ours["status"], "not_run")
                continue
            for path in paths_of(json.loads(theirs.read_text())):
                at = ours
                for key in path:
                    self.assertIn(key, at, f"{name}: {'.'.join(path)}")
                    at = at[key]
                seen += 1
        if not is_timed:
            self.skipTest("the machine was too busy to time a turn")
        self.assertGreater(seen, 50)
        self.assertIn("patches/unified_diff.patch", files)

    def test_every_key_of_kernel_rls_traces_has_its_place_in_ours_and_on_the_page(self):
        """OTHERWISE is the table of docs/reference/imports.md; what is not in it has the same name."""
        otherwise = {
            ("level",): ("task",),
            ("problem_id",): ("task",),
            ("eval_result", "correctness"): ("eval_result", "correct"),
            ("eval_result", "tests_passed"): ("eval_result", "cases_passed"),
            ("eval_result", "tests_total"): ("eval_result", "cases_total"),
            ("eval_result", "runtime_ms"): ("eval_result", "candidate_ms"),
            ("eval_result", "baseline_runtime_ms"): ("eval_result", "reference_ms"),
            ("eval_result", "error_message"): ("eval_result", "error"),
            ("eval_result", "code_length"): ("response", "kernel"),
            ("eval_result", "metadata"): ("metrics",),
        }
        not_ours = {"mode", "dataset_src", "prompt_option", "raicl_k", "renderer", "history_entry"}
        lines = [json.loads(x) for x in (self.folder / "runs/first/traces.jsonl").read_text().splitlines()]
        turns = [x for x in lines if x["kind"] == "turn" and x["eval_result"].get("speedup")]
        if not turns:
            self.skipTest("the machine was too busy to time a turn")
        ends = [x for x in lines if x["kind"] == "episode"]
        ours = {**ends[0], **turns[-1]}  # the state is told when the episode has ended
        page = (SOURCE / "docs/reference/imports.md").read_text()
        theirs = {
            tuple(p[:2])
            for x in (FIXTURES / "kernel_rl/traces.jsonl").read_text().splitlines()
            for p in paths_of(json.loads(x))
        }
        for path in sorted(theirs):
            self.assertRegex(
                page,
                rf"`(?:{path[0]}\.)?{path[-1] if path[0] != 'reward_breakdown' and path[0] != 'metrics' else path[0]}`",
                path,
            )
            if path[0] in not_ours:
                continue
            at = ours
            for key in otherwise.get(path, path[:1] if path[0] in ("reward_breakdown", "metrics") else path):
                self.assertIn(key, at, path)
                at = at[key]

    def lines_of(self, run, *more):
        return [
            json.loads(x) for x in call("export", run, "--form", "kernel-rl", "--out", "-", *more).stdout.splitlines()
        ]

    def test_lines_of_kernel_rl_have_its_own_keys_and_come_back(self):
        """An export has each key of kernel_rl's lines under its own name, and is read again."""
        theirs = [json.loads(x) for x in (FIXTURES / "kernel_rl/traces.jsonl").read_text().splitlines()]
        ours = self.lines_of("first")
        self.assertEqual(len(ours), 4)
        wanted = {path for x in theirs for path in paths_of(x)}
        for line in ours:
            for path in wanted:
                at = line
                for key in path:
                    self.assertIn(key, at, path)
                    at = at[key]
        keys = list(theirs[-1])  # an episode's last turn has all of them
        self.assertEqual(list(ours[0]), keys + ["task", "split", "episode", "model"])
        (self.folder / "ours.jsonl").write_text("".join(json.dumps(x) + "\n" for x in ours))
        call("import", "kernel-rl-traces", "ours.jsonl", "--source", "kernelmill", "--out", "runs/again")
        again = self.lines_of("again", "--governance", "unusable")
        for before, after in zip(ours, again, strict=True):
            for key in (
                "turn",
                "max_turns",
                "prompt_messages",
                "response",
                "reward",
                "state",
                "task",
                "backend",
                "model",
            ):
                self.assertEqual(before[key], after[key], key)
            for key in ("format_ok", "compiled", "correctness", "cheated", "code_length"):
                self.assertEqual(before["eval_result"][key], after["eval_result"][key], key)

    def test_kernel_rls_own_lines_come_back(self):
        call(
            "import",
            "kernel-rl-traces",
            FIXTURES / "kernel_rl/traces.jsonl",
            "--source",
            "kernelbench",
            "--out",
            "runs/theirs",
        )
        theirs = [json.loads(x) for x in (FIXTURES / "kernel_rl/traces.jsonl").read_text().splitlines()]
        ours = self.lines_of("theirs", "--governance", "unusable")

        def order(x):
            return (x["problem_id"], x["response"]["raw"])

        for before, after in zip(sorted(theirs, key=order), sorted(ours, key=order), strict=True):
            for key in (
                "level",
                "problem_id",
                "backend",
                "prompt_option",
                "raicl_k",
                "turn",
                "max_turns",
                "prompt_messages",
                "reward",
            ):
                self.assertEqual(before[key], after[key], key)
            for key in ("raw", "kernel", "format_ok"):
                self.assertEqual(before["response"][key], after["response"][key], key)
            for key in ("compiled", "correctness", "cheated"):
                self.assertEqual(before["eval_result"][key], after["eval_result"][key], key)
            for key, value in before["reward_breakdown"].items():
                self.assertEqual(after["reward_breakdown"][key], value)
            self.assertEqual(after["metrics"]["time/eval"], before["metrics"]["time/eval"])
            self.assertEqual(after["state"]["step_scores"], before["state"]["step_scores"])
            self.assertEqual(after["state"]["done"], before["state"]["done"])

    def test_each_opening_has_its_fingerprint(self):
        shutil.copytree(self.folder / "runs/first", self.folder / "runs/copy")
        call("resume", "runs/copy")
        manifest = json.loads((self.folder / "runs/copy/manifest.json").read_text())
        self.assertEqual([x["opening"] for x in manifest["fingerprints"]], [0, 1])

    def test_a_bundle_can_be_imported(self):
        done = document("import", "gpu-rl-bundle", "proof.tar.zst", "--out", "runs/back")
        self.assertEqual((done["episodes"], done["turns"], done["measured_here"]), (2, 4, False))
        ours = found("turn >= 0", "first")
        theirs = found("turn >= 0", "back")
        self.assertEqual(sorted(x["outcome"] for x in ours), sorted(x["outcome"] for x in theirs))

        def order(reward):  # what is not timed has none
            return (reward is None, reward)

        self.assertEqual(
            sorted((x["reward"] for x in ours), key=order), sorted((x["reward"] for x in theirs), key=order)
        )
        for turn in document("show", "back/g0.e0")[
            "turns"
        ]:  # the run's own parts come back, gpu_rl's three are its gates
            parts = sum(x["value"] * x["weight"] for x in turn["verdict"]["components"])
            if not turn["verdict"]["unpaid"]:
                self.assertAlmostEqual(parts, turn["verdict"]["reward"])
            self.assertIn("g++", turn["facts"]["build"]["toolchain"])
        self.assertIn("imported from gpu_rl", call("show", "back").stdout)

    def test_gpu_rls_own_folder_is_imported(self):
        done = document("import", "gpu-rl-bundle", FIXTURES / "gpu_rl", "--out", "runs/gpu_rl")
        self.assertEqual((done["groups"], done["episodes"], done["turns"]), (1, 1, 2))
        shown = document("show", "gpu_rl/g0.e0")
        self.assertEqual([x["verdict"]["reward"] for x in shown["turns"]], [0.0, 1.0])
        self.assertEqual(shown["turns"][1]["verdict"]["findings"][0]["rule"], "imported")
        self.assertFalse(shown["turns"][1]["facts"]["evaluation"]["timing"]["measured"])
        self.assertEqual(shown["turns"][1]["facts"]["build"]["toolchain"], "triton 3.0.0")
        self.assertEqual(
            {x["name"]: x["value"] for x in shown["turns"][1]["verdict"]["components"]},
            {"imported.binary_pass": 1, "imported.determinism": 1, "imported.perf": 1},
        )

    def test_kernel_rls_traces_are_imported_shown_queried_and_exported(self):
        done = document(
            "import",
            "kernel-rl-traces",
            FIXTURES / "kernel_rl/traces.jsonl",
            "--source",
            "kernelbench",
            "--out",
            "runs/kernel_rl",
        )
        self.assertEqual((done["groups"], done["episodes"], done["turns"], done["accepted"]), (2, 3, 5, 2))
        self.assertEqual(document("show", "kernel_rl")["episodes"][0]["outcome"], "accepted")
        turns = found("accepted", "kernel_rl")
        self.assertEqual(sorted(x["reward"] for x in turns), [0.3, 1.8])
        call("export", "kernel_rl", "--form", "sft", "--out", "sft", code=5)  # no row
        self.assertEqual(json.loads((self.folder / "sft/PROVENANCE.json").read_text())["rows"], 0)
        settings = json.loads((self.folder / "runs/kernel_rl/manifest.json").read_text())["imported"]["settings"]
        self.assertEqual(
            settings,
            {
                "mode": ["train"],
                "dataset_src": ["huggingface"],
                "prompt_option": ["raicl"],
                "raicl_k": [3],
                "renderer": ["qwen3"],
            },
        )
        call("export", "kernel_rl", "--form", "trajectories", "--out", "trajectories", "--governance", "unusable")
        provenance = json.loads((self.folder / "trajectories/PROVENANCE.json").read_text())
        self.assertIn('"measured_here": false', json.dumps(provenance))
        rows = [
            json.loads(x) for f in (self.folder / "trajectories/data").iterdir() for x in f.read_text().splitlines()
        ]
        self.assertEqual(len(rows), 3)
        call("fsck", "kernel_rl")
        call("resume", "runs/kernel_rl", code=2)

    def test_our_own_traces_are_imported(self):
        done = document("import", "kernel-rl-traces", "runs/first/traces.jsonl", "--out", "runs/traces")
        self.assertEqual((done["groups"], done["episodes"], done["turns"]), (1, 2, 4))

    def test_broken_traces_are_named_by_line(self):
        (self.folder / "broken.jsonl").write_text('{"problem_id": 1, "response": {}}\n{"problem_id": 1}\n')
        done = call("import", "kernel-rl-traces", "broken.jsonl", "--out", "runs/broken", code=2)
        self.assertIn("line 2 has no `response`", done.stderr)
        self.assertFalse((self.folder / "runs/broken").exists())


if __name__ == "__main__":
    sys.exit(unittest.main(verbosity=2))
