#!/usr/bin/env python3
"""`kernelmill serve` under many clients at once, with hostile ones beside them. Some minutes; never part of the tests.

    KERNELMILL_SOURCE_DIR=$PWD KERNELMILL_BIN_DIR=$PWD/build/bin tests/bench/serve_load.py [--clients 2000] [--rounds 3]

First by HTTP: all clients connect and keep their connection. In each round a client posts a candidate, asks where it
stands and cancels it. Every answer must be 200, 202 or 429 with Retry-After. Then by OpenEnv's /ws: all sessions are
opened at once, and each resets its episode, asks for its state in each round, and takes a step; a step must be judged,
or answered CAPACITY_REACHED, and then the session goes on. Prints what was answered, latencies and the server's memory;
ends with 1 where an answer was another or a connection was lost.
"""

import argparse
import asyncio
import collections
import json
import os
import pathlib
import resource
import subprocess
import sys
import tempfile
import time
import urllib.parse

SOURCE = pathlib.Path(os.environ["KERNELMILL_SOURCE_DIR"])
sys.path[:0] = [str(SOURCE / "tests/integration/serve")]

from kernels import PROGRAM, TASK, TASKS, WRONG  # noqa: E402

HOSTILE = ("half", "large", "stranger", "nonsense")


class Link:
    """One connection that is kept."""

    def __init__(self, client):
        self.url, self.token = urllib.parse.urlsplit(client.url), client._token

    async def open(self):
        self.reader, self.writer = await asyncio.open_connection(self.url.hostname, self.url.port)
        return self

    async def ask(self, method, path, body=None, token=None):
        """(status, headers, document)"""
        text = b"" if body is None else json.dumps(body).encode()
        self.writer.write(
            (
                f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token or self.token}\r\n"
                f"Content-Type: application/json\r\nContent-Length: {len(text)}\r\n\r\n"
            ).encode()
            + text
        )
        await self.writer.drain()
        head = (await self.reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        headers = {k.lower(): v.strip() for k, _, v in (x.partition(":") for x in head[1:] if x)}
        answer = await self.reader.readexactly(int(headers.get("content-length", 0)))
        return int(head[0].split()[1]), headers, json.loads(answer or b"null")

    def close(self):
        self.writer.close()


class Session:
    """One WebSocket with an episode."""

    def __init__(self, client):
        self.link = Link(client)

    async def open(self):
        await self.link.open()
        self.link.writer.write(
            (
                f"GET /ws HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {self.link.token}\r\n"
                "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
                "Sec-WebSocket-Key: MDEyMzQ1Njc4OWFiY2RlZg==\r\n\r\n"
            ).encode()
        )
        await self.link.writer.drain()
        head = await self.link.reader.readuntil(b"\r\n\r\n")
        if b" 101 " not in head.split(b"\r\n")[0]:
            raise ConnectionError(head.split(b"\r\n")[0].decode())

    async def ask(self, kind, data=None):
        """The answer's type, or the code of an error."""
        text = json.dumps({"type": kind, "data": data or {}}).encode()
        size = bytes([0x80 | len(text)]) if len(text) < 126 else b"\xfe" + len(text).to_bytes(2, "big")
        self.link.writer.write(b"\x81" + size + b"\0\0\0\0" + text)  # masked with zeros
        await self.link.writer.drain()
        _, size = await self.link.reader.readexactly(2)
        if size >= 126:
            size = int.from_bytes(await self.link.reader.readexactly(2 if size == 126 else 8), "big")
        answer = json.loads(await self.link.reader.readexactly(size))
        return answer["data"]["code"] if answer["type"] == "error" else answer["type"]

    def close(self):
        self.link.close()


class Load:
    """What was seen."""

    def __init__(self):
        self.answers, self.bad, self.seconds = collections.Counter(), collections.Counter(), []

    async def ask(self, link, method, path, body=None):
        began = time.monotonic()
        try:
            status, headers, document = await asyncio.wait_for(link.ask(method, path, body), 120)
        except (OSError, asyncio.IncompleteReadError, asyncio.TimeoutError) as error:
            self.bad[type(error).__name__] += 1
            return 0, None
        self.seconds.append(time.monotonic() - began)
        self.answers[status] += 1
        if status not in (200, 202, 429) or status == 429 and not float(headers.get("retry-after", 0)) > 0:
            self.bad[status] += 1
        return status, document

    async def say(self, session, kind, data=None):
        began = time.monotonic()
        try:
            answer = await asyncio.wait_for(session.ask(kind, data), 600)
        except (OSError, asyncio.IncompleteReadError, asyncio.TimeoutError) as error:
            answer = type(error).__name__
        self.seconds.append(time.monotonic() - began)
        self.answers[f"{kind}: {answer}"] += 1
        if answer not in ("observation", "state") and (kind, answer) != ("step", "CAPACITY_REACHED"):
            self.bad[f"{kind}: {answer}"] += 1

    async def client(self, link, number, rounds, ready):
        await ready.wait()
        for turn in range(rounds):
            source = f"// {number} {turn}\n{WRONG}"  # each another: nothing is answered from memory
            status, document = await self.ask(
                link, "POST", "/v1/evaluate", {"task": TASK, "source": source, "wait": False}
            )
            if status == 202:
                place = "/v1/evaluations/" + document["id"]
                await self.ask(link, "GET", place)
                await self.ask(link, "DELETE", place)


async def misbehave(client, kind, until):
    """One hostile client, until the others are done. How many times it was at it."""
    times = 0
    while not until.is_set():
        times += 1
        link = Link(client)
        try:
            await link.open()
            if kind == "half":
                link.writer.write(b"POST /v1/evaluate HTTP/1.1\r\nContent-Length: 100\r\n\r\n{")
                await link.writer.drain()
                await asyncio.wait([asyncio.ensure_future(until.wait())], timeout=5)
            elif kind == "large":
                await link.ask("POST", "/v1/evaluate", {"task": TASK, "source": "x" * (9 << 20)})
            elif kind == "stranger":
                await link.ask("POST", "/v1/evaluate", {"task": TASK, "source": WRONG}, token="wrong")
            else:
                link.writer.write(os.urandom(4096))
                await link.reader.read(4096)
        except (OSError, asyncio.IncompleteReadError, ValueError):
            pass
        finally:
            if hasattr(link, "writer"):
                link.close()
        await asyncio.sleep(0.05)
    return times


def memory_of(pid, key="VmHWM"):
    """Peak resident bytes of a process."""
    said = pathlib.Path(f"/proc/{pid}/status").read_text()
    return int(next(x for x in said.splitlines() if x.startswith(key)).split()[1]) * 1024


def resident_of(pid):
    return memory_of(pid, "VmRSS")


async def drive(client, given):
    load, until, ready = Load(), asyncio.Event(), asyncio.Event()
    links = [await Link(client).open() for _ in range(given.clients)]
    hostile = [asyncio.create_task(misbehave(client, HOSTILE[i % len(HOSTILE)], until)) for i in range(given.hostile)]
    began = time.monotonic()
    work = [asyncio.create_task(load.client(x, i, given.rounds, ready)) for i, x in enumerate(links)]
    ready.set()
    await asyncio.gather(*work)
    seconds = time.monotonic() - began
    until.set()
    attacks = sum(await asyncio.gather(*hostile))
    for x in links:
        x.close()
    return load, seconds, attacks


async def drive_sockets(client, given, pid):
    """(what, load) of each part, and what the server had in memory after it."""
    sessions, parts = [Session(client) for _ in range(given.clients)], []

    async def part(name, call):
        load, began = Load(), time.monotonic()
        await asyncio.gather(*(call(load, i, x) for i, x in enumerate(sessions)))
        parts.append((name, load, time.monotonic() - began, resident_of(pid)))

    async def opened(load, _, session):
        began = time.monotonic()
        try:
            await session.open()
            load.answers["open"] += 1
        except (OSError, asyncio.IncompleteReadError) as error:
            load.bad[type(error).__name__] += 1
        load.seconds.append(time.monotonic() - began)

    await part("opened", opened)
    await part("reset", lambda load, i, x: load.say(x, "reset", {"problem_id": TASK, "max_turns": 4}))
    for _ in range(given.rounds):
        await part("state", lambda load, i, x: load.say(x, "state"))
    await part("step", lambda load, i, x: load.say(x, "step", {"code": f"// {i % 3}\n{WRONG}"}))
    await part("state", lambda load, i, x: load.say(x, "state"))
    for x in sessions:
        x.close()
    return parts


def tell(name, load, seconds, memory):
    took = sorted(load.seconds)
    at = lambda x: f"{took[min(len(took) - 1, int(x * len(took)))]:.3f}"  # noqa: E731
    print(
        f"{name}: {len(took)} in {seconds:.1f} s, p50 {at(0.5)} s, p99 {at(0.99)} s, longest {took[-1]:.3f} s; "
        f"server {memory >> 20} MiB; " + ", ".join(f"{n} x {x}" for x, n in sorted(load.answers.items())),
        flush=True,
    )
    if load.bad:
        print("NOT ALLOWED:", dict(load.bad))
    return bool(load.bad)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--clients", type=int, default=2000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--hostile", type=int, default=16)
    given = parser.parse_args()
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    import kernelmill

    started = []
    real = subprocess.Popen

    def note(*words, **more):
        started.append(real(*words, **more))
        return started[-1]

    kernelmill.server.subprocess.Popen = note
    with tempfile.TemporaryDirectory() as home:
        os.environ["XDG_CACHE_HOME"] = home
        with kernelmill.serve("cpu", program=PROGRAM, tasks=str(TASKS), options=["--no-timing"]) as client:
            load, seconds, attacks = asyncio.run(drive(client, given))
            peak, ready = memory_of(started[0].pid), client.tasks()
            parts = asyncio.run(drive_sockets(client, given, started[0].pid))
    took = sorted(load.seconds)
    at = lambda x: f"{took[min(len(took) - 1, int(x * len(took)))]:.3f}"  # noqa: E731
    print(
        f"{given.clients} clients, {given.hostile} hostile ones ({attacks} times): "
        f"{len(took)} answers in {seconds:.1f} s "
        f"({len(took) / seconds:.0f}/s), load {os.getloadavg()[0]:.0f}"
    )
    print("answers:", ", ".join(f"{n} x {status}" for status, n in sorted(load.answers.items())))
    print(
        f"seconds: p50 {at(0.5)}, p99 {at(0.99)}, longest {took[-1]:.3f}; server's peak {peak >> 20} MiB; "
        f"{len(ready)} tasks afterwards"
    )
    if load.bad:
        print("NOT ALLOWED:", dict(load.bad))
    wrong = [tell("/ws " + name, *rest) for name, *rest in parts]
    return 1 if load.bad or any(wrong) else 0


if __name__ == "__main__":
    sys.exit(main())
