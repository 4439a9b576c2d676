"""Makes and pretrains a policy in FOLDER, and teaches it with `kernelmill train`: launch/teach.sh.

It writes FOLDER/training.json, the file of `kernelmill train`, from FOLDER/config.json.
"""

import argparse
import json
import os
import pathlib
import shutil
import socket
import subprocess
import sys
from typing import Any, Dict

HERE = pathlib.Path(__file__).resolve().parent


def ports_of(folder: pathlib.Path) -> Dict[str, int]:
    """The same ones after a restart: orders name the policy server by its address."""
    path = folder / "ports.json"
    if not path.exists():
        free = [socket.create_server(("127.0.0.1", 0)) for _ in range(2)]
        path.write_text(json.dumps(dict(zip(("policy", "trainer"), (x.getsockname()[1] for x in free)))))
        for x in free:
            x.close()
    return json.loads(path.read_text())  # type: ignore[no-any-return]


def training_of(folder: pathlib.Path) -> Dict[str, Any]:
    """What `kernelmill train` is told."""
    config, ports = json.loads((folder / "config.json").read_text()), ports_of(folder)
    teaching, device = config["teaching"], ["--device", config["device"]]
    # Kernels are not timed on a GPU that a policy uses as well.
    elsewhere = ["env", f"CUDA_VISIBLE_DEVICES={config['gpus']}"] if "gpus" in config else []
    python = [*elsewhere, sys.executable, "-B", "-m"]

    def given(*names: str) -> Dict[str, Any]:
        return {k: teaching[k] for k in names if k in teaching}

    result = {
        "dir": ".",
        "preset": teaching["preset"],
        "seed": config["seed"],
        "steps": teaching["steps"],
        "backend": config.get("backend", "cpu"),
        "tasks": {"root": "tasks", "train": ["train/*"], "held_out": ["held_out/*"], "texts": ["pretraining.jsonl"]},
        "batch": given("groups", "group_size", "rounds", "least_deviation", "thinking", "ahead"),
        "evaluation": {"every": teaching["evaluate_every"], "samples": teaching["samples"], "fast": [1, 1.5, 2, 4]},
        "policy": {
            "command": [*python, "trainer.server", "{weights}", "--port", str(ports["policy"]), *device],
            "weights": "pretrained.pt",
            "version": "pretrained",
        },
        "trainer": {
            "command": [*python, "trainer.grpo", "--port", str(ports["trainer"]), *device],
            "url": f"http://127.0.0.1:{ports['trainer']}/step",
            "settings": given("rate", "passes", "rows"),
        },
        "run": {
            "policy": {
                "kind": "sglang",
                "base_url": f"http://127.0.0.1:{ports['policy']}/v1",
                "model": "policy",
                "tokens": "exact",
                "sampling": {"temperature": 1.0, "max_tokens": teaching.get("max_tokens", 512), "logprobs": True},
            },
            "tasks": given("max_turns"),
            "evaluation": given("timing", "slots"),
        },
        **given("stages"),
    }
    return result


def main() -> int:
    words = argparse.ArgumentParser(
        prog="teach.sh", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    words.add_argument(
        "folder", type=pathlib.Path, help="where everything of this policy lies; made when it is not there"
    )
    words.add_argument(
        "--config", type=pathlib.Path, default=HERE / "cpu.json", help="for a new folder; default: cpu.json"
    )
    words.add_argument("--program", required=True, help=argparse.SUPPRESS)
    words.add_argument("--seed", type=int, help="for a new folder, in place of the configuration's")
    words.add_argument(
        "--pretrained", type=pathlib.Path, help="for a new folder: begins with the policy and the tasks of this one"
    )
    given = words.parse_args()
    folder = given.folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    if not (folder / "config.json").exists():
        config = json.loads(given.config.read_text())
        if given.seed is not None:
            config["seed"] = given.seed
        if given.pretrained:
            shutil.copytree(given.pretrained / "tasks", folder / "tasks", dirs_exist_ok=True)
            for name in ("pretraining.jsonl", "pretrained.pt"):
                shutil.copy(given.pretrained / name, folder / name)
        (folder / "config.json").write_text(json.dumps(config, indent=2) + "\n")
    # Threads of small products wait for each other where verdicts have the cores: a step took 20 s with two,
    # 1 s with one.
    os.environ.setdefault(
        "OMP_NUM_THREADS", "1" if json.loads((folder / "config.json").read_text())["device"] == "cpu" else "8"
    )
    if not (folder / "pretrained.pt").exists():
        made = subprocess.run(
            [
                sys.executable,
                "-B",
                "-m",
                "trainer.pretrain",
                str(folder),
                "--program",
                given.program,
                "--config",
                str(folder / "config.json"),
            ],
            cwd=HERE.parent,
        )
        if made.returncode:
            return made.returncode
    (folder / "training.json").write_text(json.dumps(training_of(folder), indent=2) + "\n")
    sys.stdout.flush()
    os.execv(given.program, [given.program, "train", str(folder / "training.json")])


if __name__ == "__main__":
    os.environ.setdefault("PYTHONDONTWRITEBYTECODE", "1")
    sys.exit(main())
