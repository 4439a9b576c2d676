#!/usr/bin/env python3
"""Kills, freezes and cuts of a head, its nodes and a policy server; no acknowledged turn may be lost or doubled.

A head and two nodes on the loopback, with TLS; each node reaches the head through a relay. Runs are submitted one
after the other. At random the head or a node is killed with SIGKILL and started again, is frozen, or is cut off; so is
the policy server. A head that is started again continues its runs by itself. What is checked is what chaos.py checks:
after each kill of the head `kernelmill fsck` and the traces, against what the relay before the policy server saw; at
the end all of it, and the verdicts of runs that were evaluated against those of an undisturbed run.

    cluster_chaos.py [--actions N] [--seed N] [--evaluated SHARE] [--evaluated-actions N]
"""

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import time

from chaos import PATIENCE, Broken, Chaos, Traces, main
from real_processes import binary, report
from relay import Relay

ACTIONS = [
    "kill head",
    "kill head",
    "freeze head",
    "kill node",
    "freeze node",
    "cut node",
    "silence node",
    "kill server",
    "cut server",
]
NODES = ["n1", "n2"]
LONG = 8  # seconds: a node that is silent for so long is given up
OVER = {"finished", "failed", "cancelled", "incomplete"}


class ClusterChaos(Chaos):
    def __init__(self, folder, options):
        super().__init__(folder, options)
        self.environment = {**os.environ, "XDG_STATE_HOME": f"{folder}/state", "XDG_CACHE_HOME": f"{folder}/cache"}
        self.members: dict = {}
        self.wires = {name: Relay() for name in NODES}
        self.listen = "127.0.0.1:0"

    # -- processes --------------------------------------------------------------------------------

    def start(self, name: str, words: list) -> subprocess.Popen:
        with open(self.folder / f"{name}.log", "ab") as err, open(self.folder / f"{name}.out", "wb") as out:
            process = subprocess.Popen(
                [str(x) for x in words],
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                env=self.environment,
                start_new_session=True,
            )
        self.members[name] = process
        return process

    def start_head(self) -> None:
        process = self.start("head", [binary, "head", "--listen", self.listen, "--root", "runs"])
        self.await_that(
            "the head listens",
            lambda: re.search(r"127\.0\.0\.1:\d+", self.said("head")),
            lambda: process.poll() is None,
        )
        self.listen = re.search(r"127\.0\.0\.1:\d+", self.said("head"))[0]
        for wire in self.wires.values():
            wire.upstream = int(self.listen.split(":")[1])

    def start_node(self, name: str) -> None:
        self.start(
            name,
            [
                binary,
                "node",
                "--head",
                f"127.0.0.1:{self.wires[name].port}",
                "--name",
                name,
                "--compilers",
                "1",
                "evaluation.python=/bin/false",
                f"compile.cache_dir={self.folder}/cache",
            ],
        )

    def said(self, name: str) -> str:
        return (self.folder / f"{name}.out").read_text()

    def kill(self, name: str) -> None:
        """With what it started, as a machine goes; its own sandboxes end by themselves."""
        self.members[name].kill()
        self.members[name].wait()

    @contextlib.contextmanager
    def cluster(self):
        done = subprocess.run(
            [binary, "cluster", "init"], env=self.environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        try:
            self.start_head()
            for name in NODES:
                self.start_node(name)
            yield
        finally:
            for process in self.members.values():
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()

    def ask(self, *words) -> subprocess.CompletedProcess:
        return subprocess.run(
            [binary, *words, "--head", self.listen],
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=PATIENCE,
        )

    def await_that(self, what: str, holds, may_go_on=lambda: True) -> None:
        end = time.monotonic() + PATIENCE
        while not holds():
            if time.monotonic() > end or not may_go_on():
                raise Broken(f"{what}: not within {PATIENCE} s, or it has ended")
            time.sleep(0.05)

    def state_of(self, name: str) -> str:
        """Of a run; empty while the head cannot be asked. One that had ended before the head was killed is in no list
        of the new one."""
        done = self.ask("status", "--json")
        if done.returncode != 0:
            return ""
        known = next((x["state"] for x in json.loads(done.stdout)["runs"] if x["run"] == name), "")
        return known or self.state_on_disk(name)

    def state_on_disk(self, name: str) -> str:
        done = subprocess.run(
            [binary, "runs", "--root", "runs", "--json"],
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=PATIENCE,
        )
        found = (
            next((x["state"] for x in json.loads(done.stdout)["runs"] if x["run"] == name), "")
            if done.returncode == 0
            else ""
        )
        return found if found == "finished" else ""

    # -- one run ----------------------------------------------------------------------------------

    def live(self, name: str, evaluated: bool) -> None:
        folder = f"runs/{name}"
        traces = Traces(self.folder / folder / "traces.jsonl")
        self.relay.asked.clear()
        with self.server("script.json" if evaluated else "words-script.json") as server:
            done = self.ask(
                "submit",
                "run.json" if evaluated else "words.json",
                f"run.name={name}",
                "policy.kind=openai",
                f"policy.base_url=http://127.0.0.1:{self.relay.port}/v1",
            )
            if done.returncode != 0:
                raise Broken(f"{name} was refused: {done.stderr[-2000:]}")
            self.disturb_cluster(name, traces, server, evaluated)
            # In order: a head that ends has written all that it knows.
            self.members["head"].terminate()
            if self.members["head"].wait(PATIENCE) != 0:
                raise Broken(f"the head ended with {self.members['head'].returncode}")
        self.check(folder, traces)
        self.check_end(folder, traces, evaluated)
        self.start_head()

    def disturb_cluster(self, name: str, traces: Traces, server, evaluated: bool) -> None:
        end = time.monotonic() + PATIENCE
        while True:
            state = self.state_of(name)
            if state in OVER:
                if state == "finished":
                    return
                self.told[f"was {state}"] += 1
                if (done := self.ask("resume", name)).returncode != 0:
                    raise Broken(f"{name} has {state} and is not resumed: {done.stderr[-2000:]}")
            if time.monotonic() > end:
                raise Broken(f"{name} does not finish")
            if not self.is_wanted(evaluated):
                time.sleep(0.2)
                continue
            time.sleep(self.dice.uniform(0.005, 0.5))
            what = self.dice.choice(ACTIONS)
            self.struck[what] += 1
            self.struck_evaluated += evaluated
            end = time.monotonic() + PATIENCE
            if what == "kill head":
                self.kill("head")
                self.check(f"runs/{name}", traces)
                self.start_head()
            else:
                self.strike_cluster(what, server)

    def strike_cluster(self, what: str, server) -> None:
        pause = LONG if self.dice.random() < 0.03 else self.dice.uniform(0.02, 0.4)
        node = self.dice.choice(NODES)
        wire = self.wires[node]
        if what == "kill node":
            self.kill(node)
            time.sleep(pause)
            self.start_node(node)
        elif what.startswith("freeze"):
            pid = self.members["head" if what == "freeze head" else node].pid
            os.kill(pid, signal.SIGSTOP)
            time.sleep(pause)
            os.kill(pid, signal.SIGCONT)
        elif what == "cut node":
            wire.cut()
            time.sleep(pause)
            wire.heal()
        elif what == "silence node":
            wire.silence()
            time.sleep(pause)
            wire.speak()
        else:
            self.strike("kill server" if what == "kill server" else "cut", None, server)

    # -- all of it --------------------------------------------------------------------------------

    def storm(self) -> None:
        begin, runs = time.monotonic(), 0
        broken = ""
        while self.is_wanted(True) and not broken:
            try:
                self.live(f"run{runs}", self.dice.random() < self.evaluated)
                runs += 1
            except Broken as why:
                broken = str(why)
            if runs % 20 == 0:
                print(f"{self.struck.total()} actions, {runs} runs, {time.monotonic() - begin:.0f} s", flush=True)
        self.print_table(ACTIONS, begin)
        report(
            actions=self.struck.total(),
            runs=runs,
            turns=self.told["turns"],
            checks=self.told["checks"],
            kills=self.struck["kill head"] + self.struck["kill node"] + self.struck["kill server"],
            heads=self.struck["kill head"],
            nodes=self.struck["kill node"],
            evaluated_runs=self.told["evaluated"],
            evaluated_actions=self.struck_evaluated,
            broken=bool(broken),
        )
        if broken:
            raise Broken(f"{broken}\nrepeat about the same with --seed {self.seed}")


def strike_cluster(folder, options) -> None:
    chaos = ClusterChaos(folder, options)
    chaos.prepare()
    with chaos.cluster():
        chaos.storm()


if __name__ == "__main__":
    sys.exit(main(strike_cluster, actions=16, evaluated=0.5))
