#!/usr/bin/env python3
"""By hand, for minutes or hours: runs one after another beside one server of evaluations, and what they leave behind.

    python3 -B tests/fault/soak.py --minutes 60

Each round is a run of its own and four evaluations of the server. Between rounds nothing of a run may be left: no
process, no control group, no file in /dev/shm or TMPDIR. The server's memory, descriptors and processes may not grow
from its tenth minute on (or the second half of a shorter soak). Prints a line a minute and the figures at the end;
exit code 1: something was left or grew.
"""

import argparse
import collections
import os
import pathlib
import subprocess
import sys
import time

from machine_faults_test import NATIVE, Workload
from real_processes import binary, descendants, lines_of, policies, report, resident_kib, scratch_folder, source

sys.path.insert(0, str(source / "launch/learning/client"))
import kernelmill  # noqa: E402

ANSWERS = ("plain.cpp", "fast.cpp", "wrong_tail.cpp", "broken.cpp")
GROWTH_KIB = 32 << 10


def names_in(*folders):
    return {str(x) for folder in folders if folder.is_dir() for x in folder.iterdir()}


def groups():
    return {str(x) for x in pathlib.Path("/sys/fs/cgroup").rglob("kernelmill-*-*")}


def of(pids, group):
    return group.rsplit("/", 1)[1].split("-")[1] in {str(x) for x in pids}


class Soak:
    def __init__(self, folder, server):
        self.folder, self.server = folder, server
        self.work = Workload("native", NATIVE, members=4, turns=5, groups=1)
        self.work.write(folder)
        self.left: set = set()
        self.samples: list = []
        self.kinds: collections.Counter = collections.Counter()
        self.peak: collections.Counter = collections.Counter()
        self.rounds = 0

    def run(self):
        name = f"run{self.rounds}"
        # A cache of its own for each tenth, so that compilers have work too.
        cache = f"compile.cache_dir=cache{self.rounds // 10}"
        words = [binary, "run", "native.json", f"run.dir={name}", cache]
        ours, shm, before = {os.getpid()}, names_in(pathlib.Path("/dev/shm")), groups()
        with open(self.folder / f"{name}.log", "wb") as log:
            node = subprocess.Popen(words, cwd=self.folder, stdout=log, stderr=log)
            while True:
                try:
                    node.wait(0.5)
                    break
                except subprocess.TimeoutExpired:
                    self.look(node.pid)
                    ours |= set(descendants(node.pid))
        assert node.returncode == 0, (self.folder / f"{name}.log").read_text()[-2000:]
        ours.add(node.pid)
        for x in lines_of(self.folder / name / "metrics.jsonl"):
            if x["kind"] == "turn":
                self.kinds[x["category"]] += 1
        self.left |= {f"process {x}" for x in ours - {os.getpid()} if pathlib.Path(f"/proc/{x}").exists()}
        self.left |= {x for x in groups() - before if of(ours, x)}
        self.left |= {x for x in names_in(pathlib.Path("/dev/shm")) - shm if "kernelmill-turns" not in x}
        self.left |= names_in(self.folder / "tmp")
        self.rounds += 1

    def look(self, pid):
        try:
            self.peak["run_kib"] = max(self.peak["run_kib"], resident_kib(pid))
            self.peak["run_descriptors"] = max(self.peak["run_descriptors"], len(os.listdir(f"/proc/{pid}/fd")))
        except OSError:
            pass  # it has just ended

    def ask(self, client):
        for name in ANSWERS:
            text = (policies / "row_sum" / name).read_text()
            self.kinds[f"served {client.evaluate('native/row_sum', text).verdict['category']}"] += 1

    def sample(self, seconds):
        pid = self.server
        self.samples.append(
            {
                "minute": round(seconds / 60, 1),
                "rounds": self.rounds,
                "serve_kib": resident_kib(pid),
                "serve_descriptors": len(os.listdir(f"/proc/{pid}/fd")),
                "serve_processes": len(descendants(pid)),
                "left": len(self.left),
                **self.peak,
            }
        )
        print(self.samples[-1], flush=True)

    def grown(self):
        """Of the server, between the first samples of those that count and the last ones."""
        settled = [x for x in self.samples if x["minute"] >= min(10, self.samples[-1]["minute"] / 2)]
        third = max(1, len(settled) // 3)
        result = {}
        for key, slack in (("serve_kib", GROWTH_KIB), ("serve_descriptors", 8), ("serve_processes", 8)):
            before = max(x[key] for x in settled[:third])
            growth = max(x[key] for x in settled[-third:]) - before
            if growth > slack:
                result[key] = growth
        return result


def server_of(parent):
    return next(pid for pid, name in descendants(parent).items() if name == "kernelmill")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=60)
    wanted = parser.parse_args().minutes * 60
    with scratch_folder("soak") as folder:
        folder.chmod(0o755)
        temporary = folder / "tmp"
        temporary.mkdir(mode=0o777)
        with kernelmill.serve(
            "cpu", program=str(binary), tasks=str(source / "configs/tasks"), options=["--no-timing"]
        ) as client:
            os.environ["TMPDIR"] = str(temporary)
            soak = Soak(folder, server_of(os.getpid()))
            started = last = time.monotonic()
            while (now := time.monotonic()) - started < wanted:
                soak.run()
                soak.ask(client)
                if now - last >= 60 or soak.rounds == 1:
                    soak.sample(now - started)
                    last = now
            soak.sample(time.monotonic() - started)
        grown = soak.grown()
        report(rounds=soak.rounds, of=dict(soak.kinds), **soak.peak, grown=grown, left=sorted(soak.left)[:20])
    return 1 if grown or soak.left else 0


if __name__ == "__main__":
    sys.exit(main())
