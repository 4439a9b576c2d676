"""TRL (1.16): a `rollout_func` whose episodes have several turns, as messages.

    GRPOTrainer(model, rollout_func=kernel_rollouts, reward_funcs=best_reward, train_dataset=Dataset.from_list(rows()))

The server is that of KERNELMILL_URL.
"""

from typing import Any, Dict, List

from ..environment import Environment
from .chat import feedback_ids
from .trl import MAX_TURNS, client, rows

__all__ = ["best_reward", "kernel_rollouts", "rows", "sample"]


def best_reward(best: List[float], **kwargs: Any) -> List[float]:
    """The reward function that goes with kernel_rollouts."""
    return best


def kernel_rollouts(prompts: List[Any], trainer: Any) -> Dict[str, Any]:
    """A `rollout_func`: episodes whose feedback is the next user message, masked, sampled by the trainer's own
    generation. Raises MachineFault where one was not judged: resume from the last checkpoint."""
    tokenizer, room = trainer.processing_class, trainer.args.max_completion_length
    of_prompt = {x["prompt"][0]["content"]: x["task"] for x in rows()}
    out: Dict[str, Any] = {"prompt_ids": [], "completion_ids": [], "logprobs": [], "env_mask": [], "best": []}
    for prompt in prompts:
        episode = Environment(client(), of_prompt[prompt[-1]["content"]], MAX_TURNS)
        first = tokenizer.apply_chat_template(prompt, add_generation_prompt=True, return_dict=False)
        said: List[int] = []
        mask: List[int] = []
        logprobs: List[float] = []
        while not episode.over and len(said) < room:
            ids, scores = sample(trainer, first + said, room - len(said))
            found = episode.step(tokenizer.decode(ids, skip_special_tokens=True))
            told = [] if found.done else feedback_ids(tokenizer, found.feedback)
            said, mask, logprobs = said + ids, mask + [1] * len(ids), logprobs + scores
            if not told or len(said) + len(told) >= room:
                break
            said, mask, logprobs = said + told, mask + [0] * len(told), logprobs + [0.0] * len(told)
        for name, value in zip(out, (first, said, logprobs, mask, episode.reward)):
            out[name].append(value)
    return out


def sample(trainer: Any, ids: List[int], most: int) -> Any:
    """Token ids and their log-probabilities from the trainer's model. Replace it where a server samples."""
    import torch

    model = trainer.accelerator.unwrap_model(trainer.model)
    given = torch.tensor([ids], device=model.device)
    with torch.no_grad():
        made = model.generate(
            given,
            attention_mask=torch.ones_like(given),
            max_new_tokens=most,
            do_sample=True,
            temperature=trainer.args.temperature,
            return_dict_in_generate=True,
            output_logits=True,
        )
    new = made.sequences[0, len(ids) :].tolist()
    scores = [
        torch.log_softmax(x[0].float() / trainer.args.temperature, -1)[t].item() for x, t in zip(made.logits, new)
    ]
    return new, scores
