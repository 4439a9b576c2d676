#!/usr/bin/env python3
"""docs/reference/coming-from.md: it has every command and flag of gpu_rl and every key of kernel_rl, its commands run,
and the keys and tools that it names are there."""

import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import tempfile
import unittest

BIN = pathlib.Path(os.environ["KERNELMILL_BIN_DIR"])
SOURCE = pathlib.Path(os.environ["KERNELMILL_SOURCE_DIR"])
PROGRAM = BIN / "kernelmill"
PAGE = SOURCE / "docs/reference/coming-from.md"
PATIENCE = 300

# Of `gpc`, at 3aa345d.
SOURCES = "--triton-build-spec --source-file --binary-file --ptx-file --sass-file"
MACHINE = "--backend --vendor --executor --policy-pack cmd"
GPU_RL = {
    "doctor": "--json-out",
    "task list": "",
    "adapter list": "",
    "adapter cases": "",
    "adapter summary": "",
    "adapter show": "",
    "inspect": "--section",
    "runs list": "--task --backend --vendor --status --limit",
    "replay": "",
    "bundle": "--out --full",
    "compare": "",
    "build": f"--task {SOURCES} {MACHINE}",
    "run": "--task --trace-system --profile-kernel --profile-pack --sanitize --sanitize-tool --emit-disassembly "
    f"{SOURCES} {MACHINE}",
    "eval": f"--task --trace-system --determinism-runs --scan-path {MACHINE}",
    "bench": "--task --adapter --case --executor --policy-pack --warmups --repeats cmd",
    "trajectory capture": "--out --policy-id --section",
    "trajectory export": "--out-dir --policy-id --split --section",
    "trajectory validate": "",
    "env action-space": "",
    "env scripted": "--task --out --policy-id --step-budget --section --with-build --triton-build-spec "
    f"--determinism-runs --workflow --no-knowledge {MACHINE}",
    "sft package": "--out-dir --split --success-only --public-only --include-benchmark-only --patch-bearing-only "
    "--verb --governance --transition-kind",
    "sft validate": "",
    "knowledge build-index": "--out-dir",
    "knowledge query": "--query --operator-family --verb --benchmark-name --backend --vendor --kind --limit "
    "--prefer-mixed --index-dir",
    "knowledge similar-task": "--limit --index-dir",
    "train validate-config": "",
    "train smoke-sft": "--out",
    "train run-sft": "--model-override --max-steps-override",
    "rollout scripted": "--out-dir",
}
# Of TrainingConfig, the builders of data sets, RewardConfig, EvalConfig and build_rag_index.
KERNEL_RL = """
model_name lora_rank learning_rate max_tokens temperature dataset_builder multiturn_dataset_builder mode gamma max_turns
num_substeps loss_fn kl_penalty_coef kl_discount_factor log_path save_every eval_every remove_constant_reward_groups
wandb_project wandb_name tensorboard_enabled tensorboard_log_histograms_every tensorboard_log_per_level base_url
load_checkpoint_path resume_from_batch start_batch
level start_problem end_problem backend dataset_src batch_size group_size num_epochs shuffle early_stop_on_correct
speedup_threshold num_correct_trials measure_performance reward_format_weight reward_compile_weight
reward_correctness_weight reward_speed_weight reward_length_weight reward_thinking_weight renderer_name test_fraction
prompt_option rag_index_path raicl_k use_modal modal_gpu_type modal_timeout
format_weight compile_weight correctness_weight speed_weight length_weight thinking_weight cheating_penalty
format_penalty speed_baseline speed_scale speed_max_reward length_max length_min thinking_bonus thinking_no_think
thinking_soft_max thinking_hard_max thinking_floor sparse_rewards partial_correctness
checkpoint_path num_samples output_path tensorboard_log_dir tensorboard_step
--model --batch-size --device --cache-dir
""".split()
# Of build_rag_index, too: those that choose what is in the index.
RAG_INDEX = "--output --triton-only --cuda-only --sakana-levels --include-incorrect".split()
ELSEWHERE = re.compile(r"\bneeds (a GPU|nvcc|torch)")


def tables():
    """(what the second column is called, the cells of a row), of every row."""
    kind = None
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        if not line.startswith("|"):
            continue
        cells = [x.strip() for x in line.strip("|").split("|")]
        if cells[0] in ("gpu_rl", "kernel_rl"):
            kind = (cells[0], cells[1])
        elif not cells[0].startswith("-"):
            yield kind, cells


def code(cell):
    return re.findall(r"`([^`]+)`", cell)


ROWS = list(tables())


class Page(unittest.TestCase):
    """What needs no program."""

    def test_every_command_and_flag_of_gpu_rl_has_a_row(self):
        named = [code(cells[0])[0] for (of, column), cells in ROWS if (of, column) == ("gpu_rl", "Kernelmill")]
        wanted = [x for name, flags in GPU_RL.items() for x in [name, *(f"{name} {flag}" for flag in flags.split())]]
        self.assertEqual(sorted(named), sorted(wanted))

    def test_every_key_of_kernel_rl_has_a_row(self):
        named = [x for (of, column), cells in ROWS if (of, column) == ("kernel_rl", "key") for x in code(cells[0])]
        self.assertEqual(sorted(named), sorted(KERNEL_RL))

    def test_every_option_of_build_rag_index_has_a_row(self):
        named = [code(cells[0])[0] for (of, column), cells in ROWS if (of, column) == ("kernel_rl", "Kernelmill")]
        self.assertEqual({f"build_rag_index {x}" for x in RAG_INDEX} - set(named), set())

    def test_a_row_without_an_equivalent_says_why(self):
        for _, cells in ROWS:
            self.assertEqual(len(cells), 3, cells)
            if cells[1] == "—":
                self.assertNotEqual(cells[2], "", cells)

    def test_keys_are_there(self):
        schema = json.loads((SOURCE / "configs/kernelmill.schema.json").read_text())
        training = (SOURCE / "docs/reference/training.md").read_text().split("\n## ")[0]
        of_train = {x for line in re.findall(r"^\| (`.*?) \|", training, re.M) for x in code(line)}
        seen = 0
        for (_, column), cells in ROWS:
            for key in code(cells[1]) if column == "key" else []:
                seen += 1
                if re.search(r"\bof `train`", cells[2]) and key in of_train:
                    continue
                at = schema
                for part in key.split("."):
                    self.assertIn(part, at.get("properties", {}), cells)
                    at = at["properties"][part]
        self.assertGreater(seen, 50)

    def test_tools_are_there(self):
        page = (SOURCE / "docs/reference/tools.md").read_text()
        tools = re.findall(r"^\| `(\w+)` \| \d+ \|", page, re.M)
        named = [x for (_, column), cells in ROWS if column == "tool" for x in code(cells[1])]
        self.assertGreater(len(named), 10)
        self.assertEqual(set(named) - set(tools), set())


# Besides 0: an export says by 5 that the small run has no such row, and the run to cancel has ended.
AS_MEANT = {"export": (0, 5), "cancel": (69,)}


class Commands(unittest.TestCase):
    """They run, on one small run."""

    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="kernelmill-coming-from-"))
        cls.addClassCleanup(shutil.rmtree, cls.folder, True)
        shutil.copy(SOURCE / "configs/policies/quickstart/row_sum/fast.cpp", cls.folder / "kernel.cpp")
        config = {
            "tasks": {"ids": ["native/row_sum", "native/gelu"], "group_size": 1, "max_turns": 2},
            "policy": {
                "kind": "scripted",
                "script": str(SOURCE / "configs/policies/quickstart/script.json"),
                "model": "scripted-quickstart",
            },
            "retrieval": {"enabled": False},
            "profile": {"enabled": False},
            "evaluation": {"backend": "cpu", "timing": {"enabled": False}},
            "run": {"dir": "runs/first"},
        }
        (cls.folder / "config.json").write_text(json.dumps(config))
        cls.write_corpora()
        for arguments in (
            "run config.json",
            "bundle keygen --out sign.pem",
            "index build made/index --from cards --from run=first",
        ):
            done = cls.call(shlex.split(arguments))
            assert done.returncode == 0, f"{arguments}\n{done.stdout}\n{done.stderr}"
        shutil.copy(cls.folder / "sign.pem", cls.folder / "made/sign.pem")

    @classmethod
    def write_corpora(cls):
        """Rows with the columns of KernelBook and of Sakana's archive; KernelBook's licence counts as read."""
        model = "import torch\nclass Model(torch.nn.Module):\n    def forward(self, x):\n        return "
        triton = "import triton\n@triton.jit\ndef kernel(x):\n    pass\nclass ModelNew:\n    pass  # "
        book = [
            {"python_code": f"{model}x + {i}\n", "triton_code": f"{triton}{i}\n", "entry_point": f"Add{i}"}
            for i in range(3)
        ]
        archive = [
            {
                "PyTorch_Code_Module": f"{model}torch.{name}(x)\n",
                "CUDA_Code": f"__global__ void k(float* x) {{ x[0] = {name}f(x[0]); }}\n",
                "Correct": name != "exp",
                "Op_Name": f"{name}_rows",
                "Level_ID": level,
                "Task_ID": level,
                "CUDA_Speedup_Native": 1.5,
            }
            for level, name in ((1, "tanh"), (1, "exp"), (2, "erf"))
        ]
        for name, rows in (("kernelbook", book), ("sakana", archive)):
            (cls.folder / f"{name}.jsonl").write_text("".join(json.dumps(x) + "\n" for x in rows))
        text = (SOURCE / "configs/licences/kernelbook.json").read_text()
        own = cls.folder / "data/kernelmill/licences"
        own.mkdir(parents=True)
        (own / "kernelbook.json").write_text(text.replace("{", '{ "confirmed": "2026-11-30",', 1))

    @classmethod
    def call(cls, words):
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": os.environ.get("HOME", "/"),
            "XDG_DATA_HOME": str(cls.folder / "data"),
            "LC_ALL": "C.UTF-8",
        }
        return subprocess.run(
            [PROGRAM, *words],
            cwd=cls.folder,
            env=environment,
            text=True,
            capture_output=True,
            check=False,
            timeout=PATIENCE,
        )

    @staticmethod
    def filled(command):
        values = {
            "RUN": "first",
            "EPISODE": "first/g0.e0",
            "TURN": "first/g0.e0.t0",
            "OTHER": "first/g0.e0.t1",
            "KERNEL.cpp": "kernel.cpp",
            "CONFIG": "config.json",
            "OUT": "made",
        }
        words = [re.sub(r"\bOUT\b", "made", x) for x in shlex.split(command)[1:]]
        return [values.get(x, x.replace("run=RUN", "run=first")) for x in words]

    def commands(self):
        result = {}
        for (_, column), cells in ROWS:
            if column == "Kernelmill":
                for command in code(cells[1]):
                    self.assertTrue(command.startswith("kernelmill "), command)
                    result.setdefault(command, ELSEWHERE.search(cells[2]) is not None)
        return result

    def test_commands_run(self):
        commands = self.commands()
        self.assertGreater(len(commands), 50)
        for command, elsewhere in commands.items():
            with self.subTest(command):
                words = self.filled(command)
                if not elsewhere:
                    done = self.call(words)
                    self.assertIn(done.returncode, AS_MEANT.get(words[0], (0,)), f"{done.stdout}\n{done.stderr}")
                    continue
                help_text = self.call([words[0], "--help"]).stdout
                for option in (x for x in words if x.startswith("--")):
                    self.assertIn(f"{option} ", help_text.replace("\n", " "))


if __name__ == "__main__":
    unittest.main()
