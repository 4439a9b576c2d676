"""A run with token ids, made once, and its exports; and the classes of trainers, taken from their own sources."""

import ast
import atexit
import importlib.util
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

SOURCE = pathlib.Path(os.environ["KERNELMILL_SOURCE_DIR"])
sys.path.insert(0, str(SOURCE / "tests/integration"))

from recorded import recorded  # noqa: E402

PROGRAM = os.path.join(os.environ["KERNELMILL_BIN_DIR"], "kernelmill")
GOLDEN = SOURCE / "tests/unit/export/golden"


def go_on_with_trainers_python() -> None:
    """Starts this test again in $KERNELMILL_TRAINER_PYTHON, which has the trainers."""
    wanted = os.environ.pop("KERNELMILL_TRAINER_PYTHON", "")
    if wanted:
        os.execv(wanted, [wanted, "-B", *sys.argv])


def has(*packages: str) -> bool:
    return all(importlib.util.find_spec(x) for x in packages)


def missing(*packages: str) -> str:
    return f"{' or '.join(packages)} is not installed; tests/trainers.sh makes a Python that has it"


def program(*arguments: str, **more) -> str:
    done = subprocess.run([PROGRAM, *arguments], capture_output=True, text=True, timeout=550, check=False, **more)
    assert done.returncode == 0, f"{arguments}: {done.stderr}"
    return done.stdout


class Run:
    """Three tasks under ids of KernelBench, four members, two turns, ids of a scripted vLLM.

    Exports go to a folder of this process. A test that changes the run or its tasks asks for one of its own.
    """

    def __init__(self, own: bool = False):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="kernelmill-exports-"))
        atexit.register(shutil.rmtree, self.folder, True)
        made = self.folder
        if own:
            Recording(made)
        else:
            made = recorded("exports", Recording)
            if not os.environ.get("KERNELMILL_RECORDED"):
                atexit.register(shutil.rmtree, made, True)
        self.directory = made / "runs/first"

    def export(self, form: str, *more: str) -> pathlib.Path:
        folder = self.folder / f"{form}-{len(list(self.folder.iterdir()))}"
        program("export", str(self.directory), "--form", form, "--out", str(folder), *more)
        return folder

    def rows(self, form: str, *more: str) -> list:
        if "--split" not in more and "split" not in golden_rows(form)[0]:  # one stream would mix them
            return [*self.rows(form, *more, "--split", "train"), *self.rows(form, *more, "--split", "dev")]
        out = program("export", str(self.directory), "--form", form, "--out", "-", *more)
        return [json.loads(x) for x in out.splitlines()]


class Recording:
    """Makes the run in a folder."""

    def __init__(self, folder: pathlib.Path):
        self.folder = folder
        tasks = [
            self.add_task("row_sum", "level1/1_row_sum", "train"),
            self.add_task("gelu", "level1/2_gelu", "dev"),
            self.add_task("softmax", "level1/3_softmax", "train"),
        ]
        server = subprocess.Popen(
            [PROGRAM, "policy", "scripted", "--script", str(self.script()), "--kind", "vllm"],
            stdout=subprocess.PIPE,
            text=True,
        )
        try:
            program(
                "run",
                str(SOURCE / "configs/quickstart.json"),
                f"tasks.root={self.folder}/tasks",
                f"tasks.ids={json.dumps(tasks)}",
                "tasks.groups=1",
                "tasks.group_size=4",
                "tasks.max_turns=2",
                "evaluation.timing.half_width=0.1",
                "profile.enabled=false",
                "policy.kind=vllm",
                "policy.model=m",
                f"policy.base_url={server.stdout.readline().strip()}",
                "policy.tokens=exact",
                f"run.dir={self.folder}/runs/first",
                "--json",
            )
        finally:
            server.terminate()
            server.communicate()

    def add_task(self, name: str, problem: str, split: str) -> str:
        folder = self.folder / "tasks/kernelbench" / problem
        shutil.copytree(SOURCE / "configs/tasks/native" / name, folder)
        document = json.loads((folder / "task.json").read_text())
        document["id"] = f"kernelbench/{problem}"
        document["split"] = split
        (folder / "task.json").write_text(json.dumps(document))
        return document["id"]

    def script(self) -> pathlib.Path:
        kernels = SOURCE / "configs/policies/quickstart"
        # Of each member its two answers: right and fast, right and slow, never right.
        answers = {
            "row_sum": [("wrong_tail", "fast"), ("plain", "fast"), ("column_order", "lanes"), ("lanes", "fast")],
            "gelu": [("broken", "slow_long_double"), ("plain", "fast"), ("wrong_tanh", "fast"), ("fast", "fast")],
            "softmax": [("broken", "wrong_no_maximum"), ("plain", "fast"), ("fast", "fast"), ("broken", "fast")],
        }
        replies = []
        for number, (name, members) in enumerate(answers.items(), 1):
            shutil.copytree(kernels / name, self.folder / name)
            for member, files in enumerate(members):
                replies += [
                    {
                        "task": f"kernelbench/level1/{number}_{name}",
                        "member": member,
                        "turn": turn,
                        "kernel": f"{name}/{file}.cpp",
                    }
                    for turn, file in enumerate(files)
                ]
        path = self.folder / "script.json"
        path.write_text(json.dumps({"model": "m", "replies": replies, "versions": [{"version": "step-3"}]}))
        return path


_run = None


def the_run(own: bool = False) -> Run:
    global _run  # pylint: disable=global-statement
    if _run is None:
        _run = Run(own)
    return _run


def golden_rows(form: str) -> list:
    return [json.loads(x) for x in (GOLDEN / f"{form}.jsonl").read_text().splitlines()]


def source_of(package: str, path: str) -> pathlib.Path | None:
    """A file of a trainer: of the installed package, or below $KERNELMILL_TRAINER_SOURCES/PACKAGE. Not imported:
    trainers want a GPU's worth of other packages for a class of ten fields."""
    roots = []
    if spec := importlib.util.find_spec(package):
        roots += [pathlib.Path(x).parent for x in spec.submodule_search_locations or []]
    if sources := os.environ.get("KERNELMILL_TRAINER_SOURCES"):
        roots.append(pathlib.Path(sources) / package)
    for root in roots:
        if (root / path).exists():
            return root / path
    return None


def classes_of(path: pathlib.Path, names: list, namespace: dict) -> dict:
    """Defines the named classes and functions of a file as they stand there."""
    for node in ast.parse(path.read_text()).body:
        if getattr(node, "name", None) in names:
            exec(compile(ast.Module([node], []), str(path), "exec"), namespace)  # pylint: disable=exec-used
    return namespace


def make_model(folder: str) -> None:
    """Two layers of 32 numbers, and a tokenizer of bytes; nothing is downloaded."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {x: i for i, x in enumerate(["<s>", "</s>", *alphabet])}
    raw = Tokenizer(models.BPE(vocab=vocabulary, merges=[]))
    raw.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    raw.decoder = decoders.ByteLevel()
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=raw, bos_token="<s>", eos_token="</s>", pad_token="</s>")
    tokenizer.chat_template = (
        "{% for m in messages %}{{ '<' + m['role'] + '>' + m['content'] + '\n' }}{% endfor %}"
        "{% if add_generation_prompt %}{{ '<assistant>' }}{% endif %}"
    )
    tokenizer.save_pretrained(folder)
    LlamaForCausalLM(
        LlamaConfig(
            vocab_size=len(vocabulary),
            hidden_size=32,
            intermediate_size=64,
            num_hidden_layers=2,
            num_attention_heads=2,
            num_key_value_heads=2,
            max_position_embeddings=32768,
            bos_token_id=0,
            eos_token_id=1,
            pad_token_id=1,
        )
    ).save_pretrained(folder)
