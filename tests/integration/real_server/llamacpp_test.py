"""llama.cpp's own server, from start to finish, with tiny models of random weights that are made here.

    PYTHON llamacpp_test.py KERNELMILL

$KERNELMILL_LLAMACPP_SERVER is the path of `llama-server`; without it the server is that of xllamacpp, whose wheel
carries llama.cpp's server as it is. PYTHON, or the one that $KERNELMILL_SERVING_PYTHON names, must have `gguf`, and
xllamacpp where no llama-server is named. Without them the exit code is 77. Random weights write no kernels: what is
tested is the whole way there and back, and what the server tells of its tokens.
"""

import importlib.metadata
import importlib.util
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request

from real_server_test import PATIENCE, free_port, wait_for

WIDTH, INNER, HEADS, LAYERS, CONTEXT = 64, 128, 4, 2, 32768
TEMPLATE = (
    "{% for m in messages %}{{ '<' + m['role'] + '>' + m['content'] + '\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<assistant>' }}{% endif %}"
)
END, FIRST_BYTE = 2, 3
MEMBERS, TURNS = 2, 3


def make_model(path: str, plain: bool) -> None:
    """Two layers of 64 numbers; a token is a byte. A `plain` model samples ASCII and the mark of its end, so that every
    token is a character; another one samples halves of characters too."""
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
    to.add_eos_token_id(END)
    to.add_unk_token_id(0)
    to.add_chat_template(TEMPLATE)

    def drawn(*shape: int):
        return draw.normal(0, 0.05, shape).astype(numpy.float32)

    def weights(name: str, values) -> None:
        to.add_tensor(name + ".weight", values)

    # The first number is the same for every token, so that a row of the output can prefer or avoid its token.
    embedded, output = drawn(len(tokens), WIDTH), drawn(len(tokens), WIDTH)
    embedded[:, 0] = 0.3
    if plain:
        output[:, 0] = -5
        output[[END, *range(FIRST_BYTE, FIRST_BYTE + 128)], 0] = 0
    weights("token_embd", embedded)
    weights("output", output)
    weights("output_norm", numpy.ones(WIDTH, numpy.float32))
    for i in range(LAYERS):
        for name in ("attn_norm", "ffn_norm"):
            weights(f"blk.{i}.{name}", numpy.ones(WIDTH, numpy.float32))
        for name in ("attn_q", "attn_k", "attn_v", "attn_output"):
            weights(f"blk.{i}.{name}", drawn(WIDTH, WIDTH))
        weights(f"blk.{i}.ffn_gate", drawn(INNER, WIDTH))
        weights(f"blk.{i}.ffn_up", drawn(INNER, WIDTH))
        weights(f"blk.{i}.ffn_down", drawn(WIDTH, INNER))
    to.write_header_to_file()
    to.write_kv_data_to_file()
    to.write_tensors_to_file()
    to.close()


# -- the server -------------------------------------------------------------------------------


def serve(model: str, port: str) -> None:
    """In a process of its own: llama.cpp's server of xllamacpp, with the options that llama-server gets below. Without
    flash attention, whose sums on a CPU depend on what else is in the batch: log-probabilities were 0.07 apart."""
    import xllamacpp

    options = xllamacpp.CommonParams()
    options.model.path = model
    options.model_alias = {"m"}
    options.hostnames = ["127.0.0.1"]
    options.port = int(port)
    options.n_ctx = MEMBERS * CONTEXT
    options.n_parallel = MEMBERS
    options.endpoint_metrics = True
    options.flash_attn_type = xllamacpp.llama_flash_attn_type.LLAMA_FLASH_ATTN_TYPE_DISABLED
    server = xllamacpp.Server(options)
    print("listening at", server.listening_address, flush=True)
    threading.Event().wait()


def command_of(program: str, model: str, port: int) -> list:
    if program:
        return [
            program,
            "-m",
            model,
            "--alias",
            "m",
            "--host",
            "127.0.0.1",
            "--port",
            str(port),
            "-c",
            str(MEMBERS * CONTEXT),
            "-np",
            str(MEMBERS),
            "--metrics",
            "-fa",
            "off",
        ]
    return [sys.executable, "-B", __file__, "--serve", model, str(port)]


def is_loaded(port: int) -> bool:
    try:
        urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=PATIENCE).read()
        return True
    except urllib.error.HTTPError:  # 503 while it loads
        return False


class Server:
    """With a model of its own, until the block ends."""

    def __init__(self, folder: str, plain: bool):
        self.model, self.log = f"{folder}/model-{plain}.gguf", f"{folder}/server-{plain}.log"
        make_model(self.model, plain)
        self.root = ""

    def __enter__(self):
        port = free_port()
        program = os.environ.get("KERNELMILL_LLAMACPP_SERVER", "")
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(
                command_of(program, self.model, port), stdout=log, stderr=log, start_new_session=True
            )
        wait_for(f"http://127.0.0.1:{port}/health", self.process)
        loading = time.monotonic()
        while not is_loaded(port):
            assert self.process.poll() is None and time.monotonic() - loading < PATIENCE, "it does not load its model"
            time.sleep(0.2)
        self.root = f"http://127.0.0.1:{port}"
        return self

    def __exit__(self, kind, *_):
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        if kind is not None:
            with open(self.log, encoding="utf-8", errors="replace") as log:
                print("-- server.log\n" + log.read()[-3000:])

    def ask(self, path: str, body: dict):
        request = urllib.request.Request(
            f"{self.root}/{path}", json.dumps(body).encode(), {"Content-Type": "application/json"}
        )
        with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
            return json.load(answer)


# -- what is checked --------------------------------------------------------------------------


def command(kernelmill: str, folder: str, *arguments: str) -> dict:
    done = subprocess.run(
        [kernelmill, *arguments, "--json"],
        env={**os.environ, "XDG_CACHE_HOME": folder + "/cache"},
        capture_output=True,
        text=True,
        check=False,
        timeout=5 * PATIENCE,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout)


def turns_of(kernelmill: str, folder: str, server: Server, name: str, *options: str) -> list:
    """Those of a run, by episode and in their order."""
    run = f"{folder}/{name}"
    totals = command(
        kernelmill,
        folder,
        "run",
        "quickstart",
        f"run.dir={run}",
        "policy.kind=llamacpp",
        f"policy.base_url={server.root}/v1",
        "policy.model=m",
        'tasks.ids=["native/row_sum"]',
        f"tasks.group_size={MEMBERS}",
        f"tasks.max_turns={TURNS}",
        "policy.sampling.max_tokens=32",
        "policy.sampling.logprobs=true",
        "retrieval.enabled=false",
        *options,
    )["totals"]
    print(f"run {name}:", totals)
    assert totals["episodes"] == MEMBERS and totals["turns"] == MEMBERS * TURNS, totals
    assert totals["infrastructure"] == 0, totals
    with open(run + "/traces.jsonl", encoding="utf-8") as file:
        turns = [x for x in map(json.loads, file) if x["kind"] == "turn"]
    assert len(turns) == MEMBERS * TURNS
    return sorted(turns, key=lambda x: (x["episode"], x["turn"]))


def check_probe(kernelmill: str, folder: str, server: Server) -> None:
    probed = command(kernelmill, folder, "policy", "probe", server.root + "/v1")
    has = {x["name"]: x["has"] for x in probed["capabilities"]}
    print("probe:", probed["kind"], probed["model"], probed.get("version"), has)
    assert probed["kind"] == "llamacpp", probed
    for name in ("logprobs", "token_ids", "token_route", "tokenize", "render", "streaming", "metrics"):
        assert has[name], probed
    assert has["tools"] is False, "the template shows none, and llama.cpp takes them all the same"


def check_chat(turns: list, stream: bool = False) -> None:
    """A chat of a plain model tells every token, but not those of its prompt;
    a stream not the one that ends an answer."""
    for turn in turns:
        if stream and "tokens" not in turn:
            assert len(turn["response"]["raw"]) < 32, turn  # it ended before the most that it may sample
            continue
        tokens = turn["tokens"]
        assert tokens["route"] == "chat" and tokens["audit"] == "inexact", tokens
        assert 0 < len(tokens["token_ids"]) <= 32 and len(tokens["logprobs"]) == len(tokens["token_ids"]), tokens
        [span] = turn["weight_versions"]
        assert span["version"].startswith("m@") and (span["start"], span["end"]) == (0, len(tokens["token_ids"])), span


def check_exact(turns: list) -> None:
    """Every prompt goes on from the ids that were sampled."""
    kept = []
    for turn in turns:
        tokens = turn["tokens"]
        kept = kept if turn["turn"] > 0 else []
        assert (tokens["audit"], tokens["route"], tokens["kept"]) == ("exact", "tokens", len(kept)), tokens
        assert tokens["prompt_token_ids"][: len(kept)] == kept and len(tokens["prompt_token_ids"]) > len(kept)
        assert 0 < len(tokens["token_ids"]) <= 32, tokens
        assert turn["weight_versions"] == [{"version": "m", "start": 0, "end": len(tokens["token_ids"])}], turn
        kept = tokens["prompt_token_ids"] + tokens["token_ids"]


def check_logprobs(server: Server, turn: dict) -> None:
    """Those of a turn are the model's own: it is asked for them again, token by token."""
    tokens = turn["tokens"]
    assert len(tokens["logprobs"]) == len(tokens["token_ids"]), tokens
    worst = 0.0
    for i, (token, logprob) in enumerate(zip(tokens["token_ids"], tokens["logprobs"])):
        again = server.ask(
            "completion",
            {
                "prompt": tokens["prompt_token_ids"] + tokens["token_ids"][:i],
                "n_predict": 1,
                "n_probs": 259,
                "top_k": 0,
                "min_p": 0,
                "cache_prompt": True,
            },
        )
        others = {x["id"]: x["logprob"] for x in again["completion_probabilities"][0]["top_logprobs"]}
        worst = max(worst, abs(others[token] - logprob))
    print(f"logprobs: {len(tokens['logprobs'])} asked for again, {worst:.2g} apart at most")
    assert worst < 0.001, worst


def check(kernelmill: str, folder: str) -> None:
    with Server(folder, plain=True) as server:
        with urllib.request.urlopen(server.root + "/props", timeout=PATIENCE) as answer:
            print("build:", json.load(answer).get("build_info"))
        check_probe(kernelmill, folder, server)
        check_chat(turns_of(kernelmill, folder, server, "chat"))
        check_chat(turns_of(kernelmill, folder, server, "stream", "policy.stream=true"), stream=True)
        turns = turns_of(kernelmill, folder, server, "exact", "policy.tokens=exact")
        check_exact(turns)
        check_logprobs(server, turns[-1])
    with Server(folder, plain=False) as server:
        turns = turns_of(kernelmill, folder, server, "halves-exact", "policy.tokens=exact")
        check_exact(turns)
        has = [len(x["tokens"].get("logprobs", [])) for x in turns]
        whole = sum(n == len(x["tokens"]["token_ids"]) for n, x in zip(has, turns))
        assert all(n in (0, len(x["tokens"]["token_ids"])) for n, x in zip(has, turns)), has
        # llama.cpp tells fewer tokens than it sampled; then none are recorded, and not others than were sampled.
        by_chat = turns_of(kernelmill, folder, server, "halves-chat")
        told = sum("tokens" in x and bool(x["tokens"]["token_ids"]) for x in by_chat)
        print(
            f"halves of characters: ids of {len(turns)} turns of {len(turns)} in token ids (with all logprobs: "
            f"{whole}), "
            f"of {told} of {len(by_chat)} by chat"
        )
        assert told < len(by_chat), "halves of characters were to be sampled"


def main() -> int:
    if sys.argv[1] == "--serve":
        serve(*sys.argv[2:])
    other = os.environ.get("KERNELMILL_SERVING_PYTHON")
    if other and other != sys.executable:
        os.execv(other, [other, "-B", *sys.argv])
    needed = ["gguf", "numpy"] + ([] if os.environ.get("KERNELMILL_LLAMACPP_SERVER") else ["xllamacpp"])
    for name in needed:
        if importlib.util.find_spec(name) is None:
            print(f"skipped: {sys.executable} has no {name}")
            return 77
    if "xllamacpp" in needed:
        print("xllamacpp", importlib.metadata.version("xllamacpp"))
    folder = tempfile.mkdtemp(prefix="kernelmill-llamacpp-")
    try:
        check(sys.argv[1], folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    print("passed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
