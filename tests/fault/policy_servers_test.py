#!/usr/bin/env python3
"""Policy servers come and go during a run, and no episode is lost.

A head and a node on the loopback, three scripted policy servers, a run of 60 episodes. While it runs
one server is attached, one detached, one killed with SIGKILL, the head is asked for its list, and two
new versions of the weights are declared. Then the head is killed and must attach its servers again.
Exit code 77: it cannot run here.
"""

import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time

SKIP = 77
EPISODES, TURNS = 60, 3  # most turns come behind the last thing that is done: a busy machine is late with each

here = pathlib.Path(__file__).resolve()
source = pathlib.Path(os.environ.get("KERNELMILL_SOURCE_DIR") or here.parents[2])
binary = pathlib.Path(os.environ.get("KERNELMILL_BIN_DIR") or source / "build/bin") / "kernelmill"


class Cluster:
    def __init__(self, scratch):
        self.scratch = scratch
        self.processes = {}
        self.head = ""

    def start(self, name, *words, **environment):
        """Starts a program of its own process group; what it prints goes to files."""
        out = open(self.scratch / f"{name}.out", "wb")
        log = open(self.scratch / f"{name}.log", "ab")
        process = subprocess.Popen(
            [binary, *words],
            stdout=out,
            stderr=log,
            stdin=subprocess.DEVNULL,
            cwd=self.scratch,
            start_new_session=True,
            env={**os.environ, **environment},
        )
        self.processes[name] = process
        return process

    def first_line(self, name, seconds=300):
        path = self.scratch / f"{name}.out"
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            text = path.read_text()
            if "\n" in text:
                return text.splitlines()[0]
            if self.processes[name].poll() is not None:
                break
            time.sleep(0.05)
        raise RuntimeError(f"{name} said nothing:\n{self.log(name)}")

    def log(self, name):
        path = self.scratch / f"{name}.log"
        return path.read_text(errors="replace")[-4000:] if path.exists() else ""

    def command(self, *words, code=0):
        done = subprocess.run(
            [binary, *words, "--head", self.head, "--insecure-loopback", "--json"],
            capture_output=True,
            text=True,
            cwd=self.scratch,
            timeout=300,
        )
        assert done.returncode == code, f"{words}: exit {done.returncode}\n{done.stdout}{done.stderr}"
        return json.loads(done.stdout) if done.stdout.strip() else {}

    def start_head(self, address="127.0.0.1:0", **environment):
        self.start("head", "head", "--listen", address, "--insecure-loopback", "--root", "runs", **environment)
        self.head = self.first_line("head")

    def start_policy(self, name, script):
        self.start(name, "policy", "scripted", "--script", str(script), "--port", "0")
        return self.first_line(name)

    def kill(self, name):
        self.processes[name].kill()
        self.processes[name].wait()

    def end(self):
        """In order first, then by force: nothing of ours may stay."""
        for process in self.processes.values():
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
        end = time.monotonic() + 20
        for process in self.processes.values():
            try:
                process.wait(max(0.1, end - time.monotonic()))
            except subprocess.TimeoutExpired:
                pass
        for process in self.processes.values():
            try:
                os.killpg(process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            process.wait()


def until(what, seconds, check):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        found = check()
        if found:
            return found
        time.sleep(0.1)
    raise AssertionError(f"never: {what}")


def write_files(scratch):
    kernel = source / "configs/policies/quickstart/row_sum/plain.cpp"
    script = scratch / "script.json"
    script.write_text(
        json.dumps(
            {
                "model": "scripted",
                "latency": {"kind": "uniform", "low_ms": 1000, "high_ms": 3000},
                "replies": [{"thought": "One loop over the columns.", "kernel": str(kernel)}],
            }
        )
    )
    config = scratch / "run.json"
    config.write_text(
        json.dumps(
            {
                "run": {"name": "servers"},
                "tasks": {"ids": ["native/row_sum"], "group_size": EPISODES, "max_turns": TURNS},
                "policy": {"kind": "attached", "timeout_ms": 60000},
                "retrieval": {"enabled": False},
                "profile": {"enabled": False},
                "evaluation": {"backend": "cpu", "timing": {"enabled": False}},
                "episode": {"max_live": 10, "turn_deadline_ms": 120000, "deadline_ms": 600000},
            }
        )
    )
    return script, config


def start_node(cluster):
    node = cluster.start(
        "node", "node", "--head", cluster.head, "--insecure-loopback", "evaluation.backend=cpu", "--compilers", "2"
    )
    end = time.monotonic() + 300
    while time.monotonic() < end and node.poll() is None:
        if cluster.command("status")["nodes"]:
            return
        time.sleep(0.2)
    print(f"SKIP: no node can serve here:\n{cluster.log('node')}")
    sys.exit(SKIP)


def servers(cluster):
    return {x["name"]: x for x in cluster.command("policy", "list")["servers"]}


def progress(cluster, run="servers"):
    return next(x for x in cluster.command("status")["runs"] if x["run"] == run)


def reach(cluster, turns, run="servers"):
    def check():
        now = progress(cluster, run)
        assert now["state"] == "running", f"the run ended too early: {now}"
        return now["turns"] >= turns

    until(f"{turns} turns", 240, check)


def end_of(cluster, run="servers"):
    return until(f"the end of the run {run}", 300, lambda: (x := progress(cluster, run))["state"] != "running" and x)


def play(cluster, script, config):
    urls = {name: cluster.start_policy(name, script) for name in "abc"}
    # Without a kind or a model the head asks the server.
    assert cluster.command("policy", "attach", urls["a"], "--name", "a")["model"] == "scripted"
    cluster.command("policy", "attach", urls["a"], "--name", "again", code=4)
    cluster.command("policy", "attach", urls["b"], "--name", "b", "--kind", "openai", "--model", "scripted")
    cluster.command("policy", "weights", "step-0")
    cluster.command("submit", str(config))
    reach(cluster, 15)
    cluster.command("policy", "weights", "step-1")
    reach(cluster, 30)
    cluster.command("policy", "attach", urls["c"], "--name", "c", "--kind", "openai", "--model", "scripted")
    reach(cluster, 45)
    cluster.command("policy", "detach", urls["a"])
    reach(cluster, 60)
    cluster.kill("b")
    reach(cluster, 75)
    cluster.command("policy", "weights", "step-2")
    now = end_of(cluster)
    listed = servers(cluster)
    assert "a" not in listed, f"a has drained: {listed}"
    assert listed["b"]["failed_over"] + listed["b"]["failed"] > 0, f"the kill hit no request: {listed}"
    assert listed["c"]["done"] > 0 and listed["c"]["weights"] == "step-2", listed
    return now


def check_run(now):
    assert now["state"] == "finished", now
    assert now["ended"] == EPISODES, now
    assert now["infrastructure"] == 0, now
    assert now["turns"] == EPISODES * TURNS, now


def check_traces(path):
    order = ["step-0", "step-0..step-1", "step-1", "step-1..step-2", "step-2"]
    episodes = {}
    for line in path.read_text().splitlines():
        x = json.loads(line)
        if x["kind"] == "turn":
            episodes.setdefault(x["episode"], []).append(x)
    assert len(episodes) == EPISODES, len(episodes)
    seen = {}
    for episode, turns in episodes.items():
        assert [x["turn"] for x in turns] == list(range(TURNS)), episode
        last = 0
        for turn in turns:
            assert turn["eval_result"]["outcome"] == "accepted", turn["eval_result"]
            spans = turn.get("weight_versions")
            assert spans and len(spans) == 1, f"no version: {turn.get('turn_id')}"
            assert spans[0]["start"] == 0 and spans[0]["end"] > 0, spans
            at = order.index(spans[0]["version"])
            assert at >= last, f"versions go back: {turns}"
            last = at
            seen[spans[0]["version"]] = seen.get(spans[0]["version"], 0) + 1
    print("versions, turn by turn:", seen)
    assert {"step-0", "step-1", "step-2"} <= seen.keys(), seen


def check_run_without_head(cluster, config):
    """The configuration needs a head, and the program says what to do instead."""
    done = subprocess.run(
        [binary, "run", str(config), "run.dir=alone"], capture_output=True, text=True, cwd=cluster.scratch, timeout=300
    )
    assert done.returncode == 2 and "kernelmill submit" in done.stderr, done


def check_next_head(cluster, config):
    """kill -9 of the head within a run: the next one of its root attaches the same servers again
    and goes on with the run."""
    assert (cluster.scratch / "runs/policies.json").stat().st_mode & 0o777 == 0o600
    cluster.command("submit", str(config), "run.name=second", "tasks.group_size=8", "tasks.max_turns=6")
    # No server answers there, and the next head will not have the key.
    cluster.command(
        "policy",
        "attach",
        "http://127.0.0.1:9/v1",
        "--name",
        "d",
        "--kind",
        "openai",
        "--model",
        "m",
        "--api-key-env",
        "KERNELMILL_TEST_KEY",
    )
    reach(cluster, 6, "second")
    before = cluster.head
    cluster.kill("head")
    cluster.start_head(before)
    listed = servers(cluster)
    assert sorted(listed) == ["b", "c", "d"] and listed["d"]["state"] == "unattached", listed
    cluster.command("policy", "detach", "d")
    assert sorted(servers(cluster)) == ["b", "c"]
    assert listed["c"]["weights"] == "step-2", listed
    now = end_of(cluster, "second")
    assert now["state"] == "finished" and now["ended"] == 8 and now["infrastructure"] == 0, now


def main():
    if not os.access(binary, os.X_OK):
        print(f"SKIP: {binary} is not built")
        return SKIP
    scratch = pathlib.Path(tempfile.mkdtemp(prefix="kernelmill-policies-"))
    cluster = Cluster(scratch)
    good = False
    try:
        script, config = write_files(scratch)
        cluster.start_head(KERNELMILL_TEST_KEY="some-key")
        start_node(cluster)
        now = play(cluster, script, config)
        print({key: now[key] for key in ("state", "ended", "turns", "accepted", "infrastructure", "seconds")})
        check_run(now)
        check_traces(scratch / "runs/servers/traces.jsonl")
        check_run_without_head(cluster, config)
        check_next_head(cluster, config)
        good = True
    finally:
        cluster.end()
        if not good:
            for name in cluster.processes:
                print(f"-- {name}:\n{cluster.log(name)}")
        shutil.rmtree(scratch, ignore_errors=True)
    print("ok")
    return 0


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    sys.exit(main())
