"""A trainer that only counts tokens, but loses and repeats nothing: put yours in the place of learn().

    kernelmill policy scripted --script configs/policies/quickstart/script.json --kind sglang
    kernelmill serve --backend cpu --runs runs
    python train_rollouts.py URL_OF_SERVE URL_OF_POLICY

Kill it whenever you like and start it again: it goes on from its checkpoint.
"""

import json
import os
import sys

from kernelmill import Client, LeaseLost

CHECKPOINT = "checkpoint.json"


def load():
    try:
        with open(CHECKPOINT) as file:
            return json.load(file)
    except FileNotFoundError:
        return {"step": None, "tokens": 0}


def save(state):
    with open(CHECKPOINT + ".new", "w") as file:
        json.dump(state, file)
        file.flush()
        os.fsync(file.fileno())
    os.replace(CHECKPOINT + ".new", CHECKPOINT)


def learn(state, rows):
    state["tokens"] += sum(sum(row["completion_mask"]) for row in rows)


url, policy = sys.argv[1:3]
client = Client(url)
client.order(
    ["native/row_sum", "native/gelu"],
    id="example",
    groups=3,
    group_size=4,
    max_turns=2,
    form="trl",
    policy={"kind": "sglang", "base_url": policy, "model": "scripted-quickstart", "tokens": "exact"},
    sampling={"logprobs": True},
)
state = load()
stream = client.rollouts("example", groups=2, checkpoint=state["step"])
for batch in stream:
    step = 0 if state["step"] is None else state["step"] + 1
    try:
        stream.ack(batch, step)
    except LeaseLost:
        continue  # it took too long: these groups come again
    learn(state, batch.rows)
    state["step"] = step
    save(state)
    stream.commit(step)
    print(f"step {step}: {[group.id for group in batch.groups]}")
print(f"{state['tokens']} tokens; {client.order_status('example')['groups']}")
