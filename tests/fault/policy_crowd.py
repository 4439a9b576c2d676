#!/usr/bin/python3
"""Policy servers that are silent, slow or lie, hundreds at once, and thousands of requests in flight of
which some are broken: every request gets its right outcome, and memory stays within a stated bound.

    policy_crowd.py CLIENT [--servers 500] [--each 4] [--flight 16000] [--deadline-ms 20000]

CLIENT is build/tests/policy_crowd_client, the product's own policy clients and pool. The servers are one
process of this file, which listens on as many ports. Three parts:

  crowd   each server is asked by a client of its own, all at once. What a server does decides what must
          come back: a right text from the honest and the slow ones, a fault of class infrastructure, with
          the category of what was done, from the others; never a fault of the model, never a text of another.
  pool    one pool before all servers. A request may end well, or as a fault of the infrastructure.
  flight  one honest server gets all requests before it answers the first; of one in a hundred it breaks the
          first attempt. All end well, the broken ones in their second attempt or later.

The bounds: BASE bytes for the process, CLIENT_BYTES a client, REQUEST_BYTES a request in flight, and twice what a
server may send (policy.max_response_bytes) for each request that may be at a server that sends too much: a text
that grows is copied. Behind a pool that is each request. A client that does not stop at the limit passes them within
a second: an endless server sends as fast as it is read.

A machine that is too slow for the deadline is no fault: a request to a server that breaks its answers may end as
policy_timeout, as long as one of each kind ended with its own category."""

import argparse
import asyncio
import collections
import json
import multiprocessing
import resource
import subprocess
import sys
import time
import zlib

BASE = 128 << 20  # the program, its libraries, and what the allocator keeps for each of its threads
CLIENT_BYTES = 192 << 10  # its actor, its thread, its connection pool
REQUEST_BYTES = 48 << 10  # 8 KB of prompt, its body, its connection, its answer
ANSWER_BYTES = 1 << 20  # policy.max_response_bytes
POLICY, INFRASTRUCTURE = 2, 4  # wire::FaultClass
TOO_LARGE = "policy_response_too_large"  # a model that does not end, as far as a client can see

KINDS = ["silent", "slow", "garbage", "deep", "silent", "endless", "honest", "cut", "slow", "liar"]
OUTCOMES = {
    "silent": {"policy_timeout"},
    "garbage": {"policy_bad_response"},
    "deep": {"policy_unavailable"},
    "endless": {TOO_LARGE},
    "cut": {"policy_bad_response", "policy_connection_lost"},
}
DEEP = b'{"error":{"message":' + b"[" * 400_000 + b"]" * 400_000 + b"}}"


def kind_of(index):
    """What the server of this number does."""
    return KINDS[index % len(KINDS)]


def completion(session, **more):
    """An honest answer says who asked."""
    return json.dumps(
        {
            "model": "crowd",
            "choices": [{"message": {"content": f"<KERNEL>{session}</KERNEL>"}, "finish_reason": "stop"}],
            **more,
        }
    ).encode()


def head(size, status="200 OK"):
    """Of an answer with a body of this size."""
    return f"HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {size}\r\n\r\n".encode()


async def read_request(reader):
    """The session that asks, and the number of its attempt; nothing at the end of the connection."""
    try:
        text = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
        fields = dict(x.split(": ", 1) for x in text.split("\r\n")[1:] if ": " in x)
        await reader.readexactly(int(fields.get("content-length", "0")))
    except (asyncio.IncompleteReadError, ConnectionError):
        return None
    return fields.get("x-session-id", ""), int(fields.get("x-request-id", ".a1").rsplit(".a", 1)[1])


async def act(kind, session, writer):
    """One answer of a server of this kind; False closes the connection."""
    good = completion(session)
    if kind == "silent":
        await asyncio.sleep(3600)
    elif kind == "slow":
        whole = head(len(good)) + good
        for i in range(0, len(whole), 40):
            writer.write(whole[i : i + 40])
            await writer.drain()
            await asyncio.sleep(0.2)
    elif kind == "garbage":
        writer.write(head(9) + b"<html>\xff\x00\x1b")
    elif kind == "deep":
        writer.write(head(len(DEEP), "500 Internal Server Error") + DEEP)
    elif kind == "endless":
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n" + b'{"choices":[')
        while True:
            writer.write(b'"' + b"x" * 32768 + b'",')
            await writer.drain()
    elif kind == "cut":
        writer.write(head(len(good) + 100) + good)
        await writer.drain()
        return False
    elif kind == "liar":
        whole = completion(
            session,
            usage={"prompt_tokens": -1, "completion_tokens": 1e300},
            prompt_token_ids=[-1, 2**63],
            weight_versions=[{"version": "x", "start": 9, "end": 1}],
        )
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\nRetry-After: -9e9\r\n\r\n" % len(whole) + whole)
    else:
        writer.write(head(len(good)) + good)
    await writer.drain()
    return True


class Flight:
    """A server that gives no answer before all have asked, and breaks some first attempts."""

    def __init__(self, wanted):
        self.wanted, self.asked, self.peak, self.now = wanted, 0, 0, 0
        self.all_here = asyncio.Event()

    @staticmethod
    def broken(session):
        """How the first attempt of this session is broken; one in a hundred is."""
        number = zlib.crc32(session.encode())
        return ["cut", "garbage", "deep", "reset", "busy"][number // 100 % 5] if number % 100 == 0 else None

    async def answer(self, session, attempt, writer):
        """One answer, when all are here."""
        self.now += 1
        self.peak = max(self.peak, self.now)
        self.asked += attempt == 1
        if self.asked >= self.wanted:
            self.all_here.set()
        try:
            await self.all_here.wait()
            how = self.broken(session) if attempt == 1 else None
            if how == "reset":
                writer.transport.abort()
                return False
            if how == "busy":
                writer.write(head(2, "503 Service Unavailable") + b"{}")
                return True
            return await act(how or "honest", session, writer)
        finally:
            self.now -= 1


def serve(count, flight, pipe):
    """All servers, in this process; the pipe gets their ports, and the peak in flight when asked."""
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)

    async def run():
        whole = Flight(flight)

        def server(kind):
            async def connection(reader, writer):
                try:
                    while (asked := await read_request(reader)) is not None:
                        if kind == "flight":
                            going_on = await whole.answer(*asked, writer)
                        else:
                            going_on = await act(kind, asked[0], writer)
                        if not going_on:
                            break
                except (ConnectionError, asyncio.CancelledError):
                    pass
                finally:
                    writer.close()

            return asyncio.start_server(connection, "127.0.0.1", 0, backlog=4096, limit=1 << 16)

        kinds = ["flight"] if flight else [kind_of(i) for i in range(count)]
        servers = [await server(x) for x in kinds]
        pipe.send([x.sockets[0].getsockname()[1] for x in servers])
        while not pipe.poll():
            await asyncio.sleep(0.1)
        pipe.send(whole.peak)

    asyncio.run(run())


class Servers:
    """The process of all servers."""

    def __init__(self, count, flight=0):
        self.pipe, theirs = multiprocessing.Pipe()
        self.process = multiprocessing.Process(target=serve, args=(count, flight, theirs), daemon=True)
        self.process.start()
        self.urls = [f"http://127.0.0.1:{port}/v1" for port in self.pipe.recv()]

    def end(self):
        """Ends it; the most requests that a `flight` had at once."""
        self.pipe.send("end")
        peak = self.pipe.recv()
        self.process.join(5)
        self.process.kill()
        return peak


def ask(given, how, urls, each):
    """Runs the client; its answers, its memory before and at most, in bytes, and the seconds it took."""
    started = time.monotonic()
    done = subprocess.run(
        [given.client, how, str(each), str(given.deadline_ms), str(ANSWER_BYTES)],
        input="\n".join(urls) + "\n",
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise SystemExit(f"policy_crowd.py: the client ended with {done.returncode}: {done.stderr[-2000:]}")
    lines = [json.loads(x) for x in done.stdout.splitlines()]
    return lines[:-1], {k: v << 10 for k, v in lines[-1].items()}, time.monotonic() - started


def numbers(session):
    """Server and member of "crowd/g3.e1"."""
    server, member = session.removeprefix("crowd/g").split(".e")
    return int(server), int(member)


def right(x, kind):
    """Whether an answer is what a server of this kind must lead to."""
    if kind in OUTCOMES:
        may_be = OUTCOMES[kind] | {"policy_timeout"}
        whose = POLICY if x["category"] == TOO_LARGE else INFRASTRUCTURE
        return x["class"] == whose and x["category"] in may_be and not x["text"]
    return x["class"] == 0 and x["text"] == f"<KERNEL>{x['session']}</KERNEL>"


def report(name, answers, memory, bound, seconds, wrong):
    """One line for people; the number of promises that were broken."""
    by = collections.Counter(x["category"] or "answered" for x in answers)
    mib = lambda x: f"{x / 2**20:.0f} MiB"
    print(
        f"{name}: {len(answers)} requests in {seconds:.1f} s; wrong outcomes {len(wrong)}; memory "
        f"{mib(memory['before_kib'])} before, {mib(memory['rss_kib'])} at most, bound {mib(bound)}; "
        + ", ".join(f"{k} {n}" for k, n in by.most_common())
    )
    for x in wrong[:5]:
        print(f"  WRONG: {x}")
    if memory["rss_kib"] > bound:
        print("  WRONG: the bound is broken")
    return len(wrong) + (memory["rss_kib"] > bound)


def crowd(given):
    """Each server by a client of its own."""
    servers = Servers(given.servers)
    answers, memory, seconds = ask(given, "each", servers.urls, given.each)
    servers.end()
    wrong = [x for x in answers if not right(x, kind_of(numbers(x["session"])[0]))]
    for kind, categories in OUTCOMES.items():
        asked = [x for x in answers if kind_of(numbers(x["session"])[0]) == kind]
        if asked and not any(x["category"] in categories for x in asked):
            wrong.append({"kind": kind, "never": sorted(categories), "but": sorted({x["category"] for x in asked})})
    long = sum(kind_of(i) in ("endless", "deep") for i in range(given.servers)) * given.each
    bound = BASE + given.servers * CLIENT_BYTES + len(answers) * REQUEST_BYTES + long * 2 * ANSWER_BYTES
    return report("crowd", answers, memory, bound, seconds, wrong)


def pool(given):
    """All servers behind one pool."""
    servers = Servers(given.servers)
    answers, memory, seconds = ask(given, "pool", servers.urls, given.each)
    servers.end()
    wrong = [
        x
        for x in answers
        if not (right(x, "honest") or right(x, "endless") or x["class"] == INFRASTRUCTURE and not x["text"])
    ]
    bound = BASE + given.servers * CLIENT_BYTES + len(answers) * (REQUEST_BYTES + 2 * ANSWER_BYTES)
    return report("pool", answers, memory, bound, seconds, wrong)


def flight(given):
    """Many requests at one server at once, as many as this machine lets a process have connections."""
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1] - 200
    if most < given.flight:
        print(f"flight: {given.flight} requests are too many for `ulimit -Hn` {most + 200}; {most} are tried")
        given.flight = most
    servers = Servers(1, given.flight)
    given.deadline_ms = 600_000
    answers, memory, seconds = ask(given, "each", servers.urls, given.flight)
    peak = servers.end()
    broken = [x for x in answers if Flight.broken(x["session"])]
    wrong = [x for x in answers if not right(x, "honest") or (x["attempts"] > 1) != bool(Flight.broken(x["session"]))]
    found = report(
        f"flight, {peak} at once, {len(broken)} broken",
        answers,
        memory,
        BASE + given.flight * REQUEST_BYTES,
        seconds,
        wrong,
    )
    if peak < given.flight:
        print(f"  WRONG: {peak} requests were in flight at once, not {given.flight}")
    return found + (peak < given.flight)


def main():
    """All parts."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("client")
    parser.add_argument("--servers", type=int, default=500)
    parser.add_argument("--each", type=int, default=4)
    parser.add_argument("--flight", type=int, default=16000)
    parser.add_argument("--deadline-ms", type=int, default=20000)
    parser.add_argument("--part", choices=["crowd", "pool", "flight"])
    given = parser.parse_args()
    parts = {"crowd": crowd, "pool": pool, "flight": flight}
    found = sum(part(given) for name, part in parts.items() if given.part in (None, name))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
