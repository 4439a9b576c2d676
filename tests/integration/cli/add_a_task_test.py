#!/usr/bin/env python3
"""Follows docs/how-to/add-a-task.md to the letter, and runs the quickstart beside the new task."""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

BIN = pathlib.Path(os.environ["KERNELMILL_BIN_DIR"])
SOURCE = pathlib.Path(os.environ["KERNELMILL_SOURCE_DIR"])
PATIENCE = 500

# One turn each: this is about what runs, not about how fast it gets.
SHORT = ["tasks.group_size=1", "tasks.max_turns=1", "retrieval.enabled=false"]


def run(command, scratch, **more):
    environment = {"PATH": os.environ["PATH"], "HOME": str(scratch / "home"), "LC_ALL": "C.UTF-8"}
    done = subprocess.run(
        command, cwd=scratch, env=environment, text=True, capture_output=True, check=False, timeout=PATIENCE, **more
    )
    print(done.stdout + done.stderr, flush=True)
    return done


def tree(scratch):
    """What a user has in front of them, without writing into the sources."""
    (scratch / "home").mkdir()
    (scratch / "build").mkdir()
    (scratch / "build/bin").symlink_to(BIN)
    for name in ("docs", "configs"):
        (scratch / name).symlink_to(SOURCE / name)


def follow_the_page(scratch):
    page = (SOURCE / "docs/how-to/add-a-task.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```bash\n(.*?)```", page, re.S)
    assert len(blocks) == 4, blocks
    done = run(["bash", "-euo", "pipefail"], scratch, input="\n".join(blocks))
    assert done.returncode == 0, done.returncode
    assert "1 task, 0 refused" in done.stdout
    assert re.search(r"mine/weighted_sum +4 +8 +4 +0 +0", done.stdout), "four episodes of two turns, all accepted"


def quickstart_beside_it(scratch):
    done = run([BIN / "kernelmill", "run", "quickstart", "run.dir=runs/beside", *SHORT], scratch)
    assert done.returncode == 0, done.returncode
    assert "16 groups, 16 episodes, 16 turns" in done.stdout
    assert "mine/" not in done.stdout


def quickstart_with_a_task_that_its_script_does_not_know(scratch):
    folder = scratch / "tasks/native/other"
    shutil.copytree(SOURCE / "configs/tasks/native/row_sum", folder)
    text = (folder / "task.json").read_text(encoding="utf-8")
    (folder / "task.json").write_text(text.replace("native/row_sum", "native/other"), encoding="utf-8")
    done = run([BIN / "kernelmill", "run", "quickstart", "run.dir=runs/unknown", "tasks.root=tasks", *SHORT], scratch)
    assert done.returncode == 0, done.returncode
    assert "0 accepted, 1 rejected, 0 infrastructure" in done.stdout


def main():
    scratch = pathlib.Path(tempfile.mkdtemp(prefix="kernelmill-add-a-task-"))
    try:
        tree(scratch)
        follow_the_page(scratch)
        quickstart_beside_it(scratch)
        quickstart_with_a_task_that_its_script_does_not_know(scratch)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    print("ok")
    return 0


if __name__ == "__main__":
    sys.exit(main())
