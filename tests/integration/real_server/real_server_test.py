"""A policy server that is not ours, from start to finish: `transformers serve` with a tiny model of random weights.

    PYTHON real_server_test.py KERNELMILL

PYTHON, or the one that $KERNELMILL_SERVING_PYTHON names, must have torch and `pip install "transformers[serving]"`;
without them the exit code is 77. The model is made here: nothing is downloaded. Random weights write no
kernels, so every turn fails its format; that is a normal answer, and the whole way there and back is what is tested.
"""

import importlib.util
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

PATIENCE = 120


def make_model(folder: str) -> None:
    """Two layers of 64 numbers, and a tokenizer of bytes."""
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
    config = LlamaConfig(
        vocab_size=len(vocabulary),
        hidden_size=64,
        intermediate_size=128,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=4,
        max_position_embeddings=16384,
        bos_token_id=0,
        eos_token_id=1,
        pad_token_id=1,
    )
    model = LlamaForCausalLM(config)
    model.generation_config.do_sample = True
    model.save_pretrained(folder)


def free_port() -> int:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def wait_for(url: str, server: subprocess.Popen) -> None:
    begin = time.monotonic()
    while True:
        assert server.poll() is None, "the server ended"
        assert time.monotonic() - begin < PATIENCE, f"{url} does not answer"
        try:
            urllib.request.urlopen(url, timeout=5).read()
            return
        except urllib.error.HTTPError:
            return
        except OSError:
            time.sleep(0.3)


def check(kernelmill: str, folder: str, url: str, environment: dict) -> None:
    model = folder + "/model"
    done = subprocess.run(
        [kernelmill, "policy", "probe", url, "--model", model, "--json"],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE,
    )
    print("probe:", done.returncode, done.stdout[:1500], done.stderr[:500])
    assert done.returncode == 0, done.stderr
    run = folder + "/run"
    done = subprocess.run(
        [
            kernelmill,
            "run",
            "quickstart",
            f"run.dir={run}",
            "policy.kind=openai",
            f"policy.base_url={url}",
            f"policy.model={model}",
            'tasks.ids=["native/row_sum"]',
            "tasks.group_size=2",
            "tasks.max_turns=2",
            "policy.sampling.max_tokens=64",
            "retrieval.enabled=false",
            "--json",
        ],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    totals = json.loads(done.stdout)["totals"]
    print("run:", totals)
    assert totals["episodes"] == 2 and totals["turns"] == 4 and totals["infrastructure"] == 0, totals
    with open(run + "/traces.jsonl", encoding="utf-8") as file:
        turns = [x for x in map(json.loads, file) if x["kind"] == "turn"]
    assert len(turns) == 4 and all(t["response"] for t in turns), "a completion is empty"
    assert all(t["model"] for t in turns)


def main() -> int:
    other = os.environ.get("KERNELMILL_SERVING_PYTHON")
    if other and other != sys.executable:
        os.execv(other, [other, "-B", *sys.argv])
    for name in ("torch", "transformers", "tokenizers", "fastapi", "uvicorn"):
        if importlib.util.find_spec(name) is None:
            print(f"skipped: {sys.executable} has no {name}")
            return 77
    folder = tempfile.mkdtemp(prefix="kernelmill-real-")
    environment = {**os.environ, "HF_HUB_OFFLINE": "1", "HF_HOME": folder + "/hf", "CUDA_VISIBLE_DEVICES": ""}
    server = None
    try:
        make_model(folder + "/model")
        port = free_port()
        program = os.path.join(os.path.dirname(sys.executable), "transformers")
        with open(folder + "/server.log", "wb") as log:
            server = subprocess.Popen(
                [program, "serve", "--host", "127.0.0.1", "--port", str(port), "--device", "cpu"],
                env=environment,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        url = f"http://127.0.0.1:{port}/v1"
        wait_for(url + "/models", server)
        check(sys.argv[1], folder, url, environment)
    except BaseException:
        if os.path.exists(folder + "/server.log"):
            with open(folder + "/server.log", encoding="utf-8", errors="replace") as log:
                print("-- server.log\n" + log.read()[-3000:])
        raise
    finally:
        if server is not None:
            os.killpg(server.pid, signal.SIGKILL)
            server.wait()
        shutil.rmtree(folder, ignore_errors=True)
    print("passed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
