"""Honest kernels of all contracts, judged again and again, half of the times beside busy processes:
how many are refused."""

import collections
import json
import os
import subprocess

from gpu_check import common, rates
from gpu_check.common import CPU_CORPUS, OUT, TORCH_CORPUS, honest_set, promise, reasons, say, verdicts_of

BUSY = 16
ROUND = 125  # verdicts of one command: quiet and busy take turns, so that a limit of time meets both alike
ALLOWED = 0.001


def honest_rows(backend):
    """[(name, task, file, contract, language)] of every honest kernel that runs there."""
    rows = []
    if backend == "cpu":
        listed = json.loads((CPU_CORPUS / "manifest.json").read_text())
        rows += [
            (x["file"], x["task"], CPU_CORPUS / x["file"], "native", "any") for x in listed if x["expect"] == "accepted"
        ]
    else:
        for contract in ("native", "device"):
            rows += [(f"{contract} {row[0]}", *row[1:3], contract, "any") for row in honest_set(contract)]
    listed = json.loads((TORCH_CORPUS / "manifest.json").read_text())
    rows += [
        ("torch " + x["file"], x["task"], TORCH_CORPUS / x["file"], "torch", x["language"])
        for x in listed
        if x["expect"] == "accepted"
        and backend in x["backends"]
        and not (backend == "cpu" and x.get("needs") == "triton")
    ]
    wanted = common.options.contracts
    return [x for x in rows if not wanted or x[3] in wanted]


def rounds(rows, count, cores="both"):
    """Batches of about ROUND kernels of one language, in which each kernel comes as often as any other,
    and whether the cores are busy meanwhile."""
    language = collections.defaultdict(list)
    for i in range(count):
        x = rows[i % len(rows)]
        language[i // ROUND, x[4]].append((f"{x[0]}#{i}", *x[1:4]))
    states = {"quiet": [False], "busy": [True], "both": [False, True]}[cores]
    for (number, name), batch in sorted(language.items()):
        yield states[number % len(states)], name, batch


class Busy:
    """Processes that keep the cores busy, nice as compilers are, while it is entered."""

    def __init__(self, count):
        self.count, self.processes = count, []

    def __enter__(self):
        self.processes = [
            subprocess.Popen(["nice", "-n", "10", "sh", "-c", "while :; do :; done"]) for _ in range(self.count)
        ]

    def __exit__(self, *_):
        for x in self.processes:
            x.kill()
            x.wait()


def check_false_alarms():
    backend, count = common.options.backend, common.options.count
    rows = honest_rows(backend)
    judged, refused, machine = collections.Counter(), [], []
    for number, (busy, language, batch) in enumerate(rounds(rows, count, common.options.cores)):
        if common.part().left() < 20:
            break
        with Busy(min(BUSY, 2 * (os.cpu_count() or 1)) if busy else 0):
            for verdict in verdicts_of(
                f"false-alarms-{number}",
                batch,
                options=["--language", language],
                seconds=common.part().left() - 5,
                backend=backend,
            ):
                state = "busy" if busy else "quiet"
                contract = verdict.get("contract") or "?"
                judged[contract, state] += 1
                common.note_honest(verdict, busy)
                found = verdict.get("outcome")
                if found == "infrastructure":
                    machine.append(verdict["name"])
                    say(
                        f"        left to the machine: {verdict['name']} ({state}): "
                        f"{(verdict.get('error') or {}).get('message', '')[:160]}"
                    )
                elif found != "accepted":
                    refused.append((contract, state, ", ".join(sorted(reasons(verdict)))))
                    say(
                        f"        refused: {verdict['name']} ({state}) for {sorted(reasons(verdict))}: "
                        f"{(verdict.get('error') or {}).get('message', '')[:160]}"
                    )
    total = sum(judged.values())
    for key in sorted(judged):
        mine = [x for x in refused if x[:2] == key]
        say(
            f"        {key[0]}, {key[1]}: refused {rates.words(len(mine), judged[key])}"
            + "".join(f"; {n} for {rule}" for rule, n in collections.Counter(x[2] for x in mine).items())
        )
    (OUT / "false_alarms.json").write_text(json.dumps({"judged": total, "refused": refused, "machine": machine}))
    promise(
        total > 0 and len(refused) <= max(1, ALLOWED * total),
        f"honest kernels refused: {rates.words(len(refused), total)}; "
        f"left to the machine {rates.words(len(machine), total)}; "
        f"{len(rows)} kernels",
    )
    missed = [x for x in common.parts if x.name in ("matrix", "exploits", "torch_exploits") and x.tried]
    if missed:
        tried, paid = sum(x.tried for x in missed), sum(x.paid for x in missed)
        say(f"        the other error: hacks paid, {rates.words(paid, tried)}")
