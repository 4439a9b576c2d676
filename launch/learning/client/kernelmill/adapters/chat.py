"""Tokens between two answers, for adapters that keep a conversation as token ids."""

from typing import Any, Dict, List


def feedback_ids(tokenizer: Any, feedback: str) -> List[int]:
    """What stands between two answers: a user's message, and the beginning of the next answer."""

    def of(messages: List[Dict[str, str]], more: bool) -> str:
        return str(tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=more))

    before = [{"role": "user", "content": "."}, {"role": "assistant", "content": "."}]
    text = of([*before, {"role": "user", "content": feedback}], True)[len(of(before, False)) :]
    ids: List[int] = tokenizer.encode(text, add_special_tokens=False)
    return ids
