"""TRL's trainers take rows for a step on a CPU, with a model that is made here."""

import os
import tempfile
import unittest

from support import go_on_with_trainers_python, has, make_model, missing, the_run

os.environ.update(HF_HUB_OFFLINE="1", CUDA_VISIBLE_DEVICES="", TRL_EXPERIMENTAL_SILENCE="1")


def options(folder, **more):
    return {
        "output_dir": folder,
        "max_steps": 1,
        "per_device_train_batch_size": 2,
        "use_cpu": True,
        "bf16": False,
        "gradient_checkpointing": False,
        "report_to": [],
        "save_strategy": "no",
        "logging_steps": 1,
        **more,
    }


def last_log(trainer, key):
    return [x[key] for x in trainer.state.log_history if key in x][-1]


@unittest.skipUnless(has("trl", "torch", "transformers", "datasets"), missing("trl"))
class Trl(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(dir=the_run().folder)
        self.model = f"{self.folder}/model"
        make_model(self.model)

    def load(self, form, *more):
        import datasets

        return datasets.load_dataset(
            str(the_run().export(form, *more)), split="train", cache_dir=f"{self.folder}/cache"
        )

    def step(self, trainer):
        trainer.train()
        self.assertEqual(trainer.state.global_step, 1)
        self.assertGreater(last_log(trainer, "loss"), 0)

    def test_sft_takes_messages(self):
        from trl import SFTConfig, SFTTrainer

        rows = self.load("sft")
        self.step(
            SFTTrainer(model=self.model, args=SFTConfig(**options(self.folder, max_length=4096)), train_dataset=rows)
        )

    def test_sft_learns_from_the_last_answer_alone_as_the_how_to_says(self):
        from trl import SFTConfig, SFTTrainer

        rows = self.load("sft")
        rows = rows.map(
            lambda x: {"prompt": x["messages"][:-1], "completion": x["messages"][-1:]}, remove_columns=rows.column_names
        )
        self.step(
            SFTTrainer(model=self.model, args=SFTConfig(**options(self.folder, max_length=None)), train_dataset=rows)
        )

    def test_dpo_takes_pairs(self):
        from trl import DPOConfig, DPOTrainer

        rows = self.load("preference").select_columns(["prompt", "chosen", "rejected"])
        self.step(
            DPOTrainer(model=self.model, args=DPOConfig(**options(self.folder, max_length=None)), train_dataset=rows)
        )

    def test_async_grpo_takes_rows_as_samples(self):
        try:
            from trl.experimental.async_grpo.async_rollout_worker import RolloutSample
        except ImportError as x:
            self.skipTest(str(x))
        for row in the_run().rows("trl"):
            sample = RolloutSample(**row)
            lengths = {len(sample.input_ids), len(sample.completion_mask), len(sample.old_log_probs)}
            self.assertEqual(len(lengths), 1)
            self.assertEqual(sample.model_version, 3)
            self.assertTrue(all(p == 0 for p, m in zip(sample.old_log_probs, sample.completion_mask) if not m))

    def grpo_step(self, prompts, completions, logprobs, masks, rewards):
        """GRPO's rollout_func answers with what a run has recorded: ids, log-probabilities, rewards."""
        import datasets
        from trl import GRPOConfig, GRPOTrainer

        keep = 200  # of each: a step of thousands of tokens takes a CPU minutes
        vocabulary = 258

        def recorded(asked, trainer):
            del trainer
            chosen = [i % len(rewards) for i in range(len(asked))]
            return {
                "prompt_ids": [[t % vocabulary for t in prompts[i][:keep]] for i in chosen],
                "completion_ids": [[t % vocabulary for t in completions[i][:keep]] for i in chosen],
                "logprobs": [logprobs[i][:keep] for i in chosen],
                "env_mask": [masks[i][:keep] for i in chosen],
                "recorded_reward": [rewards[i] for i in chosen],
            }

        rows = datasets.Dataset.from_list([{"prompt": [{"role": "user", "content": "x"}]}] * 2)
        trainer = GRPOTrainer(
            model=self.model,
            train_dataset=rows,
            rollout_func=recorded,
            reward_funcs=lambda recorded_reward, **_: recorded_reward,
            args=GRPOConfig(**options(self.folder, num_generations=2, max_completion_length=keep)),
        )
        trainer.train()
        self.assertEqual(trainer.state.global_step, 1)
        self.assertAlmostEqual(last_log(trainer, "reward"), sum(rewards[:2]) / 2, places=4)

    def test_grpo_takes_recorded_rollouts(self):
        group = next(x for x in the_run().rows("skyrl") if len(x["rewards"]) >= 2)
        self.grpo_step(
            group["prompt_token_ids"],
            group["response_ids"],
            group["rollout_logprobs"],
            group["loss_masks"],
            group["rewards"],
        )

    def test_grpo_takes_groups_of_rl(self):
        for group in the_run().rows("rl"):
            members = [x for x in group["episodes"] if x["advantage"] is not None and x["sequences"]]
            if len(members) >= 2:
                break
        first = [x["sequences"][0] for x in members]
        starts = [x["mask"].index(1) for x in first]
        self.grpo_step(
            [x["token_ids"][:n] for x, n in zip(first, starts)],
            [x["token_ids"][n:] for x, n in zip(first, starts)],
            [[p or 0.0 for p in x["logprobs"][n:]] for x, n in zip(first, starts)],
            [x["mask"][n:] for x, n in zip(first, starts)],
            [sum(t["reward"] for t in x["turns"]) for x in members],
        )


if __name__ == "__main__":
    go_on_with_trainers_python()
    unittest.main()
