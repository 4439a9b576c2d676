"""llama.cpp's own server, from start to finish, with a tiny model of random weights that is made here.

    PYTHON llamacpp_test.py KERNELMILL

$KERNELMILL_LLAMACPP_SERVER is the path of `llama-server`; PYTHON, or the one that $KERNELMILL_SERVING_PYTHON names, must
have `gguf`. Without them the exit code is 77. Random weights write no kernels: what is tested is the whole way there
and back, and what the server tells of its tokens.
"""

import importlib.util
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

from real_server_test import PATIENCE, free_port, wait_for

WIDTH, INNER, HEADS, LAYERS, CONTEXT = 64, 128, 4, 2, 16384
TEMPLATE = ("{% for m in messages %}{{ '<' + m['role'] + '>' + m['content'] + '\n' }}{% endfor %}"
            "{% if add_generation_prompt %}{{ '<assistant>' }}{% endif %}")


def make_model(path: str) -> None:
    """Two layers of 64 numbers; a token is a byte."""
    import gguf
    import numpy

    draw = numpy.random.default_rng(1)
    tokens = ["<unk>", "<s>", "</s>", *(f"<0x{x:02X}>" for x in range(256))]
    to = gguf.GGUFWriter(path, "llama")
    to.add_context_length(CONTEXT)
    to.add_embedding_length(WIDTH)
    to.add_block_count(LAYERS)
    to.add_feed_forward_length(INNER)
    to.add_head_count(HEADS)
    to.add_head_count_kv(HEADS)
    to.add_layer_norm_rms_eps(1e-5)
    to.add_rope_dimension_count(WIDTH // HEADS)
    to.add_vocab_size(len(tokens))
    to.add_tokenizer_model("llama")
    to.add_token_list(tokens)
    to.add_token_scores([0.0] * len(tokens))
    to.add_token_types([2, 3, 3, *([6] * 256)])  # unknown, control, bytes
    to.add_bos_token_id(1)
    to.add_eos_token_id(2)
    to.add_unk_token_id(0)
    to.add_chat_template(TEMPLATE)

    def weights(name: str, *shape: int) -> None:
        to.add_tensor(name + ".weight", draw.normal(0, 0.05, shape).astype(numpy.float32))

    def ones(name: str) -> None:
        to.add_tensor(name + ".weight", numpy.ones(WIDTH, numpy.float32))

    weights("token_embd", len(tokens), WIDTH)
    weights("output", len(tokens), WIDTH)
    ones("output_norm")
    for i in range(LAYERS):
        ones(f"blk.{i}.attn_norm")
        ones(f"blk.{i}.ffn_norm")
        for name in ("attn_q", "attn_k", "attn_v", "attn_output"):
            weights(f"blk.{i}.{name}", WIDTH, WIDTH)
        weights(f"blk.{i}.ffn_gate", INNER, WIDTH)
        weights(f"blk.{i}.ffn_up", INNER, WIDTH)
        weights(f"blk.{i}.ffn_down", WIDTH, INNER)
    to.write_header_to_file()
    to.write_kv_data_to_file()
    to.write_tensors_to_file()
    to.close()


def check(kernelmill: str, folder: str, url: str) -> None:
    environment = {**os.environ, "XDG_CACHE_HOME": folder + "/cache"}
    done = subprocess.run([kernelmill, "policy", "probe", url, "--json"], env=environment, capture_output=True, text=True,
                          check=False, timeout=PATIENCE)
    assert done.returncode == 0, done.stdout + done.stderr
    probed = json.loads(done.stdout)
    has = {x["name"]: x["has"] for x in probed["capabilities"]}
    print("probe:", probed["kind"], probed["model"], probed.get("version"), has)
    assert probed["kind"] == "llamacpp", probed
    assert has["logprobs"] and has["token_ids"] and has["streaming"], probed
    run = folder + "/run"
    done = subprocess.run(
        [kernelmill, "run", "quickstart", f"run.dir={run}", "policy.kind=llamacpp", f"policy.base_url={url}",
         "policy.model=m", 'tasks.ids=["native/row_sum"]', "tasks.group_size=2", "tasks.max_turns=2",
         "policy.sampling.max_tokens=32", "policy.sampling.logprobs=true", "retrieval.enabled=false", "--json"],
        env=environment, capture_output=True, text=True, check=False, timeout=5 * PATIENCE)
    assert done.returncode == 0, done.stdout + done.stderr
    totals = json.loads(done.stdout)["totals"]
    print("run:", totals)
    assert totals["episodes"] == 2 and totals["turns"] == 4 and totals["infrastructure"] == 0, totals
    with open(run + "/traces.jsonl", encoding="utf-8") as file:
        turns = [x for x in map(json.loads, file) if x["kind"] == "turn"]
    assert len(turns) == 4
    for turn in turns:
        tokens = turn["tokens"]
        assert 0 < len(tokens["token_ids"]) <= 32 and len(tokens["logprobs"]) == len(tokens["token_ids"]), tokens
        [span] = turn["weight_versions"]
        assert span["version"].startswith("m@") and (span["start"], span["end"]) == (0, len(tokens["token_ids"])), span
    print("tokens:", {x: turns[0]["tokens"][x] for x in ("audit", "route")}, span)


def is_loaded(port: int) -> bool:
    try:
        urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=PATIENCE).read()
        return True
    except urllib.error.HTTPError:  # 503 while it loads
        return False


def main() -> int:
    other = os.environ.get("KERNELMILL_SERVING_PYTHON")
    if other and other != sys.executable:
        os.execv(other, [other, "-B", *sys.argv])
    program = os.environ.get("KERNELMILL_LLAMACPP_SERVER")
    if not program:
        print("skipped: KERNELMILL_LLAMACPP_SERVER names no llama-server")
        return 77
    if importlib.util.find_spec("gguf") is None:
        print(f"skipped: {sys.executable} has no gguf")
        return 77
    folder = tempfile.mkdtemp(prefix="kernelmill-llamacpp-")
    server = None
    try:
        make_model(folder + "/model.gguf")
        port = free_port()
        with open(folder + "/server.log", "wb") as log:
            server = subprocess.Popen([program, "-m", folder + "/model.gguf", "--alias", "m", "--host", "127.0.0.1", "--port",
                                       str(port), "-c", str(2 * CONTEXT), "-np", "2", "--metrics"], stdout=log, stderr=log,
                                      start_new_session=True)
        wait_for(f"http://127.0.0.1:{port}/health", server)
        loading = time.monotonic()
        while not is_loaded(port):
            assert server.poll() is None and time.monotonic() - loading < PATIENCE, "it does not load its model"
            time.sleep(0.2)
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/props", timeout=PATIENCE) as answer:
            print("build:", json.load(answer).get("build_info"))
        check(sys.argv[1], folder, f"http://127.0.0.1:{port}/v1")
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
