"""The parts of gpu_check.sh. Each prints what it found and fails the whole when a promise is broken."""

import argparse
import datetime
import os
import subprocess
import sys
import time
import traceback

from gpu_check import clocks, common, copies, corpora, false_alarms, faults, hip, matrix, profiles, runs, truth

PARTS = {
    "tasks": corpora.check_tasks,
    "honest": corpora.check_honest,
    "exploits": corpora.check_exploits,
    "torch_exploits": corpora.check_torch_exploits,
    "clocks": clocks.check_clocks,
    "same": copies.check_same,
    "torch_same": copies.check_torch_same,
    "planted": copies.check_planted,
    "truth": truth.check_truth,
    "matrix": matrix.check_matrix,
    "false_alarms": false_alarms.check_false_alarms,
    "faults": faults.check_faults,
    "hip": hip.check_hip,
    "speed": faults.check_speed,
    "run": runs.check_run,
    "device_run": runs.check_device_run,
    "profile": profiles.check_profile,
    "profile_cost": runs.check_profile_cost,
}

# Seconds that parts usually take on an H200, by which they share the time where all of it is limited.
SAME_STARTS, SAME_EACH = 8, 0.4
USUALLY = {
    "tasks": 30,
    "honest": 170,
    "exploits": 95,
    "torch_exploits": 280,
    "clocks": 200,
    "same": 88,
    "torch_same": 55,
    "planted": 25,
    "truth": 400,
    "matrix": 500,
    "false_alarms": 350,
    "faults": 440,
    "hip": 60,
    "speed": 230,
    "run": 60,
    "device_run": 60,
    "profile": 140,
    "profile_cost": 180,
}


# What must hold before a release, on one GPU: the parts, and what they ask for. Each day has other variants and another
# order of the corpora, so that what one day has no time for comes another.
RELEASE = ("honest", "matrix", "exploits", "torch_exploits", "same", "torch_same", "planted", "truth", "speed")
RELEASE_SECONDS, RELEASE_SEEDS, RELEASE_COPIES = 590, 10, 40


def usual_seconds(copies):
    """As many copies as were asked for take as long."""
    return USUALLY | {"same": SAME_STARTS + SAME_EACH * copies}


def words(text):
    return [x for x in text.split(",") if x]


def read_options(arguments):
    parser = argparse.ArgumentParser(prog="gpu_check.sh", description="Checks and measures Kernelmill on this GPU.")
    add = parser.add_argument
    add("parts", nargs="*", metavar="PART", help=f"release, or some of these, or all without one: {' '.join(PARTS)}")
    add("--seconds", type=float, help="time for each part; it then ends with what it has")
    add(
        "--total",
        type=float,
        metavar="SECONDS",
        help="time for all parts: each has a share, and leaves what it does not use to the others",
    )
    add("--problems", type=words, default=[], help="truth: those whose names begin so, or how many")
    add("--modules", type=words, default=[], help="truth: which of a problem's modules")
    add("--contracts", type=words, default=[], help="truth, matrix, false_alarms: which contracts")
    add(
        "--clocks",
        type=words,
        default=[],
        help="truth: which clocks are asked for, each of all kernels; without it each task has one, by turns",
    )
    add(
        "--seeds",
        type=int,
        help=(
            "matrix: variants of each class; without it $KERNELMILL_MATRIX_SEEDS, or 50 of those of contents, "
            "timing and sampling that were once paid and 5 of the others, or 2 on a CPU"
        ),
    )
    add("--first-seed", type=int, default=0, help="matrix: where they begin")
    add(
        "--add",
        type=words,
        default=[],
        metavar="FOLDERS",
        help=(
            "matrix: results of other runs of this commit, $OUT of each: their variants are printed with ours, "
            "and not judged again"
        ),
    )
    add("--only", type=words, default=[], help="matrix: which classes")
    add("--count", type=int, default=1000, help="false_alarms: how many verdicts")
    add("--copies", type=int, default=200, help="same: how many verdicts")
    add("--members", type=int, default=4, help="profile_cost: episodes of each of the 16 tasks")
    add(
        "--cores",
        default="both",
        choices=["both", "busy", "quiet"],
        help="false_alarms: whether other processes keep the cores busy",
    )
    add("--beside", type=words, default=[], metavar="PARTS", help="parts that run meanwhile on the other GPUs")
    add(
        "--backend",
        default="cuda",
        choices=["cuda", "cpu"],
        help="truth, matrix, false_alarms: cpu tries them without a GPU",
    )
    chosen = parser.parse_args(arguments)
    today = datetime.date.today().toordinal()
    chosen.order = today if chosen.parts == ["release"] else 0
    if chosen.parts == ["release"]:
        chosen.parts = list(RELEASE)
        chosen.total = chosen.total or RELEASE_SECONDS
        chosen.seeds = chosen.seeds or RELEASE_SEEDS
        chosen.copies = min(chosen.copies, RELEASE_COPIES)
    unknown = [x for x in chosen.parts + chosen.beside if x not in PARTS]
    if unknown:
        parser.error(f"there is no part {unknown[0]}; there are: {' '.join(PARTS)}")
    return chosen


def gpus():
    """Those that may be used, as CUDA_VISIBLE_DEVICES names them."""
    shown = os.environ.get("CUDA_VISIBLE_DEVICES")
    if shown is not None:
        return [x for x in shown.split(",") if x.strip()]
    done = subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True)
    return [str(i) for i, line in enumerate(done.stdout.splitlines()) if line.startswith("GPU ")]


def start_beside(parts):
    """Runs parts on all GPUs but the first, which is left to us. Returns the process;
    what it says lies in OUT/beside.txt."""
    found = gpus()
    if len(found) < 2:
        sys.exit(
            f"gpu_check.sh: --beside needs a second GPU; {len(found)} can be used. "
            "Leave the option out and name its parts"
        )
    os.environ["CUDA_VISIBLE_DEVICES"] = found[0]
    given = [x for x in sys.argv[1:] if not x.startswith("--beside=")]
    at = given.index("--beside") if "--beside" in given else len(given)
    options = [x for x in given[:at] + given[at + 2 :] if x not in PARTS]
    folder = common.OUT / "beside"
    folder.mkdir(exist_ok=True)
    return subprocess.Popen(
        [sys.executable, "-m", "gpu_check", *parts, *options],
        stdout=(common.OUT / "beside.txt").open("w"),
        stderr=subprocess.STDOUT,
        env=os.environ | {"CUDA_VISIBLE_DEVICES": ",".join(found[1:]), "OUT": str(folder)},
    )


def main():
    common.options = read_options(sys.argv[1:])
    beside = start_beside(common.options.beside) if common.options.beside else None
    run_parts()
    holds = common.end_table()
    if beside is not None:
        holds = beside.wait() == 0 and holds
        common.say("\n-- beside, on the other GPUs: " + " ".join(common.options.beside))
        common.say((common.OUT / "beside.txt").read_text().rstrip())
    common.say(f"raw results: {common.OUT}")
    sys.exit(0 if holds else 1)


def run_parts():
    names = list(common.options.parts or PARTS)
    until = time.monotonic() + (common.options.total or 0)
    for number, name in enumerate(names):
        if common.options.total:
            left = max(1, until - time.monotonic())
            common.options.seconds = common.share_of(left, usual_seconds(common.options.copies), names[number:])
        common.parts.append(common.Part(name))
        common.say(f"-- {name}")
        try:
            PARTS[name]()
        except Exception as problem:  # the parts to come have things to say
            traceback.print_exc()
            common.promise(False, f"{name} ended with {type(problem).__name__}: {problem}")
        except KeyboardInterrupt:
            common.promise(False, f"{name} was interrupted")
            break


if __name__ == "__main__":
    main()
