"""The cards of configs/knowledge and their snippets.

A card's snippet lies in snippets/ID/after.{cpp,cu,hip,py}; the card shows it in a fence. Where a comparison makes
sense, the plain form lies beside it as before.EXT. Both then have a function `f` and begin with one comment that names
its arguments:

    // bench: f(x float[1024x1024], i int[1000 < 256], y out float[1024], rows = 1024) within 1e-5

C++, CUDA and HIP: `f` takes pointers (of the device) and numbers in this order and writes what is marked `out`.
Python: `f` takes tensors and numbers and returns a tensor, or several. `needs torch 2.0` after the tolerance names what
an older PyTorch lacks.
"""

import pathlib
import re
from dataclasses import dataclass, field

ROOT = pathlib.Path(__file__).resolve().parents[3] / "configs/knowledge"
LANGUAGES = {"cpp": "cpp", "cu": "cuda", "hip": "hip", "py": "python"}  # suffix: fence
TYPES = {
    "float": "float",
    "double": "double",
    "half": "__half",
    "bf16": "__nv_bfloat16",
    "int": "int",
    "uint": "unsigned",
    "int64": "long long",
    "int8": "signed char",
    "uint8": "unsigned char",
    "uint16": "unsigned short",
}
MEASURED = re.compile(r"(\d+\.\d\d)x on (.+), (\d{4}-\d\d-\d\d)")
BENCH = re.compile(r"(?://|#) bench: f\((.*)\)(?: within (\S+))?(?: needs torch (\d+\.\d+))?")
ARGUMENT = re.compile(r"(\w+) (out )?(\w+)\[(\d+(?:x\d+)*)(?: < (\d+))?\]|(\w+) = (-?[\d.]+)")


class BadCard(Exception):
    """Says which card, and what is wrong with it."""


@dataclass
class Argument:
    name: str
    type: str = ""  # of TYPES; empty for a number
    shape: tuple = ()
    out: bool = False
    below: int = 0  # integers are drawn from 0 to this; 0: the usual 100
    value: str = ""  # of a number, as written

    @property
    def count(self):
        result = 1
        for x in self.shape:
            result *= x
        return result


@dataclass
class Bench:
    arguments: list
    within: float = 1e-5  # largest error that is allowed, relative to the largest magnitude of an output
    torch: tuple = ()


def bench_of(line):
    """None for a line that is no bench comment; BadCard for one that is malformed."""
    if "bench:" not in line:
        return None
    found = BENCH.fullmatch(line.strip())
    if not found:
        raise BadCard(f"malformed: {line.strip()}")
    arguments = []
    for part in found[1].split(", ") if found[1] else []:
        x = ARGUMENT.fullmatch(part)
        if not x or (x[3] and x[3] not in TYPES):
            raise BadCard(f"malformed argument {part!r} in: {line.strip()}")
        if x[6]:
            arguments.append(Argument(x[6], value=x[7]))
        else:
            shape = tuple(int(y) for y in x[4].split("x"))
            arguments.append(Argument(x[1], x[3], shape, bool(x[2]), int(x[5] or 0)))
    torch = tuple(int(y) for y in found[3].split(".")) if found[3] else ()
    return Bench(arguments, float(found[2] or 1e-5), torch)


@dataclass
class Snippet:
    path: pathlib.Path
    text: str  # without the bench comment
    bench: Bench | None

    @property
    def language(self):
        """cpp, cuda, hip, torch or triton."""
        fence = LANGUAGES[self.path.suffix[1:]]
        if fence == "python":
            return "triton" if "@triton" in self.text else "torch"
        return fence


def snippet_of(path):
    first, _, rest = path.read_text().partition("\n")
    bench = bench_of(first)
    return Snippet(path, rest if bench else first + "\n" + rest, bench)


@dataclass
class Card:
    path: pathlib.Path
    header: dict
    body: str
    fences: list  # (language, text)
    after: Snippet | None = None
    before: Snippet | None = None
    faults: list = field(default_factory=list)

    @property
    def id(self):
        return self.header["id"]

    @property
    def measured(self):
        """[(speedup, device, date)]"""
        return [MEASURED.fullmatch(x).groups() for x in self.header.get("measured", "").split("; ") if x]


def card_of(path, root=ROOT):
    text = path.read_text()
    head, body = re.fullmatch(r"---\n(.*?)\n---\n(.*)", text, re.S).groups()
    header = dict(x.split(": ", 1) for x in head.splitlines())
    fences = re.findall(r"^```(\w*)\n(.*?)^```$", body, re.S | re.M)
    card = Card(path, header, body, fences)
    folder = root / "snippets" / card.id
    for x in sorted(folder.iterdir()) if folder.exists() else []:
        if x.stem not in ("before", "after") or x.suffix[1:] not in LANGUAGES or getattr(card, x.stem):
            card.faults.append(f"{x} is not the one before or after of a snippet")
            continue
        try:
            setattr(card, x.stem, snippet_of(x))
        except BadCard as e:
            card.faults.append(f"{x}: {e}")
    card.faults += faults_of(card)
    return card


def faults_of(card):
    """What is wrong with a card and its snippet, as far as no compiler is needed to tell."""
    found = []
    after, before = card.after, card.before
    shown = [(LANGUAGES[after.path.suffix[1:]], after.text)] if after else []
    if card.fences != shown:
        found.append(
            f"{card.path} does not show snippets/{card.id}/after as it is; call launch/tools/cards/measure.py --show"
        )
    if before and (not after or not after.bench or before.bench != after.bench or before.language != after.language):
        found.append(f"{before.path} and its after differ in language or in the bench comment")
    if "measured" in card.header:
        if not before:
            found.append(f"{card.path} says what was measured, but has no pair")
        if any(not MEASURED.fullmatch(x) for x in card.header["measured"].split("; ")):
            found.append(f"{card.path}: malformed measured: {card.header['measured']}")
    return found


def load(root=ROOT):
    """All cards, by id. A folder of snippets without a card is a fault of the corpus."""
    cards = [card_of(x, root) for x in sorted(root.rglob("*.md")) if x.name != "README.md"]
    known = {x.id for x in cards}
    folder = root / "snippets"
    lost = [x.name for x in folder.iterdir() if x.name not in known] if folder.exists() else []
    if lost:
        raise BadCard(f"snippets without a card: {', '.join(sorted(lost))}")
    return sorted(cards, key=lambda x: x.id)


def rewrite(card):
    """Writes the card anew from its header, its words and its snippet."""
    words = re.sub(r"^```.*?^```\n?", "", card.body, flags=re.S | re.M).strip()
    head = "".join(f"{k}: {v}\n" for k, v in card.header.items())
    text = f"---\n{head}---\n{words}\n"
    if card.after:
        text += f"\n```{LANGUAGES[card.after.path.suffix[1:]]}\n{card.after.text}```\n"
    card.path.write_text(text)
