"""Kernels with a known flaw and kernels without, under ncu and compute-sanitizer: what cards and findings say of them.
All that the tools print is kept, so that it can become a golden file."""

import concurrent.futures
import contextlib
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import tarfile
import time

from gpu_check import common
from gpu_check.common import OUT, PROFILE_KERNELS, PROGRAM, SANITIZER_KERNELS, environment, note_tried, promise, say

LIMITS = ("memory_bandwidth", "compute", "latency")
FLAWS_NAMED = 0.9  # of the kernels with a flaw, at least; and no clean one may get a flaw
TOOLS = ("memcheck", "racecheck", "initcheck", "synccheck")
FAMILIES = {
    "memcheck": ("out_of_bounds", "misaligned"),
    "racecheck": ("race",),
    "initcheck": ("uninitialized",),
    "synccheck": ("barrier",),
}
SURE = 0.6  # confidence from which a card of a flaw is one that is told


def tool(name):
    """The path of a program of the toolkit, or None."""
    places = [
        os.environ.get("CUDA_HOME", "/usr/local/cuda") + "/bin",
        *sorted(map(str, pathlib.Path("/opt/nvidia/nsight-compute").glob("*"))),
    ]
    return shutil.which(name) or next((f"{p}/{name}" for p in places if os.access(f"{p}/{name}", os.X_OK)), None)


def seconds_for(most):
    return max(5, min(most, common.part().left()))


def run(words, kept, seconds):
    """What a command says, kept in a file too. Returns (exit code or None when its time was over, text)."""
    code = None
    with kept.open("wb") as into:
        try:  # a session of its own: tools are scripts that start the program, and all of them must end
            process = subprocess.Popen(
                words,
                stdin=subprocess.DEVNULL,
                stdout=into,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                env=environment(first_gpu=True),
            )
        except OSError as problem:
            into.write(str(problem).encode())
        else:
            try:
                code = process.wait(seconds)
            except subprocess.TimeoutExpired:
                pass
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    return code, kept.read_text(errors="replace")


def read_by_us(path):
    """What `kernelmill profile read` makes of a report; None where it prints no document."""
    done = subprocess.run([PROGRAM, "profile", "read", path, "--json"], capture_output=True, text=True)
    try:
        return json.loads(done.stdout)
    except ValueError:
        say(done.stderr[-500:])
        return None


def build(source, folder):
    name = source.stem
    target = folder / name
    code, text = run(
        [tool("nvcc") or "nvcc", "-O3", "-std=c++17", "-lineinfo", "-arch=native", "-Xptxas=-v", source, "-o", target],
        folder / f"{name}.build.txt",
        seconds_for(60),
    )
    promise(code == 0, f"{name}.cu is built" + ("" if code == 0 else ": " + text[-300:]))
    return target if code == 0 else None


# -- ncu ---------------------------------------------------------------------------------------------------------------


def known_metrics(ncu, folder):
    """Names that this ncu has for this GPU."""
    path = folder / "ncu_metrics.txt"
    run([ncu, "--query-metrics"], path, seconds_for(30))
    return path


def ncu_command(pack, report, *known):
    """As users are given it."""
    done = subprocess.run(
        [
            PROGRAM,
            "profile",
            "command",
            "--pack",
            pack,
            *known,
            "--out",
            report,
            "--kernel",
            "^(flaw|clean)__",
            "--json",
        ],
        capture_output=True,
        text=True,
    )
    return json.loads(done.stdout)["command"] if done.returncode == 0 else None


def metrics_of(words):
    return next(x for x in words if x.startswith("--metrics=")).removeprefix("--metrics=").split(",")


def without(words, refused):
    """The same command without these metrics."""
    kept = [x for x in metrics_of(words) if x not in refused]
    return [x for x in words if not x.startswith("--metrics=")] + ["--metrics=" + ",".join(kept)]


def refused_metrics(text):
    """Those that ncu says it does not find; of its lines alone."""
    lines = [x for x in text.splitlines() if x.startswith("==ERROR==") and "metric" in x.lower()]
    return {word.strip("'\",.:") for line in lines for word in line.split() if "__" in word}


def most_passes(text):
    return max([int(n) for n in re.findall(r"- (\d+) pass", text)], default=0)


def told_of(kernel):
    """The flaw that a kernel's cards tell, or its limit."""
    cards = kernel["cards"]
    return cards[0]["bottleneck"] if cards else "nothing"


def judged_rows(kernels):
    """(name, what is expected, what was told, whether it has a flaw, whether that is right)."""
    rows = []
    for x in kernels:
        name = x["kernel"].split("(")[0]
        if name.count("__") < 2:
            continue
        sort, kind, short = name.split("__", 2)
        told = told_of(x)
        is_right = told == kind if sort == "flaw" else told in LIMITS
        rows.append(
            (
                short,
                kind if sort == "flaw" else "none",
                told if sort == "flaw" or told not in LIMITS else "none",
                sort == "flaw",
                is_right,
            )
        )
    return rows


def confusion(rows):
    """Lines of a table: what there is against what was told; only kinds that occur."""
    kinds = sorted({x[1] for x in rows} | {x[2] for x in rows})
    width = max(len(x) for x in kinds)
    lines = [
        " " * (width + 2) + "told as: " + " ".join(f"{i + 1}={kind}" for i, kind in enumerate(kinds)),
        " " * (width + 2) + "".join(f"{i + 1:4}" for i in range(len(kinds))),
    ]
    for there in sorted({x[1] for x in rows}):
        counts = [sum(x[1] == there and x[2] == told for x in rows) for told in kinds]
        lines.append(f"{there:{width}}  " + "".join(f"{n or '.':>4}" for n in counts))
    return lines


def check_cards(ncu, folder):
    program = build(PROFILE_KERNELS, folder)
    if program is None:
        return
    known = known_metrics(ncu, folder)
    for pack in ("full", "quick"):
        report = folder / f"ncu_{pack}_recorded.csv"
        everything = ncu_command(pack, report)
        words = ncu_command(pack, report, "--known", known) or everything
        for _ in range(6):  # a name that it lists and does not take would cost the whole table
            started = time.monotonic()
            code, text = run(
                [*words, program], folder / f"ncu_{pack}.words.txt", seconds_for(70 if pack == "full" else 30)
            )
            took = time.monotonic() - started
            text += report.read_text(errors="replace") if report.exists() else ""
            refused = refused_metrics(text) & set(metrics_of(words))
            if not refused:
                break
            say(f"        ncu refuses {', '.join(sorted(refused))}")
            words = without(words, refused)
        found = read_by_us(report) if report.exists() else None
        kernels = (found or {}).get("kernels", [])
        promise(
            kernels and code == 0,
            f"ncu, pack {pack}: {len(kernels)} kernels, {len(metrics_of(words))} of "
            f"{len(metrics_of(everything))} metrics, "
            f"at most {most_passes(text)} passes, {took:.1f} s, exit {code}" + ("" if kernels else ": " + text[-400:]),
        )
        others = sorted(set(metrics_of(words)) ^ set(metrics_of(everything)))
        if others:
            say(f"        names that differ from the first choice: {', '.join(others)}")
        lacking = sorted({x for k in kernels for x in k["missing"]})
        if lacking:
            say(f"        without a value: {', '.join(lacking)}")
        if pack == "full" and kernels:
            report_cards(kernels, folder)


def report_cards(kernels, folder):
    rows = judged_rows(kernels)
    (folder / "confusion.json").write_text(
        json.dumps(
            {
                "schema_version": 1,
                "rows": [dict(zip(("kernel", "there", "told", "has_flaw", "right"), x)) for x in rows],
            },
            indent=1,
        )
    )
    for line in confusion(rows):
        say("        " + line)
    flawed, clean = [x for x in rows if x[3]], [x for x in rows if not x[3]]
    named, invented = sum(x[4] for x in flawed), sum(not x[4] for x in clean)
    note_tried(len(rows), named, len(clean) - invented, invented)
    for short, there, told, _, right in rows:
        if not right:
            say(f"        {short}: {there} was told as {told}")
    promise(named >= FLAWS_NAMED * len(flawed), f"cards name the flaw of {named} of {len(flawed)} kernels")
    promise(invented == 0, f"cards invent a flaw in {invented} of {len(clean)} clean kernels")


# -- compute-sanitizer -------------------------------------------------------------------------------------------------


def check_sanitizers(sanitizer, folder):
    program = build(SANITIZER_KERNELS, folder)
    if program is None:
        return
    names = run([program], folder / "sanitizer_kernels.txt", 20)[1].split()

    def sanitize(name):
        which = name.split("__")[1]
        path = folder / f"{which}_{name.replace('__', '_')}_recorded.txt"
        padding = ["--padding", "512"] if which == "memcheck" else []  # buffers lie side by side
        code, _ = run([sanitizer, "--tool", which, *padding, program, name], path, seconds_for(30))
        return name, which, code, read_by_us(path)

    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        found = list(pool.map(sanitize, names))
    missed = [
        n
        for n, which, _, x in found
        if n.startswith("bad__") and not any(f["family"] in FAMILIES[which] for f in (x or {}).get("findings", []))
    ]
    blamed = [
        n
        for n, _, _, x in found
        if n.startswith("good__") and ((x or {}).get("findings") or (x or {}).get("problem") != "none")
    ]
    bad, good = sum(n.startswith("bad__") for n in names), sum(n.startswith("good__") for n in names)
    lines = sum(
        any(f["at"]["line"] for f in (x or {}).get("findings", [])) for n, _, _, x in found if n.startswith("bad__")
    )
    note_tried(len(names), bad - len(missed), good - len(blamed), len(blamed))
    promise(
        len(missed) * 10 <= bad,
        f"compute-sanitizer: planted faults found {bad - len(missed)} of {bad}, a source line in {lines}"
        + "".join("; not " + x for x in missed),
    )
    promise(
        not blamed,
        f"compute-sanitizer: kernels without a fault blamed {len(blamed)} of {good}"
        + "".join("; " + x for x in blamed),
    )


# -- what is free ------------------------------------------------------------------------------------------------------


def check_free():
    """Each verdict on a GPU has what the build and the timing tell."""
    for contract in ("device", "native"):
        rows = common.honest_set(contract)[:3]
        verdicts, seconds = common.judge(f"profile-{contract}", rows, first_gpu=True, are_honest=True)
        profiles = [v.get("profile") or {} for v in verdicts.values()]
        wanted = {"call_time", "time", "roofline_memory"} | ({"launches"} if contract == "device" else set())
        have = [
            x
            for x in profiles
            if x.get("available")
            and wanted <= set(x["counters"])
            and any(name.endswith("/theoretical_occupancy") for name in x["counters"])
        ]
        promise(
            rows and len(have) == len(rows),
            f"{contract}: {len(have)} of {len(rows)} verdicts have times, roofline"
            f"{', launches' if contract == 'device' else ''} and occupancy without a profiler ({seconds:.1f} s)",
        )
        for name, v in list(verdicts.items())[:3]:
            x = v.get("profile") or {}
            say(
                f"        {name}: {x.get('bottleneck')} ({x.get('confidence') or 0:.2f}): "
                + "; ".join(x.get("evidence", [])[:2])
            )


def check_inspect(folder):
    """Source beside PTX and SASS, with lines."""
    path = common.baseline("native/row_sum")
    code, x, words = ours(["inspect", path], folder / "inspect.json")
    rows = [row for view in x.get("triview", []) for row in view["rows"]]
    both = sum(row["line"] > 0 and bool(row["ptx"]) and bool(row["sass"]) for row in rows)
    promise(both > 0, f"inspect: {both} lines of source have both PTX and SASS; missing: {x.get('missing')}{words}")
    live = sum(row.get("live_registers") is not None for row in rows)
    promise(live > 0, f"inspect: {live} lines of source have live registers")
    code, text = run(
        [tool("nvcc") or "nvcc", "-O3", "-lineinfo", "-arch=native", "-cubin", path, "-o", folder / "row_sum.cubin"],
        folder / "cubin.txt",
        30,
    )
    for name, options in (("nvdisasm", ["-gi", "-c"]), ("cuobjdump", ["--dump-sass"])):
        if code == 0 and tool(name):
            run([tool(name), *options, folder / "row_sum.cubin"], folder / f"{name}_recorded.txt", 30)


# -- around candidates, in the sandbox ---------------------------------------------------------------------------------

# Device code for native/row_sum: (what is found by which tool, the body of its kernel, its geometry).
PLANTED = {
    "out_of_bounds": (
        "memcheck",
        "float s = 0; for (int j = 0; j <= cols; ++j) s += x[long(blockIdx.x) * cols + j]; y[blockIdx.x] = s;",
        "<<<rows, 1>>>",
    ),
    "race": (
        "racecheck",
        "__shared__ float part[64]; float s = 0; for (int j = threadIdx.x; j < cols; "
        "j += 64) s += x[long(blockIdx.x) * cols + j];"
        " part[threadIdx.x] = s; if (threadIdx.x == 0) { for (int j = 1; j < 64; ++j) s += part[j]; "
        "y[blockIdx.x] = s; }",
        "<<<rows, 64>>>",
    ),
    "uninitialized": (
        "initcheck",
        "float s = y[blockIdx.x] * 0; for (int j = 0; j < cols; ++j) s += x[long(blockIdx.x) * cols + j]; "
        "y[blockIdx.x] = s;",
        "<<<rows, 1>>>",
    ),
    "none": (
        "all",
        "float s = 0; for (int j = 0; j < cols; ++j) s += x[long(blockIdx.x) * cols + j]; y[blockIdx.x] = s;",
        "<<<rows, 1>>>",
    ),
}


def ours(words, kept):
    """(exit code, document, the end of what it says where it has none) of kernelmill."""
    code, text = run([PROGRAM, *words, "--json"], kept, seconds_for(60))
    try:
        return code, json.loads(text), ""
    except ValueError:
        return code, {}, ": " + text[-300:]


def check_around():
    """The verbs `profile FILE` and `sanitize FILE`."""
    folder = OUT / "profile"
    rows = [(family, *x) for family, x in PLANTED.items()]
    for family, which, body, geometry in rows:
        path = folder / f"planted_{family}.cu"
        path.write_text(
            f"// launch: f{geometry}(x, y, rows, cols)\n"
            f'extern "C" __global__ void f(const float* x, float* y, int rows, int cols) {{\n  {body}\n}}\n'
        )
        code, found, words = ours(
            ["sanitize", path, "--task", "native/row_sum", "--tool", which], folder / f"around_{family}.json"
        )
        checks = found.get("checks", [])
        families = sorted({f["family"] for c in checks for f in c["findings"]})
        problems = [
            f"{c['check']} {c['problem']}: {c['words'] or c['said'][-200:]}" for c in checks if c["problem"] != "none"
        ]
        wanted = [] if family == "none" else [family]
        promise(
            checks and not problems and families == wanted,
            f"sanitize, in the sandbox: {family} by {which}: {', '.join(families) or 'nothing'} "
            f"({sum(c['seconds'] for c in checks):.1f} s)" + "; ".join(problems) + words,
        )
    for pack in ("quick", "full"):
        code, found, words = ours(
            ["profile", folder / "planted_none.cu", "--task", "native/row_sum", "--pack", pack],
            folder / f"around_{pack}.json",
        )
        kernels = found.get("kernels", [])
        promise(
            code == 0 and len(kernels) == 1,
            f"profile, in the sandbox, pack {pack}: {len(kernels)} kernel, "
            f"told as {told_of(kernels[0]) if kernels else 'nothing'}, "
            f"{found.get('seconds', 0):.1f} s, problem {found.get('problem')}: "
            f"{found.get('words')} {found.get('said', '')[-300:]}{words}",
        )


def keep_all(folder):
    """All of it as one file, to be golden files."""
    with tarfile.open(OUT / "profile_recorded.tar.gz", "w:gz") as into:
        for path in sorted(folder.iterdir()):
            if path.is_file() and path.stat().st_size < 4 << 20 and path.suffix in (".txt", ".csv", ".json", ".cu"):
                into.add(path, f"profile/{path.name}")


def check_profile():
    folder = OUT / "profile"
    folder.mkdir(parents=True, exist_ok=True)
    try:
        check_all(folder)
    finally:
        keep_all(folder)


def check_all(folder):
    found = {name: tool(name) for name in ("nvcc", "ncu", "compute-sanitizer", "nvdisasm", "cuobjdump")}
    versions = "".join(
        f"{name}: {path}\n{run([path, '--version'], folder / 'version.txt', 20)[1] if path else ''}\n"
        for name, path in found.items()
    )
    (folder / "versions.txt").write_text(versions)
    say(
        f"        found: {', '.join(name for name, path in found.items() if path)}; not: "
        f"{', '.join(name for name, path in found.items() if not path) or 'none'}"
    )
    if found["ncu"]:
        check_cards(found["ncu"], folder)
    else:
        say("        without ncu: no cards by counters")
    if found["compute-sanitizer"]:
        check_sanitizers(found["compute-sanitizer"], folder)
    else:
        say("        without compute-sanitizer: no findings")
    if found["ncu"] and found["compute-sanitizer"]:
        check_around()
    check_free()
    check_inspect(folder)
