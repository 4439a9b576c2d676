#!/usr/bin/env python3
"""Strangers at the port of a head that has credentials: what do they cost it before they have shown a certificate?

$KERNELMILL_STRANGERS connections (200 without it) that say nothing, then as many that begin as a peer does and
announce a gigabyte, then as many that begin a handshake. The head's memory grows by at most 1 MiB for each
connection, it answers `status` meanwhile and afterwards, and is the same process. Exit code 77: it cannot run here.
"""

import contextlib
import json
import os
import re
import socket
import struct
import subprocess
import sys
import time

from real_processes import SKIP, binary, number, report, resident_kib, scratch_folder, started

# Of CAF's header: operation, padding, flags, length of the payload, operation data, and two actor ids.
GIGABYTE = struct.pack(">BBBBIQQQ", 1, 0, 0, 0, 1 << 30, 0, 0, 0)
CLIENT_HELLO = bytes.fromhex("1603013fff010000fa0303") + os.urandom(32)
KINDS = {"silent": b"", "gigabyte": GIGABYTE, "handshake": CLIENT_HELLO}


class Head:
    def __init__(self, folder, process, environment):
        self.folder, self.process, self.environment = folder, process, environment
        end = time.monotonic() + 60
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
        done = subprocess.run([binary, "status", "--json", "--head", self.address], env=self.environment,
                              capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 0, done.stderr
        json.loads(done.stdout)
        return time.monotonic() - begin


def crowd(port, count, words):
    result = []
    for _ in range(count):
        x = socket.create_connection(("127.0.0.1", port), timeout=10)
        with contextlib.suppress(OSError):
            x.sendall(words)
        result.append(x)
    return result


def main():
    if not os.access(binary, os.X_OK):
        print(f"SKIP: {binary} is not built")
        return SKIP
    count = number("KERNELMILL_STRANGERS", 200)
    with scratch_folder("strangers") as folder:
        environment = {**os.environ, "XDG_STATE_HOME": str(folder / "state"),
                       "KERNELMILL_CREDENTIALS": str(folder / "credentials")}
        subprocess.run([binary, "cluster", "init"], env=environment, check=True,
                       capture_output=True)
        with open(folder / "head.out", "wb") as out, \
             started([binary, "head", "--listen", "127.0.0.1:0", "--root", folder / "runs"], folder,
                     folder / "head.log", stdout=out, env=environment) as process:
            head = Head(folder, process, environment)
            quiet = head.status()
            most = answer = 0.0
            for kind, words in KINDS.items():
                before = resident_kib(process.pid)
                them = crowd(head.port, count, words)
                answer = max(answer, head.status())
                growth = (resident_kib(process.pid) - before) / count
                print(f"{kind}: {growth:.1f} KiB a connection", flush=True)
                most = max(most, growth)
                for x in them:
                    x.close()
            answer = max(answer, head.status())
            assert process.poll() is None, "the head has ended"
        report(connections=count * len(KINDS), kib_a_connection=round(most, 1), quiet_status_s=round(quiet, 3),
               status_s=round(answer, 3))
        assert most <= 1024, f"{most} KiB a connection"
    print("ok")
    return 0


if __name__ == "__main__":
    sys.exit(main())
