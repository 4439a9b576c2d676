"""Draws what trainings learned, as one SVG: the reward of held-out tasks with its intervals,
and of each step's training groups.

    python -m trainer.curve FOLDER... --out curve.svg

Each FOLDER is one seed's.
"""

import argparse
import json
import pathlib
from typing import Any, Dict, List, Tuple

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 640, 360, 56, 16, 28, 44
COLOURS = ["#0b6fa4", "#c8511b", "#3a7d2c", "#7a4a9e", "#8a6d00"]


def lines_of(path: pathlib.Path) -> List[Dict[str, Any]]:
    return [json.loads(x) for x in path.read_text().splitlines()] if path.exists() else []


def drawn(folders: List[pathlib.Path]) -> str:
    held_out = [[(x["after"], *x["reward"]) for x in lines_of(f / "evaluations.jsonl")] for f in folders]
    steps = [
        [
            (x["step"] + 0.5, x["reward/mean"])
            for x in lines_of(f / "checkpoints.jsonl")
            if x.get("reward/mean") is not None
        ]
        for f in folders
    ]
    last = max([x[0] for seed in held_out + steps for x in seed] + [1])
    high = max([x[3] for seed in held_out for x in seed] + [x[1] for seed in steps for x in seed] + [0.1]) * 1.08
    low = min([x[2] for seed in held_out for x in seed] + [x[1] for seed in steps for x in seed] + [0])

    def at(x: float, y: float) -> Tuple[float, float]:
        return (
            round(LEFT + x / last * (WIDTH - LEFT - RIGHT), 1),
            round(TOP + (high - y) / (high - low) * (HEIGHT - TOP - BOTTOM), 1),
        )

    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" '
        'font-size="12" fill="#222">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#fff"/>',
    ]
    for i in range(6):
        y = low + (high - low) * i / 5
        (left, height), (right, _) = at(0, y), at(last, y)
        out.append(
            f'<path d="M{left} {height}H{right}" stroke="#ddd"/><text x="{LEFT - 6}" y="{height + 4}" '
            f'text-anchor="end">{y:.2f}</text>'
        )
    for x in sorted({x[0] for seed in held_out for x in seed}):
        out.append(f'<text x="{at(x, low)[0]}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle">{x}</text>')
    out.append(
        f'<text x="{WIDTH / 2}" y="{HEIGHT - 8}" text-anchor="middle">optimizer steps</text>'
        f'<text x="{LEFT}" y="16">mean reward: held-out tasks (points, 95 % intervals), training groups (dots)</text>'
    )
    for seed, colour in enumerate(COLOURS[i % len(COLOURS)] for i in range(len(folders))):
        for x, y in steps[seed]:
            a, b = at(x, y)
            out.append(f'<circle cx="{a}" cy="{b}" r="1.8" fill="{colour}" opacity="0.45"/>')
        points = [at(x, y) for x, y, _, _ in held_out[seed]]
        out.append(
            f'<polyline points="{" ".join(f"{a},{b}" for a, b in points)}" fill="none" stroke="{colour}" '
            'stroke-width="1.6"/>'
        )
        for (a, b), (x, _, least, most) in zip(points, held_out[seed]):
            out.append(
                f'<path d="M{a} {at(x, least)[1]}V{at(x, most)[1]}" stroke="{colour}"/><circle cx="{a}" '
                f'cy="{b}" r="3.5" fill="{colour}"/>'
            )
        out.append(
            f'<text x="{WIDTH - RIGHT}" y="{TOP + 14 * seed + 10}" text-anchor="end" '
            f'fill="{colour}">{folders[seed].name}</text>'
        )
    return "\n".join([*out, "</svg>\n"])


def main() -> None:
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("folders", type=pathlib.Path, nargs="+")
    words.add_argument("--out", type=pathlib.Path, required=True)
    given = words.parse_args()
    given.out.write_text(drawn(given.folders))


if __name__ == "__main__":
    main()
