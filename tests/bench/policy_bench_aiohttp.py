#!/usr/bin/python3
"""The same askers as policy_load's, over aiohttp: one session, no limit of connections.

    policy_bench_aiohttp.py URL N LATENCY_MS SECONDS BODY_FILE

The body is ready, as for the bare HTTP client; each answer is parsed as JSON.
"""

import asyncio
import json
import os
import resource
import sys
import time

import aiohttp


class Tally:
    answered = 0
    failed = 0
    again = False
    next = 0


async def ask(session, url, request, tally):
    """Asks once, and again as long as it shall go on."""
    while True:
        number = tally.next
        tally.next += 1
        name = f"bench/g{number}.e0"
        headers = {
            "Content-Type": "application/json",
            "X-Request-Id": f"{name}.t0.a1",
            "traceparent": f"00-{number:032x}-{number + 1:016x}-01",
            "X-Session-ID": name,
            "X-SMG-Routing-Key": name,
        }
        good = False
        try:
            # As in a rollout, where every prompt is another one: the body is made for each request.
            body = json.dumps(request).encode()
            async with session.post(url, data=body, headers=headers) as response:
                answer = json.loads(await response.read())
                choice = answer["choices"][0]
                text, why = choice["message"]["content"], choice["finish_reason"]
                good = response.status == 200 and bool(text) and bool(why) and answer["usage"]["completion_tokens"] >= 0
        except (aiohttp.ClientError, asyncio.TimeoutError, OSError, ValueError) as cause:
            if tally.failed == 0:
                print(f"aiohttp: first failure: {cause!r}", file=sys.stderr)
        again = tally.again
        if good:
            tally.answered += 1
        else:
            tally.failed += 1
        if not again:
            return


def reading(tally):
    used = resource.getrusage(resource.RUSAGE_SELF)
    return time.monotonic(), used.ru_utime + used.ru_stime, tally.answered, tally.failed


def report(phase, start, end):
    rss = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    line = {
        "phase": phase,
        "seconds": end[0] - start[0],
        "cpu": end[1] - start[1],
        "answered": end[2] - start[2],
        "failed": end[3] - start[3],
        "rss_kib": rss,
    }
    print(json.dumps(line), flush=True)


async def measure(url, count, latency, seconds, request):
    tally = Tally()
    # Ours gives idle connections up after 3 s too: the server closes them after 5.
    connector = aiohttp.TCPConnector(limit=0, keepalive_timeout=3)
    timeout = aiohttp.ClientTimeout(total=300)
    async with aiohttp.ClientSession(connector=connector, timeout=timeout) as session:
        url += "/chat/completions"
        start = reading(tally)
        loop = asyncio.get_running_loop()
        tasks = [loop.create_task(ask(session, url, request, tally)) for _ in range(count)]
        await asyncio.wait(tasks)
        report("cold", start, reading(tally))

        tally.again = True
        begin = loop.time()
        tasks = []
        for i in range(count):
            due = begin + latency * i / count
            if due > loop.time() + 0.001:
                await asyncio.sleep(due - loop.time())
            tasks.append(loop.create_task(ask(session, url, request, tally)))
        await asyncio.sleep(latency)
        print('{"phase":"warm-up"}', flush=True)
        start = reading(tally)
        await asyncio.sleep(seconds)
        report("warm", start, reading(tally))
        sys.stdout.flush()
        # What is still in flight is not worth waiting for.
        os._exit(0)


def main():
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    url, count, latency, seconds, file = sys.argv[1:]
    with open(file, "rb") as body:
        request = json.load(body)
    asyncio.run(measure(url, int(count), int(latency) / 1000, float(seconds), request))


if __name__ == "__main__":
    main()
