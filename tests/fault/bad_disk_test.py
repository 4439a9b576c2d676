#!/usr/bin/env python3
"""Disks that are full, have no inodes left, fail or become read-only in the middle of a run.

Each run must end by itself with the documented exit code and a next step. Then the disk is mended and the run is
resumed: it finishes, what was acknowledged before is there as it was, and no turn is there twice. The policy's next
question acknowledges a turn, and so does its line in metrics.jsonl. As root small disks are real (tmpfs); write and
sync errors come from a library below LMDB ($KERNELMILL_BAD_DISK_LIBRARY). Exit code 77: it cannot run here.
"""

import contextlib
import json
import os
import pathlib
import subprocess
import sys

from real_processes import SKIP, binary, lines_of, policies, report, scratch_folder

TASKS, MEMBERS, TURNS = ["row_sum", "gelu"], 4, 4
FULL, FAILED, DENIED = 75, 1, 77  # docs/reference/exit-codes.md
SHIM = pathlib.Path(
    os.environ.get("KERNELMILL_BAD_DISK_LIBRARY") or pathlib.Path(binary).parents[1] / "tests/libbad_disk.so"
)


def write_files(folder):
    """Answers too long to stand in a record, each another one: turns make artifacts."""
    replies = [{"text": "none"}]
    for task in TASKS:
        for member in range(MEMBERS):
            for turn in range(TURNS):
                replies.append(
                    {
                        "task": f"native/{task}",
                        "member": member,
                        "turn": turn,
                        "thought": f"{task} {member} {turn} " + os.urandom(4000).hex(),
                        "kernel": str(policies / task / "plain.cpp"),
                    }
                )
    (folder / "script.json").write_text(json.dumps({"model": "m", "latency_ms": 1, "replies": replies}))
    (folder / "run.json").write_text(
        json.dumps(
            {
                "run": {"name": "bad"},
                "tasks": {"ids": [f"native/{x}" for x in TASKS], "group_size": MEMBERS, "max_turns": TURNS},
                "policy": {"kind": "scripted", "script": "script.json", "model": "m"},
                "compile": {"cache_dir": "cache"},
                "retrieval": {"enabled": False},
                "profile": {"enabled": False},
                "evaluation": {"backend": "cpu", "timing": {"enabled": False}},
                "reward": {"preset": "correctness"},
            }
        )
    )


def run(folder, words, environment=None):
    return subprocess.run(
        [str(binary), *map(str, words)],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=400,
        env={**os.environ, **(environment or {})},
        check=False,
    )


def whole_lines(path):
    """Of a journal that may end in half a line."""
    text = path.read_text() if path.exists() else ""
    return [json.loads(x) for x in text.splitlines(True) if x.endswith("\n")]


def turns(lines):
    return {x["turn_id"]: (x["episode"], x["turn"], x["category"], x["reward"]) for x in lines if x["kind"] == "turn"}


@contextlib.contextmanager
def small_disk(at, options):
    at.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", options, "none", at], check=True)
    try:
        yield lambda more: subprocess.run(["mount", "-o", f"remount,{more}", at], check=True)
    finally:
        subprocess.run(["umount", "-l", at], check=False)


class Cases:
    def __init__(self, folder):
        self.folder, self.held, self.lost, self.seen = folder, 0, 0, {}

    def check(self, name, where, code, struck, mended):
        """`struck` ends the run; after `mended` it is resumed."""
        done = struck(where)
        assert done.returncode == code, f"{name}: exit {done.returncode}, not {code}\n{done.stderr[-2000:]}"
        assert "next:" in done.stderr, f"{name}: no next step\n{done.stderr[-2000:]}"
        before = turns(whole_lines(where / "metrics.jsonl"))
        mended()
        again = run(self.folder, ["resume", where])
        assert again.returncode == 0, f"{name}: resume ends with {again.returncode}\n{again.stderr[-2000:]}"
        lines = [x for x in lines_of(where / "metrics.jsonl") if x["kind"] == "turn"]
        after = turns(lines)
        lost = [x for key, x in before.items() if after.get(key) != x]
        self.lost += len(lost)
        assert not lost, f"{name}: lost or other than before: {lost}"
        assert len(lines) == len(after) == len(TASKS) * MEMBERS * TURNS, (
            f"{name}: {len(lines)} lines, {len(after)} turns"
        )
        self.held += 1
        self.seen[name] = len(before)
        print(f"{name}: exit {code} after {len(before)} turns, resumed", flush=True)

    def words(self, where):
        return ["run", "run.json", f"run.dir={where}"]

    def on_small_disks(self):
        # So much that a run begins and does not end: 32 turns take 600 KiB and 60 inodes.
        for name, options, more in (
            ("full", "size=400k", "size=64m"),
            ("inodes", "nr_inodes=45", "nr_inodes=4000"),
            ("full_at_start", "size=20k", "size=64m"),
        ):
            with small_disk(self.folder / name, options) as remount:
                if name == "full_at_start":
                    self.check_start(name, remount)
                    continue
                self.check(
                    name,
                    self.folder / name / "run",
                    FULL,
                    lambda at: run(self.folder, self.words(at)),
                    lambda remount=remount, more=more: remount(more),
                )

    def check_start(self, name, remount):
        """There is no run yet: it says so, and the same command begins one once there is space."""
        where = self.folder / name / "run"
        done = run(self.folder, self.words(where))
        assert done.returncode == FULL, f"{name}: exit {done.returncode}\n{done.stderr[-2000:]}"
        remount("size=64m")
        again = (
            run(self.folder, ["resume", where])
            if (where / "manifest.json").exists()
            else run(self.folder, self.words(where))
        )
        assert again.returncode == 0, f"{name}: {again.returncode}\n{again.stderr[-2000:]}"
        self.held += 1

    def with_errors(self):
        for name, fault, code in (
            ("eio_write", "5:write:25:/lineage/data.mdb", FAILED),
            ("eio_sync", "5:sync:9:/lineage/data.mdb", FAILED),
            ("eio_artifact", "5:sync:7:/artifacts/", FAILED),
            ("read_only", "30:write:25:/lineage/data.mdb", DENIED),
            ("no_space", "28:write:25:/lineage/data.mdb", FULL),
            ("quota", "122:write:25:/lineage/data.mdb", FULL),
        ):
            shim = {"LD_PRELOAD": str(SHIM), "KERNELMILL_BAD_DISK": fault}
            self.check(
                name,
                self.folder / name,
                code,
                lambda at, shim=shim: run(self.folder, self.words(at), shim),
                lambda: None,
            )

    def with_a_bad_journal(self):
        """The lines are made from the store, so the run goes on, says that some are missing, and they can be added."""
        where = self.folder / "journal"
        done = run(self.folder, self.words(where), {"LD_PRELOAD": str(SHIM), "KERNELMILL_BAD_DISK": "5:write:9:.jsonl"})
        assert done.returncode == 0 and done.stderr.count("--repair` adds them") == 1, done.stderr[-2000:]
        assert len(turns(whole_lines(where / "metrics.jsonl"))) < len(TASKS) * MEMBERS * TURNS
        again = run(self.folder, ["fsck", where, "--repair"])
        assert again.returncode == 0, again.stderr
        assert len(turns(whole_lines(where / "metrics.jsonl"))) == len(TASKS) * MEMBERS * TURNS
        self.held += 1


def main():
    if not os.access(binary, os.X_OK) or not SHIM.exists():
        print(f"SKIP: {binary} or {SHIM} is not built")
        return SKIP
    with scratch_folder("disks") as folder:
        write_files(folder)
        calm = run(folder, ["run", "run.json", "run.dir=calm"])  # fills the build cache
        assert calm.returncode == 0, calm.stderr[-2000:]
        cases = Cases(folder)
        can_mount = (
            os.geteuid() == 0
            and subprocess.run(
                ["mount", "-t", "tmpfs", "-o", "size=4k", "none", "/mnt"], capture_output=True, check=False
            ).returncode
            == 0
        )
        if can_mount:
            subprocess.run(["umount", "-l", "/mnt"], check=False)
            cases.on_small_disks()
        cases.with_errors()
        cases.with_a_bad_journal()
        report(cases=cases.held, lost=cases.lost, small_disks=can_mount, turns_before=cases.seen)
    print("ok")
    return 0


if __name__ == "__main__":
    sys.exit(main())
