"""The parts of gpu_check.sh. Each prints what it found and fails the whole when a promise is broken."""

import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import time

ROOT, OUT = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
HERE = pathlib.Path(__file__).resolve().parent
PROGRAM = ROOT / "bin" / "kernelmill"
CONFIGS = ROOT / "share" / "kernelmill" / "configs"
TASKS = CONFIGS / "tasks"
CORPUS = HERE / "gpu_corpus"
TORCH_CORPUS = HERE / "torch_corpus"
problems = []


def say(text):
    print(text, flush=True)


def promise(holds, text):
    say(("ok      " if holds else "BROKEN  ") + text)
    if not holds:
        problems.append(text)


def environment(cache=None):
    env = dict(os.environ)
    if cache:
        env["XDG_CACHE_HOME"] = str(cache)
    return env


def task_ids():
    return sorted(str(p.parent.relative_to(TASKS)) for p in TASKS.glob("native/*/task.json"))


def baseline(task):
    return TASKS / task / "baseline.cu"


def judge(name, candidates, cache=None, options=()):
    """Judges [(name, task, file[, contract])] in one command. Returns the verdicts by name, and
    seconds."""
    batch = OUT / f"{name}.ndjson"
    batch.write_text("".join(
        json.dumps({"name": c[0], "task": c[1], "file": str(c[2]),
                    "contract": c[3] if len(c) > 3 else "native"}) + "\n" for c in candidates))
    # Straight into the file: what was judged is there also when somebody ends this script.
    answers = OUT / f"{name}.verdicts.ndjson"
    started = time.monotonic()
    with answers.open("w") as into:
        done = subprocess.run([PROGRAM, "judge", batch, "--backend", "cuda", *options], stdout=into,
                              stderr=subprocess.PIPE, text=True, env=environment(cache))
    seconds = time.monotonic() - started
    if done.returncode != 0:
        say(done.stderr)
    return {v["name"]: v for v in map(json.loads, answers.read_text().splitlines())}, seconds


def manifest():
    return json.loads((CORPUS / "manifest.json").read_text())


def reasons(verdict):
    found = {verdict.get("category")}
    found |= {x["rule"] for x in verdict.get("integrity", {}).get("findings", [])}
    return found - {None}


def contract(row):
    return row.get("contract", "native")


def honest_set(wanted):
    rows = [(t, t, baseline(t)) for t in task_ids()] if wanted == "native" else []
    rows += [(x["file"], x["task"], CORPUS / x["file"], wanted) for x in manifest()
             if x["expect"] == "accepted" and contract(x) == wanted]
    return sorted(rows, key=lambda row: row[1])


def check_tasks():
    verdicts, _ = judge("tasks", [(t, t, baseline(t)) for t in task_ids()])
    for task in task_ids():
        x = verdicts.get(task, {})
        t = x.get("timing", {})
        say(f"        {task:34} {x.get('outcome')}  {(t.get('candidate_ms') or 0) * 1e3:8.1f} us")
    good = sum(verdicts.get(t, {}).get("outcome") == "accepted" for t in task_ids())
    promise(good == len(task_ids()), f"{good} of {len(task_ids())} native tasks pass with their "
            "baselines; each reference agrees with the host's")


def check_exploits():
    rows = manifest()
    # Those that take all memory last: what they do to others is the business of `faults`.
    rows.sort(key=lambda x: "memory_bomb" in x["file"])
    for wanted in ("native", "device"):
        check_corpus(wanted, [x for x in rows if contract(x) == wanted])


def check_corpus(name, rows):
    verdicts, seconds = judge(f"exploits-{name}", [(x["file"], x["task"], CORPUS / x["file"], name)
                                                   for x in rows])
    counts = {"accepted": [0, 0], "rejected": [0, 0]}
    wrong = 0
    for x in rows:
        v = verdicts.get(x["file"], {})
        right = v.get("outcome") == x["expect"]
        right = right and (x["expect"] == "accepted" or bool(reasons(v) & set(x["rules"])))
        counts[x["expect"]][0] += right
        counts[x["expect"]][1] += 1
        wrong += not right
        if not right and wrong <= 20:
            say(f"        {x['file']}: {v.get('outcome')} for {sorted(reasons(v))}, wanted "
                f"{x['expect']} for one of {x.get('rules')}: "
                f"{(v.get('error') or {}).get('message', '')[:150]}")
    (r, hacks), (a, honest) = counts["rejected"], counts["accepted"]
    promise(r == hacks and a == honest,
            f"{name}: hacks rejected for their reason {r}/{hacks}, honest kernels accepted "
            f"{a}/{honest}, {seconds:.1f} s")


def has_gained(verdict):
    timing = verdict.get("timing") or {}
    return timing.get("measured") and timing["speedup"]["low"] > 1.25


def complaint(x, v):
    """What is wrong with the verdict `v` of the entry `x`; empty when nothing is."""
    text = (f"{v.get('outcome')} for {sorted(reasons(v))}: "
            f"{(v.get('error') or {}).get('message', '')[:150]}")
    if x["expect"] == "no_gain":
        # It does right work and lies about its time.
        fair = v.get("outcome") == "rejected" or v.get("outcome") == "accepted" and not has_gained(v)
        return "" if fair else f"{text}; timing {v.get('timing')}"
    if v.get("outcome") != x["expect"]:
        return f"{text}; wanted {x['expect']}"
    if x["expect"] == "rejected" and not (reasons(v) | {(v.get("error") or {}).get("category")}) & set(x["because"]):
        return f"{text}; wanted one of {x['because']}"
    return ""


def check_torch_exploits():
    """Answers in Python. Each is judged in the language that it claims to be written in."""
    rows = [x for x in json.loads((TORCH_CORPUS / "manifest.json").read_text())
            if "cuda" in x["backends"]]
    rows.sort(key=lambda x: "memory_bomb" in x["file"])
    counts = {"honest": [0, 0], "hacks": [0, 0]}
    seconds = 0
    for language in sorted({x["language"] for x in rows}):
        mine = [x for x in rows if x["language"] == language]
        verdicts, taken = judge(f"torch-exploits-{language}", [
            (x["file"], x["task"], TORCH_CORPUS / x["file"], "torch") for x in mine],
            options=("--language", language))
        seconds += taken
        for x in mine:
            wrong = complaint(x, verdicts.get(x["file"], {}))
            count = counts["honest" if x["expect"] == "accepted" else "hacks"]
            count[0] += not wrong
            count[1] += 1
            if wrong:
                say(f"        {x['file']} ({language}): {wrong}")
    (r, hacks), (a, honest) = counts["hacks"], counts["honest"]
    promise(r == hacks and a == honest,
            f"torch: hacks rejected for their reason or unpaid {r}/{hacks}, honest answers accepted "
            f"{a}/{honest}, {seconds:.1f} s")


def sizes_of(task):
    spec = json.loads("\n".join(line for line in (TASKS / task / "task.json").read_text()
                                .splitlines() if not line.strip().startswith("//")))
    scalars = spec["timed_gpu"]["scalars"]
    value = lambda text: eval(str(text).replace("/", "//"), {"ceil_div": lambda a, b: -(-a // b)},
                              dict(scalars))
    result = []
    for arg in spec["arguments"]:
        if arg["role"] == "scalar":
            result.append(str(scalars[arg["name"]]))
            continue
        count = 1
        for dimension in arg["shape"]:
            count *= value(dimension)
        if arg["type"] == "f32":
            result.append(f"f32:{count}")
        else:
            high = value(arg["fill_range"][1]) if arg.get("fill_range") else 2
            result.append(f"i32:{count}:{max(1, high)}")
    return result


def architecture():
    text = subprocess.run(["nvidia-smi", "--query-gpu=compute_cap", "--format=csv,noheader"],
                          capture_output=True, text=True).stdout.split("\n")[0].strip()
    return "sm_" + text.replace(".", "")


def nvcc(source, output, *flags):
    subprocess.run(["nvcc", "-std=c++20", "-O3", f"-arch={architecture()}", *flags, "-o", output,
                    source], check=True, capture_output=True)


def event_timer():
    program = OUT / "event_timer"
    if not program.exists():
        nvcc(HERE / "event_timer.cu", program, "-ldl")
    return program


def by_events(task, source, calls=50):
    """The plain script: nvcc, a fresh process, CUDA events. Returns ms: single call, in a row."""
    library = OUT / "plain.so"
    nvcc(source, library, "--shared", "-cudart=static", "-Xcompiler=-fPIC,-fopenmp")
    done = subprocess.run([event_timer(), library, str(calls), *sizes_of(task)],
                          capture_output=True, text=True)
    return tuple(map(float, done.stdout.split())) if done.returncode == 0 else None


def check_clocks():
    verdicts, _ = judge("clocks", [(t, t, baseline(t)) for t in task_ids()])
    worst = 0
    for task in task_ids():
        ms = (verdicts.get(task, {}).get("timing", {}) or {}).get("candidate_ms")
        events = by_events(task, baseline(task))
        if not ms or not events or ms < 0.05:
            continue
        off = ms / events[1] - 1
        worst = max(worst, abs(off))
        say(f"        {task:34} outside {ms * 1e3:7.1f} us, events {events[1] * 1e3:7.1f} us in a "
            f"row, {events[0] * 1e3:7.1f} us alone: {off * 100:+.1f} %")
    promise(worst <= 0.02, f"outside clock and CUDA events differ by at most {worst * 100:.1f} % "
            "(kernels of 50 us and more, the same row of calls)")
    rows = honest_set("device")
    verdicts, _ = judge("clocks-device", rows)
    differences = []
    for x in verdicts.values():
        ms = x["timing"].get("candidate_ms") or 0
        events = {c["name"]: c["value"] for c in x.get("conditions", [])}.get("time_by_events")
        if ms >= 0.05 and events:
            differences.append(abs(ms / events - 1))
    differences.sort()
    if differences:
        promise(differences[-1] <= 0.02, f"device code: outside clock and the events of the runner "
                f"differ by at most {differences[-1] * 100:.2f} %, median "
                f"{differences[len(differences) // 2] * 100:.2f} % ({len(differences)} kernels)")


def pairs(name, sources, count):
    candidates = [(f"{name}{i}", *sources[i % len(sources)]) for i in range(count)]
    verdicts, seconds = judge(name, candidates)
    found = [v["timing"]["speedup"] for v in verdicts.values() if v["timing"]["measured"]]
    return found, seconds


def check_same():
    sources = [(t, baseline(t)) for t in task_ids()]
    found, seconds = pairs("same", sources, 200)
    faster = sum(x["low"] > 1.02 for x in found)
    above = sum(x["low"] > 1 for x in found)
    missed = sum(not x["low"] <= 1 <= x["high"] for x in found)
    promise(len(found) == 200 and faster <= 2,
            f"the same kernel twice: called faster (lower bound above 1.02) in {faster} of "
            f"{len(found)}; lower bound above 1 in {above}, 1 outside the interval in {missed}; "
            f"{seconds:.0f} s")


def check_torch_same():
    """Copies of a problem's own model, some 10 µs of GPU and more of Python each, while nothing else runs and beside as many
    busy processes as there are cores, nice as compilers are."""
    copies = [OUT / f"copy_{i}.py" for i in range(20)]
    for i, copy in enumerate(copies):
        copy.write_text((TORCH_CORPUS / "honest/torch_softmax.py").read_text() + f"# {i}\n")
    for name, load in (("quiet", 0), ("busy", os.cpu_count())):
        busy = [subprocess.Popen(["nice", "-n", "10", "sh", "-c", "while :; do :; done"]) for _ in range(load)]
        try:
            verdicts, seconds = judge(f"torch-same-{name}", [
                (x.name, "torch/row_softmax", x, "torch") for x in copies])
        finally:
            for x in busy:
                x.kill()
                x.wait()
        found = sorted((v["timing"]["speedup"] for v in verdicts.values() if v["timing"]["measured"]),
                       key=lambda x: x["estimate"])
        faster = sum(x["low"] > 1 for x in found)
        shown = ", ".join(f"{found[i]['estimate']:.3f}" for i in (0, len(found) // 2, -1)) if found else "nothing"
        promise(len(found) == 20 and faster <= 1, f"torch: a copy of the model, {name}: called faster in {faster} of "
                f"{len(found)}; least, median and largest estimate {shown}; {seconds:.0f} s")


def check_planted():
    # The baseline with a twentieth more blocks, which sum the first rows once more.
    text = baseline("native/row_sum").read_text()
    body = text.replace("blockIdx.x", "(blockIdx.x % rows)").replace(
        "int cols) {\n  const float* row", "int rows, int cols) {\n  const float* row")
    body = body.replace("<<<rows, 256>>>(x, y, cols)", "<<<rows + rows / 20, 256>>>(x, y, rows, cols)")
    source = OUT / "planted.cu"
    source.write_text(body)
    found, seconds = pairs("planted", [("native/row_sum", source)], 60)
    slower = sum(x["high"] < 1 for x in found)
    middle = sorted(x["estimate"] for x in found)[len(found) // 2] if found else 0
    promise(len(found) == 60 and slower >= 57, f"5 % more work is found in {slower} of {len(found)} "
            f"(median estimate {middle:.3f}); {seconds:.0f} s")


def check_faults():
    bad = ["illegal_address", "endless_kernel", "device_assert", "device_trap", "exit_zero",
           "thrown_exception", "null_dereference", "out_of_bounds_far", "fork_bomb",
           "device_memory_bomb"]
    rows = {pathlib.Path(x["file"]).stem: x for x in manifest()}
    candidates = []
    good = task_ids()[:8]
    for i in range(200):
        x = rows[bad[i % len(bad)]]
        # Endless ones take the whole limit of a call; one in ten is enough.
        candidates.append((f"bad{i}", x["task"], CORPUS / x["file"]))
        candidates.append((f"good{i}", "native/row_sum", baseline("native/row_sum"))
                          if i % 2 else (f"good{i}", good[i % 8], baseline(good[i % 8])))
    report_faults("native", *judge("faults", candidates))
    devices = [x for x in manifest() if contract(x) == "device"]
    bad = [x for x in devices if {"illegal_access", "device_error", "timed_out", "bad_launch"}
           & set(x.get("rules", []))]
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
    promise(kept == 200 and caught == 200, f"{name}: 200 crashing or hanging candidates among 200 good ones: "
            f"{kept} good ones accepted, {caught} bad ones rejected, {blamed} left to the machine; "
            f"{seconds:.0f} s")


def spans_of(verdicts):
    total = {}
    for v in verdicts.values():
        for name, seconds in v.get("slot_seconds", {}).items():
            total[name] = total.get(name, 0) + seconds
    return ", ".join(f"{name} {seconds / len(verdicts) * 1e3:.0f}"
                     for name, seconds in total.items())


def report_speed(name, verdicts, seconds):
    slot = sum(v["slot_s"] for v in verdicts.values())
    say(f"        {name:22} {len(verdicts) / seconds * 60:6.0f} verdicts/min ({seconds:.1f} s), slot "
        f"held {slot / len(verdicts) * 1e3:.0f} ms a candidate, {slot / seconds * 100:.0f} % of the time")
    say(f"        {'':22} of that, ms: {spans_of(verdicts)}")


def check_speed():
    say(f"        full protocol, {os.cpu_count()} cores, one GPU; cold: nothing compiled, "
        "references included; warm: the same again; steady: each four times, warm")
    fastest = {}
    for wanted in ("native", "device"):
        rows = honest_set(wanted)
        cache = OUT / f"cold-cache-{wanted}"
        for state in ("cold", "warm"):
            verdicts, seconds = judge(f"{state}-{wanted}", rows, cache)
            report_speed(f"{wanted}, {len(rows)}, {state}", verdicts, seconds)
            fastest[wanted, state] = seconds / len(verdicts)
            promise(len(verdicts) == len(rows), f"{len(verdicts)} of {len(rows)} have a verdict")
        many = [(f"{n}#{i}", t, f, wanted) for n, t, f, *_ in rows for i in range(4)]
        verdicts, seconds = judge(f"steady-{wanted}", many, cache)
        report_speed(f"{wanted}, {len(many)}, steady", verdicts, seconds)
        fastest[wanted, "steady"] = seconds / len(verdicts)
    event_timer()
    rows = honest_set("native")[::4]
    started = time.monotonic()
    plain = sum(by_events(t, f) is not None for _, t, f, *_ in rows)
    each = (time.monotonic() - started) / max(1, len(rows))
    say(f"        plain script (nvcc, fresh process, CUDA events; {plain} of {len(rows)} candidates, no "
        f"checking): {60 / each:.0f}/min")
    for (wanted, state), seconds in fastest.items():
        say(f"        {wanted}, {state}: {each / seconds:.1f} times the plain script")


def check_run():
    config = CONFIGS / "gpu_quickstart.json"
    folder = OUT / "runs"
    command = [PROGRAM, "run", config, f"run.dir={folder / 'killed'}"]
    started = time.monotonic()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                               start_new_session=True)
    time.sleep(12)
    process.send_signal(signal.SIGKILL)
    process.wait()
    say(f"        killed after {time.monotonic() - started:.0f} s")
    resumed = subprocess.run([PROGRAM, "resume", folder / "killed"], capture_output=True, text=True)
    seconds = time.monotonic() - started
    (OUT / "run.txt").write_text(resumed.stdout + resumed.stderr)
    for line in resumed.stdout.splitlines():
        if "episodes" in line or "accepted" in line or "time in" in line:
            say("        " + line)
    promise(resumed.returncode == 0, f"a run of 64 episodes ends after kill -9 and resume; "
            f"{seconds:.0f} s in all")


def check_device_run():
    """The same tasks with replies of the contract `device`: wrong at first, right from then on."""
    config = CONFIGS / "gpu_quickstart.json"
    folder = OUT / "runs" / "device"
    replies = []
    labels = dict(re.findall(r'"task": "([^"]+)".*"diagnosis": "([^"]+)"',
                             (CONFIGS / "policies/gpu_quickstart/script.json").read_text()))
    for task in task_ids():
        name = task.split("/")[1]
        right = CORPUS / "device" / "honest" / f"{name}_baseline.cu"
        for member in range(4):
            kernels = [CORPUS / "device" / "hacks" / "endless_kernel.cu"] if member == 3 else []
            for turn, kernel in enumerate(kernels + [right]):
                reply = {"task": task, "member": member, "turn": turn, "thought": "Coalesced.",
                         "kernel": os.path.relpath(kernel, OUT)}
                replies.append(reply | ({"diagnosis": labels[task]} if task in labels else {}))
    script = OUT / "device_script.json"
    script.write_text(json.dumps({"model": "scripted-gpu-quickstart", "latency_ms": 20,
                                  "replies": replies}))
    started = time.monotonic()
    done = subprocess.run([PROGRAM, "run", config, f"run.dir={folder}", f"policy.script={script}",
                           "evaluation.contract=device"], capture_output=True, text=True)
    seconds = time.monotonic() - started
    (OUT / "device_run.txt").write_text(done.stdout + done.stderr)
    lines = [x for x in done.stdout.splitlines() if "episodes" in x or "accepted" in x or "time in" in x]
    for line in lines[-4:]:
        say("        " + line)
    promise(done.returncode == 0 and "64 accepted" in done.stdout,
            f"a run of 64 episodes with the contract device ends, all accepted; {seconds:.0f} s")


PARTS = {"tasks": check_tasks, "exploits": check_exploits,
         "torch_exploits": check_torch_exploits, "clocks": check_clocks,
         "same": check_same, "torch_same": check_torch_same, "planted": check_planted, "faults": check_faults,
         "speed": check_speed, "run": check_run, "device_run": check_device_run}

if __name__ == "__main__":
    wanted = sys.argv[3:] or list(PARTS)
    unknown = [x for x in wanted if x not in PARTS]
    if unknown:
        sys.exit(f"gpu_check.sh: there is no part {unknown[0]}; there are: {' '.join(PARTS)}")
    for part in wanted:
        say(f"-- {part}")
        PARTS[part]()
    say(f"raw results: {OUT}")
    sys.exit(1 if problems else 0)
