"""verl (0.9): an agent loop for several turns, and a reward function for one.

    # agent_loops.yaml, for actor_rollout_ref.rollout.agent.agent_loop_config_path
    - name: kernelmill
      _target_: kernelmill.adapters.verl.KernelAgentLoop

    custom_reward_function.path=pkg://kernelmill.adapters.verl custom_reward_function.name=compute_score

The server is that of KERNELMILL_URL. rows() makes the data set: `agent_name` names the loop, `extra_info` the task.
"""

import asyncio
from typing import Any, Dict, List, Optional
from uuid import uuid4

from verl.experimental.agent_loop.agent_loop import AgentLoopBase, AgentLoopOutput, register

from ..client import Client
from ..environment import Environment, MachineFault, connect


@register("kernelmill")
class KernelAgentLoop(AgentLoopBase):
    """An episode: the feedback of each turn is the next user message, masked. A machine's fault is raised as
    MachineFault, so that verl drops or refills the group: it never becomes a reward."""

    async def run(self, sampling_params: Dict[str, Any], **row: Any) -> AgentLoopOutput:
        extra = row["extra_info"]
        episode = Environment(connect(), extra["task"], int(extra.get("max_turns", 4)), extra.get("enough"))
        messages: List[Dict[str, Any]] = list(row["raw_prompt"])
        ids = first = await self.ct_build_initial_tokens(messages)
        room = self.rollout_config.response_length
        mask: List[int] = []
        logprobs: Optional[List[float]] = None
        request = uuid4().hex  # of all turns: they stay with one server, whose cache has the conversation
        scores: List[float] = []
        while True:
            sampled = await self.server_manager.generate(
                request_id=request, prompt_ids=ids, sampling_params=sampling_params
            )
            if sampled.log_probs and logprobs is None:
                logprobs = []
            merged, mask, logprobs = await self.ct_merge_assistant_token(
                ids, sampled.token_ids, mask, logprobs, assistant_logprobs=sampled.log_probs or None
            )
            ids = merged.token_ids
            answer = self.tokenizer.decode(sampled.token_ids, skip_special_tokens=True)
            found = await asyncio.to_thread(episode.step, answer)
            scores.append(found.reward)
            if found.done or len(mask) >= room:
                break
            before = messages + [{"role": "assistant", "content": answer}]
            messages = before + [{"role": "user", "content": found.feedback}]
            merged, with_feedback, more = await self.ct_merge_context_msg(before, messages, ids, mask, logprobs)
            if len(with_feedback) >= room:
                break  # no token would be left for an answer
            ids, mask, logprobs = merged.token_ids, with_feedback, more
        start = len(ids) - len(mask)
        return AgentLoopOutput(
            prompt_ids=ids[:start] if mask else first,
            response_ids=ids[start:][:room],
            response_mask=mask[:room],
            response_logprobs=logprobs[:room] if logprobs else None,
            reward_score=episode.reward,
            num_turns=2 * len(scores),
            metrics={"num_preempted": -1},
            extra_fields={"turn_scores": scores, "tool_rewards": []},
        )


def compute_score(
    data_source: str, solution_str: str, ground_truth: Any, extra_info: Optional[Dict[str, Any]] = None, **_: Any
) -> float:
    """The reward of one answer. Raises MachineFault where there is none."""
    task = (extra_info or {}).get("task") or ground_truth
    found = connect().evaluate(task, completion=solution_str, cache=True)
    if found.reward is None:
        raise MachineFault(0, "not_judged", f"{task}: a machine failed", "try the batch again")
    return found.reward


def rows(client: Client, max_turns: int = 4) -> List[Dict[str, Any]]:
    """A row of a data set for each task of a server, as RLHFDataset reads them from parquet."""
    return [
        {
            "data_source": "kernelmill",
            "agent_name": "kernelmill",
            "ability": "kernels",
            "prompt": [{"role": "user", "content": x.prompt}],
            "reward_model": {"style": "rule", "ground_truth": x.id},
            "extra_info": {"index": i, "task": x.id, "max_turns": max_turns},
        }
        for i, x in enumerate(client.tasks())
    ]
