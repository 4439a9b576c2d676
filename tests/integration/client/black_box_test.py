#!/usr/bin/env python3
"""TRL's black-box trainer takes the trace of a seat: its own code (trl.experimental.async_grpo.openenv_harness, which
imports openenv-core) makes turns of it. KERNELMILL_TRAINER_PYTHON has both (tests/trainers.sh); without, it is skipped.
"""

import contextlib
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest
import urllib.request

SOURCE = pathlib.Path(os.environ["KERNELMILL_SOURCE_DIR"])
if wanted := os.environ.pop("KERNELMILL_TRAINER_PYTHON", ""):
    os.execv(wanted, [wanted, "-B", *sys.argv])
os.environ.update(HF_HUB_OFFLINE="1", CUDA_VISIBLE_DEVICES="", TRL_EXPERIMENTAL_SILENCE="1")
sys.path[:0] = [str(SOURCE / "tests/integration/serve")]

from kernels import PROGRAM, TASKS  # noqa: E402

import kernelmill  # noqa: E402

try:
    from trl.experimental.async_grpo import openenv_harness as harness
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(77)


class Tokenizer:
    """Prompts are rendered by TRL again; here each message is a number."""

    def apply_chat_template(self, messages, **_):
        return list(range(len(messages)))


class BlackBox(unittest.TestCase):
    def test_trl_makes_turns_of_a_seats_trace(self):
        with contextlib.ExitStack() as stack:
            folder = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory()))
            os.environ["XDG_CACHE_HOME"] = str(folder)
            (folder / "script.json").write_text(json.dumps({"model": "m", "replies": [
                {"text": "First."}, {"turn": 1, "text": "And second."}]}))
            policy = subprocess.Popen([PROGRAM, "policy", "scripted", "--script", str(folder / "script.json"),
                                       "--kind", "vllm"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
            stack.callback(policy.stdout.close)
            stack.callback(policy.wait)
            stack.callback(policy.kill)
            client = stack.enter_context(kernelmill.serve("cpu", program=PROGRAM, tasks=str(TASKS)))
            seat = stack.enter_context(client.seat("vllm", policy.stdout.readline().strip(), model="m"))
            messages = [{"role": "user", "content": "Say."}]
            for _ in range(2):  # an agent
                request = urllib.request.Request(
                    seat.base_url + "/chat/completions", json.dumps({"model": "x", "messages": messages}).encode(),
                    {"Content-Type": "application/json", "Authorization": "Bearer " + seat.api_key})
                with urllib.request.urlopen(request, timeout=60) as answer:
                    messages += [json.load(answer)["choices"][0]["message"], {"role": "user", "content": "More."}]
            trace = seat.trace()
        entries = harness._default_agent_entries(trace)
        self.assertEqual(len(entries), 2)
        turns = harness._turns_from_trace(entries, Tokenizer())
        for turn, row in zip(turns, trace):
            self.assertEqual(turn.output_ids, row["completion_token_ids"])
            self.assertEqual(turn.output_log_probs, row["per_token_logps"])
            self.assertEqual(len(turn.output_ids), len(turn.output_log_probs))
            self.assertGreater(len(turn.output_ids), 0)
        self.assertEqual([len(x.prompt_ids) for x in turns], [1, 3])
        self.assertEqual([x["content"] for x in harness._messages_from_trace(entries)], ["Say.", "First.", "More.", "And second."])


if __name__ == "__main__":
    unittest.main()
