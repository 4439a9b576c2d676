"""Trainer, server of rollouts and policy server are killed at random moments; every group is learned from once.

A trainer that learns nothing but remembers what from keeps a checkpoint on disk. After the kills it comes to the
end of its order, and then three things say the same: its checkpoint, the server's counts, and the log, which is
read here by rules of its own.

KERNELMILL_HANDOFF_KILLS says how many kills (30), KERNELMILL_HANDOFF_SEED which (1).
"""

import collections
import contextlib
import json
import os
import pathlib
import random
import signal
import subprocess
import sys
import time

from real_processes import binary, number, report, scratch_folder, source

sys.path.insert(0, str(source / "launch/learning/client"))

import kernelmill  # noqa: E402

TASK = "native/row_sum"
GROUPS_OF_AN_ORDER, GROUP_SIZE = 12, 2
LONGEST_LIFE_S = 1.5

SOLVE = 'extern "C" void solve(const float* x, float* y, int rows, int cols)'
GOOD = SOLVE + (
    " { for (int r = 0; r < rows; ++r) { double s = 0; for (int c = 0; c < cols; ++c)"
    " s += x[(long)r * cols + c]; y[r] = (float)s; } }"
)
WRONG = SOLVE + " { for (int r = 0; r < rows; ++r) y[r] = 1; }"


# -- the trainer: a process of its own --------------------------------------------------------------


class Checkpoint:
    """What a trainer has learned from, in the order of its steps; on disk before save() returns."""

    def __init__(self, path: pathlib.Path):
        self.path = path
        self.step, self.learned = -1, []
        if path.exists():
            kept = json.loads(path.read_text())
            self.step, self.learned = kept["step"], kept["learned"]

    def save(self) -> None:
        new = self.path.with_suffix(".new")
        with open(new, "w") as file:
            json.dump({"step": self.step, "learned": self.learned}, file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(new, self.path)
        folder = os.open(self.path.parent, os.O_RDONLY)
        os.fsync(folder)
        os.close(folder)


def order(client, name: str, policy: str) -> None:
    client.order(
        [TASK],
        id=name,
        groups=GROUPS_OF_AN_ORDER,
        group_size=GROUP_SIZE,
        max_turns=1,
        form="trl",
        policy={
            "kind": "sglang",
            "base_url": policy,
            "model": "m",
            "tokens": "exact",
            "first_contact_ms": 600_000,
        },  # on a busy machine a restart may take long
        sampling={"logprobs": True},
        max_ready=6,
        config={
            "retrieval": {"enabled": False},
            "evaluation": {"timing": {"enabled": False}},
            "run": {"max_infrastructure": 1.0},
        },
    )


def train(url: str, policy: str, folder: pathlib.Path) -> None:
    client = kernelmill.Client(url, patience=600)
    state = Checkpoint(folder / "checkpoint.json")
    draw = random.Random()
    while True:
        # An order after the other; the groups that were learned from say which is next.
        done = collections.Counter(x.split("/")[0] for x in state.learned)
        name = f"o{sum(1 for x in done.values() if x == GROUPS_OF_AN_ORDER)}"
        order(client, name, policy)
        stream = client.rollouts(name, groups=draw.randint(1, 3), checkpoint=None if state.step < 0 else state.step)
        for batch in stream:
            try:
                stream.ack(batch, state.step + 1)
            except kernelmill.LeaseLost:
                continue
            state.step += 1
            state.learned += [x.id for x in batch.groups]
            if draw.random() < 0.5:
                state.save()
                stream.commit(state.step)
        state.save()
        stream.commit(state.step)
        status = client.order_status(name)
        if status["groups"]["committed"] != GROUPS_OF_AN_ORDER:
            sys.exit(f"{name} is over, and not all of it was learned from: {status}")
        if (folder / "enough").exists():
            return


# -- what is killed ---------------------------------------------------------------------------------


class Place:
    def __init__(self, folder: pathlib.Path):
        self.folder = folder
        self.running = {}
        self.kills = collections.Counter()
        os.environ["XDG_CACHE_HOME"] = str(folder / "cache")
        replies = [
            {"text": f"<think>\nt\n</think>\n<KERNEL>\n```cpp\n{x}\n```\n</KERNEL>\n", **to}
            for x, to in ((WRONG, {}), (GOOD, {"task": TASK, "member": 0}))
        ]
        (folder / "script.json").write_text(
            json.dumps(
                {
                    "model": "m",
                    "kind": "sglang",
                    "latency_ms": 30,
                    "versions": [{"version": "step-0"}],
                    "replies": replies,
                }
            )
        )
        self.policy = self.serve_policy("0")
        self.url = self.serve("127.0.0.1:0")
        self.start_trainer()

    def start(self, name, words, out=subprocess.PIPE):
        with open(self.folder / f"{name}.log", "ab") as log:
            self.running[name] = subprocess.Popen(
                [str(x) for x in words],
                cwd=self.folder,
                stdout=out,
                stderr=log,
                stdin=subprocess.DEVNULL,
                text=True,
                start_new_session=True,
            )
        return self.running[name]

    def first_line(self, name):
        process = self.running[name]
        said = process.stdout.readline().strip()
        if not said:
            raise RuntimeError(f"{name} said nothing: {(self.folder / f'{name}.log').read_text()[-2000:]}")
        return said

    def serve_policy(self, port):
        self.start("policy", [binary, "policy", "scripted", "--script", "script.json", "--port", port])
        return self.first_line("policy")

    def serve(self, listen):
        self.start("server", [binary, "serve", "--backend", "cpu", "--no-timing", "--runs", "runs", "--listen", listen])
        return self.first_line("server")

    def start_trainer(self):
        self.start(
            "trainer", [sys.executable, "-B", __file__, "train", self.url, self.policy, self.folder], subprocess.DEVNULL
        )

    def kill(self, name):
        """As the out-of-memory killer does; then the server is started again."""
        process = self.running[name]
        if process.poll() is not None:
            raise RuntimeError(f"{name} ended by itself: {(self.folder / f'{name}.log').read_text()[-2000:]}")
        self.end(process)
        self.kills[name] += 1
        if name == "policy":
            self.serve_policy(self.policy.split(":")[2].split("/")[0])
        elif name == "server":
            self.serve(self.url.split("//")[1])
        else:
            self.start_trainer()

    @staticmethod
    def end(process):
        with contextlib.suppress(ProcessLookupError):
            os.kill(process.pid, signal.SIGKILL)
        process.wait()
        if process.stdout:
            process.stdout.close()

    def close(self):
        for process in self.running.values():
            self.end(process)


# -- what the log says, by rules of its own ---------------------------------------------------------


def committed_by(events) -> collections.Counter:
    """How often each group counts in what the trainers' checkpoints hold."""
    leases, learned, kept = {}, {}, collections.Counter()
    for event in events:
        if x := event.get("leased"):
            leases[x["lease"]] = (x["consumer"], x["order"])
        elif x := event.get("acked"):
            consumer, name = leases[x["lease"]]
            for group in x["groups"]:
                key = (consumer, f"{name}/g{group}")
                assert key not in learned, f"{key} is learned from twice: {event}"
                learned[key] = x["step"]
        elif x := event.get("rolled_back"):
            learned = {k: step for k, step in learned.items() if k[0] != x["consumer"] or step <= x["step"]}
    for (_, group), _ in learned.items():
        kept[group] += 1
    return kept


def check(at: Place, orders: int) -> dict:
    checkpoint = Checkpoint(at.folder / "checkpoint.json")
    client = kernelmill.Client(at.url, patience=60)
    said = json.loads(
        subprocess.run(
            [binary, "rollouts", "log", "--runs", at.folder / "runs", "--json"],
            capture_output=True,
            text=True,
            check=True,
        ).stdout
    )
    wanted = {f"o{i}/g{group}": 1 for i in range(orders) for group in range(GROUPS_OF_AN_ORDER)}
    assert collections.Counter(checkpoint.learned) == wanted, collections.Counter(checkpoint.learned)
    assert committed_by(said["events"]) == wanted
    for name, counts in said["orders"].items():
        assert counts["committed"] == GROUPS_OF_AN_ORDER == sum(counts.values()), (name, counts)
        served = client.order_status(name)
        assert served["groups"] == counts and served["over"], (served, counts)
    return {
        "groups": len(wanted),
        "events": len(said["events"]),
        "given_again": sum(len(x["leased"]["groups"]) for x in said["events"] if "leased" in x) - len(wanted),
        "steps": checkpoint.step + 1,
    }


def main() -> None:
    wanted, seed = number("KERNELMILL_HANDOFF_KILLS", 30), number("KERNELMILL_HANDOFF_SEED", 1)
    draw = random.Random(seed)
    began = time.monotonic()
    with scratch_folder("handoff") as folder:
        at = Place(folder)
        try:
            while sum(at.kills.values()) < wanted:
                time.sleep(draw.uniform(0, LONGEST_LIFE_S))
                at.kill(draw.choice(["trainer", "server", "policy"]))
            (folder / "enough").touch()
            trainer = at.running["trainer"]
            assert trainer.wait(600) == 0, (folder / "trainer.log").read_text()[-4000:]
            learned = Checkpoint(folder / "checkpoint.json").learned
            figures = check(at, len({x.split("/")[0] for x in learned}))
        finally:
            at.close()
    report(kills=wanted, **at.kills, **figures, seconds=round(time.monotonic() - began))


if __name__ == "__main__":
    if sys.argv[1:2] == ["train"]:
        train(sys.argv[2], sys.argv[3], pathlib.Path(sys.argv[4]))
    else:
        main()
