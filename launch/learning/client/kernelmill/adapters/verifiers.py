"""verifiers (0.4) and prime-rl: a taskset whose environment holds the conversation and scores it.

    [orchestrator.train.source.taskset]        # or `eval kernelmill-taskset`
    id = "kernelmill-taskset"

The server is that of KERNELMILL_URL. The policy is sampled by verifiers: its conversation is one trace, whose reward
`kernel` is that of its best turn, and each that is negative.
"""

import asyncio
from typing import Any, Dict, Iterable

import verifiers.v1 as vf

from ..environment import Environment, MachineFault, connect


class KernelData(vf.TaskData):
    task: str
    max_turns: int = 4


class KernelTask(vf.Task[KernelData]):
    @property
    def key(self) -> str:
        """Known by the task, and not by its place in the list."""
        return str(self.data.task)


class KernelConfig(vf.TasksetConfig):
    max_turns: int = 4
    tasks: str = ""  # those whose id begins so; empty: all


class KernelTaskset(vf.Taskset[KernelTask, KernelConfig]):
    def load(self) -> Iterable[KernelTask]:
        for one in connect().tasks():
            if one.id.startswith(self.config.tasks):
                yield KernelTask(
                    KernelData(id=one.id, name=one.title, task=one.id, max_turns=self.config.max_turns),
                    self.config.task,
                )


class KernelEnvConfig(vf.EnvConfig):
    policy: vf.AgentConfig = vf.AgentConfig()


class KernelEnv(vf.Env[KernelEnvConfig]):
    """The server is the user: it opens with the task, and answers each kernel with what was found."""

    async def run(self, task: KernelTask, agents: Any) -> None:
        episode = Environment(connect(), task.data.task, task.data.max_turns)
        said = await asyncio.to_thread(episode.reset)
        async with agents.policy.interaction(task) as interaction:
            while True:
                segment = await interaction.turn(said)
                if segment.terminated:
                    break
                try:
                    found = await asyncio.to_thread(episode.step, segment.last_reply)
                except MachineFault as fault:
                    raise vf.EnvError(str(fault)) from fault  # the episode is no sample, and has no reward
                if found.done:
                    break
                said = found.feedback
        interaction.trace.record_reward("kernel", episode.reward)
        interaction.trace.record_metrics(metrics_of(episode))


def metrics_of(episode: Environment) -> Dict[str, float]:
    return {"turns": float(episode.turns)}


__all__ = ["KernelEnv", "KernelTaskset"]
