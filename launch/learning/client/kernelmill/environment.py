"""Episodes whose turns a trainer samples itself, and a server judges."""

import dataclasses
import os
from typing import Dict, List, Optional

from .client import Client, Evaluation
from .transport import KernelmillError, NotFound


class MachineFault(KernelmillError):
    """A turn was not judged because a machine failed: it has no reward, and the episode none either."""


@dataclasses.dataclass(frozen=True)
class Step:
    """One turn that was judged."""

    evaluation: Evaluation
    reward: float  # by how much the episode's grew (worth_of)
    done: bool  # the policy has no further turn
    feedback: str  # what it is told before that


def connect(url: str = "", token_file: str = "", patience: float = 600.0) -> Client:
    """A client of the server that is named here, or by KERNELMILL_URL and KERNELMILL_TOKEN_FILE."""
    url = url or os.environ.get("KERNELMILL_URL", "")
    if not url:
        raise KernelmillError(0, "no_server", "failed to find a server", "set KERNELMILL_URL, or give its URL")
    path = token_file or os.environ.get("KERNELMILL_TOKEN_FILE") or None
    return Client(url, patience=patience, token_file=path)


_prompts: Dict[str, Dict[str, str]] = {}  # by server and task


def prompt_of(client: Client, task: str) -> str:
    """What a policy is asked first. Asked of a server once."""
    if task not in _prompts.get(client.url, {}):
        _prompts[client.url] = {x.id: x.prompt for x in client.tasks()}
    try:
        return _prompts[client.url][task]
    except KeyError:
        raise NotFound(
            404, "task_unknown", f"the server has no task {task!r}", "`Client.tasks()` lists those that it has"
        ) from None


def worth_of(rewards: List[float]) -> float:
    """What an episode's turns are worth together: the best of them, and each that is negative.
    A penalty is not undone by a good turn before or after it."""
    return max([0.0, *rewards]) + sum(x for x in rewards if x < 0)


class Environment:
    """One episode of a task. Not to be shared by threads.

    max_turns: turns at most.
    enough: an episode ends with a turn whose reward is that high; None: never before its last turn.
    """

    def __init__(
        self, client: Client, task: str, max_turns: int = 4, enough: Optional[float] = None, cache: bool = False
    ) -> None:
        if max_turns < 1:
            raise ValueError(f"max_turns is {max_turns}; an episode has one turn or more")
        self.client, self.task, self.max_turns, self.enough, self.cache = client, task, max_turns, enough, cache
        self.reset()

    def reset(self) -> str:
        """Begins anew; returns the first message to the policy."""
        self.rewards: List[float] = []  # of its turns
        self.over = False
        return prompt_of(self.client, self.task)

    @property
    def turns(self) -> int:
        return len(self.rewards)

    @property
    def reward(self) -> float:
        """Of the episode so far, as of worth_of()."""
        return worth_of(self.rewards)

    def step(self, completion: str) -> Step:
        """Judges a policy's answer. Raises MachineFault where it was not judged:
        then the turn did not take place and may be tried again, or the episode is left out."""
        if self.over:
            raise ValueError("the episode is over: reset() begins another")
        found = self.client.evaluate(self.task, completion=completion, cache=self.cache)
        if found.reward is None:
            error = (found.verdict or {}).get("error") or {}
            raise MachineFault(
                0,
                error.get("category") or found.state,
                error.get("message") or "the turn was not judged",
                "try it again, or leave the episode out",
            )
        before = self.reward
        self.rewards.append(found.reward)
        self.over = self.turns >= self.max_turns or self.enough is not None and max(self.rewards) >= self.enough
        # To the server each evaluation is an episode of one turn.
        said = (found.feedback or "").replace("Turn 1 of 1:", f"Turn {self.turns} of {self.max_turns}:", 1)
        return Step(found, self.reward - before, self.over, said)
