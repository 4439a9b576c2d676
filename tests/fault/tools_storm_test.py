#!/usr/bin/env python3
"""The test runs a hundred episodes of mode `tools` over all native tasks, and kills the program in the middle of calls.

An agent behind a server of OpenAI's form works on each task: one member of a group uses every tool, the others make
changes, mistakes and idle answers, or use their steps up. The run is killed with SIGKILL at random moments and resumed.
It must then be what an undisturbed run is: the same calls with the same arguments, the same graph of candidates, the
same budgets and ends. What depends on clocks is left out. $KERNELMILL_EPISODES says how many episodes (100 without
it), $KERNELMILL_KILLS how many kills (6). Exit code 77: it cannot run here.
"""

import collections
import difflib
import http.server
import json
import random
import re
import subprocess
import sys
import threading
import time

from real_processes import SKIP, binary, lines_of, number, report, scratch_folder, source, started

TOOLS = source / "docs/reference/tools.md"
ANSWERS = source / "configs/policies/quickstart"
STEPS = 40
MOST_CALLS = 32  # of one answer
# Whether these pass depends on clocks.
CLOCKED = {"bench", "promote", "profile", "replay"}


def call(tool, /, **arguments):
    return tool, json.dumps(arguments)


class Task:
    """What the agent writes for a task: the baseline, and the same with a kernel that does nothing."""

    def __init__(self, folder):
        about = json.loads((folder / "task.json").read_text())
        self.id = about["id"]
        self.diagnosis = about.get("diagnosis")
        self.first = 1 if (folder / "starter.cpp").exists() else 0  # the number of the agent's first candidate
        right = folder / "baseline.cpp"
        if about["verb"] == "reformulate":  # the baseline may be what is to be reformulated
            right = ANSWERS / folder.name / "online.cpp"
        self.right = right.read_text()
        self.wrong = re.sub(r"(void solve\([^)]*\)\s*\{\n)", r"\1  return;\n", self.right, count=1)
        assert self.wrong != self.right, self.id

    def name(self, of):
        return f"c{self.first + of}"

    def diff(self):
        lines = (x.splitlines(keepends=True) for x in (self.right, self.wrong))
        return "".join(difflib.unified_diff(*lines, "a/candidate", "b/candidate"))

    def mended(self):
        """Takes the early return away again."""
        before = self.wrong[: self.wrong.index("  return;\n")].splitlines()[-1]
        return f"<<<<<<< SEARCH\n{before}\n  return;\n=======\n{before}\n>>>>>>> REPLACE\n"

    def submit(self):
        return call("submit", confirm=True, **({"diagnosis": self.diagnosis} if self.diagnosis else {}))


def every_tool(x):
    return [
        [
            call("task_show"),
            call("knowledge_query", query="sum"),
            call("write_candidate", source=x.right),
            call("build"),
        ],
        [
            call("patch_candidate", patch=x.diff(), summary="does nothing"),
            call("eval"),
            call("note_strategy", name="nothing", state="failed", note="it has to work"),
            call("inspect", section="history"),
        ],
        [call("test_patch", patch=x.mended(), measure="eval"), call("branch", summary="apart"), call("run")],
        [("fly", "{}"), ("eval", '{"candidate": 7}'), ("inspect", '{"section": "sou'), call("eval", candidate="c99")],
        [call("revert", candidate=x.name(2)), call("bench"), call("promote")],
        [call("profile"), call("sanitize"), call("compare", left=x.name(1)), call("replay")],
        [x.submit(), call("build")],
    ]


def mistakes(x):
    return [
        [call("write_candidate", source=x.right), call("eval")],
        [],
        [
            call("patch_candidate", patch=x.diff()),
            call("run"),
            call("patch_candidate", patch=x.diff()),
            call("revert", candidate=x.name(0)),
        ],
        [x.submit()],
    ]


def repair(x):
    return [
        [call("write_candidate", source=x.wrong), call("eval")],
        [call("test_patch", patch=x.mended(), measure="eval", summary="it works")],
        [x.submit()],
    ]


def waste(x):
    """Never hands anything in."""
    look = call("inspect", section="source", lines=3)
    return [
        [call("write_candidate", source=x.right), *[look] * 15],
        [look] * (MOST_CALLS + 40),
        [call("branch"), *[look] * 3],
        [call("build")],
        [look],
    ]


LIVES = [every_tool, mistakes, repair, waste]


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 1024

    def __init__(self, tasks):
        super().__init__(("127.0.0.1", 0), Agent)
        self.lives = {(x.id, n): life(x) for x in tasks for n, life in enumerate(LIVES)}
        self.asked = collections.Counter()
        self.lock = threading.Lock()


class Agent(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def handle(self):
        try:
            super().handle()
        except ConnectionError:
            pass  # the program was killed

    def say(self, answer):
        body = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        self.say({"object": "list", "data": [{"id": "agent", "object": "model"}]})

    def do_POST(self):
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        said = request["messages"]
        session = self.headers.get("X-Session-ID", "")
        turn = sum(x["role"] == "assistant" for x in said)
        task = re.search(r"\[task: *([^\]]+?) *\]", next(x["content"] for x in said if x["role"] == "user"))
        member = re.search(r"\.e(\d+)$", session)
        if task is None or member is None:
            return self.say({"choices": [{"index": 0, "message": {"content": "ready"}, "finish_reason": "stop"}]})
        with self.server.lock:
            self.server.asked[session, turn] += 1
        self.say(self.turn_of(self.server.lives[task[1], int(member[1]) % len(LIVES)], turn))

    @staticmethod
    def turn_of(life, turn):
        calls = [
            {"id": f"call-{turn}-{n}", "type": "function", "function": {"name": name, "arguments": arguments}}
            for n, (name, arguments) in enumerate(life[min(turn, len(life) - 1)])
        ]
        message = {"role": "assistant", "content": f"Turn {turn}." if turn % 2 or not calls else None}
        if calls:
            message["tool_calls"] = calls
        choice = {"index": 0, "message": message, "finish_reason": "tool_calls" if calls else "stop"}
        return {"id": "x", "object": "chat.completion", "model": "agent", "choices": [choice]}


def configuration(folder, tasks, size, url):
    (folder / "run.json").write_text(
        json.dumps(
            {
                "run": {"name": "tools"},
                "tasks": {"ids": [x.id for x in tasks], "group_size": size},
                "policy": {"kind": "openai", "base_url": url, "model": "agent", "stream": False, "timeout_ms": 120000},
                "retrieval": {"enabled": False},
                "episode": {"mode": "tools"},
                "tools": {"steps": STEPS, "half_width": 0.5},
                "evaluation": {"backend": "cpu", "timing": {"half_width": 0.5, "widest": 1000}},
            }
        )
    )


def records_of(folder, name):
    lines = lines_of(folder / name / "traces.jsonl")
    turns = {(x["group"], x["member"], x["turn"]): x for x in lines if x["kind"] == "turn"}
    ends = {(x["group"], x["member"]): x for x in lines if x["kind"] == "episode"}
    count = sum(x["kind"] == "turn" for x in lines)
    assert count == len(turns), f"{count} lines of {len(turns)} turns"
    return turns, ends


def essence(turn):
    """All of a turn that does not depend on a clock."""
    facts = ("id", "tool", "arguments", "input", "output", "hidden", "measured")
    calls = []
    for x in turn["calls"]:
        one = [x.get(k) for k in facts]
        if x["tool"] not in CLOCKED:
            one += [x["status"], x["transition"], x["steps"]]
        calls.append(one)
    nodes = [[x[k] for k in x if k != "source"] for x in turn["candidates"]]
    idle = turn["idle_steps"]
    return calls, nodes, turn["strategies"], turn["active"], idle, turn.get("stop_condition"), turn["calls_as_text"]


def check_budgets(turns, ends):
    """An episode's figures are sums over its calls, no candidate is made twice, and no turn is missing."""
    for episode, end in ends.items():
        own = [turns[at] for at in sorted(turns) if at[:2] == episode]
        assert [x["turn"] for x in own] == list(range(end["state"]["turn_idx"])), episode
        calls = [x for turn in own for x in turn["calls"]]
        steps = sum(x["steps"] for x in calls) + sum(x["idle_steps"] for x in own)
        assert steps == end["steps"] <= STEPS, (episode, steps, end["steps"])
        seconds = sum(x["gpu_seconds"] for x in calls)
        assert abs(seconds - end["gpu_seconds"]) < 1e-9, (episode, seconds, end["gpu_seconds"])
        made = [x["id"] for turn in own for x in turn["candidates"]]
        assert made == [f"c{n}" for n in range(len(made))], (episode, made)
        ids = [x["id"] for x in calls]
        assert len(ids) == len(set(ids)), episode
        submits = [x for x in calls if x["tool"] == "submit" and x.get("measured")]
        assert len(submits) == (end["stop_condition"] == "submitted"), episode
        for turn in own:
            assert all(x["observation"] for x in turn["calls"]), (episode, turn["turn"])


def wait_for(process, traces, wanted):
    """Until so many turns are written, or the program has ended."""
    while process.poll() is None:
        if traces.exists() and traces.read_bytes().count(b'"kind":"turn"') >= wanted:
            return True
        time.sleep(0.02)
    return False


def storm(folder, turns, kills):
    """The program is killed until it has ended; returns how often."""
    words, done = [binary, "run", "run.json", "run.dir=rough"], 0
    dice = random.Random(7)
    for n in range(kills):
        wanted = turns * n // kills + 1
        with started(words, folder, folder / "rough.log") as process:
            words = [binary, "resume", "rough"]
            if not wait_for(process, folder / "rough/traces.jsonl", wanted):
                continue
            time.sleep(dice.uniform(0, 0.4))
            if process.poll() is None:
                process.kill()
                process.wait()
                done += 1
    subprocess.run([binary, "resume", "rough"], cwd=folder, check=True, capture_output=True)
    return done


def main():
    tasks = [Task(x.parent) for x in sorted((source / "configs/tasks/native").glob("*/task.json"))]
    size = -(-number("KERNELMILL_EPISODES", 100) // len(tasks))
    server = Server(tasks)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_port}/v1"
    begun = time.monotonic()
    with scratch_folder("tools-storm") as folder:
        configuration(folder, tasks, size, url)
        calm = subprocess.run(
            [binary, "run", "run.json", "run.dir=calm"], cwd=folder, capture_output=True, text=True, check=False
        )
        if "cannot be sandboxed" in calm.stderr:
            sys.exit(SKIP)
        assert calm.returncode == 0, calm.stderr[-4000:]
        middle = time.monotonic()
        turns, ends = records_of(folder, "calm")
        check_budgets(turns, ends)
        assert len(ends) == size * len(tasks), len(ends)
        asked = sum(server.asked.values())
        assert asked == len(turns), (asked, len(turns))

        used = {(x["task"], y["tool"]) for x in turns.values() for y in x["calls"] if y["status"] != "refused"}
        known = set(re.findall(r"^\| `(\w+)`", TOOLS.read_text(), re.M))
        missing = {(x.id, tool) for x in tasks for tool in known} - used
        assert not {x for x in missing if x[1] not in CLOCKED}, missing
        states = collections.Counter(x["terminal_state"] for x in ends.values())

        kills = storm(folder, len(turns), number("KERNELMILL_KILLS", 6))
        rough, rough_ends = records_of(folder, "rough")
        check_budgets(rough, rough_ends)
        assert rough.keys() == turns.keys(), rough.keys() ^ turns.keys()
        for at in turns:
            assert essence(rough[at]) == essence(turns[at]), (at, essence(rough[at]), essence(turns[at]))
        for at, end in ends.items():
            assert rough_ends[at]["terminal_state"] == end["terminal_state"], at
            assert rough_ends[at]["outcome"] == end["outcome"], at
            assert rough_ends[at]["stop_condition"] == end["stop_condition"], at
        again = sum(server.asked.values()) - asked - len(rough)
        assert kills > 0 and again > 0, (kills, again)  # turns were cut off, and asked for once more
        subprocess.run([binary, "fsck", "rough"], cwd=folder, check=True, capture_output=True)
        report(
            episodes=len(ends),
            turns=len(turns),
            calls=sum(len(x["calls"]) for x in turns.values()),
            states=dict(states),
            kills=kills,
            asked_again=again,
            calm_seconds=round(middle - begun, 1),
            rough_seconds=round(time.monotonic() - middle, 1),
        )
    server.shutdown()


if __name__ == "__main__":
    main()
