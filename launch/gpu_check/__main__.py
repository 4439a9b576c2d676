"""The parts of gpu_check.sh. Each prints what it found and fails the whole when a promise is broken."""

import argparse
import sys
import traceback

from gpu_check import clocks, common, copies, corpora, false_alarms, faults, matrix, runs, truth

PARTS = {"tasks": corpora.check_tasks, "exploits": corpora.check_exploits, "torch_exploits": corpora.check_torch_exploits,
         "clocks": clocks.check_clocks, "same": copies.check_same, "torch_same": copies.check_torch_same,
         "planted": copies.check_planted, "truth": truth.check_truth, "matrix": matrix.check_matrix,
         "false_alarms": false_alarms.check_false_alarms, "faults": faults.check_faults, "speed": faults.check_speed, "run": runs.check_run, "device_run": runs.check_device_run}


def words(text):
    return [x for x in text.split(",") if x]


def read_options(arguments):
    parser = argparse.ArgumentParser(prog="gpu_check.sh", description="Checks and measures Kernelmill on this GPU.")
    add = parser.add_argument
    add("parts", nargs="*", metavar="PART", help=f"all without one: {' '.join(PARTS)}")
    add("--seconds", type=float, help="time for each part; it then ends with what it has")
    add("--problems", type=words, default=[], help="truth: those whose names begin so, or how many")
    add("--modules", type=words, default=[], help="truth: which of a problem's modules")
    add("--contracts", type=words, default=[], help="truth, matrix, false_alarms: which contracts")
    add("--clocks", type=words, default=["device", "call"], help="truth: which clocks are asked for")
    add("--seeds", type=int, help="matrix: variants of each class; without it $KERNELMILL_MATRIX_SEEDS, or 10, or 2 on a CPU")
    add("--first-seed", type=int, default=0, help="matrix: where they begin")
    add("--only", type=words, default=[], help="matrix: which classes")
    add("--count", type=int, default=1000, help="false_alarms: how many verdicts")
    add("--backend", default="cuda", choices=["cuda", "cpu"], help="truth, matrix, false_alarms: cpu tries them without a GPU")
    chosen = parser.parse_args(arguments)
    unknown = [x for x in chosen.parts if x not in PARTS]
    if unknown:
        parser.error(f"there is no part {unknown[0]}; there are: {' '.join(PARTS)}")
    return chosen


def main():
    common.options = read_options(sys.argv[1:])
    for name in common.options.parts or PARTS:
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
    holds = common.end_table()
    common.say(f"raw results: {common.OUT}")
    sys.exit(0 if holds else 1)


if __name__ == "__main__":
    main()
