"""Runs the tests behind a promise and takes their figures: GoogleTest's JSON with its recorded properties, and the
file that the fault tests of real processes write."""

import json
import os
import pathlib
import re
import subprocess
import time
from dataclasses import dataclass, field

SKIPPED = 77


class NotHere(Exception):
    """A test cannot run on this machine; says why."""


@dataclass
class Outcome:
    """What one command measured."""

    command: str
    held: bool
    seconds: float
    figures: dict = field(default_factory=dict)  # name: number or text
    cases: int = 0  # that ran and held
    skipped: list = field(default_factory=list)
    failed: list = field(default_factory=list)
    text: str = ""  # what it printed
    log: str = ""  # the file that holds it


class Bench:
    """Runs commands, keeps what they leave in a folder, and runs none of them twice."""

    def __init__(self, out: pathlib.Path, size: str):
        self.out, self.size = out, size
        self.root = pathlib.Path(os.environ["KERNELMILL_SOURCE_DIR"])
        self.build = pathlib.Path(os.environ["KERNELMILL_BUILD_DIR"])
        self.known: dict[str, Outcome] = {}

    def of_size(self, quick, usual, full):
        return {"quick": quick, "usual": usual, "full": full}[self.size]

    def program(self, name: str) -> pathlib.Path:
        path = self.build / "tests" / name
        if not path.exists():
            raise NotHere(f"{name} is not built")
        return path

    def run(self, name: str, words: list, limit: float, environment: dict, leaves: dict) -> Outcome:
        """`environment` is a part of the command; `leaves` names, by variable, the file or
        the folder that it is to write."""
        shown = " ".join([f"{k}={v}" for k, v in environment.items()] + [self.shorten(x) for x in words])
        if shown in self.known:
            return self.known[shown]
        log = self.out / f"{name}.log"
        for path in (pathlib.Path(x.removeprefix("json:")) for x in leaves.values()):
            if not path.is_dir():
                path.unlink(missing_ok=True)
        begin = time.monotonic()
        with open(log, "wb") as sink:
            process = subprocess.Popen(
                [str(x) for x in words],
                stdout=sink,
                stderr=subprocess.STDOUT,
                cwd=self.root,
                stdin=subprocess.DEVNULL,
                start_new_session=True,
                env={**os.environ, **leaves, **{k: str(v) for k, v in environment.items()}},
            )
            try:
                code = process.wait(limit)
            except BaseException as why:
                os.killpg(process.pid, 9)
                process.wait()
                if not isinstance(why, subprocess.TimeoutExpired):
                    raise
                code = 124
        text = log.read_text(errors="replace")
        if code == SKIPPED:
            raise NotHere(text.strip().splitlines()[-1] if text.strip() else "skipped")
        result = Outcome(shown, code == 0, time.monotonic() - begin, text=text, log=str(log))
        self.known[shown] = result
        return result

    def shorten(self, word) -> str:
        word = str(word)
        for folder in (self.build, self.root):
            word = word.replace(f"{folder}/", "build/" if folder == self.build else "")
        return f"'{word}'" if set(word) & set("*? ") else word

    def gtest(self, program: str, only: str = "*", limit: float = 900, **environment) -> Outcome:
        """A GoogleTest program, or those of its cases that a filter names."""
        path = self.program(program)
        name = f"{program}-{re.sub(r'[^A-Za-z0-9]+', '_', only).strip('_') or 'all'}"
        document = self.out / f"{name}.json"
        words = [path] + ([] if only == "*" else [f"--gtest_filter={only}"])
        result = self.run(name, words, limit, environment, {"GTEST_OUTPUT": f"json:{document}"})
        if not document.exists():
            result.held = False
            return result
        suites = json.loads(document.read_text()).get("testsuites", [])
        standard = {"name", "file", "line", "status", "result", "timestamp", "time", "classname", "failures"}
        result.cases, result.skipped, result.failed = 0, [], []
        for case in (x for suite in suites for x in suite.get("testsuite", [])):
            if case.get("result") == "SKIPPED":
                result.skipped.append(case["name"])
            elif case.get("failures"):
                result.failed.append(case["name"])
            else:
                result.cases += 1
            result.figures.update({k: number_of(v) for k, v in case.items() if k not in standard})
        if result.held and not result.cases and result.skipped:
            raise NotHere(f"{program} skips {', '.join(result.skipped)}")
        result.held = result.held and result.cases > 0
        return result

    def script(self, path: str, limit: float = 900, **environment) -> Outcome:
        """A fault test in Python."""
        name = pathlib.Path(path).stem
        document = self.out / f"{name}.json"
        result = self.run(
            name, ["python3", "-B", self.root / path], limit, environment, {"KERNELMILL_FIGURES": str(document)}
        )
        if document.exists():
            result.figures = json.loads(document.read_text())
        return result

    def has_gpu(self) -> bool:
        return pathlib.Path(os.environ.get("KERNELMILL_GPU_NODE", "/dev/nvidiactl")).exists()

    def gpu_check(self, parts: list, limit: float, *options) -> Outcome:
        """Parts of gpu_check.sh with the program of this build; its promises, kept or broken, are the figures."""
        if not self.has_gpu():
            raise NotHere("no GPU")
        folder = self.out / "gpu_check"
        folder.mkdir(exist_ok=True)
        result = self.run(
            "gpu_check",
            [self.root / "launch/gpu_check.sh", *parts, *options],
            limit,
            {},
            {"OUT": str(folder), "GPU_CHECK_ROOT": str(self.build)},
        )
        said = re.findall(r"^(ok|BROKEN) +(.+)$", result.text, re.MULTILINE)
        result.figures = {"promises": [text for _, text in said]}
        result.failed = [text for kept, text in said if kept == "BROKEN"]
        result.held = result.held and bool(said) and not result.failed
        return result


def number_of(value):
    try:
        return int(value)
    except (TypeError, ValueError):
        return value
