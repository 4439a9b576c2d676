"""Candidates that crash or hang among good ones, and how many verdicts a minute there are."""

import os
import pathlib
import time

from gpu_check.clocks import by_events, event_timer
from gpu_check.common import CORPUS, OUT, baseline, contract, honest_set, judge, manifest, promise, say, task_ids


def check_faults():
    bad = [
        "illegal_address",
        "endless_kernel",
        "device_assert",
        "device_trap",
        "exit_zero",
        "thrown_exception",
        "null_dereference",
        "out_of_bounds_far",
        "fork_bomb",
        "device_memory_bomb",
    ]
    rows = {pathlib.Path(x["file"]).stem: x for x in manifest()}
    candidates = []
    good = task_ids()[:8]
    for i in range(200):
        x = rows[bad[i % len(bad)]]
        # Endless ones take the whole limit of a call; one in ten is enough.
        candidates.append((f"bad{i}", x["task"], CORPUS / x["file"]))
        candidates.append(
            (f"good{i}", "native/row_sum", baseline("native/row_sum"))
            if i % 2
            else (f"good{i}", good[i % 8], baseline(good[i % 8]))
        )
    report_faults("native", *judge("faults", candidates))
    devices = [x for x in manifest() if contract(x) == "device"]
    bad = [
        x for x in devices if {"illegal_access", "device_error", "timed_out", "bad_launch"} & set(x.get("rules", []))
    ]
    good = [x for x in devices if x["expect"] == "accepted"]
    candidates = []
    for i in range(200 if bad and good else 0):
        for name, x in (("bad", bad[i % len(bad)]), ("good", good[i % len(good)])):
            candidates.append((f"{name}{i}", x["task"], CORPUS / x["file"], "device"))
    if candidates:
        report_faults("device", *judge("faults-device", candidates))


def report_faults(name, verdicts, seconds):
    kept = sum(v["outcome"] == "accepted" for n, v in verdicts.items() if n.startswith("good"))
    caught = sum(v["outcome"] == "rejected" for n, v in verdicts.items() if n.startswith("bad"))
    blamed = sum(v["outcome"] == "infrastructure" for v in verdicts.values())
    promise(
        kept == 200 and caught == 200,
        f"{name}: 200 crashing or hanging candidates among 200 good ones: "
        f"{kept} good ones accepted, {caught} bad ones rejected, {blamed} left to the machine; "
        f"{seconds:.0f} s",
    )


def spans_of(verdicts):
    total = {}
    for v in verdicts.values():
        for name, seconds in v.get("slot_seconds", {}).items():
            total[name] = total.get(name, 0) + seconds
    return ", ".join(f"{name} {seconds / len(verdicts) * 1e3:.0f}" for name, seconds in total.items())


def report_speed(name, verdicts, seconds):
    slot = sum(v["slot_s"] for v in verdicts.values())
    say(
        f"        {name:22} {len(verdicts) / seconds * 60:6.0f} verdicts/min ({seconds:.1f} s), slot "
        f"held {slot / len(verdicts) * 1e3:.0f} ms a candidate, {slot / seconds * 100:.0f} % of the time"
    )
    say(f"        {'':22} of that, ms: {spans_of(verdicts)}")


def check_speed():
    say(
        f"        full protocol, {os.cpu_count()} cores, one GPU; cold: nothing compiled, "
        "references included; warm: each twice, compiled"
    )
    fastest = {}
    for wanted in ("native", "device"):
        rows = honest_set(wanted)
        cache = OUT / f"cold-cache-{wanted}"
        for state, copies in (("cold", 1), ("warm", 2)):
            many = [(f"{n}#{i}", t, f, wanted) for n, t, f, *_ in rows for i in range(copies)]
            verdicts, seconds = judge(f"{state}-{wanted}", many, cache)
            promise(len(verdicts) == len(many), f"{wanted}, {state}: {len(verdicts)} of {len(many)} have a verdict")
            if verdicts:
                report_speed(f"{wanted}, {len(many)}, {state}", verdicts, seconds)
                fastest[wanted, state] = seconds / len(verdicts)
    event_timer()
    rows = honest_set("native")[::4]
    started = time.monotonic()
    plain = sum(by_events(t, f) is not None for _, t, f, *_ in rows)
    each = (time.monotonic() - started) / max(1, len(rows))
    say(
        f"        plain script (nvcc, fresh process, CUDA events; {plain} of {len(rows)} candidates, no "
        f"checking): {60 / each:.0f}/min"
    )
    for (wanted, state), seconds in fastest.items():
        say(f"        {wanted}, {state}: {each / seconds:.1f} times the plain script")
