#!/usr/bin/python3
"""`kernelmill search`: a search end to end, and one that was killed and resumed."""

import json
import os
import pathlib
import signal
import subprocess
import tempfile
import unittest

PROGRAM = pathlib.Path(os.environ["KERNELMILL_BIN_DIR"]) / "kernelmill"
TASK = "native/row_sum"

# Each kernel differs from the others in code, so that none is a copy of what a prompt showed.
KERNEL = """extern "C" void solve(const float* x, float* y, int rows, int cols) {{
  constexpr int step = {step};
  for (int r = 0; r < rows; ++r) {{
    double sum = {begin};
    for (int c = 0; c < cols; c += 1) sum += x[static_cast<long>(r) * cols + c];
    y[r] = static_cast<float>(step > 0 ? sum : 2 * sum);
  }}
}}
"""


def answer(step, begin="0"):
    kernel = KERNEL.format(step=step, begin=begin)
    return f"<think>\nTry step {step}.\n</think>\n<KERNEL>\n```cpp\n{kernel}```\n</KERNEL>\n"


def script(steps):
    """To a prompt that shows step N the answer is step N + 1; member 1 gets each third step wrong."""
    replies = []
    for step in range(steps, 0, -1):
        shown = {"prompt": f"step = {step};"}
        replies.append({**shown, "text": answer(step + 1)})
        if step % 3 == 2:
            replies.append({**shown, "member": 1, "text": answer(step + 1, begin="1")})
    return {"model": "steps", "replies": [{"text": answer(1)}, *replies]}


class SearchCommand(unittest.TestCase):
    def setUp(self):
        home = tempfile.TemporaryDirectory()
        self.addCleanup(home.cleanup)
        self.home = pathlib.Path(home.name)

    def words(self, name, *more, latency_ms=0, width=2, turns=10):
        path = self.home / f"{name}.json"
        path.write_text(json.dumps({**script(12), "latency_ms": latency_ms}))
        return [
            str(PROGRAM), "search", TASK, "--policy", str(path), "--width", str(width), "--budget", f"turns={turns}",
            f"run.dir=runs/{name}", "evaluation.timing.enabled=false", "profile.enabled=false", "search.evaluations=1",
            "retrieval.enabled=false", *more,
        ]  # fmt: skip

    def do(self, *words, code=0):
        done = subprocess.run(words, cwd=self.home, capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, code, (words, done.stdout, done.stderr))
        return done

    def found(self, name):
        return json.loads((self.home / "runs" / name / "search.json").read_text())

    def tree(self, name):
        return [(x["turn"], x["parent"], x["state"], x["candidate_sha256"]) for x in self.found(name)["tree"]]

    def test_children_go_on_from_their_parents(self):
        out = self.do(*self.words("first", "search.fresh=0")).stdout
        found = self.found("first")
        by_name = {x["turn"].removesuffix(".t0"): x for x in found["tree"]}
        self.assertEqual(len(by_name), 10)
        self.assertEqual([x["parent"] for x in found["tree"][:2]], [None, None])
        self.assertTrue(all(x["parent"] for x in found["tree"][2:]))
        for name, x in by_name.items():
            if x["parent"]:  # the generations before
                self.assertLess(int(x["parent"][1 : x["parent"].index(".")]), int(name[1 : name.index(".")]))
                self.assertNotEqual(x["candidate_sha256"], by_name[x["parent"]]["candidate_sha256"])
        self.assertIn("failed", {x["state"] for x in found["tree"]})
        self.assertEqual(found["winner"]["evaluations"], 1)
        self.assertIn("step = ", (self.home / "runs/first/best.cpp").read_text())
        self.assertIn(f"winner: {found['winner']['turn']}", out)
        self.do(str(PROGRAM), "eval", "runs/first/best.cpp", "--task", TASK, "--no-timing")
        self.do(str(PROGRAM), "fsck", "runs/first")
        # A search that has ended: nothing is asked, and the winner is the same.
        again = json.loads(self.do(str(PROGRAM), "search", "--resume", "runs/first", "--json").stdout)
        self.assertEqual(again["search"], found)

    def test_an_answer_may_be_a_change_to_the_kernel_that_its_prompt_shows(self):
        words = self.words("changes", "episode.patches=true", "search.fresh=0", turns=6)
        path = self.home / "changes.json"
        told = json.loads(path.read_text())
        for one in told["replies"][1:]:
            step = int(one["prompt"].split()[-1].rstrip(";"))
            lines = f"<<<<<<< SEARCH\n  constexpr int step = {step};\n=======\n  constexpr int step = {step + 1};"
            one["text"] = f"<PATCH>\n{lines}\n>>>>>>> REPLACE\n</PATCH>"
        path.write_text(json.dumps(told))
        self.do(*words)
        self.assertEqual([x["state"] for x in self.found("changes")["tree"]], ["verified"] * 6)
        child = next(x for x in self.found("changes")["tree"] if x["parent"])
        shown = self.do(str(PROGRAM), "show", f"runs/changes/{child['turn']}").stdout
        self.assertIn("may be a change to this one", shown)

    def kill_and_resume(self, after_rows):
        """Kills a search once so many rows are in its journal, and ends it."""
        name = f"killed{after_rows}"
        run = subprocess.Popen(
            self.words(name, latency_ms=20), cwd=self.home, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        self.addCleanup(run.kill)
        rows = self.home / "runs" / name / "traces.jsonl"
        while run.poll() is None and (not rows.exists() or rows.read_bytes().count(b"\n") < after_rows):
            pass
        run.send_signal(signal.SIGKILL)
        run.wait()
        self.do(str(PROGRAM), "search", "--resume", f"runs/{name}")
        return self.tree(name)

    def test_a_killed_search_goes_on_to_the_same_tree(self):
        self.do(*self.words("whole"))
        kills = int(os.environ.get("KERNELMILL_KILLS", "1"))  # ten in the slow suite
        for rows in [5] if kills == 1 else range(1, 2 * kills, 2):
            self.assertEqual(self.kill_and_resume(rows), self.tree("whole"), rows)

    @unittest.skipIf("KERNELMILL_KILLS" not in os.environ, "of the slow suite")
    def test_a_search_that_is_killed_again_and_again_ends_with_the_same_tree(self):
        self.do(*self.words("calm", turns=30))
        words = self.words("often", latency_ms=20, turns=30)
        rows, had, kills = self.home / "runs/often/traces.jsonl", 0, int(os.environ["KERNELMILL_KILLS"])
        for _ in range(kills):
            run = subprocess.Popen(words, cwd=self.home, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            self.addCleanup(run.kill)
            while run.poll() is None and (not rows.exists() or rows.read_bytes().count(b"\n") <= had):
                pass
            self.assertIsNone(run.poll(), "it ended before it could be killed")
            run.send_signal(signal.SIGKILL)
            run.wait()
            had = rows.read_bytes().count(b"\n")
            words = [str(PROGRAM), "search", "--resume", "runs/often"]
        self.do(*words)
        self.assertEqual(self.tree("often"), self.tree("calm"))
        self.do(str(PROGRAM), "fsck", "runs/often")

    def test_a_budget_of_tokens_ends_after_the_generation_that_uses_it_up(self):
        done = self.do(*self.words("tokens", "search.tokens=1"))
        self.assertEqual(self.found("tokens")["generations"], 1)
        self.assertIn("search (tree): 1 generation, 2 candidates", done.stdout)
        self.assertIn("finished", self.do(str(PROGRAM), "show", "runs/tokens").stdout)
        more = self.do(str(PROGRAM), "resume", "runs/tokens", "search.tokens=100000000").stdout
        self.assertIn("search (tree): 5 generations, 10 candidates", more)
        self.assertNotIn("nothing was left to do", more)
        config = json.loads((self.home / "runs/tokens/config.json").read_text())
        self.assertEqual(config["search"]["tokens"], 100000000)

    def test_a_budget_of_dollars_counts_tokens_at_their_prices(self):
        def spent():
            used = self.found("paid")["used"]
            return (used["prompt_tokens"] * 2000 + used["completion_tokens"] * 8000) / 1e6

        self.do(*self.words("paid", "search.prompt_price=2000", "search.completion_price=8000", "search.dollars=0.01"))
        self.assertEqual(self.found("paid")["generations"], 1)
        first = spent()
        self.assertGreater(first, 0.01)
        self.do(str(PROGRAM), "resume", "runs/paid", f"search.dollars={1.5 * first}")
        self.assertEqual(self.found("paid")["generations"], 2)
        self.assertGreaterEqual(spent(), 1.5 * first)

    def test_a_generation_that_is_lost_to_the_server_is_taken_up_again(self):
        path = self.home / "away.json"
        words = self.words("away", "policy.timeout_ms=300", "search.fresh=0")
        whole = path.read_text()
        path.write_text(json.dumps({**json.loads(whole), "faults": [{"prompt": "step = 1;", "status": 503}]}))
        self.assertIn("incomplete", self.do(*words, code=69).stdout)
        path.write_text(whole)
        self.do(str(PROGRAM), "search", "--resume", "runs/away")
        self.assertEqual((self.found("away")["generations"], self.found("away")["lost"]), (5, 0))

    def test_an_unnamed_search_lies_below_the_folder_that_is_given(self):
        words = [x for x in self.words("plain", "--root", "others", "--dry-run") if not x.startswith("run.dir=")]
        run = json.loads(self.do(*words).stdout)["run"]
        self.assertEqual(run["dir"], str(self.home.resolve() / "others" / run["name"]))

    def cluster(self):
        """A head and a node on this machine; the head's address."""
        quiet = {"cwd": self.home, "stderr": subprocess.DEVNULL, "text": True}
        words = [str(PROGRAM), "head", "--listen", "127.0.0.1:0", "--insecure-loopback"]
        head = subprocess.Popen(words, stdout=subprocess.PIPE, **quiet)
        address = head.stdout.readline().strip()
        words = [str(PROGRAM), "node", "--head", address, "--insecure-loopback"]
        node = subprocess.Popen(words, stdout=subprocess.DEVNULL, **quiet)
        for one in (node, head):
            self.addCleanup(lambda one=one: (one.terminate(), one.wait(), one.stdout and one.stdout.close()))
        return address

    def test_a_head_s_nodes_search_and_its_folder_has_the_same_tree(self):
        at = ["--head", self.cluster(), "--insecure-loopback"]
        words = [x for x in self.words("far", "run.name=far", *at) if not x.startswith("run.dir=")]
        self.assertIn("search --resume far", self.do(*words).stderr)
        self.do(str(PROGRAM), "search", "--resume", "far", "--root", "runs")
        self.assertEqual(self.found("far")["generations"], 5)
        self.assertEqual(self.found("far")["winner"]["evaluations"], 1)
        self.do(*self.words("near"))
        self.assertEqual(self.tree("far"), self.tree("near"))
        said = self.do(*self.words("both", *at, "--root", "runs"), code=2).stderr
        self.assertIn("--root and --head are given", said)

    def test_wrong_budgets_and_words_are_told(self):
        for budget, says in [
            ("hours=3", "has no 'hours'"),
            ("turns=none", "has no number"),
            ("turns", "no number"),
            ("turns=1,turns=2", "turns twice"),
        ]:
            done = self.do(str(PROGRAM), "search", TASK, "--budget", budget, code=2)
            self.assertIn(says, done.stderr)
        done = self.do(
            str(PROGRAM), "search", "native/*", "--policy", "http://127.0.0.1:9/v1", "policy.model=m", code=2
        )
        self.assertIn("it is for one task", done.stderr)
        self.assertIn("no policy is given", self.do(str(PROGRAM), "search", TASK, code=2).stderr)
        done = self.do(*self.words("money", "search.dollars=1"), code=2)
        self.assertIn("no price of a token", done.stderr)
        self.assertIn("tasks.groups is given", self.do(*self.words("groups", "tasks.groups=3"), code=2).stderr)


if __name__ == "__main__":
    unittest.main()
