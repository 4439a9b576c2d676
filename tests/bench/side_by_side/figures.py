"""What came out: agreement, seconds, answers per hour, speedups; and how it is printed."""

from __future__ import annotations

import argparse
import os
import statistics

from side_by_side.answers import Row, State
from side_by_side.ours import reason_of_ours
from side_by_side.theirs import accepted_by_benchmark, reason_of_benchmark


def steady_seconds(one_pass: dict, cores: int) -> float | None:
    """Seconds for an answer while the pipe is full: between verdict number `cores` and the last but `cores`,
    so that builds under way at both ends cancel out. None where there are too few answers."""
    times = sorted(x[0] for x in one_pass["arrivals"])
    first, last = cores, len(times) - 1 - cores
    return (times[last] - times[first]) / (last - first) if last - first >= 8 else None


def spread(values: list[float]) -> dict:
    if not values:
        return {"n": 0}
    return {"n": len(values), "median": statistics.median(values), "mean": statistics.fmean(values)}


def agreement(rows: list[Row], state: State) -> dict:
    """Sorts the answers that both judged by their two verdicts; lists each difference with both reasons."""
    table: dict = {
        "both accept": [],
        "both reject": [],
        "benchmark alone accepts": [],
        "kernelmill alone accepts": [],
        "no verdict": [],
    }
    differences = []
    for row in rows:
        theirs, ours = state.data["theirs"].get(row["key"]), state.data["ours"].get(row["key"])
        if theirs is None or ours is None:
            continue
        if ours["outcome"] not in ("accepted", "rejected") or theirs.get("nothing"):
            name = "no verdict"
        else:
            a, b = accepted_by_benchmark(theirs), ours["outcome"] == "accepted"
            name = {
                (True, True): "both accept",
                (False, False): "both reject",
                (True, False): "benchmark alone accepts",
                (False, True): "kernelmill alone accepts",
            }[a, b]
        table[name].append(row["file"])
        if name not in ("both accept", "both reject"):
            differences.append(
                {
                    "file": row["file"],
                    "kind": row["kind"],
                    "what": name,
                    "benchmark": reason_of_benchmark(theirs),
                    "kernelmill": reason_of_ours(ours),
                    "note": row["note"],
                }
            )
    surprises = [
        x["file"]
        for x in rows
        if x["key"] in state.data["ours"]
        and state.data["ours"][x["key"]]["outcome"]
        != x.get("kernelmill", "accepted" if x["kind"] == "right" else "rejected")
    ]
    return {
        "counts": {k: len(v) for k, v in table.items()},
        "differences": differences,
        "kernelmill_unlike_manifest": surprises,
    }


def seconds_by_class(rows: list[Row], state: State) -> list[dict]:
    """Seconds for an answer by kind and language: the benchmark's alone, ours of the pass of verdicts."""
    result = []
    for kind, language in sorted({(x["kind"], x["language"]) for x in rows}):
        group = [x for x in rows if (x["kind"], x["language"]) == (kind, language) and not x.get("hangs")]
        theirs = [state.data["theirs"][x["key"]] for x in group if x["key"] in state.data["theirs"]]
        ours = [state.data["ours"][x["key"]] for x in group if x["key"] in state.data["ours"]]
        result.append(
            {
                "kind": kind,
                "language": language,
                "benchmark": spread([x["seconds"] for x in theirs if x["alone"]]),
                "build": spread([x["build_s"] for x in ours]),
                "slot": spread([x["slot_s"] for x in ours]),
            }
        )
    return [x for x in result if x["benchmark"]["n"] or x["build"]["n"]]


def throughput(rows: list[Row], state: State) -> list[dict]:
    """Answers per hour of both on the same answers, and their ratio, by language and state of our cache."""
    result = []
    cores = state.data["machine"].get("cores") or os.cpu_count() or 1
    for name, one in sorted(state.data["passes"].items()):
        theirs = [
            state.data["theirs"][x]["seconds"]
            for x in one["members"]
            if x in state.data["theirs"] and state.data["theirs"][x]["alone"]
        ]
        entry = {
            "pass": name,
            "answers": len(one["members"]),
            "n": one["n"],
            "copies": one["copies"],
            "wall_s": one["wall_s"],
            "per_hour": 3600 * one["n"] / one["wall_s"],
        }
        steady = steady_seconds(one, cores)
        entry["per_hour_steady"] = 3600 / steady if steady else None
        if theirs:
            mean = statistics.fmean(theirs)
            entry |= {
                "benchmark_n": len(theirs),
                "benchmark_mean_s": mean,
                "benchmark_per_hour": 3600 / mean,
                "ratio": entry["per_hour"] * mean / 3600,
                "ratio_steady": mean / steady if steady else None,
            }
        result.append(entry)
    return result


def speedups(rows: list[Row], state: State) -> dict:
    """Both speedups of each answer that both accept, where the benchmark had the GPU for itself."""
    lines = []
    for row in rows:
        theirs, ours = state.data["theirs"].get(row["key"]), state.data["ours"].get(row["key"])
        if not theirs or not ours or not theirs["alone"] or ours["outcome"] != "accepted":
            continue
        runtime, reference = theirs.get("runtime") or -1, theirs.get("ref_runtime") or -1
        if accepted_by_benchmark(theirs) and runtime > 0 and reference > 0 and ours["speedup"]:
            lines.append(
                {
                    "file": row["file"],
                    "benchmark": reference / runtime,
                    "kernelmill": ours["speedup"],
                    "low": ours["speedup_low"],
                    "high": ours["speedup_high"],
                    "benchmark_ms": runtime,
                    "kernelmill_ms": ours["candidate_ms"],
                }
            )
    apart = [abs(x["kernelmill"] / x["benchmark"] - 1) for x in lines]
    return {"lines": lines, "median_relative_difference": statistics.median(apart) if apart else None}


def summary(options: argparse.Namespace, rows: list[Row], state: State) -> dict:
    theirs = [state.data["theirs"][x["key"]] for x in rows if x["key"] in state.data["theirs"]]
    return {
        "machine": state.data["machine"],
        "candidates": len(rows),
        "problems": len({(x["level"], x["problem_id"]) for x in rows}),
        "judged_by_benchmark": len(theirs),
        "of_these_alone": sum(x["alone"] for x in theirs),
        "judged_by_kernelmill": sum(x["key"] in state.data["ours"] for x in rows),
        "agreement": agreement(rows, state),
        "died": [x["file"] for x in rows if state.data["theirs"].get(x["key"], {}).get("died")],
        "timed_out": [x["file"] for x in rows if state.data["theirs"].get(x["key"], {}).get("timed_out")],
        "seconds": seconds_by_class(rows, state),
        "throughput": throughput(rows, state),
        "speedups": speedups(rows, state),
    }


def number(x: float | None, form: str = ".1f") -> str:
    return "-" if x is None else format(x, form)


def print_summary(s: dict, options: argparse.Namespace) -> None:
    machine = s["machine"]
    print(
        f"{machine.get('gpu', 'no GPU seen')}, {machine.get('cores')} cores, torch {machine.get('torch')}, "
        f"triton {machine.get('triton')}; benchmark at {machine.get('kernelbench', '?')}; "
        f"{machine.get('kernelmill', '?')}"
    )
    print(
        f"{s['candidates']} answers to {s['problems']} problems; the benchmark judged "
        f"{s['judged_by_benchmark']}, {s['of_these_alone']} of them alone on the machine; kernelmill "
        f"{s['judged_by_kernelmill']}."
    )
    stand_ins = machine.get("stand_ins")
    if stand_ins:
        print(
            f"Stand-ins for modules that an evaluation does not use: {', '.join(stand_ins)}. They spare "
            "the benchmark the time of importing these."
        )
    print(
        "Clock: time.monotonic of this script. Benchmark: from the start of a fresh process to its end "
        "(importing torch, building, 5 trials, 100 timed runs of answer and of reference). Its batch "
        "script imports more and, where a process dies, waits for its timeout: neither is counted here."
    )

    print("\nVerdicts")
    for name, count in s["agreement"]["counts"].items():
        print(f"  {name:26} {count:4}")
    for x in s["agreement"]["differences"]:
        print(
            f"  {x['what']}: {x['file']} ({x['kind']})\n    benchmark:  {x['benchmark']}\n"
            f"    kernelmill: {x['kernelmill']}" + (f"\n    known:      {x['note']}" if x["note"] else "")
        )
    if s["agreement"]["kernelmill_unlike_manifest"]:
        print("  kernelmill unlike the manifest: " + ", ".join(s["agreement"]["kernelmill_unlike_manifest"]))
    if s["died"]:
        print("  the benchmark's process died of: " + ", ".join(s["died"]))
    if s["timed_out"]:
        print(
            f"  the benchmark ran out of time with: {', '.join(s['timed_out'])} (what is known to hang is "
            f"cut off after {options.cut_hangs:g} s of {options.timeout:g} s and left out of all speeds)"
        )

    print("\nSeconds for an answer (kernelmill: one pass from an empty cache; builds run beside each other)")
    print(f"  {'':22}{'benchmark':>26}{'kernelmill, build':>26}{'kernelmill, GPU':>26}")
    print(f"  {'':22}" + 3 * f"{'n':>8}{'median':>9}{'mean':>9}")
    for x in s["seconds"]:
        cells = "".join(
            f"{c['n']:8}{number(c.get('median'), '.2f'):>9}{number(c.get('mean'), '.2f'):>9}"
            for c in (x["benchmark"], x["build"], x["slot"])
        )
        print(f"  {x['kind'] + ', ' + x['language']:22}{cells}")

    print(
        "\nAnswers per hour, both on the same answers. Cold: nothing built, copies differ in a comment.\n"
        "Whole: the command from start to end. Full: while the pipe is full (between verdict number C and\n"
        "the last but C, C cores). The ratio takes the mean of the benchmark's seconds. Copies answer\n"
        "the same problems: what kernelmill keeps of one serves them all, the benchmark keeps nothing."
    )
    for x in s["throughput"]:
        print(
            f"  {x['pass']:12} {x['answers']} answers x {x['copies']} = {x['n']} in {x['wall_s']:.1f} s: "
            f"whole {x['per_hour']:.0f}, full {number(x['per_hour_steady'], '.0f')} an hour"
        )
        if "ratio" in x:
            print(
                f"  {'':12} benchmark {x['benchmark_per_hour']:.1f} an hour (n = {x['benchmark_n']}, mean "
                f"{x['benchmark_mean_s']:.1f} s): ratio {x['ratio']:.1f} whole, "
                f"{number(x['ratio_steady'])} full"
            )

    print("\nSpeedup over the reference where both accept (benchmark: mean of 100 CUDA events, L2 flushed)")
    for x in s["speedups"]["lines"]:
        print(
            f"  {x['file']:46} benchmark {x['benchmark']:6.2f}  kernelmill {x['kernelmill']:6.2f} "
            f"[{number(x['low'], '.2f')}, {number(x['high'], '.2f')}]  {x['benchmark_ms']:.3g} ms against "
            f"{number(x['kernelmill_ms'], '.3g')} ms"
        )
    median = s["speedups"]["median_relative_difference"]
    if median is not None:
        print(f"  median relative difference {100 * median:.1f} % (n = {len(s['speedups']['lines'])})")
