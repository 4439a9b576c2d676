"""Groups of episodes for a trainer: each is learned from once, also after kills.

stream = client.rollouts("my-order", groups=8, checkpoint=step_of_latest_checkpoint)
for batch in stream:
    step += 1
    stream.ack(batch, step)          # before the step that learns from it
    train(batch.rows)
    if save_checkpoint(step):
        stream.commit(step)          # after the checkpoint is durable
"""

import asyncio
import dataclasses
import urllib.parse
import uuid
from typing import Any, AsyncIterator, Dict, Iterator, List, Optional, Sequence

from .transport import Transport


@dataclasses.dataclass(frozen=True)
class Group:
    """Episodes of one task that are compared with each other, as rows of the order's form."""

    id: str
    requested: int
    delivered: int
    min_version: Optional[str]
    max_version: Optional[str]
    rows: List[Dict[str, Any]] = dataclasses.field(repr=False)


@dataclasses.dataclass(frozen=True)
class Batch:
    """Groups that are this trainer's until `until_s`, in seconds since 1970."""

    order: str
    lease: int
    until_s: float
    groups: List[Group]

    @property
    def rows(self) -> List[Dict[str, Any]]:
        """Those of all groups, in order."""
        return [row for group in self.groups for row in group.rows]


class Rollouts:
    """An order's groups, batch by batch, for one consumer; iterate it, or `async for` over it.

    It tells the server first which checkpoint the trainer goes on from: what was learned after it
    comes again, and a trainer that is left over under the same name gets nothing more. Iteration
    ends when nothing is left to give.
    """

    POLL_S = 20.0  # how long one request waits for a batch

    def __init__(
        self,
        client: Transport,
        order: str,
        *,
        consumer: str = "trainer",
        groups: int = 1,
        checkpoint: Optional[int] = None,
        lease_s: float = 600.0,
    ) -> None:
        self._client = client
        self.order = order
        self.consumer = consumer
        self.groups = groups
        self.lease_s = lease_s
        self.generation = int(
            self._post("rollback", {"consumer": consumer, "optimizer_step": -1 if checkpoint is None else checkpoint})[
                "generation"
            ]
        )

    def __iter__(self) -> Iterator[Batch]:
        while True:
            batch = self.next()
            if batch is None:
                return
            yield batch

    async def __aiter__(self) -> AsyncIterator[Batch]:
        while True:
            batch = await asyncio.to_thread(self.next)
            if batch is None:
                return
            yield batch

    def next(self) -> Optional[Batch]:
        """Waits for the next batch; None when nothing is left to give."""
        request = uuid.uuid4().hex  # a try whose answer was lost gets the same lease again
        while True:
            answer = self._client._ask(
                "GET",
                "/v1/rollouts/batch?"
                + urllib.parse.urlencode(
                    {
                        "order": self.order,
                        "consumer": self.consumer,
                        "generation": self.generation,
                        "request": request,
                        "groups": self.groups,
                        "wait_s": self.POLL_S,
                        "lease_s": self.lease_s,
                    }
                ),
                extra_s=self.POLL_S,
            )
            if answer["lease"] is not None:
                return Batch(self.order, answer["lease"], answer["until_s"], [Group(**x) for x in answer["groups"]])
            if answer["over"]:
                return None

    def ack(self, batch: Batch, step: int, groups: Optional[Sequence[Group]] = None) -> None:
        """Says that optimizer step `step` is about to learn from the batch, or from some of its
        groups. Raises LeaseLost when it came too late: do not learn from them then."""
        body: Dict[str, Any] = {"lease": batch.lease, "optimizer_step": step}
        if groups is not None:
            body["groups"] = [x.id for x in groups]
        self._post("ack", body)

    def commit(self, step: int) -> None:
        """Says that a checkpoint that holds steps up to `step` is durable."""
        self._post("commit", {"consumer": self.consumer, "generation": self.generation, "optimizer_step": step})

    def _post(self, verb: str, body: Dict[str, Any]) -> Any:
        return self._client._ask("POST", "/v1/rollouts/" + verb, body)
