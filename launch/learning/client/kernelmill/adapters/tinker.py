"""Tinker: environments and groups of tinker-cookbook (0.6).

    builder = KernelEnvGroupBuilder(url, "native/gelu", group_size=8, max_turns=4,
                                    model="Qwen/Qwen3-8B", renderer="qwen3")

A builder can be pickled: it holds names, and connects where its environments are made.
"""

import asyncio
from dataclasses import dataclass
from typing import Any, Callable, List, Optional, Sequence, Tuple

import tinker
from tinker_cookbook.rl.types import Action, ActionExtra, Env, EnvGroupBuilder, StepResult

from ..environment import Environment, connect


class KernelEnv(Env):
    """One episode. A machine's fault is raised as MachineFault, which tinker-cookbook's strategies retry or let fail:
    it never becomes a reward."""

    def __init__(self, episode: Environment, renderer: Any) -> None:
        self.episode, self.renderer = episode, renderer
        self.messages: List[Any] = []

    def _observation(self) -> Any:
        return self.renderer.build_generation_prompt(self.messages)

    async def initial_observation(self) -> Tuple[Any, Any]:
        first = await asyncio.to_thread(self.episode.reset)
        self.messages = [{"role": "user", "content": first}]
        return self._observation(), self.renderer.get_stop_sequences()

    async def step(self, action: Action, *, extra: Optional[ActionExtra] = None) -> StepResult:
        message = self.renderer.parse_response(action)[0]
        answer = message["content"]
        text = answer if isinstance(answer, str) else "".join(x.get("text", "") for x in answer)
        found = await asyncio.to_thread(self.episode.step, text)
        self.messages += [message, {"role": "user", "content": found.feedback}]
        ended = tinker.ModelInput.from_ints([])
        metrics = {"correct": float(found.evaluation.correct), "turns": self.episode.turns}
        return StepResult(
            found.reward,
            found.done,
            ended if found.done else self._observation(),
            self.renderer.get_stop_sequences(),
            metrics,
            {"evaluation": found.evaluation.id},
        )


def make_renderer(model: str, renderer: str) -> Any:
    """A renderer of tinker-cookbook by its name, with the tokenizer of a model."""
    from tinker_cookbook import renderers
    from tinker_cookbook.tokenizer_utils import get_tokenizer

    return renderers.get_renderer(renderer, get_tokenizer(model))


@dataclass(frozen=True)
class KernelEnvGroupBuilder(EnvGroupBuilder):
    url: str
    task: str
    group_size: int
    max_turns: int = 4
    model: str = ""
    renderer: str = ""
    token_file: str = ""
    make_renderer: Callable[[str, str], Any] = make_renderer  # a function of a module, so that it can be pickled

    async def make_envs(self) -> Sequence[Env]:
        client, renderer = connect(self.url, self.token_file), self.make_renderer(self.model, self.renderer)
        return [KernelEnv(Environment(client, self.task, self.max_turns), renderer) for _ in range(self.group_size)]

    def logging_tags(self) -> List[str]:
        return [self.task.split("/")[0]]
