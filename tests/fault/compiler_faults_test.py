#!/usr/bin/env python3
"""The test lets compilers fail as machines make them fail: no space, no memory, no process, a killed compiler.

A stand-in for g++ says in a share of its runs what g++ says on such a machine, of candidates and of sources of ours
alike. No turn may be paid for that: each is what it is in an undisturbed run, or `infrastructure` without a reward.
Nothing of it may stay in the build cache: the same sources, with the same cache on the machine when it is well again,
are judged as in an undisturbed run. $KERNELMILL_TURNS says how many turns (8 without it). Exit code 77: it cannot run
here.
"""

import collections
import json
import os
import pathlib
import subprocess
import sys

from real_processes import SKIP, binary, lines_of, number, policies, report, scratch_folder

TASK, MEMBERS = "row_sum", 4
SOURCES = ["broken", "plain", "wrong_tail", "fast"]
FAULTS = [
    "as: fatal error: error writing to /tmp/cc.o: No space left on device",
    "cc1plus: fatal error: error writing to /tmp/cc.s: Disk quota exceeded",
    "cc1plus: out of memory allocating 65536 bytes after a total of 9 bytes",
    "kernel.cpp:1:10: fatal error: cstddef: No such file or directory",
    "/usr/include/features.h:5:1: error: expected unqualified-id at end of input",
    "g++: fatal error: Killed signal terminated program cc1plus",
    "g++: fatal error: cannot execute 'cc1plus': vfork: Resource temporarily unavailable",
    "cc1plus: fatal error: kernel.cpp: Too many open files",
    "as: can't create /tmp/cc.o: Read-only file system",
    "kernel.cpp:2:1: internal compiler error: Segmentation fault",
    "cc1plus: fatal error: kernel.cpp: Input/output error",
]

WRAPPER = """#!/bin/sh
here=${0%/*}
case " $* " in
  *" -### "* | *" -dumpfullversion "* | *" -print-file-name"*) exec /usr/bin/g++ "$@" ;;
esac
roll=$(od -An -N4 -tu4 /dev/urandom)
if [ $((roll % 100)) -lt "$(cat "$here/share")" ]; then
  line=$((roll / 100 % $(wc -l < "$here/faults") + 2))
  [ "$line" -gt "$(wc -l < "$here/faults")" ] && kill -9 $$
  sed -n "${line}p" "$here/faults" >&2
  exit 1
fi
exec /usr/bin/g++ "$@"
"""


def write_machine(folder, share):
    tools = folder / "machine" / "bin"
    tools.mkdir(parents=True, exist_ok=True)
    folder.chmod(0o755)
    (tools / "faults").write_text("\n".join(FAULTS) + "\n")
    (tools / "share").write_text(f"{share}\n")
    (tools / "g++").write_text(WRAPPER)
    (tools / "g++").chmod(0o755)
    return tools / "g++"


def write_run(folder, turns):
    """Every turn has a source of its own, so that each of them is compiled."""
    replies = [{"text": "none"}]
    for member in range(MEMBERS):
        for turn in range(turns):
            name = SOURCES[(member + turn) % len(SOURCES)]
            path = folder / f"{name}-{member}-{turn}.cpp"
            path.write_text((policies / TASK / f"{name}.cpp").read_text() + f"// {member} {turn}\n")
            replies.append(
                {
                    "task": f"native/{TASK}",
                    "member": member,
                    "turn": turn,
                    "thought": name,
                    "kernel": str(path),
                }
            )
    (folder / "script.json").write_text(json.dumps({"model": "m", "latency_ms": 5, "replies": replies}))
    (folder / "run.json").write_text(
        json.dumps(
            {
                "run": {"name": "faults", "max_infrastructure": 1.0},
                "tasks": {"ids": [f"native/{TASK}"], "group_size": MEMBERS, "max_turns": turns},
                "policy": {"kind": "scripted", "script": "script.json", "model": "m"},
                "retrieval": {"enabled": False},
                "profile": {"enabled": False},
                "evaluation": {"backend": "cpu", "timing": {"enabled": False}},
                "reward": {"preset": "correctness"},
            }
        )
    )


def run(folder, name, compiler):
    words = [binary, "run", "run.json", f"run.dir={name}", "compile.cache_dir=cache", f"compile.compiler={compiler}"]
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False, timeout=1500)
    # 70: the machine's faults were too many; what is stored must be honest all the same.
    assert done.returncode in (0, 70), done.stderr[-3000:]
    turns = [x for x in lines_of(folder / name / "metrics.jsonl") if x["kind"] == "turn"]
    return {(x["member"], x["turn"]): x for x in turns}


def expected_of(folder, member, turn):
    """Of a source on a machine that is well."""
    name = SOURCES[(member + turn) % len(SOURCES)]
    return {"broken": "compile_error", "wrong_tail": "wrong_result"}.get(name, "success")


def main():
    if not os.access(binary, os.X_OK) or not pathlib.Path("/usr/bin/g++").exists():
        print(f"SKIP: {binary} is not built, or there is no g++")
        return SKIP
    turns = max(1, number("KERNELMILL_TURNS", 8) // MEMBERS)
    # Of six tries behind five controls a source loses all, and no control, in 2 of 100,000 builds at this share.
    share = 20
    with scratch_folder("compilers") as folder:
        write_run(folder, turns)
        ill = run(folder, "ill", write_machine(folder, share))
        well = run(folder, "well", write_machine(folder, 0))
        wrong, kinds = [], collections.Counter()
        for key, turn in well.items():
            if turn["category"] != expected_of(folder, *key):
                wrong.append((key, "remembered from the machine that was not well", turn))
        for key, turn in ill.items():
            kinds[turn["category"]] += 1
            if turn["outcome"] == "infrastructure":
                if turn["reward"] is not None:
                    wrong.append((key, "a fault of the machine has a reward", turn))
            elif (turn["category"], turn["reward"]) != (well[key]["category"], well[key]["reward"]):
                wrong.append((key, f"on a machine that is well it is {well[key]['category']}", turn))
        report(turns=len(ill), of=dict(kinds), mislabelled=len(wrong))
        assert len(well) == MEMBERS * turns, len(well)
        assert not wrong, "\n".join(f"{key}: {why}: {turn}" for key, why, turn in wrong)
    print("ok")
    return 0


if __name__ == "__main__":
    sys.exit(main())
