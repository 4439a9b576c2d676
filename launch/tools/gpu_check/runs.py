"""Whole runs, one of them killed and resumed."""

import json
import os
import re
import signal
import subprocess
import time

from gpu_check import common
from gpu_check.common import CONFIGS, CORPUS, OUT, PROGRAM, promise, say, task_ids


def check_run():
    config = CONFIGS / "gpu_quickstart.json"
    folder = OUT / "runs"
    command = [PROGRAM, "run", config, f"run.dir={folder / 'killed'}"]
    started = time.monotonic()
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True
    )
    time.sleep(12)
    process.send_signal(signal.SIGKILL)
    process.wait()
    say(f"        killed after {time.monotonic() - started:.0f} s")
    resumed = subprocess.run([PROGRAM, "resume", folder / "killed"], capture_output=True, text=True)
    seconds = time.monotonic() - started
    (OUT / "run.txt").write_text(resumed.stdout + resumed.stderr)
    for line in resumed.stdout.splitlines():
        if "episodes" in line or "accepted" in line or "time in" in line:
            say("        " + line)
    promise(resumed.returncode == 0, f"a run of 64 episodes ends after kill -9 and resume; {seconds:.0f} s in all")


def device_script():
    """Replies of the contract `device`, as a file: one member in four is wrong at first, all are right from then on."""
    replies = []
    labels = dict(
        re.findall(
            r'"task": "([^"]+)".*"diagnosis": "([^"]+)"', (CONFIGS / "policies/gpu_quickstart/script.json").read_text()
        )
    )
    for task in task_ids():
        name = task.split("/")[1]
        kind = "single_pass" if name == "online_softmax" else "baseline"  # its baseline is its starter
        right = CORPUS / "device" / "honest" / f"{name}_{kind}.cu"
        for member in range(4):
            kernels = [CORPUS / "device" / "hacks" / "endless_kernel.cu"] if member == 3 else []
            for turn, kernel in enumerate(kernels + [right]):
                reply = {
                    "task": task,
                    "member": member,
                    "turn": turn,
                    "thought": "Coalesced.",
                    "kernel": os.path.relpath(kernel, OUT),
                }
                replies.append(reply | ({"diagnosis": labels[task]} if task in labels else {}))
    script = OUT / "device_script.json"
    script.write_text(json.dumps({"model": "scripted-gpu-quickstart", "latency_ms": 20, "replies": replies}))
    return script


def slot_seconds(stages):
    """Seconds for which the slots were held, of a run's stages: evaluations, and profiles with slots of their own."""
    return sum(seconds for name, seconds in stages.items() if name.startswith("slot.") or name == "profile")


def run_devices(name, *more):
    """(exit code, summary) of a run of the contract `device`: an episode of each task and member."""
    kept = OUT / f"{name}.json"
    with kept.open("w") as into:
        done = subprocess.run(
            [
                PROGRAM,
                "run",
                CONFIGS / "gpu_quickstart.json",
                f"run.dir={OUT / 'runs' / name}",
                f"policy.script={device_script()}",
                "evaluation.contract=device",
                "--json",
                f"tasks.group_size={common.options.members}",
                *more,
            ],
            stdout=into,
            stderr=subprocess.PIPE,
            text=True,
        )
    if done.returncode != 0:
        say(done.stderr[-800:])
        return done.returncode, {}
    return 0, json.loads(kept.read_text())


PROFILE_COSTS = 1.15  # GPU time of a run with cards by that of one without, at most


def check_profile_cost():
    """What cards and sanitizers cost of the GPU's time, in whole runs of the same candidates."""
    rows = [
        ("without", ["profile.enabled=false"]),
        ("cards", ["profile.enabled=true", "profile.feedback=card"]),
        ("sanitizers", ["profile.enabled=false", "evaluation.sanitize=on_accept", "reward.memory_safety=report"]),
    ]
    seconds, accepted = {}, {}
    episodes = len(task_ids()) * common.options.members
    for name, more in rows:
        code, summary = run_devices(f"cost_{name}", *more)
        if code == 0:
            seconds[name] = slot_seconds(summary["stages"])
            accepted[name] = summary["totals"]["accepted"]
        promise(
            code == 0,
            f"a run of {episodes} episodes, {name}: exit {code}, {accepted.get(name)} accepted, GPU's slot held for "
            f"{seconds.get(name, 0):.1f} s"
            + (
                f", {summary['stages'].get('slot.sanitize', 0):.1f} s of them by compute-sanitizer"
                if name == "sanitizers" and code == 0
                else ""
            ),
        )
    if "without" in seconds and "cards" in seconds:
        share = seconds["cards"] / seconds["without"]
        promise(
            share <= PROFILE_COSTS and accepted["cards"] == accepted["without"],
            f"profile.feedback=card takes {100 * (share - 1):+.1f} % of the GPU's time (at most "
            f"{100 * (PROFILE_COSTS - 1):.0f} %); "
            f"{accepted['cards']} and {accepted['without']} of {episodes} accepted",
        )


def check_device_run():
    """The same tasks with replies of the contract `device`: wrong at first, right from then on."""
    config = CONFIGS / "gpu_quickstart.json"
    folder = OUT / "runs" / "device"
    script = device_script()
    started = time.monotonic()
    done = subprocess.run(
        [PROGRAM, "run", config, f"run.dir={folder}", f"policy.script={script}", "evaluation.contract=device"],
        capture_output=True,
        text=True,
    )
    seconds = time.monotonic() - started
    (OUT / "device_run.txt").write_text(done.stdout + done.stderr)
    lines = [x for x in done.stdout.splitlines() if "episodes" in x or "accepted" in x or "time in" in x]
    for line in lines[-4:]:
        say("        " + line)
    promise(
        done.returncode == 0 and "64 accepted" in done.stdout,
        f"a run of 64 episodes with the contract device ends, all accepted; {seconds:.0f} s",
    )
