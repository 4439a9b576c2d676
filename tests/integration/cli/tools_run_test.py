#!/usr/bin/env python3
"""Episodes of mode `tools` with the real program: native calls and calls in text come to the same graph of candidates,
a run that is killed in the middle of calls comes to the same, and changes to the last kernel are answers of mode
`refine`."""

import json
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import time
import unittest

BIN = pathlib.Path(os.environ["KERNELMILL_BIN_DIR"])
SOURCE = pathlib.Path(os.environ["KERNELMILL_SOURCE_DIR"])
PROGRAM = BIN / "kernelmill"
KERNELS = SOURCE / "configs/policies/quickstart/row_sum"
PATIENCE = 300


def call(name, arguments=None, **files):
    return {"name": name, "arguments": arguments or {}, **({"files": files} if files else {})}


def write(name, **more):
    return call("write_candidate", more, source=str(KERNELS / f"{name}.cpp"))


REPLIES = [
    {"text": "I have no idea."},
    {"turn": 0, "text": "I start.", "tool_calls": [call("task_show"), write("plain"), call("bench")]},
    {
        "turn": 1,
        "tool_calls": [
            write("broken"),
            call("eval"),
            {"name": "eval", "arguments": '{"candidate": 7}'},
            call("fly"),
            call("sanitize"),
        ],
    },
    {"turn": 2, "text": "Nothing to call."},
    {"turn": 3, "tool_calls": [call("revert", {"candidate": "c0"}), call("branch"), call("run")]},
    {
        "turn": 4,
        "tool_calls": [
            write("fast"),
            call("bench"),
            call("promote"),
            call("note_strategy", {"name": "vectors", "state": "successful"}),
            call("inspect", {"section": "history"}),
        ],
    },
    {"turn": 5, "tool_calls": [call("submit", {"candidate": "c3", "confirm": True}), call("build")]},
]


class ToolRuns(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="kernelmill-tools-"))
        self.addCleanup(shutil.rmtree, self.folder, True)

    def configuration(self, name, script, **sections):
        (self.folder / "script.json").write_text(json.dumps(script))
        config = {
            "run": {"name": name, "dir": str(self.folder / name)},
            "tasks": {"ids": ["native/row_sum"], "group_size": 4},
            "policy": {"kind": "scripted", "script": "script.json", "model": "agent"},
            "retrieval": {"enabled": False},
            "evaluation": {"backend": "cpu"},
            **sections,
        }
        file = self.folder / f"{name}.json"
        file.write_text(json.dumps(config))
        return file

    def program(self, *arguments, code=0):
        done = subprocess.run(
            [PROGRAM, *map(str, arguments)],
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
            cwd=self.folder,
        )
        self.assertEqual(done.returncode, code, f"{arguments}\n{done.stdout}\n{done.stderr}")
        return done.stdout

    def tools_run(self, name, form, reward=None, **script):
        return self.configuration(
            name,
            {"model": "agent", "replies": REPLIES, **script},
            episode={"mode": "tools"},
            tools={"calls": form},
            reward=reward or {"preset": "kevin"},
        )

    def turns(self, name):
        lines = [json.loads(x) for x in (self.folder / name / "traces.jsonl").read_text().splitlines()]
        return {(x["member"], x["turn"]): x for x in lines if "calls" in x}

    def graph(self, name):
        """All of a run that does not depend on its clock."""
        result = {}
        for at, turn in self.turns(name).items():
            calls = [
                [x[k] for k in ("tool", "status", "transition", "input", "output", "steps")] for x in turn["calls"]
            ]
            nodes = [[x[k] for k in ("id", "parent", "sha256", "role", "origin", "depth")] for x in turn["candidates"]]
            result[at] = (calls, nodes, turn["active"], turn.get("stop_condition"))
        return result

    def test_native_and_text_come_to_the_same(self):
        paying = {"preset": "optimize_v1", "thinking": 0.1, "integrity_penalty": 0.5}
        self.program("run", self.tools_run("native", "native", reward=paying))
        self.program("run", self.tools_run("text", "text"))
        native = self.graph("native")
        self.assertEqual(native, self.graph("text"))
        self.assertEqual(len(native), 4 * 6)
        calls = {x[0]: x for x in native[(0, 1)][0]}
        self.assertEqual(calls["fly"][1], "refused")
        self.assertEqual(calls["sanitize"][1], "refused")
        self.assertEqual(calls["eval"][1], "refused")  # the second, of a wrong type
        self.assertEqual([x[1] for x in native[(0, 5)][0]], ["ok", "refused"])
        self.assertEqual(native[(0, 5)][3], "submitted")
        # `run` says nothing of hidden cases.
        ran = [x for x in self.turns("native")[(0, 3)]["calls"] if x["tool"] == "run"][0]
        self.assertFalse(ran["hidden"])
        self.assertIn("4 of 4", ran["observation"])
        for x in self.turns("native").values():
            for one in x["calls"]:
                self.assertIn(
                    "steps left", one["observation"] if one["tool"] not in ("submit", "build") else "steps left"
                )
        # Calls cost, and what is judged again by the same rules comes to the same.
        self.assertEqual(self.turns("text")[(0, 0)]["reward"], 0)
        self.assertLess(self.turns("native")[(0, 0)]["reward"], 0)
        again = json.loads(self.program("rescore", "native", "--json"))
        self.assertEqual([again["equal"], again["equal_episodes"]], [again["turns"], again["episodes"]])
        shown = json.loads(self.program("show", "native/g0.e0", "--json"))["parts"]
        self.assertAlmostEqual(shown["tool_cost"], -0.2)
        self.assertAlmostEqual(shown["thinking"], 0.05)
        self.assertRegex(self.program("show", "native/g0.e0"), r"tool_cost +-0\.2\n")
        for name in ("native", "text"):
            self.program("fsck", name)
            self.program("export", name, "--form", "sft", "--accepted", "--out", f"{name}-sft")
            self.assertIn("c3 working", self.program("lineage", f"{name}/g0.e0"))

    def test_what_is_wrong_with_a_call_is_said(self):
        """Broken JSON, unknown tools, wrong types, a thousand calls, late calls: each is told what is wrong."""
        wrong = {
            "eval": ('{"candidate": "c0', "the arguments are no JSON"),
            "fly": ("{}", 'there is no tool "fly"; there are task_show'),
            "inspect": ('{"section": 7}', '"section" is to be of type string'),
            "revert": ("{}", 'revert lacks the argument "candidate"'),
            "bench": ('{"how": "fast"}', 'bench has no argument "how"; its arguments: candidate'),
            "run": ('{"candidate": "c99"}', 'there is no candidate "c99"'),
            "profile": ("{}", "is not known to be right; eval or bench it first"),
        }
        many = [call("inspect", {"section": "history"})] * 1000
        replies = [
            {"text": "no"},
            {"turn": 0, "tool_calls": [write("plain"), *[{"name": k, "arguments": x} for k, (x, _) in wrong.items()]]},
            {"turn": 1, "tool_calls": many},
            {"turn": 2, "tool_calls": [call("submit"), call("build")]},
        ]
        for form in ("native", "text"):
            self.program(
                "run",
                self.configuration(
                    f"wrong-{form}",
                    {"model": "agent", "replies": replies},
                    tasks={"ids": ["native/row_sum"], "group_size": 1},
                    episode={"mode": "tools"},
                    tools={"calls": form, "steps": 60},
                    policy={
                        "kind": "scripted",
                        "script": "script.json",
                        "model": "agent",
                        "sampling": {"max_tokens": 100000},
                    },
                ),
            )
            turns = [self.turns(f"wrong-{form}")[(0, n)] for n in range(3)]
            said = {x["tool"]: x for x in turns[0]["calls"]}
            for name, (_, reason) in wrong.items():
                if name == "eval" and form == "text":  # it is no call
                    self.assertIn("tool_call> block is not JSON", turns[0]["feedback"])
                    continue
                self.assertEqual(said[name]["status"], "refused")
                self.assertIn(reason, said[name]["observation"])
                self.assertIn("steps left", said[name]["observation"])
            self.assertEqual(len(turns[1]["calls"]), 32)
            told = turns[1]["calls"][0]["observation"] if form == "native" else turns[1]["feedback"]
            self.assertIn("1000 calls are too many for one answer; the first 32 count", told[:400])
            late = turns[2]["calls"][1]
            self.assertEqual((late["status"], late["steps"]), ("refused", 0))
            self.assertIn("the episode has ended with the submission before this call", late["observation"])

    def test_readers_know_what_an_agent_handed_in_and_what_it_did_not(self):
        replies = [
            {"text": "I will not.", "member": 1},
            {"turn": 0, "tool_calls": [write("fast"), call("eval"), call("sanitize")]},
            {"turn": 1, "tool_calls": [write("plain"), call("submit", {"candidate": "c0", "confirm": True})]},
        ]
        self.program(
            "run",
            self.configuration(
                "handed",
                {"model": "agent", "replies": replies},
                episode={"mode": "tools"},
                tasks={"ids": ["native/row_sum"], "group_size": 2},
            ),
        )
        looked = self.turns("handed")[(0, 0)]["calls"][2]
        self.assertNotIn("no time is left", looked["observation"])
        self.assertIn(looked["status"], ("ok", "failed"))
        report = json.loads(self.program("report", "handed", "--json"))["all"]
        self.assertEqual(
            (report["samples"], report["left_out"]["infrastructure"], report["correct"]["count"]), (2, 0, 1)
        )
        self.assertEqual(report["turns_to_first_correct"]["mean_turns"], 2)
        self.program("replay", "handed/g0.e0.t1")
        shown = json.loads(self.program("show", "handed/g0.e0", "--json"))
        self.assertTrue(all(shown["evidence"][x]["eligible"] for x in ("benchmark", "sft", "rl")))
        # Behind the end of an episode nothing goes on.
        self.program("candidate", "branch", "handed/g0.e0", "c1", "run.dir=late", code=2)

    def test_a_fork_tells_its_extra_words_to_calls_of_both_forms(self):
        for form in ("native", "text"):
            origin = f"origin-{form}"
            self.program("run", self.tools_run(origin, form), "tasks.group_size=1")
            fork = f"fork-{form}"
            self.program("fork", f"{origin}/g0.e0.t2", "--prompt", "Mind the tail.", f"run.dir={fork}")
            out = self.program("export", fork, "--form", "trajectories", "--out", "-")
            turns = json.loads(out)["turns"]
            self.assertEqual(turns[2]["messages"][-1]["role"], "tool" if form == "native" else "user")
            self.assertIn("Mind the tail.", turns[2]["messages"][-1]["content"])
            self.assertEqual(sum("Mind the tail." in json.dumps(x["messages"]) for x in turns), 1)
            self.assertEqual(self.graph(fork).keys(), self.graph(origin).keys())
        self.program("fork", f"{origin}/g0.e0.t2", "tools.calls=native", code=2)

    def test_people_branch_promote_and_give_up_candidates(self):
        replies = [
            {"text": "no"},
            {"turn": 0, "tool_calls": [write("plain"), write("fast", summary="vectors")]},
            {"turn": 1, "tool_calls": [call("build")]},
            {"turn": 2, "tool_calls": [call("submit", {"confirm": True})]},
        ]
        self.program(
            "run",
            self.configuration(
                "tree",
                {"model": "agent", "replies": replies},
                episode={"mode": "tools"},
                tasks={"ids": ["native/row_sum"], "group_size": 1},
            ),
        )
        self.assertEqual(self.turns("tree")[(0, 1)]["calls"][0]["output"], "c1")
        self.program("candidate", "branch", "tree/g0.e0", "c0", "run.dir=twig", "tasks.group_size=2")
        twig = self.turns("twig")
        for member in (0, 1):
            self.assertEqual(twig[(member, 1)]["calls"][0]["output"], "c0")
            self.assertEqual(twig[(member, 2)]["calls"][0]["output"], "c0")
        rows = [
            json.loads(x) for x in self.program("export", "twig", "--form", "trajectories", "--out", "-").splitlines()
        ]
        self.assertIn("c0 is the active candidate now.", rows[0]["turns"][1]["messages"][-1]["content"])
        self.program("candidate", "branch", "tree/g0.e0", "c7", code=3)

        self.program("candidate", "promote", "tree/g0.e0", "c1", "--note", "simple")
        self.program("candidate", "promote", "tree/g0.e0", "c0")
        chosen = json.loads(self.program("candidate", "revert", "tree/g0.e0", "c1", "--note", "it is odd", "--json"))
        self.assertEqual(
            {k: chosen["choice"][k] for k in ("status", "by", "note")},
            {"status": "reverted", "by": "human", "note": "it is odd"},
        )
        lineage = self.program("lineage", "tree/g0.e0")
        self.assertIn("promoted by a person", next(x for x in lineage.splitlines() if " c0 " in x))
        self.assertIn("reverted by a person", next(x for x in lineage.splitlines() if " c1 " in x))
        self.assertIn("promoted by a person", self.program("candidate", "show", "tree/g0.e0", "c0"))
        self.program("candidate", "promote", "tree/g0.e0", "c9", code=3)
        self.program("fsck", "tree")

    def test_a_run_that_is_killed_comes_to_the_same(self):
        self.program("run", self.tools_run("calm", "native"))
        killed = 0
        file = self.tools_run("rough", "native", latency_ms=150)
        arguments = ["run", file]
        for wanted in (3, 9, 15):
            process = subprocess.Popen(
                [PROGRAM, *arguments], cwd=self.folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
            )
            traces = self.folder / "rough/traces.jsonl"
            end = time.monotonic() + PATIENCE
            while process.poll() is None and time.monotonic() < end:
                if traces.exists() and traces.read_bytes().count(b'"calls"') >= wanted:
                    process.send_signal(signal.SIGKILL)
                    killed += 1
                    break
            process.wait()
            arguments = ["resume", "rough"]
        self.program("resume", "rough")
        self.assertGreater(killed, 0)
        self.program("fsck", "rough")
        self.assertEqual(self.graph("rough"), self.graph("calm"))

    def test_changes_to_the_last_kernel_are_answers(self):
        plain = (KERNELS / "plain.cpp").read_text()
        line = next(x for x in plain.splitlines() if "sum = 0" in x)
        patch = f"<PATCH>\n<<<<<<< SEARCH\n{line}\n=======\n{line} // zero\n>>>>>>> REPLACE\n</PATCH>"
        replies = [
            {"text": "no"},
            {"turn": 0, "kernel": str(KERNELS / "plain.cpp"), "thought": "plain"},
            {"turn": 1, "text": patch},
            {"turn": 2, "text": patch.replace(line + "\n====", "not there\n====")},
        ]
        self.program(
            "run",
            self.configuration(
                "patches",
                {"model": "agent", "replies": replies},
                episode={"patches": True},
                tasks={"ids": ["native/row_sum"], "group_size": 1, "max_turns": 3},
                reward={"preset": "staged", "thinking": 0.1, "length": 0.1},
            ),
        )
        # A thought and a kernel's length stand in the answer, not in the facts: rescore reads them there.
        again = json.loads(self.program("rescore", "patches", "--json"))
        self.assertEqual([again["equal"], again["equal_episodes"]], [3, 1])
        self.assertIn("<PATCH>", self.program("show", "patches/g0.e0.t0"))
        shown = [json.loads(self.program("show", f"patches/g0.e0.t{n}", "--json")) for n in range(3)]
        parts = [{x["name"]: x["value"] for x in turn["verdict"]["components"]} for turn in shown]
        self.assertEqual([x["thinking"] for x in parts], [1, 0.5, 0])
        self.assertEqual([x["length"] for x in parts], [1, 1, 0])
        self.assertNotIn("// zero", json.dumps(shown[0]))
        self.assertIn("// zero", json.dumps(shown[1]))
        second, third = (self.program("show", f"patches/g0.e0.t{n}") for n in (1, 2))
        self.assertIn("pass     build", second)
        self.assertIn("the patch was not applied", third)


if __name__ == "__main__":
    unittest.main()
