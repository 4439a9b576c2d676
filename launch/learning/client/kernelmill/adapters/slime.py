"""slime: a generate function for several turns, and a reward function.

    --custom-generate-function-path kernelmill.adapters.slime.generate   # several turns, with their reward
    --custom-rm-path kernelmill.adapters.slime.kernel_reward             # the reward of one answer

The server is that of KERNELMILL_URL. The task's id is the sample's label: `--label-key task`; rows() makes the data.
SGLang is asked as slime asks it, by token ids, and feedback is masked.
"""

import asyncio
from typing import Any, Dict, List, Optional

from slime.utils.http_utils import post
from slime.utils.types import Sample

from ..client import Client
from ..environment import Environment, MachineFault, connect
from .chat import feedback_ids

MAX_TURNS = 4


def tokenizer_of(args: Any) -> Any:
    from slime.rollout.sglang_rollout import GenerateState

    return GenerateState(args).tokenizer


async def generate(args: Any, sample: Sample, sampling_params: Dict[str, Any]) -> Sample:
    """An episode. Where a machine failed, the sample is ABORTED and has no reward: slime samples it again."""
    tokenizer = tokenizer_of(args)
    url = f"http://{args.sglang_router_ip}:{args.sglang_router_port}/generate"
    episode = Environment(connect(), str(sample.label), getattr(args, "max_turns", None) or MAX_TURNS)
    prompt = (
        sample.prompt
        if isinstance(sample.prompt, str)
        else tokenizer.apply_chat_template(sample.prompt, tokenize=False, add_generation_prompt=True)
    )
    sample.tokens = tokenizer.encode(prompt, add_special_tokens=False)
    room = sampling_params["max_new_tokens"]
    while True:
        asked = {**sampling_params, "max_new_tokens": room - sample.response_length}
        output = await post(url, {"input_ids": sample.tokens, "sampling_params": asked, "return_logprob": True})
        sampled = output["meta_info"].get("output_token_logprobs", [])
        sample.append_response_tokens(
            args,
            tokens=[x[1] for x in sampled],
            log_probs=[x[0] for x in sampled],
            meta_info=output["meta_info"],
            text=output["text"],
        )
        if sample.status == Sample.Status.ABORTED:
            return sample
        try:
            found = await asyncio.to_thread(episode.step, output["text"])
        except MachineFault:
            sample.status = Sample.Status.ABORTED
            return sample
        if found.done or sample.status == Sample.Status.TRUNCATED:
            break
        told = feedback_ids(tokenizer, found.feedback)
        if sample.response_length + len(told) >= room:
            sample.status = Sample.Status.TRUNCATED
            break
        sample.append_response_tokens(args, tokens=told, trainable=False, text=found.feedback)
    sample.reward = episode.reward
    return sample


async def kernel_reward(args: Any, sample: Sample, **_: Any) -> Optional[float]:
    """The reward of one answer; None, and the sample out of training, where a machine failed."""
    found = await asyncio.to_thread(connect().evaluate, str(sample.label), completion=sample.response, cache=True)
    if found.reward is None:
        sample.remove_sample = True
    return found.reward


def rows(client: Client) -> List[Dict[str, Any]]:
    """A row for each task: `--input-key prompt --label-key task --apply-chat-template`."""
    return [{"prompt": [{"role": "user", "content": x.prompt}], "task": x.id} for x in client.tasks()]
