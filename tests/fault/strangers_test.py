#!/usr/bin/env python3
"""Strangers at the port of a head: what do they cost it before they have shown a certificate?

$KERNELMILL_STRANGERS connections (200 without it) that say nothing, then as many that begin as a peer does and
announce a gigabyte, then as many that begin a handshake: at heads with 256 and 1,024 descriptors (and
$KERNELMILL_DESCRIPTORS), with credentials and without TLS. A head's memory grows by at most 1 MiB for each connection
and 64 MiB in all, it answers `status` meanwhile and afterwards, and is the same process. Exit code 77: it cannot run
here.
"""

import contextlib
import json
import os
import re
import resource
import socket
import struct
import subprocess
import sys
import time

from real_processes import SKIP, binary, number, report, resident_kib, scratch_folder, started

# Of CAF's header: operation, padding, flags, length of the payload, operation data, and two actor ids.
GIGABYTE = struct.pack(">BBBBIQQQ", 1, 0, 0, 0, 1 << 30, 0, 0, 0)
CLIENT_HELLO = bytes.fromhex("1603013fff010000fa0303") + os.urandom(32)
MOST_KIB = 64 * 1024
KINDS = {"silent": b"", "gigabyte": GIGABYTE, "handshake": CLIENT_HELLO}


class Head:
    def __init__(self, folder, process, environment, link):
        self.folder, self.process, self.environment, self.link = folder, process, environment, link
        end = time.monotonic() + 300
        while True:
            text = (folder / "head.out").read_text()
            if "\n" in text:
                break
            assert process.poll() is None and time.monotonic() < end, (folder / "head.log").read_text()
            time.sleep(0.02)
        self.address = text.split("\n")[0].strip()
        self.port = int(re.search(r":(\d+)$", self.address)[1])

    def status(self) -> float:
        """Seconds until it has answered."""
        begin = time.monotonic()
        done = subprocess.run(
            [binary, "status", "--json", "--head", self.address, *self.link],
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        json.loads(done.stdout)
        return time.monotonic() - begin


def crowd(port, count, words):
    result = []
    for _ in range(count):
        x = socket.create_connection(("127.0.0.1", port), timeout=120)
        with contextlib.suppress(OSError):
            x.sendall(words)
        result.append(x)
    return result


def allow(count):
    """Run in the head: it may have so many descriptors."""
    return lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (count, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))


def besiege(folder, environment, link, descriptors, count) -> dict:
    """A head with so many descriptors, and what strangers of each kind cost it."""
    folder.mkdir()
    with (
        open(folder / "head.out", "wb") as out,
        started(
            [binary, "head", "--listen", "127.0.0.1:0", "--root", folder / "runs", *link],
            folder,
            folder / "head.log",
            stdout=out,
            env=environment,
            preexec_fn=allow(descriptors),
        ) as process,
    ):
        head = Head(folder, process, environment, link)
        quiet = head.status()
        first = resident_kib(process.pid)
        most = answer = 0.0
        for kind, words in KINDS.items():
            before = resident_kib(process.pid)
            them = crowd(head.port, count, words)
            answer = max(answer, head.status())
            now = resident_kib(process.pid)
            print(
                f"{descriptors} descriptors, {link[0] if link else 'TLS'}, {kind}: {(now - before) / count:.1f} KiB a "
                f"connection, {(now - first) / 1024:.1f} MiB in all",
                flush=True,
            )
            most = max(most, (now - before) / count)
            assert now - first <= MOST_KIB, f"{now - first} KiB for {count} {kind} strangers"
            for x in them:
                x.close()
        answer = max(answer, head.status())
        assert process.poll() is None, "the head has ended"
        return {"kib": most, "mib": (resident_kib(process.pid) - first) / 1024, "quiet": quiet, "status": answer}


def main():
    if not os.access(binary, os.X_OK):
        print(f"SKIP: {binary} is not built")
        return SKIP
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    count = number("KERNELMILL_STRANGERS", 200)
    if hard < count + 100:
        print(f"SKIP: {hard} descriptors are not enough for {count} strangers")
        return SKIP
    limits = [x for x in (256, 1024, number("KERNELMILL_DESCRIPTORS", 1024)) if x <= hard]
    found = []
    with scratch_folder("strangers") as folder:
        environment = {
            **os.environ,
            "XDG_STATE_HOME": str(folder / "state"),
            "KERNELMILL_CREDENTIALS": str(folder / "credentials"),
        }
        subprocess.run([binary, "cluster", "init"], env=environment, check=True, capture_output=True)
        for link in ([], ["--insecure-loopback"]):
            for descriptors in sorted(set(limits)):
                found.append(besiege(folder / f"head{len(found)}", environment, link, descriptors, count))
    most = max(x["kib"] for x in found)
    report(
        connections=count * len(KINDS) * len(found),
        heads=len(found),
        kib_a_connection=round(most, 1),
        mib_in_all=round(max(x["mib"] for x in found), 1),
        quiet_status_s=round(max(x["quiet"] for x in found), 3),
        status_s=round(max(x["status"] for x in found), 3),
    )
    assert most <= 1024, f"{most} KiB a connection"
    print("ok")
    return 0


if __name__ == "__main__":
    sys.exit(main())
