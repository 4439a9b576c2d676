"""Megatron-LM's megatron.rl: an agent whose observations are the server's feedback.

    - agent_type: kernelmill.adapters.megatron.KernelAgent     # in the file of --langrl-env-config
      agent_args: {max_turns: 4}
      weight: 1

The server is that of KERNELMILL_URL. Megatron samples and masks; each turn's answer is judged, and the trajectory's
reward is that of its best turn, and each that is negative.
"""

import asyncio
import random
from typing import Any, Dict, List, Optional, Tuple

from megatron.rl.agent.reward_only_agent import RewardOnlyAgent

from ..environment import MachineFault, connect, prompt_of, worth_of


class KernelAgent(RewardOnlyAgent):
    """A machine's fault is raised as MachineFault: the group is generated again, and no reward stands for it."""

    env_id: Optional[str] = "kernelmill"
    max_turns: int = 4
    tasks: str = ""  # those whose id begins so; empty: all

    def get_dataset(self, validation: bool = False) -> List[Dict[str, Any]]:
        return [{"task": x.id} for x in connect().tasks() if x.id.startswith(self.tasks)]

    async def get_prompt(self, validation: bool) -> Tuple[str, Any]:
        rows = await asyncio.to_thread(self.get_dataset, validation)
        golden = random.choice(rows)
        return await asyncio.to_thread(prompt_of, connect(), golden["task"]), golden

    async def evaluation_prompts(self, num_prompts: int, validation: bool = False) -> List[Tuple[str, Any]]:
        rows = await asyncio.to_thread(self.get_dataset, validation)
        return [(await asyncio.to_thread(prompt_of, connect(), x["task"]), x) for x in rows[:num_prompts]]

    async def judge(self, answer: str, golden: Dict[str, Any]) -> Any:
        # Judged once: the reward of a trajectory asks for the same answers again.
        found = await asyncio.to_thread(connect().evaluate, golden["task"], completion=answer, cache=True)
        if found.reward is None:
            raise MachineFault(0, "not_judged", f"{golden['task']}: a machine failed", "generate the group again")
        return found

    async def get_reward(self, response: str, golden: Any, finish_reason: str = "") -> float:
        return float((await self.judge(response, golden)).reward)

    async def get_observation(
        self, turn_idx: int, response: Any, conversation: Any, golden: Any
    ) -> Tuple[Optional[str], bool]:
        found = await self.judge(response.response.content, golden)
        return found.feedback, False

    async def get_trajectory_reward(self, responses: Any, conversation: Any, golden: Any) -> float:
        return worth_of([await self.get_reward(x.response.content, golden) for x in responses])
