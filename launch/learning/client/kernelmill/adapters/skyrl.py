"""SkyRL: an environment of skyrl-gym (0.4).

    import skyrl_gym
    skyrl_gym.register(id="kernelmill", entry_point="kernelmill.adapters.skyrl:KernelEnv")

The server is that of KERNELMILL_URL. A row of the data set names the task: `{"prompt": [...], "env_class":
"kernelmill", "task": "native/gelu", "max_turns": 4}`; rows() makes them of all tasks of a server.
"""

from typing import Any, Dict, List, Tuple

from skyrl_gym.envs.base_text_env import BaseTextEnv, BaseTextEnvStepOutput, ConversationType

from ..client import Client
from ..environment import Environment, connect


class KernelEnv(BaseTextEnv):
    """Raises MachineFault from step(): the trajectory is then masked, and has no reward."""

    def __init__(self, env_config: Any = None, extras: Dict[str, Any] = {}) -> None:
        super().__init__()
        given: Dict[str, Any] = dict(env_config or {})
        self.max_turns = int(extras.get("max_turns", given.get("max_turns", 4)))
        client = connect(given.get("url", ""), given.get("token_file", ""))
        self.episode = Environment(client, extras["task"], self.max_turns, given.get("enough"))

    def init(self, prompt: ConversationType) -> Tuple[ConversationType, Dict[str, Any]]:
        """The row's own prompt, or the task's where the row has none."""
        first = self.episode.reset()
        self.turns = 0
        return prompt or [{"role": "user", "content": first}], {"task": self.episode.task}

    def step(self, action: str) -> BaseTextEnvStepOutput:
        found = self.episode.step(action)
        self.turns = self.episode.turns
        said = [] if found.done else [{"role": "user", "content": found.feedback}]
        return BaseTextEnvStepOutput(
            observations=said,
            reward=found.reward,
            done=found.done,
            metadata={"evaluation": found.evaluation.id, "outcome": found.evaluation.outcome},
        )

    def get_metrics(self) -> Dict[str, Any]:
        return {"best_reward": max(self.episode.rewards, default=0.0), "turns": self.episode.turns}


def rows(client: Client, max_turns: int = 4) -> List[Dict[str, Any]]:
    """A row of a data set for each task of a server."""
    return [
        {
            "prompt": [{"role": "user", "content": x.prompt}],
            "env_class": "kernelmill",
            "task": x.id,
            "max_turns": max_turns,
        }
        for x in client.tasks()
    ]
