"""A laboratory network: machines are network namespaces, joined by wires that we hold in our hands.

Each machine has a TUN device; a thread of this process carries every packet from one to another, and may lose it, delay
it, or cut a machine off. Needs root, iproute2 and /dev/net/tun. Everything goes when the laboratory is closed.
"""

import fcntl
import heapq
import os
import random
import select
import signal
import struct
import subprocess
import threading
import time

TUNSETIFF = 0x400454CA
IFF_TUN, IFF_NO_PI = 0x0001, 0x1000
MOST_BYTES = 65536


class Unavailable(Exception):
    """This machine cannot make such a network; says why."""


def run(*words: str) -> None:
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise Unavailable(f"{' '.join(words)}: {done.stderr.strip()}")


class Lab:
    """Machines by name. `loss` and `delay_ms` concern every packet between two of them."""

    def __init__(self, names: list, loss: float = 0.0, delay_ms: float = 0.0, seed: int = 1):
        if os.geteuid() != 0:
            raise Unavailable("network namespaces need root")
        if not os.path.exists("/dev/net/tun"):
            raise Unavailable("there is no /dev/net/tun")
        self.loss, self.delay_ms = loss, delay_ms
        self.cut: set = set()
        self.random = random.Random(seed)
        self.carried = self.lost = 0
        self.namespaces, self.addresses, self.wires = {}, {}, {}
        self.processes: list = []
        self.stopped = False
        try:
            for number, name in enumerate(names):
                self.add(name, f"10.77.0.{number + 1}")
        except BaseException:
            self.close()
            raise
        self.thread = threading.Thread(target=self.carry, daemon=True)
        self.thread.start()

    def add(self, name: str, address: str) -> None:
        namespace = f"km{os.getpid()}{name}"
        device = f"km{os.getpid() % 100000}{len(self.wires)}"
        run("ip", "netns", "add", namespace)
        self.namespaces[name], self.addresses[name] = namespace, address
        wire = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
        try:
            fcntl.ioctl(wire, TUNSETIFF, struct.pack("16sH22x", device.encode(), IFF_TUN | IFF_NO_PI))
        except OSError as problem:
            os.close(wire)
            raise Unavailable(f"/dev/net/tun: {problem}") from problem
        self.wires[address] = wire
        run("ip", "link", "set", device, "netns", namespace)
        run("ip", "-n", namespace, "link", "set", "lo", "up")
        run("ip", "-n", namespace, "addr", "add", address + "/24", "dev", device)
        run("ip", "-n", namespace, "link", "set", device, "up")

    # -- the wires -----------------------------------------------------------------------------------

    def carry(self) -> None:
        poll = select.poll()
        origin = {wire: address for address, wire in self.wires.items()}
        for wire in origin:
            poll.register(wire, select.POLLIN)
        late: list = []  # (due, number, wire, packet)
        number = 0
        while not self.stopped:
            wait = 50.0 if not late else max(0.0, min(50.0, (late[0][0] - time.monotonic()) * 1000))
            for wire, _ in poll.poll(wait):
                try:
                    packet = os.read(wire, MOST_BYTES)
                except OSError:
                    continue
                target = self.target_of(origin[wire], packet)
                if target is not None:
                    number += 1
                    heapq.heappush(late, (time.monotonic() + self.delay_ms / 1000, number, target, packet))
            now = time.monotonic()
            while late and late[0][0] <= now:
                _, _, target, packet = heapq.heappop(late)
                try:
                    os.write(target, packet)
                    self.carried += 1
                except OSError:
                    self.lost += 1

    def target_of(self, source: str, packet: bytes):
        """The wire that a packet goes to; None when it is lost on the way."""
        if len(packet) < 20 or packet[0] >> 4 != 4:
            return None
        destination = ".".join(str(x) for x in packet[16:20])
        wire = self.wires.get(destination)
        if wire is None or source in self.cut or destination in self.cut or self.random.random() < self.loss:
            self.lost += 1
            return None
        return wire

    def cut_off(self, name: str) -> None:
        self.cut.add(self.addresses[name])

    def heal(self, name: str) -> None:
        self.cut.discard(self.addresses[name])

    # -- programs ------------------------------------------------------------------------------------

    def start(self, name: str, words: list, log: str, **more) -> subprocess.Popen:
        with open(log, "ab") as out:
            process = subprocess.Popen(
                ["ip", "netns", "exec", self.namespaces[name], *words],
                stdout=out,
                stderr=out,
                start_new_session=True,
                **more,
            )
        self.processes.append(process)
        return process

    def ask(self, name: str, words: list, timeout: float = 300, **more) -> subprocess.CompletedProcess:
        return subprocess.run(
            ["ip", "netns", "exec", self.namespaces[name], *words],
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
            **more,
        )

    def close(self) -> None:
        for process in self.processes:
            for number in (signal.SIGCONT, signal.SIGKILL):
                try:
                    os.killpg(process.pid, number)
                except (ProcessLookupError, PermissionError):
                    pass
            process.wait()
        self.stopped = True
        if hasattr(self, "thread"):
            self.thread.join()
        for wire in self.wires.values():
            os.close(wire)
        for namespace in self.namespaces.values():
            subprocess.run(["ip", "netns", "del", namespace], capture_output=True, check=False)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
