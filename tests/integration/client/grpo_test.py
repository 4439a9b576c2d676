#!/usr/bin/env python3
"""TRL's GRPOTrainer takes steps on a CPU against a running server, and goes on from its checkpoint.

The model is made on the spot: two layers with random weights. Such a model writes no kernel, so where a test wants
rewards that differ, its answers are given, and their log-probabilities are the model's. Needs TRL
(tests/trainers.sh)."""

import json
import os
import pathlib
import sys
import unittest
from unittest import mock

if wanted := os.environ.pop("KERNELMILL_TRAINER_PYTHON", ""):
    os.execv(wanted, [wanted, "-B", *sys.argv])
os.environ.update(HF_HUB_OFFLINE="1", CUDA_VISIBLE_DEVICES="", TRL_EXPERIMENTAL_SILENCE="1")

from trainers_test import GOOD, TASK, WRONG, Served, answer, has  # noqa: E402


@unittest.skipUnless(has("trl", "torch", "transformers", "datasets"), "TRL is not installed")
class Grpo(Served):
    def trainer(self, steps, room=1400, **more):
        import datasets
        from kernelmill.adapters import trl_rollouts
        from trl import GRPOConfig, GRPOTrainer

        self.tokenizer()  # makes the model
        rows = [x for x in trl_rollouts.rows(self.client) if x["task"] == TASK] * 2
        options = {
            "output_dir": str(self.folder / "out"),
            "max_steps": steps,
            "per_device_train_batch_size": 2,
            "bf16": False,
            "num_generations": 2,
            "max_completion_length": room,
            "learning_rate": 1e-2,
            "logging_steps": 1,
            "save_steps": 1,
            "use_cpu": True,
            "gradient_checkpointing": False,
            "report_to": [],
            "lr_scheduler_type": "constant",
            **more,
        }
        return GRPOTrainer(
            model=str(self.folder / "model"),
            reward_funcs=trl_rollouts.best_reward,
            args=GRPOConfig(**options),
            train_dataset=datasets.Dataset.from_list(rows),
            rollout_func=trl_rollouts.kernel_rollouts,
        )

    def given_answers(self):
        """Of each pair of episodes one writes a right kernel at once, and one a wrong one twice."""
        import torch

        turns = iter([GOOD, GOOD, WRONG, WRONG] * 8)

        def sample(trainer, ids, most):
            new = trainer.processing_class.encode(answer(next(turns)), add_special_tokens=False)[:most]
            with torch.no_grad():
                logits = trainer.accelerator.unwrap_model(trainer.model)(torch.tensor([ids + new])).logits[
                    0, len(ids) - 1 : -1
                ]
            scores = torch.log_softmax(logits, -1)
            return new, [scores[i, t].item() for i, t in enumerate(new)]

        return mock.patch("kernelmill.adapters.trl_rollouts.sample", sample)

    @staticmethod
    def weights(trainer):
        return {k: v.clone() for k, v in trainer.model.state_dict().items()}

    def test_a_step_learns_from_judged_kernels_and_another_goes_on_from_its_checkpoint(self):
        import torch

        with self.given_answers(), mock.patch("kernelmill.adapters.trl_rollouts.MAX_TURNS", 2):
            first = self.trainer(1)
            before = self.weights(first)
            first.train()
            after = self.weights(first)
            logged = [x["reward"] for x in first.state.log_history if "reward" in x]
            self.assertAlmostEqual(logged[-1], self.reward / 2, places=4)  # of one right and one wrong kernel
            self.assertTrue(any(not torch.equal(before[k], after[k]) for k in before))
            resumed = self.trainer(2)
            begun = {}

            def note(trainer_, *_, **__):
                begun.update(self.weights(resumed))

            from transformers import TrainerCallback

            resumed.add_callback(type("Noted", (TrainerCallback,), {"on_step_begin": note})())
            resumed.train(resume_from_checkpoint=str(self.folder / "out/checkpoint-1"))
            self.assertEqual(resumed.state.global_step, 2)
            self.assertTrue(all(torch.equal(begun[k], after[k]) for k in after))
            self.assertTrue(any(not torch.equal(begun[k], v) for k, v in self.weights(resumed).items()))
            self.assertEqual(len([x for x in resumed.state.log_history if "reward" in x]), 2)

    def test_a_step_learns_from_an_environment_whose_tool_judges(self):
        import datasets
        import trl
        from kernelmill.adapters.trl import KernelEnvironment, rows

        tokenizer = self.tokenizer()
        tokenizer.chat_template = (pathlib.Path(trl.__file__).parent / "chat_templates/qwen3.jinja").read_text()
        trainer = trl.GRPOTrainer(
            model=str(self.folder / "model"),
            processing_class=tokenizer,
            reward_funcs=[],
            environment_factory=KernelEnvironment,
            train_dataset=datasets.Dataset.from_list([x for x in rows(self.client) if x["task"] == TASK] * 2),
            args=trl.GRPOConfig(
                output_dir=str(self.folder / "tools"),
                max_steps=1,
                per_device_train_batch_size=2,
                num_generations=2,
                max_completion_length=3000,
                learning_rate=1e-2,
                logging_steps=1,
                save_strategy="no",
                use_cpu=True,
                bf16=False,
                report_to=[],
            ),
        )
        call = json.dumps({"name": "submit", "arguments": {"answer": answer(GOOD)}})
        turns = iter([[f"<tool_call>\n{call}\n</tool_call>", "I cannot."], ["It is done."]])

        def generate(
            prompts, *_, **__
        ):  # of two episodes one calls the tool; TRL parses that, and asks for what comes after
            said = next(turns)
            self.assertEqual(len(said), len(prompts))
            return [tokenizer.encode(x, add_special_tokens=False) + [tokenizer.eos_token_id] for x in said], None

        with mock.patch.object(trainer, "_generate_single_turn", generate):
            trainer.train()
        (logged,) = [x for x in trainer.state.log_history if "reward" in x]
        self.assertEqual((logged["tools/call_frequency"], logged["tools/failure_frequency"]), (0.5, 0.0))
        self.assertAlmostEqual(logged["reward"], self.reward / 2, places=4)
        self.assertGreater(logged["grad_norm"], 0)

    def test_the_model_samples_for_itself(self):
        trainer = self.trainer(1, room=24, save_strategy="no", output_dir=str(self.folder / "own"))
        trainer.train()
        self.assertEqual(trainer.state.global_step, 1)
        self.assertEqual([x["reward"] for x in trainer.state.log_history if "reward" in x], [0.0])


if __name__ == "__main__":
    unittest.main()
