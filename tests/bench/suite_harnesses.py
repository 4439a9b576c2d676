"""The harnesses of GPU MODE and robust-kbench, each answer in a process of its own with a time limit.

An answer in Python is given to robust-kbench's harness in the place of the extension that it would load. `pycuda`,
which that harness asks for the card's name alone, has a stand-in. No file of a suite is changed.
"""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import pathlib
import runpy
import shutil
import signal
import subprocess
import sys
import threading
import time
import types

from suite_answers import listed


class Clock:
    """The time that is left, and what is ended when it is over."""

    def __init__(self, seconds: float):
        self.end, self.running, self.guard = time.monotonic() + seconds, set(), threading.Lock()

    def left(self) -> float:
        return self.end - time.monotonic()

    def start(self, command: list, **more) -> subprocess.Popen:
        with self.guard:
            if self.left() <= 0:
                raise TimeoutError
            process = subprocess.Popen([str(x) for x in command], start_new_session=True, **more)
            self.running.add(process)
            return process

    def kill(self, process: subprocess.Popen) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)

    def ended(self, process: subprocess.Popen) -> None:
        """Ends what a process left behind, too."""
        with self.guard:
            self.running.discard(process)
        self.kill(process)

    def stop(self) -> None:
        with self.guard:
            self.end = time.monotonic()
            for x in self.running:
                x.terminate()  # `kernelmill judge` ends its own children

    def run(self, command: list, seconds: float, **more) -> tuple[str, str]:
        """Its stdout and stderr; TimeoutError after `seconds`, or when the time is over."""
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, "errors": "replace"}
        process = self.start(command, **pipes, **more)
        try:
            return process.communicate(timeout=max(0.1, min(seconds, self.left())))
        except subprocess.TimeoutExpired:
            raise TimeoutError from None
        finally:
            self.ended(process)
            process.wait()


def gpu_mode_says(options, clock: Clock, answer, scratch: pathlib.Path) -> tuple[str, str]:
    """eval.py's words for an answer, in a folder laid out as task.yml says."""
    problem = answer.problem.folder
    for x in listed(problem, "files"):
        shutil.copy(answer.file if x["source"] == "@SUBMISSION@" else problem / x["source"], scratch / x["name"])
    tests = ["; ".join(f"{k}: {v}" for k, v in x.items()) for x in listed(problem, "tests")]
    (scratch / "tests.txt").write_text("\n".join(tests) + "\n")
    # References compute under torch's deterministic algorithms, for which cuBLAS needs a workspace of a known size.
    environment = os.environ | {"CUBLAS_WORKSPACE_CONFIG": os.environ.get("CUBLAS_WORKSPACE_CONFIG", ":4096:8")}
    with (scratch / "popcorn").open("w") as told:
        environment["POPCORN_FD"] = str(told.fileno())
        command = [options.harness_python, "eval.py", "test", "tests.txt"]
        more = {"cwd": scratch, "env": environment, "pass_fds": [told.fileno()]}
        _, errors = clock.run(command, options.limit, **more)
    lines = dict(x.split(": ", 1) for x in (scratch / "popcorn").read_text().splitlines() if ": " in x)
    if "check" not in lines:
        return "no verdict", (errors.strip().splitlines() or ["it says nothing"])[-1]
    return lines["check"], next((v for k, v in lines.items() if k.endswith(".error")), "")


def robust_says(options, clock: Clock, answer, scratch: pathlib.Path) -> tuple[str, str]:
    """cuda_correct.py's words for an answer."""
    environment = os.environ | {"TORCH_EXTENSIONS_DIR": str(scratch / "built"), "MKL_THREADING_LAYER": "GNU"}
    (scratch / "built").mkdir()
    file = pathlib.Path(shutil.copy(answer.file, scratch))
    command = [options.harness_python, pathlib.Path(__file__).resolve(), options.robust_kbench]
    command += ["--task_dir", answer.problem.folder, "--filename", file, "--store_results"]
    command += ["--num_correct_trials", options.trials]
    command += ["--multi_init_settings", "--multi_input_settings"] if options.all_configurations else []
    _, errors = clock.run(command, options.limit, cwd=scratch, env=environment)
    told = scratch / "eval_results" / "test_results.json"
    if not told.exists():
        return "no verdict", (errors.strip().splitlines() or ["it says nothing"])[-1]
    summary = json.loads(told.read_text())["summary"]
    if summary["correct"]:
        return "pass", ""
    if "error" in summary:  # to the harness an answer that raises, or does not build, is a wrong one
        return "raises", summary["error"]
    return "fail", f"largest difference {summary['max_diff']:.3g}"


def as_harness(checkout: str, words: list[str]) -> None:
    """Runs robust-kbench's cuda_correct.py in this process, with stand-ins."""
    import torch.utils.cpp_extension

    sys.path[0] = checkout  # in the place of this script's folder
    driver = types.ModuleType("pycuda.driver")
    driver.Device = types.SimpleNamespace(count=lambda: 0)
    package = types.ModuleType("pycuda")
    package.driver, package.autoinit = driver, types.ModuleType("pycuda.autoinit")
    sys.modules |= {"pycuda": package, "pycuda.driver": driver, "pycuda.autoinit": package.autoinit}

    def load(name, sources, **_):
        spec = importlib.util.spec_from_file_location("answer", sources[0])
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module

    if words[words.index("--filename") + 1].endswith(".py"):
        torch.utils.cpp_extension.load = load
    program = pathlib.Path(checkout) / "robust_kbench/primitives/forward/cuda_correct.py"
    sys.argv = [str(program), *words]
    runpy.run_path(str(program), run_name="__main__")


HARNESSES = {"gpu-mode": gpu_mode_says, "robust-kbench": robust_says}

if __name__ == "__main__":
    as_harness(sys.argv[1], sys.argv[2:])
