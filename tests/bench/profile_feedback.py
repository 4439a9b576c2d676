"""What profile.feedback brings: a scripted policy that chooses among strategies, told of the profile or not.

    python3 tests/bench/profile_feedback.py --kernelmill build/bin/kernelmill [--backend cuda] [--groups 8] [--out DIR]

Each episode begins with a kernel that is right and has two flaws. A turn is one strategy: it mends the flaw that it is
made for, or nothing. With `none` the policy tries strategies in a random order. With `card` it takes the one that
MEANT_FOR names for what the feedback says limits the kernel, and a random one where that says nothing new; with
`numbers` it does the same and looks into the numbers where the card names nothing that is left to try. What is learnt
is so an upper end: a policy that believes the card, and knows what to do about it. Of each turn the best speedup so far
is kept (0 without a right kernel), and the turn by which both flaws are mended. Printed are n, means and 95 % intervals
over episodes.
"""

from __future__ import annotations

import argparse
import http.server
import json
import math
import pathlib
import random
import re
import statistics
import subprocess
import sys
import tempfile
import threading

MODES = ("none", "card", "numbers")
TURNS = 4
# What a card says, and the strategy that is made for it; written before anything was measured.
MEANT_FOR = {
    "latency": "independent_work",
    "launch_overhead": "fewer_threads",
    "tail": "more_blocks",
    "occupancy": "less_shared",
    "register_spills": "fewer_values",
    "memory_bandwidth": "fewer_bytes",
    "compute": "fewer_operations",
}
STRATEGIES = {
    "cpu": ("independent_work", "fewer_threads", "fewer_bytes", "fewer_operations"),
    "cuda": ("more_blocks", "less_shared", "fewer_values", "independent_work", "fewer_bytes"),
}
FLAWS = {"cpu": ("independent_work", "fewer_threads"), "cuda": ("more_blocks", "less_shared", "fewer_values")}
TASKS = {"cpu": ("native/row_sum", "native/softmax"), "cuda": ("native/row_sum",)}


# -- kernels: `left` holds the strategies whose flaw is still there ----------------------------------------------------


def rows_on_cpu(task: str, left: set[str]) -> str:
    """One function of a row for each task. A chain of additions in which each waits for the last,
    or sixteen beside each other."""
    add = 'asm volatile("" : "+x"(s));' if "independent_work" in left else ""
    total = f"""template <class F> static float total(int n, F f) {{
  {
        "float s = 0; for (int j = 0; j < n; ++j) { s += f(j); " + add + " } return s;"
        if add
        else "float s[16] = {}; int j = 0; for (; j + 16 <= n; j += 16) for (int k = 0; k < 16; ++k) s[k] += f(j + k); "
        "for (; j < n; ++j) s[0] += f(j); float t = 0; for (float v : s) t += v; return t;"
    }
}}
"""
    bodies = {
        "native/row_sum": (
            "const float* x, float* y, int rows, int cols",
            "x, y, cols",
            "y[r] = total(cols, [&](int j) { return x[long(r) * cols + j]; });",
        ),
        "native/softmax": (
            "const float* x, float* y, int rows, int cols",
            "x, y, cols",
            "const float* a = x + long(r) * cols; float* b = y + long(r) * cols; float m = a[0];\n"
            "    for (int j = 1; j < cols; ++j) m = a[j] > m ? a[j] : m;\n"
            "    for (int j = 0; j < cols; ++j) b[j] = std::exp(a[j] - m);\n"
            "    float s = 1 / total(cols, [&](int j) { return b[j]; });\n"
            "    for (int j = 0; j < cols; ++j) b[j] *= s;",
        ),
    }
    parameters, caught, row = bodies[task]
    one = f"static void one(int r, {parameters}) {{\n    (void)rows; {row}\n}}\n"
    names = ", ".join(re.findall(r"(\w+)(?:,|$)", parameters))
    if "fewer_threads" in left:  # a thread for each few rows, and one that waits for it
        loop = (
            "for (int from = 0; from < rows; from += 16)\n"
            f"    std::thread([=] {{ for (int r = from; r < rows && r < from + 16; ++r) "
            f"one(r, {names}); }}).join();"
        )
    else:
        loop = f"for (int r = 0; r < rows; ++r) one(r, {names});"
    return f'#include <cmath>\n#include <thread>\n{total}{one}extern "C" void solve({parameters}) {{\n  {loop}\n}}\n'


def row_sum_on_gpu(left: set[str]) -> str:
    grid = "8" if "more_blocks" in left else "rows"
    shared = "160000" if "less_shared" in left else "0"
    bounds = "__launch_bounds__(256, 8) " if "fewer_values" in left else ""
    inner = (
        """for (int j = threadIdx.x; j < cols; j += 256 * 48) {
      float v[48];
#pragma unroll
      for (int k = 0; k < 48; ++k) v[k] = j + 256 * k < cols ? x[long(row) * cols + j + 256 * k] : 0;
#pragma unroll
      for (int k = 0; k < 48; ++k) asm volatile("" : "+f"(v[k]));
#pragma unroll
      for (int k = 0; k < 48; ++k) s += v[k];
    }"""
        if "fewer_values" in left
        else "for (int j = threadIdx.x; j < cols; j += 256) s += x[long(row) * cols + j];"
    )
    return f"""// launch: sums<<<{grid}, 256, {shared}>>>(x, y, rows, cols)
extern "C" __global__ void {bounds}sums(const float* x, float* y, int rows, int cols) {{
  extern __shared__ float unused[];
  __shared__ float part[8];
  for (int row = blockIdx.x; row < rows; row += gridDim.x) {{
    float s = 0;
    {inner}
    for (int k = 16; k > 0; k /= 2) s += __shfl_down_sync(~0u, s, k);
    if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = s;
    __syncthreads();
    if (threadIdx.x == 0) {{
      float t = 0;
      for (int k = 0; k < 8; ++k) t += part[k];
      y[row] = t;
    }}
    __syncthreads();
  }}
}}
"""


# -- the policy --------------------------------------------------------------------------------------------------------


def choose(backend: str, feedback: str, tried: list[str], rng: random.Random, told: bool) -> tuple[str, bool]:
    """The next strategy, and whether the profile named it."""
    rest = [x for x in STRATEGIES[backend] if x not in tried]
    named = re.search(r"^Profile: limited by (\w+)", feedback, re.M)
    wanted = MEANT_FOR.get(named.group(1)) if named and told else None
    if wanted in rest:
        return wanted, True
    numbers = (
        dict(re.findall(r"(\w+) ([\d.e+-]+)", (re.search(r"^Profile numbers: (.*)", feedback, re.M) or [""])[0]))
        if told
        else {}
    )
    if float(numbers.get("voluntary_switches", 0)) > 4 and "fewer_threads" in rest:
        return "fewer_threads", True
    return rng.choice(rest), False


class Policy(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    backend, mode = "cpu", "none"

    def log_message(self, *_):
        pass

    def answer(self, document):
        body = json.dumps(document).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        self.answer({"object": "list", "data": [{"id": "bandit", "object": "model"}]})

    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        messages = asked["messages"]
        mine = [
            json.loads(re.search(r"state: (.*)", x["content"]).group(1)) for x in messages if x["role"] == "assistant"
        ]
        rng = random.Random(asked.get("seed", 0))
        if not mine:
            task = next(x for x in TASKS[self.backend] if task_is(x, messages))
            flaws = rng.sample(FLAWS[self.backend], 2)
            state = {"task": task, "left": flaws, "tried": [], "by_profile": []}
        else:
            state = mine[-1]
            what, by_profile = choose(self.backend, messages[-1]["content"], state["tried"], rng, self.mode != "none")
            state["left"] = [x for x in state["left"] if x != what]
            state["tried"].append(what)
            state["by_profile"].append(by_profile)
        left = set(state["left"])
        source = rows_on_cpu(state["task"], left) if self.backend == "cpu" else row_sum_on_gpu(left)
        text = f"<think>\nstate: {json.dumps(state)}\n</think>\n<KERNEL>\n```cpp\n{source}```\n</KERNEL>"
        self.answer(
            {
                "id": "x",
                "object": "chat.completion",
                "model": "bandit",
                "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": text}}],
                "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
            }
        )


def task_is(task: str, messages) -> bool:
    titles = {"native/row_sum": "sum each row of a matrix", "native/softmax": "compute the softmax"}
    return titles[task] in messages[1]["content"].lower()


# -- runs --------------------------------------------------------------------------------------------------------------


def configuration(backend: str, mode: str, groups: int, address: str, out: pathlib.Path) -> dict:
    contract = "native" if backend == "cpu" else "device"
    return {
        "run": {"name": f"feedback-{mode}", "seed": 7},
        "tasks": {"ids": list(TASKS[backend]), "groups": groups, "group_size": 4, "max_turns": TURNS},
        "policy": {
            "kind": "openai",
            "base_url": address,
            "model": "bandit",
            "sampling": {"temperature": 1.0, "max_tokens": 4096, "seed": 1},
        },
        "retrieval": {"enabled": False},
        "evaluation": {"backend": backend, "contract": contract},
        "profile": {"feedback": mode},
    }


def turns_of(run: pathlib.Path):
    episodes: dict = {}
    for line in (run / "traces.jsonl").read_text().splitlines():
        x = json.loads(line)
        if x.get("kind") == "turn":
            episodes.setdefault((x["task"], x["group"], x["member"]), {})[x["turn"]] = x
    return episodes


def interval(values):
    mean = statistics.fmean(values)
    half = 1.96 * statistics.stdev(values) / math.sqrt(len(values)) if len(values) > 1 else float("nan")
    return f"{mean:.3f} [{mean - half:.3f}, {mean + half:.3f}]"


def rows_of(run: pathlib.Path):
    """Of each whole episode: best speedup by turn, reward by turn, the turn by which no flaw is left,
    choices by the profile."""
    result = []
    for turns in turns_of(run).values():
        if sorted(turns) != list(range(TURNS)):
            continue
        best, speedups, rewards, mended, by_profile = 0.0, [], [], TURNS, 0
        for number in range(TURNS):
            x = turns[number]
            state = json.loads(re.search(r"state: (.*)", x["response"]["raw"]).group(1))
            speedup = (x["eval_result"].get("speedup") or {}).get("estimate") or 0.0
            best = max(best, speedup)
            speedups.append(best)
            rewards.append(x["reward"])
            by_profile = sum(state["by_profile"])
            if not state["left"]:
                mended = min(mended, number)
        result.append({"speedups": speedups, "rewards": rewards, "mended": mended, "by_profile": by_profile})
    return result


def main(arguments) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kernelmill", type=pathlib.Path, required=True)
    parser.add_argument("--backend", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--groups", type=int, default=8, help="of four episodes, for each task and mode")
    parser.add_argument("--out", type=pathlib.Path)
    given = parser.parse_args(arguments)
    out = given.out or pathlib.Path(tempfile.mkdtemp(prefix="profile-feedback-"))
    out.mkdir(parents=True, exist_ok=True)
    Policy.backend = given.backend
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Policy)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    found = {}
    for mode in MODES:
        Policy.mode = mode
        config = out / f"{mode}.json"
        config.write_text(
            json.dumps(
                configuration(given.backend, mode, given.groups, f"http://127.0.0.1:{server.server_port}/v1", out),
                indent=1,
            )
        )
        run = out / f"run-{mode}"
        done = subprocess.run([given.kernelmill, "run", config, f"run.dir={run}"], capture_output=True, text=True)
        if done.returncode != 0:
            print(f"{mode}: exit {done.returncode}: {done.stderr[-800:]}", file=sys.stderr)
        found[mode] = rows_of(run)
    server.shutdown()
    print(
        f"{given.backend}, tasks {', '.join(TASKS[given.backend])}; best speedup by turn (from 0), "
        "means and 95 % intervals over episodes"
    )
    for mode, rows in found.items():
        if not rows:
            print(f"{mode:8} no whole episode")
            continue
        print(
            f"{mode:8} n {len(rows)}; "
            + "; ".join(f"turn {t}: {interval([x['speedups'][t] for x in rows])}" for t in range(1, TURNS))
        )
        print(
            f"{'':8} turn by which both flaws are mended (never: {TURNS}): {interval([x['mended'] for x in rows])}; "
            f"choices by the profile {sum(x['by_profile'] for x in rows)} of {len(rows) * (TURNS - 1)}"
        )
    return 0 if all(found.values()) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
