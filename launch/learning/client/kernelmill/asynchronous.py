"""The client for programs that await: the same requests, each on a thread of its own."""

import asyncio
import concurrent.futures
import functools
import time
from types import TracebackType
from typing import Any, Callable, Dict, Iterable, List, Optional, Sequence, Type, TypeVar

from .client import Candidate, Client, Evaluation, Task
from .transport import KernelmillError

_T = TypeVar("_T")


class AsyncClient:
    """Asks one server from coroutines of one event loop. Takes what `Client` takes.

    connections: requests that are under way at once; more of them wait here. Each that waits for a verdict is one.
    """

    POLL_S = 5.0  # how long one request waits for an evaluation's end, and a cancelled one may linger

    def __init__(self, url: str, token: Optional[str] = None, *, connections: int = 64, **options: Any) -> None:
        self.client = Client(url, token, **options)
        self._threads = concurrent.futures.ThreadPoolExecutor(connections, "kernelmill")

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.client.url!r})"

    async def __aenter__(self) -> "AsyncClient":
        return self

    async def __aexit__(
        self, kind: Optional[Type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        self.close()

    def close(self) -> None:
        """Begins no more requests. Those under way end by themselves."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def _run(self, call: Callable[..., _T], *words: Any, **more: Any) -> _T:
        return await asyncio.get_running_loop().run_in_executor(self._threads, functools.partial(call, *words, **more))

    # -- evaluations --------------------------------------------------------------------------

    async def evaluate(
        self,
        task: str,
        source: Optional[str] = None,
        *,
        completion: Optional[str] = None,
        name: str = "",
        contract: str = "auto",
        cache: bool = False,
    ) -> Evaluation:
        """Judges one candidate and waits for the verdict. When it is cancelled, so is the evaluation."""
        one = Candidate(task, source, completion, name, contract)
        return (await self.evaluate_many([one], cache=cache))[0]

    async def evaluate_many(
        self, candidates: Iterable[Candidate], *, cache: bool = False, at_once: int = 256
    ) -> List[Evaluation]:
        """Judges many, in the order given; at most `at_once` of them are at the server at a time."""
        rest = list(candidates)
        done: List[Evaluation] = []
        while rest:
            part, rest = rest[:at_once], rest[at_once:]
            # Shielded: candidates whose ids are not known yet could not be cancelled.
            handed = asyncio.ensure_future(self.submit(part, cache=cache))
            try:
                taken = await asyncio.shield(handed)
                done += await asyncio.gather(*(self._verdict_of(x) for x in taken))
            except BaseException:
                await asyncio.shield(self._give_up(handed))
                raise
        return done

    async def _verdict_of(self, one: Evaluation) -> Evaluation:
        return one if one.over else await self.wait(one.id)

    async def _give_up(self, handed: "asyncio.Future[List[Evaluation]]") -> None:
        try:
            taken = await handed
        except (KernelmillError, OSError):
            return
        await asyncio.gather(*(self.cancel(x.id) for x in taken if not x.over), return_exceptions=True)

    async def submit(self, candidates: Sequence[Candidate], *, cache: bool = False) -> List[Evaluation]:
        """Hands candidates over and does not wait for verdicts; they go on without this client."""
        return await self._run(self.client.submit, candidates, cache=cache)

    async def get(self, evaluation_id: str, wait_s: float = 0.0) -> Evaluation:
        """Where an evaluation stands, at once or when it is over, after `wait_s` at most."""
        return await self._run(self.client.get, evaluation_id, wait_s)

    async def wait(self, evaluation_id: str, timeout: Optional[float] = None) -> Evaluation:
        """Waits for an evaluation's end. Raises TimeoutError after `timeout` seconds."""
        end = None if timeout is None else time.monotonic() + timeout
        while True:
            left = self.POLL_S if end is None else min(self.POLL_S, end - time.monotonic())
            now = await self.get(evaluation_id, max(0.0, left))
            if now.over:
                return now
            if end is not None and time.monotonic() >= end:
                raise TimeoutError(f"{evaluation_id} is {now.state} after {timeout} s")

    async def cancel(self, evaluation_id: str) -> Evaluation:
        """Ends an evaluation whose verdict is not wanted any more; one that is over stays as it is."""
        return await self._run(self.client.cancel, evaluation_id)

    async def tasks(self) -> List[Task]:
        """The tasks that the server judges."""
        return await self._run(self.client.tasks)

    async def ready(self) -> bool:
        """Whether the server answers and has room for more."""
        return await self._run(self.client.ready)

    # -- rollouts -----------------------------------------------------------------------------

    async def order(self, tasks: Sequence[str], *, id: str = "", **fields: Any) -> Dict[str, Any]:
        """As `Client.order()`. `Rollouts(client.client, order)` iterates over its groups, with `async for` too."""
        return await self._run(self.client.order, tasks, id=id, **fields)

    async def order_status(self, order: str) -> Dict[str, Any]:
        """Where an order stands: how many groups are in which state."""
        return await self._run(self.client.order_status, order)

    async def cancel_order(self, order: str) -> Dict[str, Any]:
        """Ends an order: no more of its groups begin. Says where it stands."""
        return await self._run(self.client.cancel_order, order)
