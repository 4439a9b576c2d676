#!/usr/bin/env python3
"""Episodes of `kernelmill serve` in the seats of verl, verifiers, slime, Megatron-LM and NeMo-Gym,
driven by their own code.

KERNELMILL_TRAINER_PYTHON has the packages (tests/trainers.sh). slime, Megatron-LM and NeMo-Gym are no packages of PyPI:
their sources lie below KERNELMILL_TRAINER_SOURCES (DIR/slime/slime/..., DIR/megatron/megatron/...,
DIR/nemo_gym/nemo_gym/...). What is not there is skipped, and said.
"""

import asyncio
import contextlib
import importlib.util
import os
import pathlib
import sys
import tempfile
import types
import unittest
from unittest import mock

SOURCE = pathlib.Path(os.environ["KERNELMILL_SOURCE_DIR"])
if wanted := os.environ.pop("KERNELMILL_TRAINER_PYTHON", ""):
    os.execv(wanted, [wanted, "-B", *sys.argv])
for one in ("slime", "megatron", "nemo_gym"):
    if sources := os.environ.get("KERNELMILL_TRAINER_SOURCES"):
        sys.path.append(os.path.join(sources, one))
sys.path[:0] = [
    str(SOURCE / folder)
    for folder in ("tests/integration/serve", "tests/integration/exports", "launch/learning/client")
]

import kernelmill  # noqa: E402
from kernels import GOOD, PROGRAM, TASK, TASKS, WRONG  # noqa: E402
from support import make_model  # noqa: E402


def answer(source):
    return f"A kernel:\n```cpp\n{source}```\n"


def has(*modules):
    try:
        return all(importlib.util.find_spec(x) for x in modules)
    except ModuleNotFoundError:
        return False


LOST = kernelmill.Evaluation(
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


class Served(unittest.TestCase):
    """One server. `reward` is what GOOD is worth, without timing."""

    @classmethod
    def setUpClass(cls):
        cls.stack = contextlib.ExitStack()
        cls.addClassCleanup(cls.stack.close)
        folder = cls.stack.enter_context(tempfile.TemporaryDirectory())
        cls.folder = pathlib.Path(folder)
        os.environ["XDG_CACHE_HOME"] = folder
        cls.client = cls.stack.enter_context(
            kernelmill.serve("cpu", program=PROGRAM, tasks=str(TASKS), options=["--no-timing"])
        )
        cls.client.timeout = 600
        pathlib.Path(folder, "token").write_text(cls.client._token)
        cls.stack.enter_context(
            mock.patch.dict(os.environ, KERNELMILL_URL=cls.client.url, KERNELMILL_TOKEN_FILE=folder + "/token")
        )
        cls.reward = cls.client.evaluate(TASK, GOOD).reward

    def lost(self):
        return mock.patch.object(kernelmill.Client, "evaluate", return_value=LOST)

    def tokenizer(self):
        from transformers import AutoTokenizer

        if not (self.folder / "model").exists():
            make_model(str(self.folder / "model"))
        return AutoTokenizer.from_pretrained(self.folder / "model")


@unittest.skipUnless(has("verl", "torch", "transformers"), "verl is not installed")
class Verl(Served):
    def run_loop(self, answers, room=30000, max_turns=2):
        from kernelmill.adapters.verl import KernelAgentLoop
        from omegaconf import OmegaConf
        from verl.experimental.agent_loop.agent_loop import DictConfigWrap
        from verl.workers.rollout.replica import TokenOutput

        tokenizer = self.tokenizer()
        asked = []

        class Server:
            async def generate(self, request_id, prompt_ids, sampling_params, **_):
                asked.append((request_id, list(prompt_ids)))
                ids = tokenizer.encode(answers[len(asked) - 1], add_special_tokens=False) + [tokenizer.eos_token_id]
                return TokenOutput(token_ids=ids, log_probs=[-0.5] * len(ids), stop_reason="completed")

        config = OmegaConf.create({"actor_rollout_ref": {"rollout": {"response_length": room, "prompt_length": 4096}}})

        async def run():
            loop = KernelAgentLoop(
                DictConfigWrap(config), Server(), tokenizer, None, None, DictConfigWrap(OmegaConf.create({}))
            )
            return await loop.run(
                {},
                raw_prompt=[{"role": "user", "content": "Write it."}],
                extra_info={"task": TASK, "max_turns": max_turns},
            )

        return asyncio.run(run()), asked, tokenizer

    def test_an_agent_loop_has_turns_whose_feedback_is_masked(self):
        out, asked, tokenizer = self.run_loop([answer(WRONG), answer(GOOD)])
        self.assertEqual(
            (out.reward_score, out.extra_fields["turn_scores"], out.num_turns), (self.reward, [0.0, self.reward], 4)
        )
        self.assertEqual(len(out.response_ids), len(out.response_mask))
        self.assertEqual(len(out.response_ids), len(out.response_logprobs))
        self.assertEqual(out.prompt_ids + out.response_ids[: len(asked[1][1]) - len(asked[0][1])], asked[1][1])
        learned = tokenizer.decode(
            [t for t, m in zip(out.response_ids, out.response_mask) if m], skip_special_tokens=True
        )
        told = tokenizer.decode([t for t, m in zip(out.response_ids, out.response_mask) if not m])
        self.assertEqual(learned, answer(WRONG) + answer(GOOD))
        self.assertIn("wrong", told)
        self.assertEqual(len({x for x, _ in asked}), 1)
        self.assertTrue(all(p == 0 for p, m in zip(out.response_logprobs, out.response_mask) if not m))

    def test_without_room_for_an_answer_it_ends_with_a_response_that_fits(self):
        out, asked, _ = self.run_loop([answer(WRONG)] * 2, room=len(answer(WRONG)) + 30)
        self.assertEqual((len(asked), out.reward_score), (1, 0.0))
        self.assertTrue(all(out.response_mask))

    def test_a_fault_of_the_machine_is_raised(self):
        with self.lost(), self.assertRaises(kernelmill.MachineFault):
            self.run_loop([answer(GOOD)])

    def test_verls_reward_manager_calls_the_reward_function(self):
        from kernelmill.adapters.verl import compute_score, rows

        (row,) = [x for x in rows(self.client) if x["extra_info"]["task"] == TASK]
        given = {
            "data_source": row["data_source"],
            "solution_str": answer(GOOD),
            "ground_truth": row["reward_model"]["ground_truth"],
            "extra_info": row["extra_info"],
        }
        self.assertEqual(compute_score(**given), self.reward)
        with self.lost(), self.assertRaises(kernelmill.MachineFault):
            compute_score(**given)


@unittest.skipUnless(has("verifiers.v1"), "verifiers is not installed")
class Verifiers(Served):
    def test_a_taskset_and_its_environment(self):
        import verifiers.v1 as vf
        from kernelmill.adapters import verifiers
        from verifiers.v1.utils.loaders import load_taskset, taskset_config_type

        taskset = load_taskset(
            taskset_config_type("kernelmill-taskset")(id="kernelmill-taskset", tasks=TASK, max_turns=2)
        )
        (task,) = list(taskset)
        self.assertIsInstance(taskset, verifiers.KernelTaskset)
        self.assertEqual((task.key, task.data.idx, task.data.max_turns), (TASK, 0, 2))
        heard = []
        trace = types.SimpleNamespace(
            rewards={},
            metrics={},
            record_reward=lambda k, v: trace.rewards.update({k: v}),
            record_metrics=lambda x: trace.metrics.update(x),
        )

        class Interaction:
            def __init__(self):
                self.trace = trace

            async def __aenter__(self):
                return self

            async def __aexit__(self, *_):
                return False

            async def turn(self, text):
                heard.append(text)
                return types.SimpleNamespace(terminated=False, last_reply=answer([WRONG, GOOD][len(heard) - 1]))

        agents = types.SimpleNamespace(policy=types.SimpleNamespace(interaction=lambda _: Interaction()))
        env = verifiers.KernelEnv.__new__(verifiers.KernelEnv)
        asyncio.run(env.run(task, agents))
        self.assertEqual(trace.rewards, {"kernel": self.reward})
        self.assertEqual(trace.metrics, {"turns": 2.0})
        self.assertIn("wrong", heard[1])
        heard.clear()
        with self.lost(), self.assertRaises(vf.EnvError):
            asyncio.run(env.run(task, agents))


@unittest.skipUnless(has("slime.utils.types", "torch", "transformers"), "slime's sources are not there")
class Slime(Served):
    def generate(self, answers, **more):
        from kernelmill.adapters import slime
        from slime.utils.types import Sample

        tokenizer = self.tokenizer()
        asked = []

        async def post(url, payload, headers=None):
            asked.append(payload)
            text = answers[len(asked) - 1]
            ids = tokenizer.encode(text, add_special_tokens=False)
            return {
                "text": text,
                "meta_info": {
                    "output_token_logprobs": [(-0.5, x, None) for x in ids],
                    "finish_reason": {"type": "stop"},
                    "weight_version": "3",
                },
            }

        args = types.SimpleNamespace(
            sglang_router_ip="x",
            sglang_router_port=1,
            max_turns=2,
            use_rollout_routing_replay=False,
            sglang_speculative_algorithm=None,
            **more,
        )
        sample = Sample(prompt=[{"role": "user", "content": "Write it."}], label=TASK)
        with mock.patch.object(slime, "post", post), mock.patch.object(slime, "tokenizer_of", lambda _: tokenizer):
            return asyncio.run(slime.generate(args, sample, {"max_new_tokens": 30000})), asked

    def test_generate_fills_a_sample(self):
        sample, asked = self.generate([answer(WRONG), answer(GOOD)])
        self.assertEqual((sample.reward, sample.status.value), (self.reward, "completed"))
        self.assertEqual(len(sample.loss_mask), sample.response_length)
        self.assertEqual(len(sample.rollout_log_probs), sample.response_length)
        self.assertEqual(sum(sample.loss_mask), len(answer(WRONG)) + len(answer(GOOD)))
        self.assertEqual(asked[1]["input_ids"], sample.tokens[: len(asked[1]["input_ids"])])
        self.assertEqual(sample.weight_versions, ["3", "3"])

    def test_a_fault_of_the_machine_has_no_reward(self):
        from kernelmill.adapters.slime import kernel_reward
        from slime.utils.types import Sample

        with self.lost():
            sample, _ = self.generate([answer(GOOD)])
            self.assertEqual((sample.reward, sample.status.value), (None, "aborted"))
            one = Sample(label=TASK, response=answer(GOOD))
            self.assertIsNone(asyncio.run(kernel_reward(None, one)))
            self.assertTrue(one.remove_sample)
        self.assertEqual(asyncio.run(kernel_reward(None, Sample(label=TASK, response=answer(GOOD)))), self.reward)


@unittest.skipUnless(has("megatron.rl", "torch"), "Megatron-LM's sources are not there")
class Megatron(Served):
    def test_an_agent_runs_an_episode_of_two_turns(self):
        from kernelmill.adapters.megatron import KernelAgent
        from megatron.rl.inference import InferenceResponse, LLMChatMessage

        agent = KernelAgent(max_turns=2, tasks=TASK)
        prompt, golden = asyncio.run(agent.get_prompt(validation=False))
        self.assertIn("row", prompt)
        answers = iter([WRONG, GOOD])
        heard = []

        class Interface:
            def prepare_request(self, conversation, arguments):
                heard.append(conversation)
                return types.SimpleNamespace(prompt=conversation)

        async def respond(self, request, inference_request):
            return InferenceResponse.model_construct(
                response=LLMChatMessage(role="assistant", content=answer(next(answers))), finish_reason="stop"
            )

        request = types.SimpleNamespace(inference_interface=Interface(), generation_args={})
        with mock.patch.object(KernelAgent, "get_rollout_response", respond):
            found = asyncio.run(
                agent._run_episode(request, prompt=[LLMChatMessage(role="user", content=prompt)], golden=golden)
            )
        self.assertEqual(len(found.responses), 2)
        self.assertIn("wrong", heard[1][-1].content)
        self.assertEqual(
            asyncio.run(agent.get_trajectory_reward(found.responses, found.conversation, golden)), self.reward
        )
        with self.lost(), self.assertRaises(kernelmill.MachineFault):
            asyncio.run(agent.get_reward(answer(GOOD), golden))
        self.assertEqual([x["task"] for _, x in asyncio.run(agent.evaluation_prompts(5))], [TASK])


@unittest.skipUnless(
    has("nemo_gym.base_resources_server", "itsdangerous", "openai", "fastapi"), "NeMo-Gym's sources are not there"
)
class NemoGym(Served):
    def test_a_resources_server_judges_submits_and_verifies(self):
        from fastapi.testclient import TestClient
        from kernelmill.adapters import nemo_gym

        server = nemo_gym.KernelResourcesServer.model_construct(
            config=nemo_gym.BaseResourcesServerConfig.model_construct(name="kernelmill", host="x", port=1),
            episodes={},
            server_client=None,
        )
        (row,) = [x for x in nemo_gym.rows(self.client, 2) if x["task"] == TASK]
        message = {
            "id": "m",
            "type": "message",
            "role": "assistant",
            "status": "completed",
            "content": [{"type": "output_text", "text": answer(GOOD), "annotations": []}],
        }
        response = {
            "id": "r",
            "object": "response",
            "created_at": 0,
            "model": "m",
            "output": [message],
            "parallel_tool_calls": False,
            "tool_choice": "auto",
            "tools": [],
        }
        with TestClient(server.setup_webserver()) as web:
            self.assertEqual(web.post("/seed_session", json={"task": TASK, "max_turns": 2}).status_code, 200)
            first = web.post("/submit", json={"answer": answer(WRONG)}).json()
            self.assertEqual((first["done"], "wrong" in first["feedback"]), (False, True))
            self.assertTrue(web.post("/submit", json={"answer": answer(GOOD)}).json()["done"])
            said = web.post("/verify", json={**row, "response": response})
            self.assertEqual((said.status_code, said.json().get("reward")), (200, self.reward), said.text)
        with TestClient(server.setup_webserver()) as web:  # an agent without tools
            web.post("/seed_session", json={"task": TASK})
            self.assertEqual(web.post("/verify", json={**row, "response": response}).json()["reward"], self.reward)


if __name__ == "__main__":
    unittest.main()
