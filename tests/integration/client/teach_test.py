#!/usr/bin/env python3
"""The reference trainer: what a step learns, what is held out, and that nothing is learned from twice.

Needs torch: of $KERNELMILL_TRAINER_PYTHON, else of python3 or /usr/bin/python3. Without it the tests are skipped."""

import contextlib
import importlib.util
import io
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import threading
import unittest
import urllib.error
import urllib.request
from unittest import mock

if wanted := os.environ.pop("KERNELMILL_TRAINER_PYTHON", ""):
    os.execv(wanted, [wanted, "-B", *sys.argv])
if not importlib.util.find_spec("torch") and os.path.realpath(sys.executable) != os.path.realpath("/usr/bin/python3"):
    os.execv("/usr/bin/python3", ["/usr/bin/python3", "-B", *sys.argv])

SOURCE = pathlib.Path(os.environ["KERNELMILL_SOURCE_DIR"])
PROGRAM = os.path.join(os.environ["KERNELMILL_BIN_DIR"], "kernelmill")
sys.path[:0] = [str(SOURCE / "launch"), str(SOURCE / "launch/python")]

from trainer import tasks  # noqa: E402

HAS_TORCH = importlib.util.find_spec("torch") is not None
if HAS_TORCH:
    import torch
    from trainer import grpo, measures, model, pretrain, server

    torch.set_num_threads(1)

import kernelmill  # noqa: E402

TINY = {"width": 32, "layers": 1, "heads": 2}
NO_TORCH = "no Python with torch: set KERNELMILL_TRAINER_PYTHON"


def tiny_policy():
    torch.manual_seed(3)
    return model.Policy({"vocabulary": model.FIRST_BYTE + 256, **TINY})


def group_of(policy, returns, prompt=(5, 9, 7)):
    """A group in the form rl: each answer is a token of its own, with the policy's own log-probabilities."""
    episodes = []
    for i, value in enumerate(returns):
        ids = [*prompt, 40 + i, model.END]
        with torch.no_grad():
            scores = model.logprobs_of(policy, [ids])[0].tolist()
        sequence = {"token_ids": ids, "mask": [0] * len(prompt) + [1, 1], "prompt_length": len(prompt), "weight_versions": [],
                    "logprobs": [0.0] * len(prompt) + scores[len(prompt) - 1:]}
        turn = {"mask": 1, "sequence": 0, "start": len(prompt), "end": len(ids), "return": value, "reward": value}
        episodes.append({"turns": [turn], "sequences": [sequence]})
    return {"task": "train/x", "episodes": episodes}


class HeldOut(unittest.TestCase):
    def setUp(self):
        self.held_out = tasks.make_tasks("held_out", 2, 7)
        self.practice = tasks.make_tasks("practice", 30, 7, self.held_out)
        draw = random.Random(1)
        self.texts = [f"[task: {x.id}]\nTimed at: cols={x.cols} rows={x.rows}\n" + tasks.answer(x, draw) for x in self.practice]

    def test_what_is_made_has_nothing_that_is_held_out(self):
        self.assertEqual(tasks.check_held_out(self.texts, self.held_out), len(self.texts))
        trained = tasks.make_tasks("train", 3, 7, self.held_out)
        self.assertFalse({x.f for x in trained} & {x.f for x in self.held_out})
        self.assertFalse({(x.rows, x.cols) for x in trained} & {(x.rows, x.cols) for x in self.held_out})

    def test_a_name_a_function_or_a_shape_that_is_planted_is_found(self):
        task = self.held_out[-1]
        for planted in (f"see {task.id}", f"static float f(float v) {{ return {task.f}; }}",
                        f"Timed at: cols={task.cols} rows={task.rows}", f"{task.rows} x {task.cols}"):
            with self.assertRaises(tasks.Leak, msg=planted):
                tasks.check_held_out([*self.texts, planted], self.held_out)


@unittest.skipUnless(HAS_TORCH, NO_TORCH)
class Steps(unittest.TestCase):
    def test_a_step_makes_what_paid_likelier_and_what_did_not_less_likely(self):
        policy = tiny_policy()
        group = group_of(policy, [0.0, 0.3, 0.3, 2.3])
        before = [model.logprobs_of(policy, [e["sequences"][0]["token_ids"]])[0, 2].item() for e in group["episodes"]]
        said = grpo.learn(policy, torch.optim.AdamW(policy.parameters(), lr=1e-3), grpo.sequences_of(group, 0.02))
        after = [model.logprobs_of(policy, [e["sequences"][0]["token_ids"]])[0, 2].item() for e in group["episodes"]]
        self.assertAlmostEqual(said["ratio"], 1.0, places=4)  # the stored log-probabilities are the policy's
        self.assertEqual(said["clipped"], 0.0)
        self.assertGreater(after[3], before[3])
        self.assertLess(after[0], before[0])

    def test_a_token_that_is_much_likelier_already_is_not_pushed_on(self):
        policy = tiny_policy()
        group = group_of(policy, [0.0, 1.0])
        for episode in group["episodes"]:  # sampled by weights that held every token to be far less likely
            episode["sequences"][0]["logprobs"] = [x - 2.0 if x else x for x in episode["sequences"][0]["logprobs"]]
        best = [x for x in grpo.sequences_of(group, 0.02) if max(x.advantages) > 0]
        said = grpo.learn(policy, torch.optim.SGD(policy.parameters(), lr=1.0), best)
        self.assertEqual((said["clipped"], said["gradient"]), (1.0, 0.0))

    def test_groups_whose_returns_are_alike_are_left_out(self):
        policy = tiny_policy()
        self.assertEqual(grpo.sequences_of(group_of(policy, [1.3, 1.3, 1.301]), 0.02), [])
        self.assertEqual(len(grpo.sequences_of(group_of(policy, [1.3, 0.3]), 0.02)), 2)

    def test_each_turn_has_the_advantage_of_its_own_return(self):
        policy = tiny_policy()
        group = group_of(policy, [1.0, 0.0])
        first = group["episodes"][0]
        first["sequences"][0] = {**first["sequences"][0], "token_ids": [5, 9, 40, 1, 50, 41, 1], "logprobs": [0, 0, -1, -1, 0, -2, -2]}
        first["turns"] = [{"mask": 1, "sequence": 0, "start": 2, "end": 4, "return": 0.5, "reward": 0.1},
                          {"mask": 1, "sequence": 0, "start": 5, "end": 7, "return": 1.0, "reward": 1.0}]
        found = grpo.sequences_of(group, 0.02)[0]
        self.assertEqual(found.learned, [0, 1, 1, 0, 1, 1])
        self.assertAlmostEqual(found.advantages[1], 0.0, places=6)  # 0.5 is the mean of 0.5, 1 and 0
        self.assertGreater(found.advantages[4], 1.0)

    def test_pretraining_learns_goes_on_and_refuses_what_is_held_out(self):
        parts = {"held_out": tasks.make_tasks("held_out", 1, 1)}
        parts["practice"] = tasks.make_tasks("practice", 2, 1, parts["held_out"])
        prompts = {x.id: [{"role": "user", "content": f"[task: {x.id}]\nfloat f(float v) {{ return {x.f}; }}\n"}] for x in parts["practice"]}
        texts = pretrain.make_texts(parts, prompts, 2, 1)
        with tempfile.TemporaryDirectory() as folder:
            said = io.StringIO()
            with contextlib.redirect_stdout(said):
                for steps in (2, 30):
                    pretrain.pretrain(pathlib.Path(folder), texts, TINY, steps, 4, 3e-3, "cpu", 1)
            lines = [json.loads(x) for x in said.getvalue().splitlines() if x.startswith("{")]
            self.assertEqual([x["step"] for x in lines], [0, 1, 29])  # the second goes on after the first
            self.assertLess(lines[-1]["loss"], lines[0]["loss"] - 0.2)
        prompts[parts["practice"][0].id][0]["content"] += f"return {parts['held_out'][2].f};"
        with self.assertRaises(tasks.Leak):
            pretrain.make_texts(parts, prompts, 2, 1)

    def test_measures(self):
        found = measures.measures({"a": [0.0, 2.3], "b": [0.3, 0.0]})
        self.assertEqual((found["pass@1"], found["pass@2"], found["fast_2"]), (0.5, 1.0, 0.25))
        self.assertEqual(measures.pass_at(2, 4, 1), 0.5)

    def test_ids_give_back_every_text_and_sampling_says_its_own_log_probabilities(self):
        vocabulary = model.Vocabulary.learned(["a prompt of some length\nfor all\n"] * 3, ["for (int i = 0; i < n; ++i) s += 1;\n"] * 3, 4)
        for text in ("for (int i = 0; i < n; ++i) s += 1;\n", "ünseen\t\r\n  wörds 42", ""):
            self.assertEqual(vocabulary.decode(vocabulary.encode(text)), text)
        policy = tiny_policy()
        prompts = [[2, 20, 21, 22, 1, 4], [2, 30, 4]]  # of two lengths: one is padded
        for prompt, (ids, scores) in zip(prompts, model.sample(policy, prompts, [6, 4], [1.0, 1.0])):
            exact = model.logprobs_of(policy, [prompt + ids])[0, len(prompt) - 1:].tolist()
            for a, b in zip(scores, exact):
                self.assertAlmostEqual(a, b, places=4)


@unittest.skipUnless(HAS_TORCH, NO_TORCH)
class Loop(unittest.TestCase):
    """A real `kernelmill serve --runs` and the policy's server. The policy knows nothing, so its rewards are made to differ."""

    def setUp(self):
        judged = grpo.sequences_of

        def differ(group, least):
            for i, episode in enumerate(group["episodes"]):
                episode["turns"][0]["return"] = float(i)
            return judged(group, least)

        self.stack = contextlib.ExitStack()
        self.addCleanup(self.stack.close)
        self.folder = pathlib.Path(self.stack.enter_context(tempfile.TemporaryDirectory()))
        os.environ["XDG_CACHE_HOME"] = str(self.folder / "cache")
        config = {"seed": 1, "device": "cpu", "teaching": {
            "preset": "single_turn", "steps": 3, "groups": 1, "group_size": 2, "rate": 1e-3, "evaluate_every": 100, "samples": 2,
            "max_turns": 2, "max_tokens": 4, "timing": {"enabled": False}}}
        (self.folder / "config.json").write_text(json.dumps(config))
        for part in ("train", "held_out"):
            tasks.write_task(self.folder / "tasks", tasks.make_tasks(part, 1, 1)[0])
        model.save(str(self.folder / "pretrained.pt"), tiny_policy(), model.Vocabulary([]))
        sampler = server.Sampler(str(self.folder / "pretrained.pt"), "cpu", 8, 8192, "policy")
        self.policy = server.Server(("127.0.0.1", 0), server.handler_of(sampler))
        threading.Thread(target=self.policy.serve_forever, daemon=True).start()
        self.stack.enter_context(mock.patch.object(grpo, "sequences_of", differ))
        self.stack.callback(self.policy.server_close)
        self.stack.callback(self.policy.shutdown)
        self.client = self.stack.enter_context(kernelmill.serve("cpu", program=PROGRAM, tasks=str(self.folder / "tasks"),
                                                               options=["--runs", str(self.folder / "runs")]))

    def teacher(self):
        return grpo.Teacher(self.folder, self.client, f"http://127.0.0.1:{self.policy.server_port}")

    def log(self):
        said = subprocess.run([PROGRAM, "rollouts", "log", "--runs", str(self.folder / "runs"), "--json"], capture_output=True,
                              text=True, check=True).stdout
        return json.loads(said)["events"]

    def test_a_trainer_that_ends_anywhere_goes_on_and_learns_from_no_batch_twice(self):
        first = self.teacher()
        first.serve_weights()
        first.teach()
        # It ends after it has acknowledged a batch and before its checkpoint is written: the batch comes again.
        lost = self.teacher()
        lost.serve_weights()
        stream, batch = lost.take(lost.order_step(1), "trainer", 0, 1)
        episodes = [x for row in batch.rows for x in row["episodes"]]
        self.assertEqual([[t["token_audit"] for t in x["turns"]] for x in episodes], [["exact", "exact"]] * 2)
        self.assertEqual([len(x["sequences"]) for x in episodes], [1, 1])  # the second turn continues the first one's ids
        again = self.teacher()
        self.assertEqual(again.step, 0)
        again.serve_weights()
        again.teach()
        self.assertEqual(again.lines[1]["groups"], [x.id for x in batch.groups])
        self.assertEqual(again.lines[1]["versions"], ["step-0"])
        self.assertFalse(torch.equal(again.policy.last.weight, lost.policy.last.weight))  # it did learn
        # It ends after its checkpoint is written and before it is committed: the batch does not come again.
        last = self.teacher()
        with mock.patch("kernelmill.rollouts.Rollouts.commit", side_effect=KeyboardInterrupt), self.assertRaises(KeyboardInterrupt):
            last.teach()
        self.assertEqual(len((self.folder / "checkpoints.jsonl").read_text().splitlines()), 2)
        resumed = self.teacher()
        self.assertEqual(resumed.step, 2)
        self.assertEqual(len((self.folder / "checkpoints.jsonl").read_text().splitlines()), 3)
        self.assertIsNone(resumed.take("step-2", "trainer", 2, 3)[1])
        groups = [x for line in resumed.lines for x in line["groups"]]
        self.assertEqual(sorted(groups), ["step-0/g0", "step-1/g0", "step-2/g0"])
        self.assertEqual(sum("acked" in x for x in self.log()), 4)  # three, and the one that was rolled back
        for name, value in resumed.policy.state_dict().items():
            self.assertTrue(torch.equal(value, last.policy.state_dict()[name]), name)

    def test_a_batch_that_comes_twice_is_refused(self):
        teacher = self.teacher()
        teacher.serve_weights()
        teacher.learned.add("step-0/g0")
        with self.assertRaisesRegex(RuntimeError, "learned from before"):
            teacher.teach()

    def test_held_out_tasks_are_evaluated_once_for_each_step(self):
        teacher = self.teacher()
        teacher.serve_weights()
        teacher.evaluate()
        teacher.evaluate()
        lines = [json.loads(x) for x in (self.folder / "evaluations.jsonl").read_text().splitlines()]
        self.assertEqual([(x["after"], x["version"], x["samples"]) for x in lines], [(0, "pretrained", 2)])
        self.assertEqual(len(lines[0]["reward"]), 3)

    def test_kernelmill_finds_all_that_exact_tokens_need(self):
        said = subprocess.run([PROGRAM, "policy", "probe", f"http://127.0.0.1:{self.policy.server_port}/v1", "--kind", "sglang",
                               "--json"], capture_output=True, text=True, check=True).stdout
        self.assertIn("render", said)
        with self.assertRaises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(f"http://127.0.0.1:{self.policy.server_port}/generate", b'{"input_ids": [99999]}')
        self.assertEqual(refused.exception.code, 400)
        refused.exception.close()


if __name__ == "__main__":
    unittest.main()
