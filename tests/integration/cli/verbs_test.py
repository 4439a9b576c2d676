#!/usr/bin/env python3
"""What the verbs of a task ask for beyond right results, through `kernelmill eval`: a reformulation computes in another
way, and a diagnosis comes with evidence."""

import json
import os
import pathlib
import shutil
import subprocess
import tempfile

BIN = pathlib.Path(os.environ["KERNELMILL_BIN_DIR"])
SOURCE = pathlib.Path(os.environ["KERNELMILL_SOURCE_DIR"])
TASKS = SOURCE / "configs/tasks/native"
ANSWERS = SOURCE / "configs/policies/quickstart"


def judged(scratch, task, file, *more):
    environment = {"PATH": os.environ["PATH"], "HOME": str(scratch), "LC_ALL": "C.UTF-8"}
    command = [BIN / "kernelmill", "eval", "--task", task, "--no-timing", "--json", *more, file]
    done = subprocess.run(command, env=environment, text=True, capture_output=True, check=False, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    document = json.loads(done.stdout)
    assert document["checks"], "what was compared is told"
    return document["outcome"], document["error"]["category"]


def a_reformulation_is_held_against_its_starter(scratch):
    copy = scratch / "renamed.cpp"
    copy.write_text(
        (TASKS / "online_softmax/starter.cpp").read_text().replace("top", "largest").replace("sum", "total")
    )
    assert judged(scratch, "native/online_softmax", copy) == ("rejected", "not_reformulated")
    outcome, category = judged(scratch, "native/online_softmax", ANSWERS / "online_softmax/online.cpp")
    assert outcome == "accepted", category


def a_diagnosis_comes_with_evidence(scratch):
    folder = scratch / "tasks/native/slow_column_sum"
    shutil.copytree(TASKS / "slow_column_sum", folder)
    task = json.loads((folder / "task.json").read_text())
    task["evidence"] = [
        {"counter": "cycles", "change": "falls"},
        {"counter": "code_vector_instructions", "change": "rises", "hidden": True},
    ]
    (folder / "task.json").write_text(json.dumps(task))

    def answer(words, kernel):
        file = scratch / "answer.txt"
        code = kernel.read_text()
        file.write_text(f"<DIAGNOSIS>strided_access</DIAGNOSIS>\n{words}\n<KERNEL>\n{code}</KERNEL>\n")
        return judged(scratch, "native/slow_column_sum", file, "--completion", "--root", scratch / "tasks")

    said, fast = "<EVIDENCE>cycles falls</EVIDENCE>", ANSWERS / "slow_column_sum/fast.cpp"
    outcome, category = answer(said, fast)
    assert outcome == "accepted", category
    assert answer("<EVIDENCE>cycles rises</EVIDENCE>", fast) == ("rejected", "evidence_wrong")
    # Right words for code that did not change: what is measured says so.
    assert answer(said, TASKS / "slow_column_sum/starter.cpp") == ("rejected", "evidence_wrong")


def main():
    with tempfile.TemporaryDirectory(prefix="kernelmill-verbs-") as name:
        scratch = pathlib.Path(name)
        a_reformulation_is_held_against_its_starter(scratch)
        a_diagnosis_comes_with_evidence(scratch)


main()
