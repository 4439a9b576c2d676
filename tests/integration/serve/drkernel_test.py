#!/usr/bin/env python3
"""Dr.Kernel's own reward code, unchanged and with its own configuration, asks `kernelmill serve` in place of KernelGYM.

KERNELMILL_TRAINER_PYTHON has ray, httpx, omegaconf and what verl imports (tests/trainers.sh). Below
KERNELMILL_TRAINER_SOURCES lie KernelGYM's sources (DIR/kernelgym/drkernel/...) and those of a verl of its time, 0.6.1
(DIR/kernelgym/verl/...). KERNELMILL_PYTHON, or /usr/bin/python3, has torch, which judges the candidates. What is not
there is skipped, and said.
"""

import importlib.util
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

if wanted := os.environ.pop("KERNELMILL_TRAINER_PYTHON", ""):
    os.execv(wanted, [wanted, "-B", *sys.argv])
SOURCES = pathlib.Path(os.environ.get("KERNELMILL_TRAINER_SOURCES", "/nonexistent"), "kernelgym")
DRKERNEL = SOURCES / "drkernel"
JUDGE = os.environ.get("KERNELMILL_PYTHON", "/usr/bin/python3")
sys.path[:0] = [str(SOURCES), str(DRKERNEL)]
os.environ.update(
    RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO="0", RAY_USAGE_STATS_ENABLED="0", PYTHONPATH=f"{SOURCES}:{DRKERNEL}"
)

import kernels  # noqa: E402, F401 - puts the client on the path

# isort: split
import kernelmill  # noqa: E402
from kernels import PROGRAM, TASKS  # noqa: E402

TASK = "torch/row_max"
MISSING = [x for x in ("ray", "httpx", "omegaconf", "verl") if not importlib.util.find_spec(x)]
HAS_TORCH = subprocess.run([JUDGE, "-c", "import torch"], capture_output=True, check=False).returncode == 0


def answer(result):
    """Of a policy: text around a block of code."""
    return (
        "It is one pass over each row.\n```python\nimport torch\nimport torch.nn as nn\n\n\n"
        "class ModelNew(nn.Module):\n"
        f"    def forward(self, x):\n        {result}\n```\n"
    )


@unittest.skipIf(MISSING, f"not installed: {MISSING}")
@unittest.skipUnless((DRKERNEL / "kernel").exists(), "KernelGYM's sources are not there")
@unittest.skipUnless(HAS_TORCH, f"{JUDGE} has no torch")
class DrKernel(unittest.TestCase):
    def test_a_batch_of_answers_has_rewards(self):
        import ray
        from kernel.rewards import compute_kernel_reward_batch
        from omegaconf import OmegaConf

        config = OmegaConf.load(DRKERNEL / "kernel/config/kernel_trainer.yaml").reward_model
        config.reference_backend = None  # its scripts add it
        reference = (TASKS / TASK / "problem.py").read_text()
        answers = [
            answer("return tuple(torch.max(x, dim=1))"),
            answer("return x[:, 0], torch.zeros(len(x), dtype=torch.long)"),
            answer("return this is no Python"),
            "I cannot do it.",
            answer("raise RuntimeError('no')"),
        ]
        with tempfile.TemporaryDirectory() as home:
            os.environ["XDG_CACHE_HOME"] = home
            # Its client sends no token, so the program is started without one.
            with subprocess.Popen(
                [
                    PROGRAM,
                    "serve",
                    "--backend",
                    "cpu",
                    "--no-timing",
                    "--root",
                    str(TASKS),
                    "--python",
                    JUDGE,
                    "--end-with-stdin",
                ],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            ) as server:
                config.server_url = server.stdout.readline().strip()
                ray.init(num_cpus=4, include_dashboard=False, logging_level="error", log_to_driver=False)
                try:
                    found = compute_kernel_reward_batch(
                        answers,
                        [reference] * len(answers),
                        ["Model"] * len(answers),
                        reward_config=config,
                        uuids=[str(i) for i in range(len(answers))],
                    )
                    counts = kernelmill.Client(config.server_url)._once("GET", "/metrics", None, {}, 60)[2]
                finally:
                    ray.shutdown()
                    server.stdin.close()
        right = config.init_correct_weight
        self.assertEqual([x["reward"] for x in found], [right, 0.0, 0.0, 0.0, 0.0])
        self.assertEqual([x["correctness"] for x in found], [True, False, False, False, False])
        codes = [x.get("error_code") for x in found]
        self.assertEqual(codes, [None, "CORRECTNESS_ERROR", "SYNTAX_ERROR", None, "RUNTIME_ERROR"])
        self.assertEqual(
            counts["queue_metrics"]["completed_tasks"], 4
        )  # its client judges the one without a class itself


if __name__ == "__main__":
    unittest.main()
