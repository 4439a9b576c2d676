#!/usr/bin/env python3
"""Runs of a head whose attached servers are asked in token ids: every turn's prompt goes on from the ids that were
sampled, ids and log-probabilities are stored as for a server that the run names, and servers that take no ids are left
out. Exit code 77: it cannot run here."""

import json
import os
import pathlib
import shutil
import sys
import tempfile

source = pathlib.Path(os.environ.get("KERNELMILL_SOURCE_DIR") or pathlib.Path(__file__).resolve().parents[3])
sys.path.insert(0, str(source / "tests/fault"))
import policy_servers_test as servers  # noqa: E402

TURNS, MEMBERS = 3, 4


def check_threads(path):
    episodes = {}
    for line in path.read_text().splitlines():
        row = json.loads(line)
        if row["kind"] == "turn":
            episodes.setdefault(row["episode"], []).append(row)
    assert len(episodes) == MEMBERS, sorted(episodes)
    for turns in episodes.values():
        kept = []
        assert [x["turn"] for x in turns] == list(range(TURNS)), turns
        for turn in turns:
            tokens = turn["tokens"]
            assert (tokens["audit"], tokens["route"], tokens["kept"]) == ("exact", "tokens", len(kept)), tokens
            assert tokens["prompt_token_ids"][: len(kept)] == kept
            assert len(tokens["prompt_token_ids"]) > len(kept)
            assert len(tokens["logprobs"]) == len(tokens["token_ids"]) > 0
            assert turn["weight_versions"] == [{"version": "step-1", "start": 0, "end": len(tokens["token_ids"])}]
            kept = tokens["prompt_token_ids"] + tokens["token_ids"]


def start_server(cluster, name, kind):
    script = cluster.scratch / f"{name}.json"
    script.write_text(
        json.dumps(
            {
                "model": "m",
                "drift": True,
                "strip_thoughts": True,
                "versions": [{"version": "step-1"}],
                "replies": [{"text": "<think>\nhm\n</think>\nno kernel at all"}],
            }
        )
    )
    cluster.start(name, "policy", "scripted", "--script", str(script), "--kind", kind)
    return cluster.first_line(name)


def play(cluster):
    config = cluster.scratch / "run.json"
    config.write_text(
        json.dumps(
            {
                "run": {"name": "exact"},
                "tasks": {"ids": ["native/row_sum"], "group_size": MEMBERS, "max_turns": TURNS},
                "policy": {"kind": "attached", "tokens": "exact", "timeout_ms": 60000},
                "retrieval": {"enabled": False},
                "profile": {"enabled": False},
                "evaluation": {"backend": "cpu", "timing": {"enabled": False}},
            }
        )
    )
    cluster.command("policy", "attach", start_server(cluster, "chat", "openai"), "--name", "chat")
    cluster.command("policy", "attach", start_server(cluster, "told", "vllm"), "--name", "told", "--tokens", "chat")
    cluster.command("submit", str(config))
    servers.until("requests that wait for a server with ids", 300, lambda: cluster.command("policy", "list")["waiting"])
    probed = cluster.command("policy", "attach", start_server(cluster, "vllm", "vllm"), "--name", "vllm")
    assert probed["tokens"] == "exact", probed
    cluster.command(
        "policy",
        "attach",
        start_server(cluster, "sglang", "sglang"),
        "--name",
        "sglang",
        "--kind",
        "sglang",
        "--model",
        "m",
    )
    now = servers.end_of(cluster, "exact")
    assert (now["state"], now["ended"], now["infrastructure"]) == ("finished", MEMBERS, 0), now
    listed = servers.servers(cluster)
    assert listed["chat"]["done"] == listed["told"]["done"] == 0, listed
    assert listed["vllm"]["done"] + listed["sglang"]["done"] == MEMBERS * TURNS, listed
    assert [listed[x]["tokens"] for x in ("chat", "told", "vllm")] == ["chat", "chat", "exact"], listed
    check_threads(cluster.scratch / "runs/exact/traces.jsonl")


def main():
    if not os.access(servers.binary, os.X_OK):
        print(f"SKIP: {servers.binary} is not built")
        return servers.SKIP
    cluster = servers.Cluster(pathlib.Path(tempfile.mkdtemp(prefix="kernelmill-attached-")))
    try:
        cluster.start_head()
        servers.start_node(cluster)
        play(cluster)
    except BaseException:
        print(cluster.log("head"), cluster.log("node"))
        raise
    finally:
        cluster.end()
        shutil.rmtree(cluster.scratch, ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
