"""A small decoder-only transformer, its vocabulary, and sampling in batches."""

import collections
import contextlib
import json
import math
import os
import re
from typing import Any, Dict, Iterable, List, Optional, Sequence, Tuple

import torch
from torch import nn
from torch.nn import functional

PAD, END, SYSTEM, USER, ASSISTANT = range(5)
ROLES = {"system": SYSTEM, "user": USER, "assistant": ASSISTANT}
FIRST_BYTE = 5
FIRST_PIECE = FIRST_BYTE + 256
LINE = re.compile(r"[^\n]*\n|[^\n]+")
WORD = re.compile(r"\n| {2,}| ?[A-Za-z_]+| ?\d| ?[^\sA-Za-z_0-9]+|\s")
ALONE = re.compile(r" ?(?:\d|v)")  # numbers and v are in no phrase: a function has the same ids wherever it stands
PHRASE = 8  # words


class Vocabulary:
    """Lines that most prompts share, phrases, words, and bytes for the rest: every text has ids,
    and they give it back."""

    def __init__(self, pieces: Sequence[str]) -> None:
        self.pieces = list(pieces)
        self.ids = {x: i for i, x in enumerate(pieces, FIRST_PIECE)}
        self.bytes = [*[b""] * FIRST_BYTE, *(bytes([x]) for x in range(256)), *(x.encode() for x in pieces)]

    def __len__(self) -> int:
        return len(self.bytes)

    @classmethod
    def learned(cls, prompts: Sequence[str], answers: Sequence[str], phrases: int = 200) -> "Vocabulary":
        """Phrases are made of the pair of neighbours that is the most frequent, again and again."""
        lines = collections.Counter(line for text in prompts for line in set(LINE.findall(text)))
        common = [x for x, count in lines.items() if 5 * count >= len(prompts) and len(x) > 12]
        words = collections.Counter(word for text in [*prompts, *answers] for word in WORD.findall(text))
        pieces = [*sorted(common), *sorted(x for x, count in words.items() if count >= 3)]
        spans: Dict[Tuple[str, ...], int] = collections.Counter(
            tuple(WORD.findall(x)) for text in answers for x in LINE.findall(text)
        )
        for _ in range(phrases):
            pairs: "collections.Counter[Tuple[str, ...]]" = collections.Counter()
            for span, count in spans.items():
                for pair in zip(span, span[1:]):
                    if not any(ALONE.fullmatch(x) for x in pair) and len(WORD.findall("".join(pair))) <= PHRASE:
                        pairs[pair] += count
            best = min(pairs, key=lambda x: (-pairs[x], x))
            pieces.append("".join(best))
            spans = {joined(span, best): count for span, count in spans.items()}
        return cls(list(dict.fromkeys(pieces)))

    def encode(self, text: str) -> List[int]:
        result: List[int] = []
        for line in LINE.findall(text):
            words = [line] if line in self.ids else WORD.findall(line)
            i = 0
            while i < len(words):
                size = next(
                    (n for n in range(min(PHRASE, len(words) - i), 0, -1) if "".join(words[i : i + n]) in self.ids), 0
                )
                result += (
                    [self.ids["".join(words[i : i + size])]] if size else [FIRST_BYTE + x for x in words[i].encode()]
                )
                i += max(size, 1)
        return result

    def decode(self, ids: Iterable[int]) -> str:
        return b"".join(self.bytes[x] for x in ids).decode(errors="replace")

    def render(self, messages: Sequence[Dict[str, str]]) -> List[int]:
        """The chat template: a mark for the role, the content, and a mark for its end.
        Then it is the assistant's turn."""
        result: List[int] = []
        for x in messages:
            result += [ROLES[x["role"]], *self.encode(x["content"]), END]
        return [*result, ASSISTANT]


def joined(span: Tuple[str, ...], pair: Tuple[str, ...]) -> Tuple[str, ...]:
    """The span with each such pair of neighbours as one."""
    out: List[str] = []
    for x in span:
        out[-1:] = ["".join(pair)] if (*out[-1:], x) == pair else [*out[-1:], x]
    return tuple(out)


def attend(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    if hasattr(functional, "scaled_dot_product_attention"):
        return functional.scaled_dot_product_attention(q, k, v, attn_mask=mask)
    scores = (q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])).masked_fill(~mask, -math.inf)
    return torch.softmax(scores, -1) @ v  # torch before 2.0


class Block(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.before, self.between = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width, bias=False), nn.Linear(width, width, bias=False)
        self.wide, self.narrow = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(
        self,
        x: torch.Tensor,
        turn: Tuple[torch.Tensor, torch.Tensor],
        mask: torch.Tensor,
        kept: Optional[List[torch.Tensor]],
    ) -> torch.Tensor:
        rows, length, width = x.shape
        q, k, v = self.qkv(self.before(x)).view(rows, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        q, k = rotated(q, *turn), rotated(k, *turn)
        if kept is not None:
            kept[:] = [torch.cat([old, new], 2) for old, new in zip(kept, (k, v))] if kept else [k, v]
            k, v = kept
        x = x + self.out(attend(q, k, v, mask).transpose(1, 2).reshape(rows, length, width))
        return x + self.narrow(functional.gelu(self.wide(self.between(x))))


def rotated(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    a, b = x.chunk(2, -1)
    return torch.cat([a * cos - b * sin, a * sin + b * cos], -1).to(x.dtype)


class Policy(nn.Module):
    """`shape` is what it takes to make one: vocabulary, width, layers, heads."""

    def __init__(self, shape: Dict[str, int]) -> None:
        super().__init__()
        self.shape = dict(shape)
        self.embedding = nn.Embedding(shape["vocabulary"], shape["width"])
        nn.init.normal_(self.embedding.weight, std=0.02)
        self.blocks = nn.ModuleList(Block(shape["width"], shape["heads"]) for _ in range(shape["layers"]))
        self.last = nn.LayerNorm(shape["width"])
        size = shape["width"] // shape["heads"] // 2
        self.register_buffer("speeds", 10000.0 ** (-torch.arange(size) / size), persistent=False)

    def forward(
        self, ids: torch.Tensor, mask: torch.Tensor, first: int = 0, kept: Optional[List[List[torch.Tensor]]] = None
    ) -> torch.Tensor:
        """Logits; `first` is the position of the first id, `kept` the keys and values before it."""
        angles = torch.arange(first, first + ids.shape[1], device=ids.device)[:, None] * self.speeds
        turn = (angles.cos(), angles.sin())
        x = self.embedding(ids)
        for i, block in enumerate(self.blocks):
            x = block(x, turn, mask, None if kept is None else kept[i])
        return functional.linear(self.last(x), self.embedding.weight)


def arithmetic(device: torch.device) -> Any:
    return torch.autocast("cuda", torch.bfloat16) if device.type == "cuda" else contextlib.nullcontext()


def causal(length: int, device: Any) -> torch.Tensor:
    return torch.ones(length, length, dtype=torch.bool, device=device).tril()[None, None]


def padded(rows: Sequence[Sequence[Any]], device: torch.device) -> torch.Tensor:
    return nn.utils.rnn.pad_sequence([torch.tensor(x, device=device) for x in rows], batch_first=True)


def logprobs_of(policy: Policy, sequences: Sequence[Sequence[int]]) -> torch.Tensor:
    """Of each id but the first, given those before it: one row a sequence, padded behind its end."""
    device = policy.embedding.weight.device
    ids = padded(sequences, device)
    with arithmetic(device):
        logits = policy(ids[:, :-1], causal(ids.shape[1] - 1, device))
    scores = torch.log_softmax(logits.float(), -1)
    return scores.gather(2, ids[:, 1:, None])[:, :, 0]


@torch.no_grad()
def sample(
    policy: Policy, prompts: Sequence[Sequence[int]], most: Sequence[int], temperature: Sequence[float]
) -> List[Tuple[List[int], List[float]]]:
    """Ids and their log-probabilities for each prompt, until END or its limit; temperature 0 takes the likeliest."""
    device = policy.embedding.weight.device
    ids = padded([x[::-1] for x in prompts], device).flip(1)  # in front
    there, length = ids != PAD, ids.shape[1]
    # What pads attend to does not count, but it must not be nothing.
    mask = (there[:, None, None] | torch.eye(length, dtype=torch.bool, device=device)) & causal(length, device)
    warmth = torch.tensor(temperature, device=device)[:, None]
    made: List[Tuple[List[int], List[float]]] = [([], []) for _ in prompts]
    kept: List[List[torch.Tensor]] = [[] for _ in policy.blocks]
    alive, first = set(range(len(prompts))), 0
    while alive:
        with arithmetic(device):
            logits = policy(ids, mask, first, kept)[:, -1].float()
        likely = torch.log_softmax(logits / warmth.clamp(min=1e-6), -1)
        drawn = torch.where(warmth[:, 0] > 0, torch.multinomial(likely.exp(), 1)[:, 0], likely.argmax(-1))
        tokens, scores = drawn.tolist(), likely.gather(1, drawn[:, None])[:, 0].tolist()
        for i in sorted(alive):
            made[i][0].append(tokens[i])
            made[i][1].append(scores[i])
            if tokens[i] == END or len(made[i][0]) == most[i]:
                alive.remove(i)
        first += ids.shape[1]
        ids = drawn[:, None]
        there = torch.cat([there, torch.ones_like(ids, dtype=torch.bool)], 1)
        mask = there[:, None, None]
    return made


def save(path: str, policy: Policy, vocabulary: Vocabulary, **more: Any) -> None:
    """Whole or not at all, and on the disk before it returns."""
    with open(path + ".new", "wb") as file:
        torch.save(
            {"shape": policy.shape, "pieces": json.dumps(vocabulary.pieces), "weights": policy.state_dict(), **more},
            file,
        )
        file.flush()
        os.fsync(file.fileno())
    os.replace(path + ".new", path)


def load(path: str, device: str) -> Tuple[Policy, Vocabulary, Dict[str, Any]]:
    kept = torch.load(path, map_location=device)
    policy = Policy(kept["shape"]).to(device)
    policy.load_state_dict(kept["weights"])
    return policy, Vocabulary(json.loads(kept["pieces"])), kept
