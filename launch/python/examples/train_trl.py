"""TRL's GRPOTrainer on the tasks of a server, one turn each.

    kernelmill serve --listen 127.0.0.1:8700 --token-file token
    KERNELMILL_URL=http://127.0.0.1:8700 KERNELMILL_TOKEN_FILE=token python train_trl.py Qwen/Qwen3-0.6B
"""

import sys

import datasets
from kernelmill.adapters.trl import kernel_reward, rows
from trl import GRPOConfig, GRPOTrainer

GRPOTrainer(model=sys.argv[1], reward_funcs=kernel_reward, train_dataset=datasets.Dataset.from_list(rows()),
            args=GRPOConfig(output_dir="out", num_generations=8)).train()
