#!/usr/bin/python3
"""What a request costs the client: ours, bare and whole, beside Python's aiohttp.

    tests/bench/policy_bench.py [--quick] [--in-flight 1000,16000] [--clients http,actor,aiohttp]

One fresh client process and one fresh server process a row; bodies of about 8 KB and 4 KB, HTTP/1.1 over
loopback. The server answers after a latency that keeps N requests in flight; PEAK is how many it saw at
once. CPU is of the client's process, all its threads. See policy_load.cpp for the two phases.
"""

import argparse
import json
import pathlib
import resource
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
LOAD = HERE.parent.parent / "build-bench" / "bench" / "policy_load"


class Server:
    def __init__(self, load, latency_ms):
        self.process = subprocess.Popen(
            [load, "serve", str(latency_ms)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.url = f"http://127.0.0.1:{int(self.process.stdout.readline())}/v1"

    def peak(self):
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        return int(self.process.stdout.readline())

    def close(self):
        self.process.stdin.close()
        self.process.terminate()
        self.process.wait()


def client_command(load, client, url, count, latency_ms, seconds, body):
    rest = [url, str(count), str(latency_ms), str(seconds)]
    if client == "aiohttp":
        return ["/usr/bin/python3", str(HERE / "policy_bench_aiohttp.py"), *rest, body]
    return [load, client, *rest]


def show(client, count, phase, peak):
    answered = phase["answered"]
    ended = max(answered + phase["failed"], 1)
    micros = phase["cpu"] / ended * 1e6
    print(
        f"{client:<8} {count:>9} {phase['phase']:<5} {peak:>6} {answered:>9} {phase['failed']:>6} "
        f"{answered / phase['seconds']:>10.0f} {micros:>11.1f} {phase['rss_kib'] / 1024:>8.0f}",
        flush=True,
    )
    return micros


def measure(load, client, count, latency_ms, seconds, body):
    """Prints a row a phase, and returns the processor time of a warm request in microseconds."""
    server = Server(load, latency_ms)
    warm = None
    try:
        command = client_command(load, client, server.url, count, latency_ms, seconds, body)
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            for line in process.stdout:
                phase = json.loads(line)
                peak = server.peak()
                if phase["phase"] != "warm-up":
                    warm = show(client, count, phase, peak)
        if process.returncode != 0:
            sys.exit(f"policy_bench: {client} ended with {process.returncode}")
    finally:
        server.close()
    return warm


def check_limits(counts):
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = max(counts) + max(counts) // 8 + 64  # connections, and what libcurl opens beside them
    if hard != resource.RLIM_INFINITY and hard < needed:
        sys.exit(
            f"policy_bench: {max(counts)} in flight need {needed} open files, and the hard limit is {hard} "
            "(ulimit -Hn); raise it, or choose --in-flight"
        )
    low, high = map(int, pathlib.Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split())
    if high - low < max(counts):
        sys.exit(f"policy_bench: only {high - low} local ports (net.ipv4.ip_local_port_range)")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a tenth of the time, 100 and 1,000 in flight")
    parser.add_argument("--in-flight", help="numbers of requests in flight, by comma")
    parser.add_argument("--clients", default="http,actor,aiohttp")
    parser.add_argument("--latency-ms", type=int, help="of the server; 0.5 ms a request in flight if not given")
    parser.add_argument("--seconds", type=float, help="how long the warm phase lasts")
    parser.add_argument("--load", default=str(LOAD), help="path of policy_load")
    arguments = parser.parse_args()
    counts = [int(x) for x in (arguments.in_flight or ("100,1000" if arguments.quick else "1000,16000")).split(",")]
    seconds = arguments.seconds or (2 if arguments.quick else 20)
    check_limits(counts)
    print(
        f"{'CLIENT':<8} {'IN FLIGHT':>9} {'PHASE':<5} {'PEAK':>6} {'ANSWERED':>9} {'FAILED':>6} "
        f"{'REQUESTS/S':>10} {'CPU us/REQ':>11} {'RSS MiB':>8}"
    )
    with tempfile.NamedTemporaryFile() as body:
        subprocess.run([arguments.load, "body"], stdout=body, check=True)
        for count in counts:
            latency_ms = arguments.latency_ms or max(count // 2, 100)
            cost = {}
            for client in arguments.clients.split(","):
                cost[client] = measure(arguments.load, client, count, latency_ms, seconds, body.name)
            if "aiohttp" in cost:
                for client in ("http", "actor"):
                    if client in cost:
                        print(
                            f"{count} in flight: aiohttp needs {cost['aiohttp'] / cost[client]:.1f} times "
                            f"the processor time of {client}"
                        )


if __name__ == "__main__":
    main()
