#!/usr/bin/env python3
"""The reference trainer: what a step learns, what is held out,
and that a step depends on its checkpoint and batch alone.

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

if wanted := os.environ.pop("KERNELMILL_TRAINER_PYTHON", ""):
    os.execv(wanted, [wanted, "-B", *sys.argv])
if not importlib.util.find_spec("torch") and os.path.realpath(sys.executable) != os.path.realpath("/usr/bin/python3"):
    os.execv("/usr/bin/python3", ["/usr/bin/python3", "-B", *sys.argv])

SOURCE = pathlib.Path(os.environ["KERNELMILL_SOURCE_DIR"])
PROGRAM = os.path.join(os.environ["KERNELMILL_BIN_DIR"], "kernelmill")
sys.path.insert(0, str(SOURCE / "launch/learning"))

from trainer import best, measures, tasks, teach  # noqa: E402

HAS_TORCH = importlib.util.find_spec("torch") is not None
if HAS_TORCH:
    import torch
    from trainer import grpo, model, pretrain, server, web

    torch.set_num_threads(1)

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
        sequence = {
            "token_ids": ids,
            "mask": [0] * len(prompt) + [1, 1],
            "prompt_length": len(prompt),
            "weight_versions": [],
            "logprobs": [0.0] * len(prompt) + scores[len(prompt) - 1 :],
        }
        turn = {"mask": 1, "sequence": 0, "start": len(prompt), "end": len(ids), "return": value, "reward": value}
        episodes.append({"turns": [turn], "sequences": [sequence]})
    return {"task": "train/x", "episodes": episodes}


class HeldOut(unittest.TestCase):
    def setUp(self):
        self.held_out = tasks.make_tasks("held_out", 2, 7)
        self.practice = tasks.make_tasks("practice", 30, 7, self.held_out)
        draw = random.Random(1)
        self.texts = [
            f"[task: {x.id}]\nTimed at: cols={x.cols} rows={x.rows}\n" + tasks.answer(x, draw) for x in self.practice
        ]

    def test_what_is_made_has_nothing_that_is_held_out(self):
        self.assertEqual(tasks.check_held_out(self.texts, self.held_out), len(self.texts))
        trained = tasks.make_tasks("train", 3, 7, self.held_out)
        self.assertFalse({x.f for x in trained} & {x.f for x in self.held_out})
        self.assertFalse({(x.rows, x.cols) for x in trained} & {(x.rows, x.cols) for x in self.held_out})

    def test_a_name_a_function_or_a_shape_that_is_planted_is_found(self):
        task = self.held_out[-1]
        for planted in (
            f"see {task.id}",
            f"static float f(float v) {{ return {task.f}; }}",
            f"Timed at: cols={task.cols} rows={task.rows}",
            f"{task.rows} x {task.cols}",
        ):
            with self.assertRaises(tasks.Leak, msg=planted):
                tasks.check_held_out([*self.texts, planted], self.held_out)


class Configurations(unittest.TestCase):
    """Those in launch/learning/trainer."""

    def setUp(self):
        self.configs = {x.stem: json.loads(x.read_text()) for x in (SOURCE / "launch/learning/trainer").glob("*.json")}
        self.assertIn("cpu_policy_cuda_kernels", self.configs)

    def training_of(self, config):
        with tempfile.TemporaryDirectory() as folder:
            pathlib.Path(folder, "config.json").write_text(json.dumps(config))
            return teach.training_of(pathlib.Path(folder))

    def test_no_gpu_has_a_policy_and_kernels(self):
        for name, config in self.configs.items():
            training = self.training_of(config)
            for part in ("policy", "trainer"):
                words = training[part]["command"]
                self.assertEqual(words[words.index("--device") + 1], config["device"], name)
                if training["backend"] == "cuda":
                    self.assertEqual(words[:2], ["env", f"CUDA_VISIBLE_DEVICES={config['gpus']}"], name)
                    self.assertEqual(config["gpus"] == "", config["device"] == "cpu", name)

    def test_the_how_to_has_every_key(self):
        page = (SOURCE / "docs/how-to/teach-a-policy.md").read_text()
        for name, config in self.configs.items():
            teaching = config.pop("teaching")
            for key in [*config, *config["tasks"], *config["model"], *config["pretraining"], *teaching]:
                self.assertTrue(f"`{key}`" in page or f"`teaching.{key}`" in page, f"{key} of {name}.json")

    def test_tasks_for_a_gpu_have_texts_without_what_is_held_out(self):
        held_out = tasks.make_tasks("held_out", 1, 1, backend="cuda")
        practice = tasks.make_tasks("practice", 5, 1, held_out, "cuda")
        texts = [tasks.answer(x, random.Random(1)) for x in practice]
        self.assertEqual(tasks.check_held_out(texts, held_out), len(texts))
        self.assertTrue(all("```cuda\n" in x and "__global__" in x for x in texts))


@unittest.skipUnless(HAS_TORCH, NO_TORCH)
class Steps(unittest.TestCase):
    def test_a_step_makes_what_paid_likelier_and_what_did_not_less_likely(self):
        policy = tiny_policy()
        group = group_of(policy, [0.0, 0.3, 0.3, 2.3])
        before = [model.logprobs_of(policy, [e["sequences"][0]["token_ids"]])[0, 2].item() for e in group["episodes"]]
        said = grpo.learn(policy, torch.optim.AdamW(policy.parameters(), lr=1e-3), grpo.sequences_of(group))
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
        best = [x for x in grpo.sequences_of(group) if max(x.advantages) > 0]
        said = grpo.learn(policy, torch.optim.SGD(policy.parameters(), lr=1.0), best)
        self.assertEqual((said["clipped"], said["gradient"]), (1.0, 0.0))

    def test_each_turn_has_the_advantage_of_its_own_return(self):
        policy = tiny_policy()
        group = group_of(policy, [1.0, 0.0])
        first = group["episodes"][0]
        first["sequences"][0] = {
            **first["sequences"][0],
            "token_ids": [5, 9, 40, 1, 50, 41, 1],
            "logprobs": [0, 0, -1, -1, 0, -2, -2],
        }
        first["turns"] = [
            {"mask": 1, "sequence": 0, "start": 2, "end": 4, "return": 0.5, "reward": 0.1},
            {"mask": 1, "sequence": 0, "start": 5, "end": 7, "return": 1.0, "reward": 1.0},
        ]
        found = grpo.sequences_of(group)[0]
        self.assertEqual(found.learned, [0, 1, 1, 0, 1, 1])
        self.assertAlmostEqual(found.advantages[1], 0.0, places=6)  # 0.5 is the mean of 0.5, 1 and 0
        self.assertGreater(found.advantages[4], 1.0)

    def test_pretraining_learns_goes_on_and_refuses_what_is_held_out(self):
        parts = {"held_out": tasks.make_tasks("held_out", 1, 1)}
        parts["practice"] = tasks.make_tasks("practice", 2, 1, parts["held_out"])
        prompts = {
            x.id: [{"role": "user", "content": f"[task: {x.id}]\nfloat f(float v) {{ return {x.f}; }}\n"}]
            for x in parts["practice"]
        }
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

    def test_ids_give_back_every_text_and_sampling_says_its_own_log_probabilities(self):
        vocabulary = model.Vocabulary.learned(
            ["a prompt of some length\nfor all\n"] * 3, ["for (int i = 0; i < n; ++i) s += 1;\n"] * 3, 4
        )
        for text in ("for (int i = 0; i < n; ++i) s += 1;\n", "ünseen\t\r\n  wörds 42", ""):
            self.assertEqual(vocabulary.decode(vocabulary.encode(text)), text)
        policy = tiny_policy()
        prompts = [[2, 20, 21, 22, 1, 4], [2, 30, 4]]  # of two lengths: one is padded
        for prompt, (ids, scores) in zip(prompts, model.sample(policy, prompts, [6, 4], [1.0, 1.0])):
            exact = model.logprobs_of(policy, [prompt + ids])[0, len(prompt) - 1 :].tolist()
            for a, b in zip(scores, exact):
                self.assertAlmostEqual(a, b, places=4)


@unittest.skipUnless(HAS_TORCH, NO_TORCH)
class Parts(unittest.TestCase):
    """What `kernelmill train` asks: the policy's server, and the trainer."""

    def setUp(self):
        self.stack = contextlib.ExitStack()
        self.addCleanup(self.stack.close)
        self.folder = pathlib.Path(self.stack.enter_context(tempfile.TemporaryDirectory()))
        os.environ["XDG_CACHE_HOME"] = str(self.folder / "cache")
        model.save(str(self.folder / "pretrained.pt"), tiny_policy(), model.Vocabulary([]))

    def request(self, step, before, returns):
        batch = self.folder / f"batch-{step}.jsonl"
        batch.write_text(json.dumps(group_of(model.load(before, "cpu")[0], returns)) + "\n")
        return {
            "step": step,
            "version": f"step-{step}",
            "batch": str(batch),
            "checkpoint": str(self.folder / f"step-{step}"),
            "previous": {"version": "x", "weights": before},
            "settings": {"rate": 1e-3},
        }

    def same(self, a, b):
        a, b = (model.load(x, "cpu")[0].state_dict() for x in (a, b))
        return all(torch.equal(v, b[k]) for k, v in a.items())

    def test_a_step_depends_on_its_checkpoint_and_its_batch_alone(self):
        trainer = grpo.Trainer("cpu")
        zero = trainer.step(self.request(0, str(self.folder / "pretrained.pt"), [0.0, 1.0]))
        one = self.request(1, zero["weights"], [0.0, 0.3, 2.0])
        path = trainer.step(one)["weights"]
        os.rename(path, str(self.folder / "first.pt"))
        # It was killed after its checkpoint was written, or before: a trainer that takes the step again gets the same.
        self.assertEqual(trainer.step(one)["weights"], path)
        self.assertTrue(self.same(path, self.folder / "first.pt"))
        self.assertEqual(grpo.Trainer("cpu").step(one)["metrics"]["Optimizer/LearningRate"], 1e-3)
        self.assertTrue(self.same(path, self.folder / "first.pt"))
        self.assertFalse(self.same(path, zero["weights"]))
        self.assertEqual(model.load(path, "cpu")[2]["version"], "step-1")

    def serve(self, answer):
        made = web.Server(0, answer)
        threading.Thread(target=made.serve_forever, daemon=True).start()
        self.stack.callback(made.server_close)
        self.stack.callback(made.shutdown)
        return f"http://127.0.0.1:{made.server_port}"

    def ask(self, url, body=None):
        try:
            with urllib.request.urlopen(url, None if body is None else json.dumps(body).encode()) as x:
                return x.status, x.read().decode()
        except urllib.error.HTTPError as refused:
            with refused:
                return refused.code, refused.read().decode()

    def test_a_policy_is_served_and_takes_new_weights(self):
        url = self.serve(server.Sampler(str(self.folder / "pretrained.pt"), "cpu").answer)
        ids = json.loads(self.ask(url + "/v1/tokenize", {"messages": [{"role": "user", "content": "a kernel"}]})[1])[
            "tokens"
        ]
        wish = {"input_ids": ids, "sampling_params": {"max_new_tokens": 5}}
        first = json.loads(self.ask(url + "/generate", wish)[1])
        self.assertEqual([x for _, x, _ in first["meta_info"]["output_token_logprobs"]], first["output_ids"])
        self.assertEqual(first["meta_info"]["weight_version"], "pretrained")
        one = grpo.Trainer("cpu").step(self.request(0, str(self.folder / "pretrained.pt"), [0.0, 1.0]))
        self.assertEqual(self.ask(url + "/update_weights_from_disk", {"model_path": one["weights"]})[0], 200)
        self.assertEqual(json.loads(self.ask(url + "/generate", wish)[1])["meta_info"]["weight_version"], "step-0")
        self.assertIn("sglang:num_queue_reqs 0", self.ask(url + "/metrics")[1])
        self.assertEqual(self.ask(url + "/nothing")[0], 404)
        for refused in (
            {"input_ids": [99999]},
            {"input_ids": [7] * 2048},
            {**wish, "sampling_params": {"stop": ["x"]}},
            [1],
        ):
            self.assertEqual(self.ask(url + "/generate", refused)[0], 400)
        self.assertEqual(self.ask(url + "/update_weights_from_disk", {"model_path": "/nowhere.pt"})[0], 500)

    def test_a_trainer_answers_with_its_metrics_or_with_what_is_wrong(self):
        url = self.serve(grpo.Trainer("cpu").answer)
        request = self.request(0, str(self.folder / "pretrained.pt"), [0.0, 1.0])
        status, text = self.ask(url + "/step", request)
        self.assertEqual((status, json.loads(text)["metrics"]["sequences"]), (200, 2))
        self.assertEqual(self.ask(url + "/step", {**request, "batch": "/nowhere"})[0], 500)
        self.assertEqual(self.ask(url + "/step", {})[0], 400)
        self.assertEqual(self.ask(url)[0], 404)

    def test_kernelmill_finds_all_that_exact_tokens_need(self):
        sampler = server.Sampler(str(self.folder / "pretrained.pt"), "cpu", most_ids=8192)
        url = self.serve(sampler.answer)
        said = subprocess.run(
            [PROGRAM, "policy", "probe", url + "/v1", "--kind", "sglang", "--json"],
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        self.assertIn("render", said)

    def test_teach_makes_pretrains_and_teaches(self):
        """All of launch/teach.sh at the smallest scale; what is learned in so little is nothing."""
        config = {
            "seed": 1,
            "device": "cpu",
            "tasks": {"train": 1, "held_out": 1, "practice": 1},
            "model": TINY,
            "pretraining": {"answers": 2, "steps": 2, "batch": 2, "rate": 0.001},
            "teaching": {
                "preset": "single_turn",
                "steps": 2,
                "groups": 1,
                "group_size": 2,
                "rounds": 0,
                "rate": 1e-3,
                "evaluate_every": 2,
                "samples": 1,
                "max_tokens": 4,
                "least_deviation": 0,
                "timing": {"enabled": False},
            },
        }
        (self.folder / "tiny.json").write_text(json.dumps(config))
        words = [str(SOURCE / "launch/teach.sh"), str(self.folder / "out"), "--config", str(self.folder / "tiny.json")]
        done = subprocess.run(
            words, capture_output=True, text=True, env={**os.environ, "KERNELMILL_PYTHON": sys.executable}
        )
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        steps = [json.loads(x) for x in (self.folder / "out/checkpoints.jsonl").read_text().splitlines()]
        self.assertEqual([(x["step"], len(x["groups"]), x["episodes"]) for x in steps], [(0, 1, 2), (1, 1, 2)])
        check = subprocess.run(
            [PROGRAM, "train", "check", str(self.folder / "out/training.json"), "--json"],
            capture_output=True,
            text=True,
        )
        self.assertEqual(check.returncode, 0, check.stdout + check.stderr)
        found = json.loads(check.stdout)
        self.assertEqual((found["tasks"], found["runs"], found["texts"], found["leaks"]), (4, 2, 8, []))
        said = measures.compare([self.folder / "out"])
        self.assertEqual((said["seeds"], said["after"], said["samples"]), (1, [2], [4]))
        rates = measures.rates(self.folder / "out")
        self.assertEqual(rates["steps"], 2)
        self.assertAlmostEqual(
            rates["verdicts_a_minute"], 2 * rates["steps_a_minute"], delta=0.2
        )  # two episodes a step, of a turn
        self.assertEqual(measures.plans(self.folder / "out", 2), {x: {"other words": 1.0} for x in sorted(tasks.WORDS)})
        second = [
            *words[:1],
            str(self.folder / "second"),
            *words[2:],
            "--seed",
            "2",
            "--pretrained",
            str(self.folder / "out"),
        ]
        done = subprocess.run(
            second, capture_output=True, text=True, env={**os.environ, "KERNELMILL_PYTHON": sys.executable}
        )
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)


class Best(unittest.TestCase):
    def test_a_judgement_that_is_not_timed_says_so(self):
        row = {
            "task": "train/x",
            "first": {"estimate": 2.0, "low": 1.5, "high": 2.5},
            "again": {"estimate": None, "low": None, "high": None},
            "outcome": "accepted",
            "findings": [],
            "sanitizers": {},
            "stands": True,
        }
        self.assertEqual(best.row_of(row), "| `train/x` | 2.00 [1.50, 2.50] | not timed | accepted | none | stands |")
        row["first"] = {"estimate": 0.0, "low": 0.0, "high": 0.0}  # as a stored turn has it
        self.assertIn("| not timed | not timed |", best.row_of(row))

    def test_a_kernel_is_judged_again(self):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            task = tasks.write_all(folder / "tasks", 1, 1, 1)["held_out"][0]
            text = f"<think>\n8 at a time\n</think>\n<KERNEL>\n```cpp\n{tasks.kernel(task, 'parts', 8)}```\n</KERNEL>\n"
            (folder / "script.json").write_text(json.dumps({"model": "one", "replies": [{"text": text}]}))
            subprocess.run(
                [
                    PROGRAM,
                    "run",
                    f"run.dir={folder}/runs/held-out-0",
                    f"tasks.root={folder}/tasks",
                    f'tasks.ids=["{task.id}"]',
                    "tasks.group_size=1",
                    "tasks.max_turns=1",
                    "policy.kind=scripted",
                    f"policy.script={folder}/script.json",
                    "policy.model=one",
                    "retrieval.enabled=false",
                    "evaluation.backend=cpu",
                ],
                check=True,
                capture_output=True,
            )
            lines = [
                {"best": {task.id: {"turn": x, "speedup": speedup}}}
                for x, speedup in (
                    ("held-out-0/g0.e1.t0", 1.5),
                    ("held-out-0/g0.e0.t0", 2.0),
                    ("held-out-0/g0.e2.t0", 1.7),
                )
            ]
            (folder / "evaluations.jsonl").write_text("".join(json.dumps(x) + "\n" for x in lines))
            self.assertEqual(best.best_of(folder), {task.id: "held-out-0/g0.e0.t0"})
            found = best.judged_again(PROGRAM, folder / "tasks", str(folder / "runs/held-out-0/g0.e0.t0"))
            self.assertEqual(
                (found["outcome"], found["stands"], found["sanitizers"]),
                ("accepted", True, {"memcheck": 0, "racecheck": 0}),
            )
            self.assertIn("constexpr int n = 8;", found["kernel"])
            self.assertRegex(best.row_of(found), r"\| accepted \| .* \| stands \|")
            with self.assertRaisesRegex(RuntimeError, "failed to run show"):
                best.judged_again(PROGRAM, folder / "tasks", str(folder / "runs/nothing/g0.e0.t0"))


if __name__ == "__main__":
    unittest.main()
