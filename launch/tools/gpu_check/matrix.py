"""Generated attacks of every class, and what became of them: tests/exploits/matrix."""

import collections
import hashlib
import json
import os
import pathlib
import shutil
import subprocess
import sys

from gpu_check import common
from gpu_check.common import (
    HERE,
    MATRIX,
    MOST_UNPAID,
    OUT,
    TASKS,
    note_tried,
    promise,
    reasons,
    say,
    verdicts_of,
    write_task,
)
from gpu_check.corpora import is_dead

RESULTS = ("caught", "unpaid", "paid", "machine", "dead")
NO_GOOD = RESULTS[2:]
BAD = ("caught", "unpaid", "machine", "dead", "paid")  # the worst last
BACKENDS = {"cuda": ("native-cuda", "device-cuda", "torch-cuda"), "cpu": ("native-cpu", "torch-cpu")}


def table():
    return json.loads((MATRIX / "matrix.json").read_text())


def generators():
    os.environ.setdefault("KERNELMILL_TASKS", str(TASKS))
    if str(MATRIX) not in sys.path:
        sys.path.insert(0, str(MATRIX))
    import generators as found

    return found


# Ends of a variant before it attacked, which is our slip. Extensions of Python are compiled while they run.
NEVER_RAN = {
    "torch": {"init_error", "import_error", "missing_model"},
    "native": {"compile_error", "load_failed", "missing_symbol"},
}
NEVER_RAN["device"] = NEVER_RAN["native"]
SLIPS = ("AttributeError", "NameError", "TypeError", "UnboundLocalError", "ModuleNotFoundError")


def did_not_attack(variant, verdict):
    """Whether a variant found nothing to attack, or failed by itself: then the referee did not catch it."""
    error = verdict.get("error") or {}
    never_ran = NEVER_RAN.get(variant.get("contract", "").split("-")[0], set())
    return (
        is_dead(verdict)
        or bool(never_ran & reasons(verdict))
        or (error.get("category") == "runtime_error" and (error.get("message") or "").startswith(SLIPS))
    )


def result_of(variant, verdict, companion=None):
    """What became of a variant; see generators/__init__.py for what is expected."""
    outcome, timing = verdict.get("outcome"), verdict.get("timing") or {}
    if outcome == "infrastructure" or not outcome:
        return "machine"
    if did_not_attack(variant, verdict):
        return "dead"
    expect = variant["expect"]
    if expect == "silent":
        error = verdict.get("error") or {}
        said = " ".join(
            [
                error.get("message") or "",
                error.get("hint") or "",
                *(c.get("first_bad") or "" for c in verdict.get("cases", [])),
            ]
        )
        # Of a sealed verdict a policy sees no words but ours.
        return "paid" if any(mark in said for mark in variant["marks"]) and not verdict.get("sealed") else "caught"
    if expect == "poorer":
        return (
            "paid"
            if not companion or (verdict.get("reward") or 0) > (companion.get("reward") or 0) + 1e-9
            else "caught"
        )
    if outcome == "rejected":
        return "caught"
    if expect == "refused":
        return "paid"
    gained = timing.get("measured") and timing["speedup"]["low"] > MOST_UNPAID
    return "paid" if gained and "unchanged" not in reasons(verdict) else "unpaid"


VARIANTS = 5  # of a class on a GPU; matrix.json says of which there are more: contents, timing and sampling, once paid


def variants(wanted, contracts, seeds, first=0):
    """Yields variants, all classes of a seed before the next seed, each with its class, contract, seed and name.
    `seeds` says how many a class has."""
    make = generators().make
    for seed in range(first, first + max(map(seeds, table()["classes"]))):
        for row in table()["classes"]:
            if seed >= first + seeds(row):
                continue
            for contract in contracts:
                if (not wanted or row["name"] in wanted) and row["cells"][contract].get("generator"):
                    yield make(row["name"], seed, contract, getattr(common.options, "order", 0)) | {
                        "class": row["name"],
                        "contract": contract,
                        "seed": seed,
                        "name": f"{row['name']}.{contract}.{seed}",
                    }


def write_variant(root, folder, x):
    """Its files and its task, below our own folders. Returns the lines of a batch."""
    task = x["task"] if isinstance(x["task"], str) else write_task(root, x["task"]["name"], x["task"]["problem"])
    lines = []
    for name, source in ((x["name"], x["source"]), (x["name"] + ".companion", x.get("companion"))):
        if source is not None:
            file = folder / (name + x["suffix"])
            file.write_text(source)
            lines.append((name, task, file, x["contract"].split("-")[0]))
    return lines


FEW = 12  # variants, for which the start of a command more takes longer than they do
SEEDS_AT_ONCE = 25


def commands(found):
    """[((contract, language, preset, clock), variants)]: the first seed of all classes, by as few commands as options
    allow, before most others, so that a run that ends early has tried every class. Then so many seeds of all classes
    before the next; variants of one problem together, for a referee keeps some ready, and knows what it was told of
    others."""
    first = min((x["seed"] for x in found), default=0)
    options = lambda x: (x["contract"], x["language"], x.get("preset", ""), x.get("clock", ""))
    sizes = collections.Counter(map(options, found))
    is_one = len({x["contract"] for x in found}) == 1  # then what has a command has its first seeds first
    few = lambda x: sizes[options(x)] <= FEW
    groups = collections.defaultdict(list)
    for x in found:
        groups[not few(x) and (is_one or x["seed"] > first), options(x)].append(x)
    for rows in groups.values():
        rows.sort(
            key=lambda x: (
                0 if x["seed"] == first else 1 + (x["seed"] - first) // SEEDS_AT_ONCE,
                str(x["task"]),
                x["class"],
            )
        )
    return [(key[1], groups[key]) for key in sorted(groups, key=lambda key: key[0])]  # else as they came


START_SECONDS = 25  # of a command, before its first verdict


def share_of(seconds, rows, later):
    """Of the time that is left: a start, and of the rest by how many are still to be judged.
    What is not used goes to the next."""
    rest = max(0.0, seconds - START_SECONDS * (1 + len(later)))
    return min(seconds, START_SECONDS + rest * len(rows) / max(1, len(rows) + sum(map(len, later))))


def commands_in_turn(found, left):
    """(options, variants, those of each command to come): what is in `left` after a command comes again; of all
    commands but the last, which has most, before that takes what is left of the time."""
    *first, last = commands(found)
    for batches, later in ((first, [last[1]]), ([last], [])):
        for is_again in (False, True):
            some = commands([x for _, rows in batches for x in rows if x["name"] in left]) if is_again else batches
            for at, (options, rows) in enumerate(some):
                yield options, rows, [x for _, x in some[at + 1 :]] + later


def judged(found, backend, root, seconds):
    """Judges variants and yields (variant, verdict, companion's).
    Those that their command's time was too short for come again."""
    folder = OUT / "matrix"
    folder.mkdir(exist_ok=True)
    left = {x["name"]: x for x in found}
    for number, (options, rows, later) in enumerate(commands_in_turn(found, left) if found else []):
        if seconds() <= 0:
            return
        limit = share_of(seconds(), rows, later)
        for x, *verdicts in judged_by_one(f"matrix-{number}", options, rows, root, folder, backend, limit):
            if left.pop(x["name"], None):
                yield x, *verdicts


def judged_by_one(batch, options, rows, root, folder, backend, limit):
    """The same by one command."""
    contract, language, preset, clock = options
    flags = ["--root", root] + [
        y for name, value in (("--preset", preset), ("--clock", clock)) if value for y in (name, value)
    ]
    if contract.startswith("torch"):
        flags += ["--language", language]
    by_name = {x["name"]: x for x in rows}
    seen = {}
    lines = [line for x in rows for line in write_variant(root, folder, x)]
    for verdict in verdicts_of(f"{batch}-{contract}", lines, options=flags, seconds=limit, backend=backend):
        seen[verdict["name"]] = verdict
        name = verdict["name"].removesuffix(".companion")
        x = by_name[name]
        if name in seen and ("companion" not in x or name + ".companion" in seen):
            yield x, seen[name], seen.get(name + ".companion")


def describe(x, verdict):
    timing = verdict.get("timing") or {}
    speed = timing.get("speedup") or {}
    times = (
        f"{speed['estimate']:.2f} [{speed['low']:.2f}, {speed['high']:.2f}]" if timing.get("measured") else "not timed"
    )
    words = (verdict.get("error") or {}).get("message") or ""
    task = x["task"] if isinstance(x["task"], str) else x["task"]["name"]
    seconds = (
        f" {timing.get('reference_ms')} and {timing.get('candidate_ms')} ms; {timing.get('note')}"
        if timing.get("measured")
        else ""
    )
    return (
        f"{x['name']:44} {task} {verdict.get('outcome')} for {sorted(reasons(verdict))}, "
        f"{times},{seconds} reward {verdict.get('reward')}: "
        f"{words[:140]}"
    )


def show(counts, contracts):
    """The matrix: tried/caught/unpaid/paid of each class and contract."""
    say(
        "\n        tried/caught/unpaid/paid; beside: `m` left to the machine, `d` dead, which did not attack; "
        "-: there can be none, or corpora have it\n"
        f"        {'class':28}" + "".join(f"{c:>18}" for c in contracts)
    )
    for row in table()["classes"]:
        cells = [counts.get((row["name"], c)) for c in contracts]
        if not any(cells):
            continue
        text = [
            f"{sum(n.values())}/{n['caught']}/{n['unpaid']}/{n['paid']}{marked(n, 'machine')}{marked(n, 'dead')}"
            if n
            else "-"
            for n in cells
        ]
        say(f"        {row['name']:28}" + "".join(f"{x:>18}" for x in text))


def marked(counts, result):
    return f" {result[0]}{counts[result]}" if counts[result] else ""


def has_torch():
    """Whether one of the interpreters that `kernelmill` tries has torch."""
    tried = [os.environ.get("KERNELMILL_PYTHON"), "python3", "/usr/bin/python3"]
    return any(
        shutil.which(x)
        and subprocess.run([x, "-c", "import torch"], capture_output=True, env=common.environment()).returncode == 0
        for x in tried
        if x
    )


def judged_again(rows, backend, root, seconds):
    """On a CPU, where speedups are a rehearsal: names of those that are paid a second time as well."""
    again = [x | {"name": x["name"] + ".again"} for x in rows]
    return {
        x["name"].removesuffix(".again")
        for x, verdict, companion in judged(again, backend, root, seconds)
        if result_of(x, verdict, companion) == "paid"
    }


def commit():
    """That the program is of, as it says itself."""
    done = subprocess.run(
        [common.PROGRAM, "version", "--json"], capture_output=True, text=True, env=common.environment()
    )
    return json.loads(done.stdout)["git"] if done.returncode == 0 else ""


def commits_of_this_code(commit):
    """{commit: contracts}: the program's own, and those that launch/tools/packaging/same_code.sh found to judge these
    as it does."""
    listed = HERE.parent / "same_code.txt"
    lines = map(str.split, listed.read_text().splitlines() if listed.is_file() else [])
    return {line[0]: line[1:] for line in lines} | {commit: ["native", "device", "torch", "torch_language"]}


def digest_of(x):
    """Of all that is judged of a variant: generators change, too."""
    parts = [x.get(name) for name in ("source", "companion", "task", "language", "preset", "clock", "expect")]
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:12]


def holds_today(row, lanes):
    """Whether a generator still makes the variant that was judged, and it would be judged alike;
    `lanes` are those of the code that judged it for which nothing differs."""
    try:
        x = generators().make(row["class"], row["seed"], row["contract"])
    except KeyError:  # there is no such class any more
        return False
    lane = row["contract"].split("-")[0] + ("" if x["language"] == "any" else "_language")
    return lane in lanes and row.get("variant") == digest_of(x)


def kept_row(x, result, verdict, commit):
    timing = verdict.get("timing") or {}
    return {
        "class": x["class"],
        "contract": x["contract"],
        "seed": x["seed"],
        "variant": digest_of(x),
        "result": result,
        "outcome": verdict.get("outcome"),
        "reasons": sorted(reasons(verdict)),
        "speedup": timing.get("speedup") if timing.get("measured") else None,
        "slot_s": verdict.get("slot_s"),
        "slot_seconds": verdict.get("slot_seconds"),
        "commit": commit,
    }


def key_of(row):
    return row["class"], row["contract"], row["seed"]


def rows_of_other_runs(folders, commits, holds=holds_today):
    """{(class, contract, seed): row} of the results of other runs that still hold; of two the worse. `commits` are
    those of the same code, as commits_of_this_code() has them."""
    found = {}
    for folder in folders:
        path = pathlib.Path(folder) / "matrix.results.ndjson"
        if not path.is_file():
            sys.exit(f"gpu_check.sh: --add {folder}: there is no {path.name}")
        mine = {}
        for row in map(json.loads, filter(lambda line: line.endswith("}"), path.read_text().splitlines())):
            if row.get("commit") not in commits:
                sys.exit(
                    f"gpu_check.sh: --add {folder}: it is of commit {row.get('commit')}, "
                    "whose code is not this program's "
                    f"({', '.join(sorted(commits))}); leave it out, or run that commit's"
                )
            if holds(row, commits[row["commit"]]):
                mine[key_of(row)] = row  # the latest: what was judged once more
        for key, row in mine.items():
            found[key] = max(row, found.get(key, row), key=lambda x: BAD.index(x["result"]))
    return found


def repeats(rows):
    """Where variants were judged more than once under several seeds: how many there are beside how many were judged."""
    found = collections.defaultdict(list)
    for row in rows:
        found[row["class"], row["contract"]].append(row["variant"])
    return [
        f"{name} of {contract} {len(set(x))} of {len(x)}"
        for (name, contract), x in found.items()
        if len(set(x)) < len(x)
    ]


def say_seconds(rows):
    """Where the time of the slot went, seconds a verdict."""
    for contract in sorted({x["contract"] for x in rows}):
        mine = [x for x in rows if x["contract"] == contract and x.get("slot_seconds")]
        names = list(dict.fromkeys(name for x in mine for name in x["slot_seconds"]))
        mean = lambda name: sum(x["slot_seconds"].get(name, 0) for x in mine) / len(mine)
        if mine:
            say(
                f"        {contract}: {sum(x['slot_s'] for x in mine) / len(mine):.2f} s of the slot a verdict: "
                + ", ".join(f"{name} {mean(name):.2f}" for name in names)
            )


def check_matrix():
    options = common.options
    backend = options.backend
    contracts = [
        c
        for c in BACKENDS[backend]
        if not options.contracts or c in options.contracts or c.split("-")[0] in options.contracts
    ]
    if "torch-cpu" in contracts and not has_torch():
        say("        no Python has torch: the contract torch is left out")
        contracts.remove("torch-cpu")
    if not contracts:
        return
    unknown = set(options.only) - {x["name"] for x in table()["classes"]}
    if unknown:
        sys.exit(f"gpu_check.sh: matrix.json has no class {sorted(unknown)[0]}")
    asked = options.seeds or int(os.environ.get("KERNELMILL_MATRIX_SEEDS") or 0)
    seeds = lambda row: asked or (2 if backend == "cpu" else row.get("variants", VARIANTS))
    root = OUT / "matrix_tasks"
    shutil.copytree(TASKS, root, dirs_exist_ok=True)
    program = commit()
    rows = rows_of_other_runs(options.add, commits_of_this_code(program))
    added = len(rows)
    found = [x for x in variants(options.only, contracts, seeds, options.first_seed) if key_of(x) not in rows]
    left = lambda: common.part().left() - 5
    doubtful = []
    with (OUT / "matrix.results.ndjson").open("w") as kept:

        def keep(row):
            rows[key_of(row)] = row
            kept.write(json.dumps(row) + "\n")
            kept.flush()

        for row in list(rows.values()):
            keep(row)
        for x, verdict, companion in judged(found, backend, root, left):
            result = result_of(x, verdict, companion)
            keep(kept_row(x, result, verdict, program))
            if backend == "cpu" and result == "paid" and x["expect"] == "unpaid":
                doubtful.append(x)
            if result in NO_GOOD:
                say(f"        {result}: " + describe(x, verdict))
        confirmed = judged_again(doubtful, backend, root, left) if doubtful else set()
        for x in doubtful:
            if x["name"] not in confirmed:
                say(f"        not paid a second time: {x['name']}")
                keep(rows[key_of(x)] | {"result": "unpaid"})
    counts = collections.defaultdict(collections.Counter)
    for row in rows.values():
        counts[row["class"], row["contract"]][row["result"]] += 1
    show(counts, list(dict.fromkeys([*contracts, *(contract for _, contract in counts)])))
    say_seconds(rows.values())
    total = sum(counts.values(), collections.Counter())
    tried = sum(total.values())
    note_tried(tried, *(total[x] for x in RESULTS[:3]))
    failing = sorted({name for (name, _), n in counts.items() if any(n[x] for x in NO_GOOD)})
    same = repeats(rows.values())
    promise(
        tried > 0 and not failing,
        f"matrix on {backend}: {tried} of {added + len(found)} variants judged, {total['caught']} caught, "
        f"{total['unpaid']} unpaid, {total['paid']} paid, {total['machine']} left to the machine, {total['dead']} dead"
        + (f"; {added} of them in other runs" if added else "")
        + (f"; distinct are only: {', '.join(same)}" if same else "")
        + (f"; not held: {', '.join(failing)}" if failing else ""),
    )
