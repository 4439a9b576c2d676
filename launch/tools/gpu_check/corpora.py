"""Every shipped task, hack and honest kernel, each with what must become of it."""

import json
import random

from gpu_check import common
from gpu_check.common import (
    CORPUS,
    MOST_UNPAID,
    TORCH_CORPUS,
    baseline,
    contract,
    judge,
    manifest,
    note_honest,
    note_tried,
    promise,
    reasons,
    say,
    task_ids,
)


def check_tasks():
    verdicts, _ = judge("tasks", [(t, t, baseline(t)) for t in task_ids()], are_honest=True)
    for task in task_ids():
        x = verdicts.get(task, {})
        t = x.get("timing", {})
        say(f"        {task:34} {x.get('outcome')}  {(t.get('candidate_ms') or 0) * 1e3:8.1f} us")
    good = sum(verdicts.get(t, {}).get("outcome") == "accepted" for t in task_ids())
    promise(
        good == len(task_ids()),
        f"{good} of {len(task_ids())} native tasks pass with their baselines; each reference agrees with the host's",
    )


def check_honest():
    """Every honest kernel of all contracts, as what it is."""
    parts = [(x, [y for y in manifest() if contract(y) == x], CORPUS, ()) for x in ("native", "device")]
    answers = torch_manifest()
    for language in sorted({x["language"] for x in answers}):
        rows = [x for x in answers if x["language"] == language]
        parts.append(("torch", rows, TORCH_CORPUS, ("--language", language)))
    accepted = asked = 0
    for name, rows, folder, options in parts:
        rows = [x for x in in_order(rows) if x["expect"] == "accepted"]
        files = [(x["file"], x["task"], folder / x["file"], name) for x in rows]
        verdicts, _ = judge("-".join(["honest", name, *options[1:]]), files, options=options, are_honest=True)
        asked += len(rows)
        for x in tried(rows, verdicts):
            v = verdicts.get(x["file"], {})
            if v.get("outcome") == "accepted":
                accepted += 1
                continue
            words = (v.get("error") or {}).get("message", "")[:200]
            say(f"        {name} {x['file']}: {v.get('outcome')} for {sorted(reasons(v))}: {words}")
    judged = sum(x[0] == "honest" for x in common.honest)
    promise(accepted == judged > 0, f"{accepted} of {judged} honest kernels accepted{of_all(judged, asked)}")


def check_exploits():
    rows = in_order(manifest(), hacks_alone=common.options.order > 0)
    for wanted in ("native", "device"):
        check_corpus(wanted, [x for x in rows if contract(x) == wanted])


def in_order(rows, hacks_alone=False):
    """As they are, or shuffled as options ask for, without those that the part `honest` has. Those that take all memory
    come last: what they do to others is the business of `faults`."""
    if hacks_alone:
        rows = [x for x in rows if x["expect"] != "accepted"]
    if order := getattr(common.options, "order", 0):
        rows = random.Random(order).sample(rows, len(rows))
    return sorted(rows, key=lambda x: "memory_bomb" in x["file"])


def check_corpus(name, rows):
    verdicts, seconds = judge(f"exploits-{name}", [(x["file"], x["task"], CORPUS / x["file"], name) for x in rows])
    counts = {"accepted": [0, 0], "rejected": [0, 0]}
    wrong, asked = 0, len(rows)
    rows = tried(rows, verdicts)
    for x in rows:
        v = verdicts.get(x["file"], {})
        if x["expect"] == "accepted" and v:
            note_honest(v)
        if x["expect"] in ("no_gain", "unpaid"):  # right work, and lies about its time
            right = v.get("outcome") == "rejected" or v.get("outcome") == "accepted" and not has_gained(v)
        else:
            right = v.get("outcome") == x["expect"]
            right = right and (x["expect"] == "accepted" or bool(reasons(v) & set(x["rules"])))
        kind = "accepted" if x["expect"] == "accepted" else "rejected"
        counts[kind][0] += right
        counts[kind][1] += 1
        wrong += not right
        if not right and wrong <= 20:
            say(
                f"        {x['file']}: {v.get('outcome')} for {sorted(reasons(v))}, wanted "
                f"{x['expect']} for one of {x.get('rules')}: "
                f"{(v.get('error') or {}).get('message', '')[:150]}"
            )
    (r, hacks), (a, honest) = counts["rejected"], counts["accepted"]
    note_tried(
        hacks,
        r,
        paid=sum(verdicts.get(x["file"], {}).get("outcome") == "accepted" for x in rows if x["expect"] == "rejected"),
    )
    promise(
        r == hacks and a == honest,
        f"{name}: hacks rejected for their reason or unpaid {r}/{hacks}, honest kernels accepted "
        f"{a}/{honest}, {seconds:.1f} s{of_all(len(rows), asked)}",
    )


def tried(rows, verdicts):
    """Those that there was time for: where it ended, what has no verdict was not judged."""
    return rows if common.part().left() > 1 else [x for x in rows if x["file"] in verdicts]


def of_all(judged, asked):
    return "" if judged == asked else f"; {judged} of {asked} judged in the time"


def has_gained(verdict):
    timing = verdict.get("timing") or {}
    return timing.get("measured") and timing["speedup"]["low"] > MOST_UNPAID


def is_dead(verdict):
    """Whether an attack says that it does not find what it is an attack on: then its verdict says nothing."""
    return "no hold: " in ((verdict.get("error") or {}).get("message") or "")


def complaint(x, v):
    """What is wrong with the verdict `v` of the entry `x`; empty when nothing is."""
    text = f"{v.get('outcome')} for {sorted(reasons(v))}: {(v.get('error') or {}).get('message', '')[:150]}"
    if is_dead(v):
        return text
    if x["expect"] == "no_gain":
        # It does right work and lies about its time.
        fair = v.get("outcome") == "rejected" or v.get("outcome") == "accepted" and not has_gained(v)
        return "" if fair else f"{text}; timing {v.get('timing')}"
    if v.get("outcome") != x["expect"]:
        return f"{text}; wanted {x['expect']}"
    if x["expect"] == "rejected" and not reasons(v) & set(x["because"]):
        return f"{text}; wanted one of {x['because']}"
    return ""


def torch_manifest():
    """Entries of answers in Python that a GPU judges."""
    return [x for x in json.loads((TORCH_CORPUS / "manifest.json").read_text()) if "cuda" in x["backends"]]


def check_torch_exploits():
    """Answers in Python. Each is judged in the language that it claims to be written in."""
    rows = torch_manifest()
    rows = in_order(rows, hacks_alone=common.options.order > 0)
    counts = {"honest": [0, 0], "hacks": [0, 0]}
    seconds, judged = 0, 0
    for language in sorted({x["language"] for x in rows}, key=lambda x: x == "any"):  # that has most comes last
        mine = [x for x in rows if x["language"] == language]
        verdicts, taken = judge(
            f"torch-exploits-{language}",
            [(x["file"], x["task"], TORCH_CORPUS / x["file"], "torch") for x in mine],
            options=("--language", language),
        )
        seconds += taken
        mine = tried(mine, verdicts)
        judged += len(mine)
        for x in mine:
            wrong = complaint(x, verdicts.get(x["file"], {}))
            if x["expect"] == "accepted" and x["file"] in verdicts:
                note_honest(verdicts[x["file"]])
            count = counts["honest" if x["expect"] == "accepted" else "hacks"]
            count[0] += not wrong
            count[1] += 1
            if wrong:
                say(f"        {x['file']} ({language}): {wrong}")
    (r, hacks), (a, honest) = counts["hacks"], counts["honest"]
    note_tried(hacks, r, paid=hacks - r)
    promise(
        r == hacks and a == honest,
        f"torch: hacks rejected for their reason or unpaid {r}/{hacks}, honest answers accepted "
        f"{a}/{honest}, {seconds:.1f} s{of_all(judged, len(rows))}",
    )
