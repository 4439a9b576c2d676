"""What the fault tests of real processes share: the program, their scratch folder, processes and figures."""

import contextlib
import json
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile

SKIP = 77
source = pathlib.Path(os.environ.get("KERNELMILL_SOURCE_DIR") or pathlib.Path(__file__).resolve().parents[2])
binary = pathlib.Path(os.environ.get("KERNELMILL_BIN_DIR") or source / "build/bin") / "kernelmill"
policies = source / "configs/policies/quickstart"


def number(name: str, otherwise: int) -> int:
    """How large a test is to be: the environment says, or the test."""
    return int(os.environ.get(name) or otherwise)


def report(**figures) -> None:
    """Prints what was measured, and writes it to $KERNELMILL_FIGURES for launch/promises.sh."""
    print(json.dumps(figures), flush=True)
    if path := os.environ.get("KERNELMILL_FIGURES"):
        pathlib.Path(path).write_text(json.dumps(figures) + "\n")


@contextlib.contextmanager
def scratch_folder(name: str):
    """Goes with a test that holds; of one that does not it stays, and is named."""
    path = pathlib.Path(tempfile.mkdtemp(prefix=f"kernelmill-{name}-"))
    try:
        yield path
    except BaseException:
        print(f"see {path}")
        raise
    shutil.rmtree(path, ignore_errors=True)


@contextlib.contextmanager
def started(words, cwd, log, **options):
    """A process of a group of its own, ended at the end: first in order, then by force."""
    with open(log, "ab") as err:
        process = subprocess.Popen(
            [str(x) for x in words],
            cwd=cwd,
            stdin=subprocess.DEVNULL,
            stderr=err,
            stdout=options.pop("stdout", err),
            start_new_session=True,
            **options,
        )
    try:
        yield process
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(20)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def stat_of(pid: int):
    """(name, state, parent) of a process; None when it is gone."""
    try:
        text = pathlib.Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    name, rest = text[text.index("(") + 1 : text.rindex(")")], text[text.rindex(")") + 2 :].split()
    return name, rest[0], int(rest[1])


def descendants(root: int) -> dict:
    """The names of all that a process started, and what those did, by their ids; no dead ones."""
    known = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit() and (found := stat_of(int(entry))):
            known[int(entry)] = found
    result: dict = {}
    added = {root}
    while added:
        added = {pid for pid, (_, _, parent) in known.items() if parent in added and pid not in result}
        result.update((pid, known[pid][0]) for pid in added)
    return {pid: name for pid, name in result.items() if known[pid][1] not in "ZX"}


def resident_kib(pid: int) -> int:
    for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1])
    return 0


def lines_of(path) -> list:
    return [json.loads(x) for x in pathlib.Path(path).read_text().splitlines()]
