"""TRL's GRPOTrainer on the tasks of a server, one turn each.

kernelmill serve --listen 127.0.0.1:8700 --token-file token
KERNELMILL_URL=http://127.0.0.1:8700 KERNELMILL_TOKEN_FILE=token python train_trl.py Qwen/Qwen3-0.6B [STEPS]
"""

import sys

import datasets
import torch
from kernelmill.adapters.trl import kernel_reward, rows
from trl import GRPOConfig, GRPOTrainer

cpu = not torch.cuda.is_available()
GRPOTrainer(
    model=sys.argv[1],
    reward_funcs=kernel_reward,
    train_dataset=datasets.Dataset.from_list(rows()),
    args=GRPOConfig(
        output_dir="out",
        num_generations=8,
        use_cpu=cpu,
        bf16=not cpu,
        logging_steps=1,
        max_steps=int(sys.argv[2]) if sys.argv[2:] else -1,
    ),
).train()
