"""`kernelmill serve` while its disk is full: it judges rightly or says that it cannot, and goes on once there is space.

Build cache, temporary files and the folder of rollouts lie on one small disk. Answers that have to be built are asked
for before, while the disk is full and afterwards; an order of rollouts is given while it is full.
"""

import contextlib
import os
import subprocess
import sys

from machine_faults import Space
from real_processes import binary, policies, source

sys.path.insert(0, str(source / "launch/learning/client"))
import kernelmill  # noqa: E402
from kernelmill.client import KernelmillError  # noqa: E402

TASK = "native/row_sum"
RIGHT = {"plain": "success", "fast": "success", "wrong_tail": "wrong_result", "broken": "compile_error"}
SCRIPT = """{"model": "m", "versions": [{"version": "step-0"}], "replies": [{"thought": "a", "kernel": "%s"}]}"""


class Server:
    def __init__(self, folder, dice):
        self.folder, self.disk = folder, Space(folder, dice)
        self.wrong: list = []
        self.figures: dict = {}

    def close(self):
        self.disk.close()

    def judge(self, client, state, must):
        """Texts that no other state has seen, so that each of them is compiled."""
        seen = []
        for name, right in RIGHT.items():
            text = (policies / "row_sum" / f"{name}.cpp").read_text() + f"// {state}\n"
            try:
                verdict = client.evaluate(TASK, text).verdict or {}
            except KernelmillError as why:
                if why.status < 500 or must:
                    self.wrong.append((state, name, str(why)))
                seen.append(why.category)
                continue
            category = verdict.get("category")
            seen.append(category)
            if verdict.get("outcome") == "infrastructure":
                if verdict.get("reward") is not None or must:
                    self.wrong.append((state, name, verdict))
            elif category != right:
                self.wrong.append((state, name, verdict))
        self.figures[state] = seen

    @contextlib.contextmanager
    def policy(self):
        (self.folder / "served.json").write_text(SCRIPT % (policies / "row_sum" / "plain.cpp"))
        words = [binary, "policy", "scripted", "--script", "served.json", "--kind", "sglang"]
        with subprocess.Popen(words, cwd=self.folder, stdout=subprocess.PIPE, text=True) as server:
            try:
                yield server.stdout.readline().strip()
            finally:
                server.kill()

    def order(self, client, base_url, name):
        return client.order(
            [TASK],
            id=name,
            groups=2,
            group_size=2,
            max_turns=1,
            policy={"kind": "sglang", "base_url": base_url, "model": "m", "tokens": "exact"},
            sampling={"logprobs": True},
            config={"retrieval": {"enabled": False}, "evaluation": {"timing": {"enabled": False}}},
        )

    def take(self, client, name):
        asked = f"/v1/rollouts/batch?order={name}&consumer={name}&request=r&groups=2&wait_s=120&lease_s=600"
        return client._ask("GET", asked, extra_s=300)

    def suffer(self):
        os.environ.update(self.disk.environment, XDG_CACHE_HOME=str(self.disk.at / "cache"))
        options = ["--no-timing", "--runs", str(self.disk.at / "runs")]
        tasks = str(source / "configs/tasks")
        with (
            self.policy() as base_url,
            kernelmill.serve("cpu", program=str(binary), tasks=tasks, patience=0, options=options) as client,
        ):
            client.timeout = 300
            self.judge(client, "before", must=True)
            self.disk.strike(0)
            self.judge(client, "full", must=False)
            try:
                self.order(client, base_url, "full")
                self.figures["order"] = "taken"
            except KernelmillError as why:
                self.figures["order"] = (why.status, why.category)
                if why.status < 500:
                    self.wrong.append(("full", "order", str(why)))
            self.disk.undo(0)
            self.judge(client, "after", must=True)
            # Given once more it is the same order, or the first of its name.
            self.order(client, base_url, "full")
            groups = self.take(client, "full")["groups"]
            if [x["delivered"] for x in groups] != [2, 2]:
                self.wrong.append(("after", "order", groups))
        return self.figures
