"""TRL (1.16): a reward function, and an environment whose tool judges kernels.

    tasks = Dataset.from_list(rows())
    GRPOTrainer(model, reward_funcs=kernel_reward, train_dataset=tasks)            # one turn
    GRPOTrainer(model, environment_factory=KernelEnvironment, train_dataset=tasks)  # several, by a tool

Several turns as messages, without tools: kernelmill.adapters.trl_rollouts.

The server is that of KERNELMILL_URL. The data set has a column `task`, which TRL hands over beside the completions.
"""

import functools
from typing import Any, Dict, List, Optional

from ..client import Candidate, Client
from ..environment import Environment, MachineFault, connect

MAX_TURNS = 4


@functools.lru_cache(maxsize=1)
def client() -> Client:
    """The server that the environment names, asked from this process on."""
    return connect()


def text_of(completion: Any) -> str:
    """TRL gives texts for plain prompts, and lists of messages for conversations."""
    if isinstance(completion, str):
        return completion
    return "".join(str(x.get("content") or "") for x in completion if x["role"] == "assistant")


def kernel_reward(completions: List[Any], task: List[str], **kwargs: Any) -> List[Optional[float]]:
    """One reward for each completion; None where the machine failed, which TRL leaves out."""
    candidates = [Candidate(task=t, completion=text_of(c)) for t, c in zip(task, completions)]
    return [x.reward for x in client().evaluate_many(candidates, cache=True)]


def rows(server: Optional[Client] = None) -> List[Dict[str, Any]]:
    """A row for each task: a conversation to begin with, and the task's id."""
    return [{"prompt": [{"role": "user", "content": x.prompt}], "task": x.id} for x in (server or client()).tasks()]


class KernelEnvironment:
    """An episode in which the model hands over kernels by the tool `submit`. The episode's reward is that of its best,
    and each that is negative."""

    def __init__(self) -> None:
        self._episode: Optional[Environment] = None
        self._failed = False

    def reset(self, task: str, **columns: Any) -> None:
        """Begins an episode of the row's task, whose prompt the row holds."""
        self._episode, self._failed = Environment(client(), task, MAX_TURNS), False

    def submit(self, answer: str) -> str:
        """
        Compiles, checks and times a kernel.

        Args:
            answer: The whole answer to the task, with the kernel in a fenced block of code.

        Returns:
            What was found, and what to do next.
        """
        if self._episode is None or self._episode.over:
            return "The episode is over: no further kernel is judged."
        try:
            return self._episode.step(answer).feedback or "This was the last turn."
        except MachineFault:
            self._failed = True
            return "The machine failed; the kernel was not judged."

    def get_reward(self) -> Optional[float]:
        """Of the episode, 0 without a kernel. None where a machine's fault kept one from being judged:
        TRL leaves it out."""
        if self._failed or self._episode is None:
            return None
        return self._episode.reward
