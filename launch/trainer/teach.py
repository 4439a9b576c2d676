"""Makes, pretrains and teaches a policy in FOLDER, and goes on where it stopped: launch/teach.sh.

It starts `kernelmill serve --runs`, the policy's server and the trainer, and starts again whichever of them ends early.
"""

import argparse
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import time
from typing import Dict, List

HERE = pathlib.Path(__file__).resolve().parent
MOST_STARTS = 50  # of one part: something is wrong then


def ports_of(folder: pathlib.Path) -> Dict[str, int]:
    """The same ones after a restart: orders name the policy server by its address."""
    path = folder / "ports.json"
    if not path.exists():
        free = [socket.create_server(("127.0.0.1", 0)) for _ in range(2)]
        path.write_text(json.dumps(dict(zip(("serve", "policy"), (x.getsockname()[1] for x in free)))))
        for x in free:
            x.close()
    return json.loads(path.read_text())  # type: ignore[no-any-return]


class Parts:
    def __init__(self, folder: pathlib.Path, program: str) -> None:
        ports, config = ports_of(folder), json.loads((folder / "config.json").read_text())
        url, policy = (f"http://127.0.0.1:{ports[x]}" for x in ("serve", "policy"))
        python, self.folder = [sys.executable, "-B", "-m"], folder
        self.commands: Dict[str, List[str]] = {
            "serve": [program, "serve", "--backend", config.get("backend", "cpu"), "--runs", str(folder / "runs"),
                      "--root", str(folder / "tasks"), "--listen", url.split("//")[1]],
            "policy": [*python, "trainer.server", "WEIGHTS", "--port", str(ports["policy"]), "--device", config["device"]],
            "trainer": [*python, "trainer.grpo", str(folder), "--url", url, "--policy", policy]}
        self.running: Dict[str, subprocess.Popen] = {}  # type: ignore[type-arg]
        self.starts = dict.fromkeys(self.commands, 0)

    def start(self, name: str) -> None:
        self.starts[name] += 1
        checkpoint = self.folder / "checkpoint.pt"
        weights = checkpoint if checkpoint.exists() else self.folder / "pretrained.pt"
        command = [str(weights) if x == "WEIGHTS" else x for x in self.commands[name]]
        with open(self.folder / f"{name}.log", "ab") as log:
            self.running[name] = subprocess.Popen(command, cwd=HERE.parent, stdin=subprocess.DEVNULL, stderr=log,
                                                  stdout=None if name == "trainer" else log)

    def watch(self) -> int:
        for name in self.commands:
            self.start(name)
        while True:
            time.sleep(0.2)
            for name, process in self.running.items():
                code = process.poll()
                if code == 0 and name == "trainer":
                    return 0
                if code is not None:
                    print(f"teach: {name} ended with {code}; see {self.folder / f'{name}.log'}", file=sys.stderr, flush=True)
                    if self.starts[name] >= MOST_STARTS or code in (1, 2, 3) and self.starts[name] > 3:
                        return 1
                    time.sleep(1)
                    self.start(name)

    def end(self) -> None:
        for process in self.running.values():
            if process.poll() is None:
                process.terminate()
        for process in self.running.values():
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def main() -> int:
    words = argparse.ArgumentParser(prog="teach.sh", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("folder", type=pathlib.Path, help="where everything of this policy lies; made when it is not there")
    words.add_argument("--config", type=pathlib.Path, default=HERE / "cpu.json", help="for a new folder; default: cpu.json")
    words.add_argument("--program", required=True, help=argparse.SUPPRESS)
    words.add_argument("--seed", type=int, help="for a new folder, in place of the configuration's")
    words.add_argument("--pretrained", type=pathlib.Path, help="for a new folder: begins with the policy and the tasks of this one")
    given = words.parse_args()
    folder = given.folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    if not (folder / "config.json").exists():
        config = json.loads(given.config.read_text())
        if given.seed is not None:
            config["seed"] = given.seed
        if given.pretrained:
            shutil.copytree(given.pretrained / "tasks", folder / "tasks")
            shutil.copy(given.pretrained / "pretrained.pt", folder / "pretrained.pt")
        (folder / "config.json").write_text(json.dumps(config, indent=2) + "\n")
    # Threads of small products wait for each other where verdicts have the cores: a step took 20 s with two, 1 s with one.
    os.environ.setdefault("OMP_NUM_THREADS", "1" if json.loads((folder / "config.json").read_text())["device"] == "cpu" else "8")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    if not (folder / "pretrained.pt").exists():
        made = subprocess.run([sys.executable, "-B", "-m", "trainer.pretrain", str(folder), "--program", given.program,
                               "--config", str(folder / "config.json")], cwd=HERE.parent)
        if made.returncode:
            return made.returncode
    parts = Parts(folder, given.program)
    try:
        return parts.watch()
    except KeyboardInterrupt:
        return 130
    finally:
        parts.end()


if __name__ == "__main__":
    os.environ.setdefault("PYTHONDONTWRITEBYTECODE", "1")
    sys.exit(main())
