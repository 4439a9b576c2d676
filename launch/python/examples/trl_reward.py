"""A reward function for TRL's GRPOTrainer that asks a Kernelmill server.

    kernelmill serve --listen 127.0.0.1:8700 --token-file token
    KERNELMILL_URL=http://127.0.0.1:8700 KERNELMILL_TOKEN_FILE=token python train.py

where train.py says

    trainer = GRPOTrainer(model=..., reward_funcs=kernel_reward, train_dataset=kernel_dataset())

The data set has a column `task`, which TRL hands to the reward function beside the completions.
"""

import os
from typing import Any, Dict, List, Optional

from kernelmill import Candidate, Client

_client: Optional[Client] = None


def client() -> Client:
    """The server that the environment names, asked from this process on."""
    global _client
    if _client is None:
        token = None
        if path := os.environ.get("KERNELMILL_TOKEN_FILE"):
            with open(path) as file:
                token = file.read().strip()
        _client = Client(os.environ["KERNELMILL_URL"], token)
    return _client


def text_of(completion: Any) -> str:
    """TRL gives texts for plain prompts, and lists of messages for conversations."""
    if isinstance(completion, str):
        return completion
    return "".join(str(x.get("content") or "") for x in completion if x["role"] == "assistant")


def kernel_reward(completions: List[Any], task: List[str], **kwargs: Any) -> List[Optional[float]]:
    """One reward for each completion; None where the machine failed, which TRL leaves out."""
    candidates = [Candidate(task=t, completion=text_of(c)) for t, c in zip(task, completions)]
    return [x.reward for x in client().evaluate_many(candidates, cache=True)]


def kernel_rows() -> List[Dict[str, Any]]:
    """A row for each task: a conversation to begin with, and the task's id."""
    return [{"prompt": [{"role": "user", "content": x.prompt}], "task": x.id}
            for x in client().tasks()]


def kernel_dataset() -> Any:
    import datasets

    return datasets.Dataset.from_list(kernel_rows())
