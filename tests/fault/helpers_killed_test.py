#!/usr/bin/env python3
"""The test kills what a node has started: compilers, referees, candidates, their sandboxes and the spawner.

Runs of scripted answers whose verdicts are known: right ones, wrong ones, some that do not compile. While a run goes
on, processes below the node are killed with SIGKILL at random. Each turn must then be what it is in an undisturbed
run, or be marked `infrastructure` and have no reward. $KERNELMILL_KILLS says how many kills (30 without it).
Exit code 77: it cannot run here.
"""

import collections
import json
import os
import random
import select
import signal
import subprocess
import sys

from real_processes import SKIP, binary, descendants, lines_of, number, policies, report, scratch_folder, started

TASKS = ["row_sum", "gelu"]
SOURCES = {
    "row_sum": ["broken", "plain", "wrong_tail", "fast", "lanes"],
    "gelu": ["broken", "plain", "wrong_tanh", "fast", "hack_half"],
}
MEMBERS, TURNS = 4, 4


def write_script(folder):
    """Each member begins with another source, so that all kinds are met from the first second on."""
    replies = [{"text": "none"}]
    for task in TASKS:
        for member in range(MEMBERS):
            for turn in range(TURNS):
                name = SOURCES[task][(member + turn) % len(SOURCES[task])]
                replies.append(
                    {
                        "task": f"native/{task}",
                        "member": member,
                        "turn": turn,
                        "thought": name,
                        "kernel": str(policies / task / f"{name}.cpp"),
                    }
                )
    (folder / "script.json").write_text(json.dumps({"model": "m", "latency_ms": 5, "replies": replies}))
    (folder / "run.json").write_text(
        json.dumps(
            {
                "run": {"name": "killed", "max_infrastructure": 1.0},
                "tasks": {"ids": [f"native/{x}" for x in TASKS], "group_size": MEMBERS, "max_turns": TURNS},
                "policy": {"kind": "scripted", "script": "script.json", "model": "m"},
                "retrieval": {"enabled": False},
                "profile": {"enabled": False},
                "evaluation": {"backend": "cpu", "timing": {"enabled": False}},
                "reward": {"preset": "correctness"},
            }
        )
    )


def run_words(name, *more):
    # A cache of its own: what is built already starts no compiler.
    return [binary, "run", "run.json", f"run.dir={name}", f"compile.cache_dir=cache-{name}", *more]


def turns_of(folder, name):
    """What each turn was judged to be, and its reward, by episode and turn."""
    return {
        (x["task"], x["member"], x["turn"]): x for x in lines_of(folder / name / "metrics.jsonl") if x["kind"] == "turn"
    }


def disturb(node, kills, dice, struck):
    """Kills below the node until it has ended, or there were so many kills; returns how many."""
    watch = select.poll()
    watch.register(os.pidfd_open(node.pid), select.POLLIN)
    done = 0
    while not watch.poll(dice.uniform(20, 250)):
        below = list(descendants(node.pid).items())
        if done >= kills or not below:
            continue
        pid, name = dice.choice(below)
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue
        struck[name] += 1
        done += 1
    node.wait()
    return done


def judge(calm, seen, wrong):
    """Counts what was taken out as a fault of the machine; what is neither that nor as ever is wrong."""
    infrastructure = 0
    for key, turn in seen.items():
        if turn["outcome"] == "infrastructure":
            infrastructure += 1
            if turn["reward"] is not None:
                wrong.append((key, "a fault of the machine has a reward", turn))
        elif key not in calm or (turn["category"], turn["reward"]) != (calm[key]["category"], calm[key]["reward"]):
            wrong.append((key, f"undisturbed it is {calm.get(key, {}).get('category')}", turn))
    return infrastructure


def main():
    if not os.access(binary, os.X_OK):
        print(f"SKIP: {binary} is not built")
        return SKIP
    wanted = number("KERNELMILL_KILLS", 30)
    dice = random.Random(number("KERNELMILL_SEED", 20261123))
    with scratch_folder("helpers") as folder:
        write_script(folder)
        done = subprocess.run(run_words("calm"), cwd=folder, capture_output=True, text=True, check=False, timeout=600)
        assert done.returncode == 0, done.stderr[-3000:]
        calm = turns_of(folder, "calm")
        kinds = collections.Counter(x["category"] for x in calm.values())
        assert len(calm) == len(TASKS) * MEMBERS * TURNS and len(kinds) > 2, kinds
        struck: collections.Counter = collections.Counter()
        wrong: list = []
        turns = infrastructure = runs = 0
        while struck.total() < wanted:
            name = f"run{runs}"
            with started(run_words(name), folder, folder / f"{name}.log") as node:
                disturb(node, min(12, wanted - struck.total()), dice, struck)
                code = node.returncode
            # 70: the machine's faults were too many; what is stored must be honest all the same.
            assert code in (0, 70), f"exit {code}: {(folder / f'{name}.log').read_text()[-3000:]}"
            seen = turns_of(folder, name)
            infrastructure += judge(calm, seen, wrong)
            turns += len(seen)
            runs += 1
        report(
            kills=struck.total(),
            of=dict(struck),
            runs=runs,
            turns=turns,
            infrastructure=infrastructure,
            mislabelled=len(wrong),
        )
        assert not wrong, "\n".join(f"{key}: {why}: {turn}" for key, why, turn in wrong)
    print("ok")
    return 0


if __name__ == "__main__":
    sys.exit(main())
