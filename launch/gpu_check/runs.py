"""Whole runs, one of them killed and resumed."""

import json
import os
import re
import signal
import subprocess
import time

from gpu_check.common import CONFIGS, CORPUS, OUT, PROGRAM, promise, say, task_ids


def check_run():
    config = CONFIGS / "gpu_quickstart.json"
    folder = OUT / "runs"
    command = [PROGRAM, "run", config, f"run.dir={folder / 'killed'}"]
    started = time.monotonic()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                               start_new_session=True)
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
    promise(resumed.returncode == 0, f"a run of 64 episodes ends after kill -9 and resume; "
            f"{seconds:.0f} s in all")


def check_device_run():
    """The same tasks with replies of the contract `device`: wrong at first, right from then on."""
    config = CONFIGS / "gpu_quickstart.json"
    folder = OUT / "runs" / "device"
    replies = []
    labels = dict(re.findall(r'"task": "([^"]+)".*"diagnosis": "([^"]+)"',
                             (CONFIGS / "policies/gpu_quickstart/script.json").read_text()))
    for task in task_ids():
        name = task.split("/")[1]
        right = CORPUS / "device" / "honest" / f"{name}_baseline.cu"
        for member in range(4):
            kernels = [CORPUS / "device" / "hacks" / "endless_kernel.cu"] if member == 3 else []
            for turn, kernel in enumerate(kernels + [right]):
                reply = {"task": task, "member": member, "turn": turn, "thought": "Coalesced.",
                         "kernel": os.path.relpath(kernel, OUT)}
                replies.append(reply | ({"diagnosis": labels[task]} if task in labels else {}))
    script = OUT / "device_script.json"
    script.write_text(json.dumps({"model": "scripted-gpu-quickstart", "latency_ms": 20,
                                  "replies": replies}))
    started = time.monotonic()
    done = subprocess.run([PROGRAM, "run", config, f"run.dir={folder}", f"policy.script={script}",
                           "evaluation.contract=device"], capture_output=True, text=True)
    seconds = time.monotonic() - started
    (OUT / "device_run.txt").write_text(done.stdout + done.stderr)
    lines = [x for x in done.stdout.splitlines() if "episodes" in x or "accepted" in x or "time in" in x]
    for line in lines[-4:]:
        say("        " + line)
    promise(done.returncode == 0 and "64 accepted" in done.stdout,
            f"a run of 64 episodes with the contract device ends, all accepted; {seconds:.0f} s")
