"""Candidates in HIP of every task that takes them, judged by `--backend hip`: on an NVIDIA GPU through HIP's own
headers, on an AMD GPU by hipcc. Of each task the baseline must be accepted and one that spoils its result refused."""

from gpu_check.common import (
    CORPUS,
    OUT,
    TASKS,
    contract,
    manifest,
    note_tried,
    part,
    promise,
    reasons,
    say,
    task_spec,
    verdicts_of,
)

RIGHT, WRONG, DEVICE = "right", "wrong", "device"


def hip_tasks():
    ids = sorted(str(p.parent.relative_to(TASKS)) for p in TASKS.glob("*/*/task.json"))
    found = []
    for task in ids:
        spec = task_spec(task)
        if spec.get("contract", "native") == "native" and "hip" in spec.get("backends", []):
            found.append((task, spec))
    return found


def source_of(task):
    own = TASKS / task / "baseline.hip"
    return own if own.exists() else TASKS / task / "baseline.cu"


def parameters(spec):
    """The C++ parameters of the task's function, and the names of its arguments."""
    words = []
    for x in spec["arguments"]:
        kind = "float" if x.get("type") == "f32" else "int"
        if x["role"] == "scalar":
            words.append(f"int {x['name']}")
        else:
            words.append(f"{'const ' if x['role'] == 'input' else ''}{kind}* {x['name']}")
    return ", ".join(words), ", ".join(x["name"] for x in spec["arguments"])


def spoiled(spec, source):
    """The same source, with a kernel behind it that changes the first element of an output."""
    output = next(x for x in spec["arguments"] if x["role"] in ("output", "inout"))
    kind = "float" if output.get("type") == "f32" else "int"
    given, names = parameters(spec)
    function = spec.get("function", "solve")
    return (
        f"#define {function} right_{function}\n{source}\n#undef {function}\n"
        f"__global__ void spoil({kind}* x) {{ x[0] = x[0] / 2 + 7; }}\n"
        f'extern "C" void {function}({given}) {{\n'
        f"  right_{function}({names});\n"
        f"  hipLaunchKernelGGL(spoil, dim3(1), dim3(1), 0, 0, {output['name']});\n"
        "}\n"
    )


def rows_of(tasks, folder):
    """(name, task, file, contract) of all that is judged."""
    rows = []
    known = {task for task, _ in tasks}
    for task, spec in tasks:
        source = source_of(task).read_text()
        for kind, text in ((RIGHT, source), (WRONG, spoiled(spec, source))):
            file = folder / f"{task.replace('/', '-')}-{kind}.hip"
            file.write_text(text)
            rows.append((f"{task} {kind}", task, file, "native"))
    for x in manifest():
        if contract(x) == DEVICE and x["expect"] == "accepted" and x["task"] in known:
            known.discard(x["task"])  # one a task
            rows.append((f"{x['task']} {DEVICE}", x["task"], CORPUS / x["file"], DEVICE))
    return rows


def is_as_wanted(name, spec, verdict):
    """Whether a turn ended as it must. The baseline of a `reformulate` task is its starter: right, and not changed."""
    if name.endswith(WRONG):
        return verdict.get("outcome") == "rejected"
    if spec.get("verb") == "reformulate" and name.endswith(RIGHT):
        return "not_reformulated" in reasons(verdict)
    return verdict.get("outcome") == "accepted"


def check_hip():
    folder = OUT / "hip"
    folder.mkdir(parents=True, exist_ok=True)
    tasks = hip_tasks()
    specs = dict(tasks)
    rows = rows_of(tasks, folder)
    found = {x["name"]: x for x in verdicts_of("hip", rows, seconds=part().left(), backend="hip")}
    outcome = {name: (found.get(name) or {}).get("outcome", "missing") for name, *_ in rows}
    wanted = {name for name, task, *_ in rows if is_as_wanted(name, specs[task], found.get(name) or {})}
    for name, state in outcome.items():
        if name not in wanted:
            x = found.get(name) or {}
            say(f"        {name}: {state} for {sorted(reasons(x))}: {(x.get('error') or {}).get('message', '')[:300]}")
    machine = [name for name, state in outcome.items() if state in ("infrastructure", "missing")]
    count = {kind: [x for x in outcome if x.endswith(kind)] for kind in (RIGHT, WRONG, DEVICE)}
    good = {kind: [x for x in names if x in wanted] for kind, names in count.items()}
    refused, paid = good[WRONG], [x for x in count[WRONG] if outcome[x] == "accepted"]
    where = sorted({(x.get("device") or "?") for x in found.values()})
    note_tried(len(count[WRONG]), len(refused), paid=len(paid))
    promise(
        len(good[RIGHT]) == len(count[RIGHT]) > 0,
        f"{len(good[RIGHT])} of {len(count[RIGHT])} baselines as they must be",
    )
    promise(len(refused) == len(count[WRONG]), f"{len(refused)} of {len(count[WRONG])} spoiled ones refused")
    promise(
        len(good[DEVICE]) == len(count[DEVICE]),
        f"{len(good[DEVICE])} of {len(count[DEVICE])} of the contract device accepted",
    )
    promise(not machine, f"{len(machine)} of {len(rows)} turns left to the machine")
    promise(all("hip" in x for x in where), f"the verdicts name the device: {'; '.join(where)}")
    say(f"\n        {'task':32} {'right':10} {'wrong':10} {'device':10} {'us':>9} {'speedup':>8}")
    for task, _ in tasks:
        t = (found.get(f"{task} {RIGHT}") or {}).get("timing") or {}
        us = 1e3 * (t.get("candidate_ms") or 0)
        speedup = (t.get("speedup") or {}).get("estimate") or 0
        states = [outcome.get(f"{task} {kind}", "-") for kind in (RIGHT, WRONG, DEVICE)]
        say(f"        {task:32} {states[0]:10} {states[1]:10} {states[2]:10} {us:9.1f} {speedup:8.3f}")
