"""Faults of a machine that come and go while a node runs: each strikes, and is undone a moment later.

A fault is real wherever root can make it real for one node alone: small disks and mounts in the mount namespace of
the test, groups of the kernel, limits of a process. What a machine does not allow is skipped and named.
"""

import contextlib
import os
import pathlib
import random
import resource
import signal
import struct
import subprocess
import sys
import time

from real_processes import binary, descendants

CLOCK = pathlib.Path(
    os.environ.get("KERNELMILL_BAD_CLOCK_LIBRARY") or pathlib.Path(binary).parents[1] / "tests/libbad_clock.so"
)
COMPILERS = {"cc1plus", "g++", "as", "ld", "collect2"}
NODE_OWN = {"kernelmill-spaw", "kernelmill-refe"}
DAY = 86400


class Unavailable(Exception):
    """This machine does not let a test make the fault."""


def mount(*words):
    done = subprocess.run(["mount", *map(str, words)], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise Unavailable(done.stderr.strip() or "mount failed")


class Fault:
    """What a subclass does not say: pulses of this length and distance in seconds, and no preparation."""

    lasts = (0.1, 0.6)
    rests = (0.2, 0.8)
    builds = True  # the run compiles each of its sources
    contract = "native"

    def __init__(self, folder: pathlib.Path, dice: random.Random):
        self.folder, self.dice = folder, dice
        self.environment: dict = {}
        self.words: list = []

    def before(self):
        """In the node itself, before it is one."""

    def strike(self, node: int):
        raise NotImplementedError

    def undo(self, node: int):
        raise NotImplementedError

    def close(self):
        """Gives back what the machine was asked for."""


class Disk(Fault):
    """A small disk under the build cache and the temporary files, which another program fills for a moment."""

    options = "size=48m,nr_inodes=4000"
    unit = 4 << 20

    def __init__(self, folder, dice):
        super().__init__(folder, dice)
        self.at = folder / f"disk-{type(self).__name__}"
        self.at.mkdir(exist_ok=True)  # of an earlier one
        self.at.chmod(0o755)
        mount("-t", "tmpfs", "-o", self.options, "none", self.at)
        for name in ("cache", "tmp"):
            (self.at / name).mkdir(mode=0o777)
        self.words = [f"compile.cache_dir={self.at / 'cache'}"]
        self.environment = {"TMPDIR": str(self.at / "tmp")}

    def strike(self, node):
        filler = self.at / "filler"
        filler.mkdir(exist_ok=True)
        with contextlib.suppress(OSError):
            for i in range(100_000):
                (filler / f"{time.monotonic_ns()}-{i}").write_bytes(bytes(self.unit))

    def undo(self, node):
        for x in (self.at / "filler").glob("*"):
            x.unlink()

    def close(self):
        subprocess.run(["umount", "-l", self.at], check=False)


class Space(Disk):
    pass


class Inodes(Disk):
    options = "size=512m,nr_inodes=600"
    unit = 0


class ReadOnly(Disk):
    def strike(self, node):
        # Refused while a file is open for writing.
        subprocess.run(["mount", "-o", "remount,ro", self.at], capture_output=True, check=False)

    def undo(self, node):
        subprocess.run(["mount", "-o", "remount,rw", self.at], capture_output=True, check=True)


class Headers(Fault):
    """The compiler's own headers go and come back: a package that is being replaced."""

    def __init__(self, folder, dice):
        super().__init__(folder, dice)
        self.at = pathlib.Path("/usr/include/c++")
        if not self.at.is_dir():
            raise Unavailable(f"no {self.at}")

    def strike(self, node):
        mount("-t", "tmpfs", "-o", "size=4k", "none", self.at)

    def undo(self, node):
        subprocess.run(["umount", "-l", self.at], check=True)


class Clock(Fault):
    """The time of day jumps by a day, forth and back."""

    builds = False

    def __init__(self, folder, dice):
        super().__init__(folder, dice)
        if not CLOCK.exists():
            raise Unavailable(f"{CLOCK} is not built")
        self.file = folder / "clock.offset"
        self.environment = {"LD_PRELOAD": str(CLOCK), "KERNELMILL_BAD_CLOCK": str(self.file)}
        self.write(0)

    def write(self, seconds):
        with open(self.file, "r+b" if self.file.exists() else "wb") as file:
            file.write(struct.pack("<q", seconds))

    def strike(self, node):
        self.write(self.dice.choice([-DAY, DAY]))

    def undo(self, node):
        self.write(0)


class Killed(Fault):
    """Processes of compilers are killed from outside."""

    rests = (0.05, 0.3)

    def strike(self, node):
        found = [pid for pid, name in descendants(node).items() if name in COMPILERS]
        with contextlib.suppress(ProcessLookupError):
            if found:
                os.kill(self.dice.choice(found), signal.SIGKILL)

    def undo(self, node):
        pass


class Stopped(Fault):
    """One helper of the node stands still, as under a debugger."""

    lasts = (0.5, 3)
    held = None

    def strike(self, node):
        found = [pid for pid, name in descendants(node).items() if name in NODE_OWN | COMPILERS]
        with contextlib.suppress(OSError):
            if found:
                self.held = os.pidfd_open(self.dice.choice(found))
                signal.pidfd_send_signal(self.held, signal.SIGSTOP)

    def undo(self, node):
        if self.held is None:
            return
        with contextlib.suppress(OSError):
            signal.pidfd_send_signal(self.held, signal.SIGCONT)
        os.close(self.held)
        self.held = None


class Group(Fault):
    """A control group of the node's own, which its sandboxes make theirs below."""

    controller = ""

    def __init__(self, folder, dice):
        super().__init__(folder, dice)
        name = f"fault-{os.getpid()}-{type(self).__name__}"
        first, second = pathlib.Path("/sys/fs/cgroup", self.controller), pathlib.Path("/sys/fs/cgroup")
        self.second = not first.is_dir()
        if self.second and self.controller not in read(second / "cgroup.subtree_control").split():
            raise Unavailable(f"no control group with {self.controller} can be made")
        self.at = (second if self.second else first) / name
        try:
            self.at.mkdir()
        except OSError as why:
            raise Unavailable(str(why)) from why

    def before(self):
        (self.at / "cgroup.procs").write_text(str(os.getpid()))

    def write(self, name, text):
        with contextlib.suppress(OSError):
            (self.at / name).write_text(f"{text}\n")

    def close(self):
        for _ in range(100):
            for below in (*self.at.glob("kernelmill-*"), self.at):
                with contextlib.suppress(OSError):
                    below.rmdir()
            if not self.at.exists():
                return
            time.sleep(0.05)


def read(path):
    try:
        return pathlib.Path(path).read_text()
    except OSError:
        return ""


class Frozen(Group):
    """All of it stands still for longer than its deadlines: a virtual machine that is moved to another host."""

    controller = "freezer"
    lasts = (1, 4)
    builds = False

    def strike(self, node):
        self.write("cgroup.freeze" if self.second else "freezer.state", "1" if self.second else "FROZEN")

    def undo(self, node):
        self.write("cgroup.freeze" if self.second else "freezer.state", "0" if self.second else "THAWED")


class Memory(Group):
    """No memory is left: the kernel ends compilers, helpers and candidates, and the node last."""

    controller = "memory"
    lasts = (0.3, 1)
    rests = (0.3, 1)

    def strike(self, node):
        below = descendants(node)
        if not COMPILERS & set(below.values()):
            return  # the node alone has memory
        first = self.dice.choice(list(below))
        for pid in below:
            with contextlib.suppress(OSError):
                pathlib.Path(f"/proc/{pid}/oom_score_adj").write_text("1000" if pid == first else "900")
        used = int(read(self.at / ("memory.current" if self.second else "memory.usage_in_bytes")) or 0)
        self.limit(used + (self.dice.randrange(8, 40) << 20))

    def limit(self, size):
        name = "memory.max" if self.second else "memory.limit_in_bytes"
        self.write(name, size if size > 0 else "max" if self.second else -1)

    def undo(self, node):
        self.limit(0)


class Forks(Group):
    """No further process can be started."""

    controller = "pids"

    def strike(self, node):
        self.write("pids.max", int(read(self.at / "pids.current") or 0) + self.dice.randrange(3))

    def undo(self, node):
        self.write("pids.max", "max")


class Descriptors(Fault):
    """A process of ours has no descriptor left."""

    def strike(self, node):
        found = [pid for pid, name in descendants(node).items() if name in NODE_OWN]
        self.held = self.dice.choice([node, *found])
        with contextlib.suppress(OSError):
            count = len(os.listdir(f"/proc/{self.held}/fd")) + self.dice.randrange(3)
            self.hard = resource.prlimit(self.held, resource.RLIMIT_NOFILE)
            resource.prlimit(self.held, resource.RLIMIT_NOFILE, (count, self.hard[1]))

    def undo(self, node):
        with contextlib.suppress(OSError):
            resource.prlimit(self.held, resource.RLIMIT_NOFILE, self.hard)


class Addresses(Fault):
    """A process of ours gets no memory when it asks for it."""

    builds = False

    def strike(self, node):
        found = [pid for pid, name in descendants(node).items() if name in NODE_OWN]
        self.held = self.dice.choice([node, *found])
        with contextlib.suppress(OSError, ValueError):
            size = int(read(f"/proc/{self.held}/statm").split()[0]) * resource.getpagesize()
            resource.prlimit(self.held, resource.RLIMIT_AS, (size + (1 << 20), resource.RLIM_INFINITY))

    def undo(self, node):
        with contextlib.suppress(OSError):
            resource.prlimit(self.held, resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))


class Cores(Fault):
    """Others work on the one core that the node has."""

    lasts = (0.5, 2)
    builds = False

    def before(self):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})

    def strike(self, node):
        core = min(os.sched_getaffinity(0))
        self.hogs = [
            subprocess.Popen(
                [sys.executable, "-c", f"import os; os.sched_setaffinity(0, {{{core}}})\nwhile True: pass"]
            )
            for _ in range(6)
        ]

    def undo(self, node):
        for x in self.hogs:
            x.kill()
            x.wait()


class Torch(Fault):
    """Processes of the lane of Python are killed: the one that forks, the referee, those that load answers."""

    contract = "torch"
    builds = False
    rests = (0.5, 3)

    def strike(self, node):
        found = [pid for pid, name in descendants(node).items() if name.startswith("python")]
        with contextlib.suppress(ProcessLookupError):
            if found:
                os.kill(self.dice.choice(found), signal.SIGKILL)

    def undo(self, node):
        pass


FAULTS = {
    "space": Space,
    "inodes": Inodes,
    "read_only": ReadOnly,
    "headers": Headers,
    "clock": Clock,
    "killed": Killed,
    "stopped": Stopped,
    "frozen": Frozen,
    "memory": Memory,
    "addresses": Addresses,
    "forks": Forks,
    "descriptors": Descriptors,
    "cores": Cores,
    "torch": Torch,
}
