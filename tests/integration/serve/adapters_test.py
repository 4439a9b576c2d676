#!/usr/bin/env python3
"""Episodes of `kernelmill serve` in the environments that trainers know,
driven by the trainers' own code where it is installed.

KERNELMILL_TRAINER_PYTHON has the packages (tests/trainers.sh). What is not installed is skipped, and said.
"""

import asyncio
import contextlib
import importlib.util
import os
import pathlib
import pickle
import sys
import tempfile
import unittest
from unittest import mock

if wanted := os.environ.pop("KERNELMILL_TRAINER_PYTHON", ""):
    os.execv(wanted, [wanted, "-B", *sys.argv])

import kernels  # noqa: E402, F401 - puts the client on the path

# isort: split
import kernelmill  # noqa: E402
from kernelmill import environment  # noqa: E402
from kernelmill.adapters import trl  # noqa: E402
from kernels import GOOD, PROGRAM, TASK, TASKS, WRONG  # noqa: E402


def answer(source):
    return f"A kernel:\n```cpp\n{source}```\n"


def has(*packages):
    return all(importlib.util.find_spec(x) for x in packages)


class Served(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.stack = contextlib.ExitStack()
        os.environ["XDG_CACHE_HOME"] = cls.stack.enter_context(tempfile.TemporaryDirectory())
        cls.client = cls.stack.enter_context(
            kernelmill.serve("cpu", program=PROGRAM, tasks=str(TASKS), options=["--no-timing"])
        )
        cls.client.timeout = 600
        folder = cls.stack.enter_context(tempfile.TemporaryDirectory())
        token = pathlib.Path(folder, "token")
        token.write_text(cls.client._token)
        cls.token_file = str(token)
        cls.stack.enter_context(
            mock.patch.dict(os.environ, KERNELMILL_URL=cls.client.url, KERNELMILL_TOKEN_FILE=cls.token_file)
        )

    @classmethod
    def tearDownClass(cls):
        cls.stack.close()

    def test_an_episode_is_worth_its_best_turn(self):
        episode = kernelmill.Environment(self.client, TASK, max_turns=3)
        self.assertIn("row", episode.reset())
        rewards = [0.0]
        for source, done in ((WRONG, False), (GOOD, False), (WRONG, True)):
            found = episode.step(answer(source))
            rewards.append(found.reward)
            self.assertEqual((found.done, found.feedback.startswith(f"Turn {len(rewards) - 1} of 3:")), (done, True))
        self.assertEqual(sum(rewards), episode.reward)
        self.assertEqual((rewards[1], rewards[3]), (0.0, 0.0))
        self.assertGreater(rewards[2], 0)
        with self.assertRaises(ValueError):
            episode.step(answer(GOOD))
        episode.reset()
        self.assertEqual(episode.step(answer(WRONG)).reward, 0.0)

    def test_no_turn_undoes_the_penalty_of_another(self):
        for turns, sum_of in (([0.8, -0.5, 0.9], 0.4), ([-0.5, 0.8, 0.1], 0.3), ([-0.5, -0.5, 0.0], -1.0)):
            found = [
                kernelmill.Evaluation({"id": "x", "state": "done", "feedback": "", "verdict": {"reward": x}})
                for x in turns
            ]
            episode = kernelmill.Environment(self.client, TASK, max_turns=3)
            with mock.patch.object(self.client, "evaluate", side_effect=found):
                rewards = [episode.step(answer(GOOD)).reward for _ in turns]
            self.assertAlmostEqual(sum(rewards), sum_of)
            self.assertAlmostEqual(episode.reward, sum_of)
            self.assertTrue(all(reward == turn for reward, turn in zip(rewards, turns) if turn < 0), rewards)

    def test_an_episode_may_end_when_it_is_good_enough(self):
        episode = kernelmill.Environment(self.client, TASK, max_turns=3, enough=0.1)
        self.assertFalse(episode.step("no kernel here").done)
        self.assertTrue(episode.step(answer(GOOD)).done)

    def test_what_cannot_be_is_said(self):
        with self.assertRaises(kernelmill.NotFound) as caught:
            kernelmill.Environment(self.client, "native/no_such_task")
        self.assertIn("no_such_task", str(caught.exception))
        with self.assertRaises(ValueError):
            kernelmill.Environment(self.client, TASK, max_turns=0)
        with mock.patch.dict(os.environ), self.assertRaises(kernelmill.KernelmillError):
            del os.environ["KERNELMILL_URL"]
            environment.connect()

    def test_a_fault_of_the_machine_is_no_turn(self):
        episode = kernelmill.Environment(self.client, TASK)
        lost = kernelmill.Evaluation(
            {
                "id": "x",
                "state": "done",
                "feedback": None,
                "verdict": {
                    "reward": None,
                    "outcome": "infrastructure",
                    "error": {"category": "gpu_lost", "message": "the GPU is gone"},
                },
            }
        )
        with mock.patch.object(self.client, "evaluate", return_value=lost):
            with self.assertRaises(kernelmill.MachineFault) as caught:
                episode.step(answer(GOOD))
        self.assertEqual((caught.exception.category, episode.turns, episode.reward), ("gpu_lost", 0, 0.0))
        self.assertGreater(episode.step(answer(GOOD)).reward, 0)

        tool = trl.KernelEnvironment()
        tool.reset(task=TASK)
        with mock.patch.object(kernelmill.Client, "evaluate", return_value=lost):
            tool.submit(answer(GOOD))
        self.assertIsNone(tool.get_reward())

    def test_trl_has_rewards_and_an_environment(self):
        chat = [[{"role": "assistant", "content": answer(x)}] for x in (GOOD, WRONG)] + ["nothing"]
        good, wrong, nothing = trl.kernel_reward(completions=chat, task=[TASK] * 3, prompts=[], trainer_state=None)
        self.assertGreater(good, 0)
        self.assertEqual((wrong, nothing), (0.0, 0.0))
        self.assertIn(TASK, [x["task"] for x in trl.rows()])
        tool = trl.KernelEnvironment()
        self.assertIsNone(tool.get_reward())
        tool.reset(task=TASK, prompt=[])
        self.assertEqual(tool.get_reward(), 0.0)
        self.assertIn("wrong", tool.submit(answer(WRONG)))
        tool.submit(answer(GOOD))
        self.assertEqual(tool.get_reward(), good)

    @unittest.skipUnless(has("skyrl_gym"), "skyrl-gym is not installed")
    def test_skyrl_makes_the_environment_by_its_name(self):
        import skyrl_gym
        from kernelmill.adapters import skyrl
        from omegaconf import OmegaConf

        skyrl_gym.register(id="kernelmill", entry_point="kernelmill.adapters.skyrl:KernelEnv")
        (row,) = [x for x in skyrl.rows(self.client, max_turns=2) if x["task"] == TASK]
        made = skyrl_gym.make(row["env_class"], env_config=OmegaConf.create({}), extras=row)
        chat, told = made.init(row["prompt"])
        self.assertEqual((chat, told), (row["prompt"], {"task": TASK}))
        first, second = made.step(answer(WRONG)), made.step(answer(GOOD))
        self.assertEqual((first["reward"], first["done"], first["observations"][0]["role"]), (0.0, False, "user"))
        self.assertEqual((second["done"], second["observations"]), (True, []))
        self.assertEqual(made.get_metrics(), {"best_reward": second["reward"], "turns": 2})
        self.assertEqual(
            set(first),
            set(skyrl_gym.envs.base_text_env.BaseTextEnvStepOutput.__annotations__) - {"postprocessed_action"},
        )

    @unittest.skipUnless(has("tinker", "tinker_cookbook", "torch"), "tinker-cookbook is not installed")
    def test_tinker_rolls_a_group_out(self):
        import tinker
        from kernelmill.adapters.tinker import KernelEnvGroupBuilder
        from tinker_cookbook.completers import TokenCompleter, TokensWithLogprobs
        from tinker_cookbook.rl.rollouts import do_group_rollout

        class Scripted(TokenCompleter):
            asked = []

            async def __call__(self, model_input, stop, **_):
                text = bytes(model_input.to_ints()).decode()
                self.asked.append(text)
                tokens = list(answer(GOOD if "wrong" in text else WRONG).encode())
                return TokensWithLogprobs(tokens, [0.0] * len(tokens))

        builder = KernelEnvGroupBuilder(self.client.url, TASK, 2, 2, token_file=self.token_file, make_renderer=Bytes)
        group = asyncio.run(do_group_rollout(pickle.loads(pickle.dumps(builder)), Scripted()))
        rewards = [[t.reward for t in x.transitions] for x in group.trajectories_G]
        self.assertEqual(rewards[0], rewards[1])
        self.assertEqual((len(rewards[0]), rewards[0][0]), (2, 0.0))
        self.assertGreater(rewards[0][1], 0)
        self.assertEqual([x.transitions[-1].episode_done for x in group.trajectories_G], [True, True])
        self.assertEqual(builder.logging_tags(), ["native"])
        self.assertIsInstance(group.trajectories_G[0].transitions[0].ob, tinker.ModelInput)


class Bytes:
    """A renderer whose tokens are bytes."""

    def __init__(self, *_):
        pass

    def build_generation_prompt(self, messages):
        import tinker

        return tinker.ModelInput.from_ints(list("\n".join(x["content"] for x in messages).encode()))

    def parse_response(self, tokens):
        return {"role": "assistant", "content": bytes(tokens).decode()}, None

    def get_stop_sequences(self):
        return []


if __name__ == "__main__":
    unittest.main()
