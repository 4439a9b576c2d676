"""Requests to an evaluation server, and its answers as objects."""

import dataclasses
import http.client
import time
import urllib.parse
import uuid
from typing import Any, Dict, Iterable, List, Optional, Sequence

from .rollouts import Rollouts
from .seat import Seat
from .transport import (
    Busy,
    Fenced,
    KernelmillError,
    LeaseLost,
    NotFound,
    RequestError,
    Transport,
    Unauthorized,
    Unavailable,
)

# Programs take the errors from here, too.
__all__ = [
    "Busy",
    "Candidate",
    "Client",
    "Evaluation",
    "Fenced",
    "Kernel",
    "KernelmillError",
    "LeaseLost",
    "NotFound",
    "RequestError",
    "Task",
    "Unauthorized",
    "Unavailable",
]


@dataclasses.dataclass(frozen=True)
class Candidate:
    """What is to be judged: the source, or a policy's whole `completion`."""

    task: str
    source: Optional[str] = dataclasses.field(default=None, repr=False)
    completion: Optional[str] = dataclasses.field(default=None, repr=False)
    name: str = ""
    contract: str = "auto"

    def to_json(self) -> Dict[str, str]:
        """What a request has of it."""
        given = {k: v for k, v in dataclasses.asdict(self).items() if v is not None}
        if not self.name:
            del given["name"]
        return given


@dataclasses.dataclass(frozen=True)
class Evaluation:
    """One candidate on its way, or judged. `document` is all that the server said."""

    document: Dict[str, Any]

    def __repr__(self) -> str:
        told = "" if self.verdict is None else f", outcome={self.outcome!r}, reward={self.reward}"
        return f"Evaluation(id={self.id!r}, state={self.state!r}{told})"

    @property
    def id(self) -> str:
        """By which `Client.get()` finds it."""
        return str(self.document["id"])

    @property
    def state(self) -> str:
        """waiting, building, evaluating, done or cancelled."""
        return str(self.document["state"])

    @property
    def over(self) -> bool:
        """Whether it will not change any more."""
        return self.state in ("done", "cancelled")

    @property
    def verdict(self) -> Optional[Dict[str, Any]]:
        """What `kernelmill eval --json` prints; None until it is done."""
        return self.document["verdict"]  # type: ignore[no-any-return]

    @property
    def reward(self) -> Optional[float]:
        """None where there is none: not done, or the machine is at fault. Leave it out then."""
        return None if self.verdict is None else self.verdict["reward"]

    @property
    def outcome(self) -> Optional[str]:
        """accepted, rejected or infrastructure."""
        return None if self.verdict is None else self.verdict["outcome"]

    @property
    def correct(self) -> bool:
        """Whether its outputs are right; False until that is known."""
        return self.verdict is not None and bool(self.verdict["correct"])

    @property
    def speedup_lower(self) -> Optional[float]:
        """Lower bound of the speedup's interval, or None if it was not timed."""
        if self.verdict is None or not self.verdict["timing"].get("measured"):
            return None
        return self.verdict["timing"]["speedup"]["low"]  # type: ignore[no-any-return]

    @property
    def feedback(self) -> Optional[str]:
        """What a policy may be told in its next turn."""
        return self.document["feedback"]  # type: ignore[no-any-return]


@dataclasses.dataclass(frozen=True)
class Task:
    """A task of the server. `digest` changes with its files; `prompt` is what a policy is asked first."""

    id: str
    title: str
    verb: str
    contract: str
    difficulty: str
    operator_family: str
    digest: str
    prompt: str = dataclasses.field(repr=False)


@dataclasses.dataclass(frozen=True)
class Kernel:
    """A verified kernel. `stale` says whether something changed since its verdict, `next` which command judges it
    again; `kernelmill kernel export RUN/TURN`, with `name` as RUN, writes its source as a drop-in."""

    task: str
    device: str
    shape: str
    language: str
    baseline: str
    best_speedup_lower: float
    estimate: float
    high: float
    samples: int
    candidate_ms: float
    run: str
    name: str
    turn: str
    model: str
    candidate_sha256: str
    licence: str
    toolchain: str
    driver: str
    stale: bool
    stale_reasons: List[str]
    next: str


class Client(Transport):
    """Asks one server. May be shared by threads: each request has its own connection.

    patience: seconds for which a full queue (429, 503) or a lost connection is asked again.
    first_contact: the same until the server has answered once; 0 asks once.
    timeout: seconds for one answer that is not waited for.
    token: what the server asks clients for; token_file: the file that holds it. Blanks and newlines around it do
    not count, and it is shown nowhere.
    ca_file: PEM of the authority that signed an https server's certificate; else the system's are trusted.
    """

    POLL_S = 20.0  # how long one request waits for an evaluation's end

    # -- evaluations --------------------------------------------------------------------------

    def evaluate(
        self,
        task: str,
        source: Optional[str] = None,
        *,
        completion: Optional[str] = None,
        name: str = "",
        contract: str = "auto",
        cache: bool = False,
    ) -> Evaluation:
        """Judges one candidate and waits for the verdict."""
        one = Candidate(task, source, completion, name, contract)
        return self.evaluate_many([one], cache=cache)[0]

    def evaluate_many(
        self, candidates: Iterable[Candidate], *, cache: bool = False, at_once: int = 256
    ) -> List[Evaluation]:
        """Judges many, in the order given; at most `at_once` of them are at the server at a time.

        When it is interrupted, what still waits at the server is cancelled.
        """
        rest = list(candidates)
        done: List[Evaluation] = []
        while rest:
            part, rest = rest[:at_once], rest[at_once:]
            taken = self.submit(part, cache=cache)
            try:
                done += [self.wait(x.id) if not x.over else x for x in taken]
            except BaseException:
                for x in taken:
                    try:
                        self.cancel(x.id)
                    except (KernelmillError, OSError):
                        pass
                raise
        return done

    def submit(self, candidates: Sequence[Candidate], *, cache: bool = False) -> List[Evaluation]:
        """Hands candidates over and does not wait; they go on without this client."""
        body = {"candidates": [x.to_json() for x in candidates], "wait": False, "cache": "allow" if cache else "refuse"}
        # A try whose answer was lost must not evaluate twice.
        answer = self._ask("POST", "/v1/evaluate", body, {"Idempotency-Key": uuid.uuid4().hex})
        return [Evaluation(x) for x in answer["evaluations"]]

    def get(self, evaluation_id: str, wait_s: float = 0.0) -> Evaluation:
        """Where an evaluation stands, at once or when it is over, after `wait_s` at most."""
        path = "/v1/evaluations/" + urllib.parse.quote(evaluation_id, safe="")
        if wait_s > 0:
            path += f"?wait_s={wait_s:.3f}"
        return Evaluation(self._ask("GET", path, extra_s=wait_s))

    def wait(self, evaluation_id: str, timeout: Optional[float] = None) -> Evaluation:
        """Waits for an evaluation's end. Raises TimeoutError after `timeout` seconds."""
        end = None if timeout is None else time.monotonic() + timeout
        while True:
            left = self.POLL_S if end is None else min(self.POLL_S, end - time.monotonic())
            now = self.get(evaluation_id, max(0.0, left))
            if now.over:
                return now
            if end is not None and time.monotonic() >= end:
                raise TimeoutError(f"{evaluation_id} is {now.state} after {timeout} s")

    def cancel(self, evaluation_id: str) -> Evaluation:
        """Ends an evaluation whose verdict is not wanted any more; one that is over stays as it is."""
        path = "/v1/evaluations/" + urllib.parse.quote(evaluation_id, safe="")
        return Evaluation(self._ask("DELETE", path))

    def tasks(self) -> List[Task]:
        """The tasks that the server judges."""
        known = [x.name for x in dataclasses.fields(Task)]  # a later server may say more
        return [Task(**{k: x[k] for k in known}) for x in self._ask("GET", "/v1/tasks")["tasks"]]

    def kernels(self, task: str = "", *, operator: str = "", gpu: str = "", shape: str = "") -> List[Kernel]:
        """The best verified kernels of the server's runs, the fastest of each task first. `operator` is a family such
        as "reduction", `gpu` a part of a device's name, `shape` the timed one: "rows=128 cols=1024"."""
        asked = {k: v for k, v in (("task", task), ("operator", operator), ("gpu", gpu), ("shape", shape)) if v}
        path = "/v1/kernels" + ("?" + urllib.parse.urlencode(asked) if asked else "")
        known = [x.name for x in dataclasses.fields(Kernel)]  # a later server may say more
        return [Kernel(**{k: x[k] for k in known}) for x in self._ask("GET", path)["kernels"]]

    def best_kernel(self, task: str = "", *, operator: str = "", gpu: str = "", shape: str = "") -> Optional[Kernel]:
        """The fastest of `kernels()`, by its time at the lower bound of its speedup; None where there is none. Of a
        family of operators it is the one with the highest lower bound, since tasks differ in their work."""
        found = self.kernels(task, operator=operator, gpu=gpu, shape=shape)
        if task or not found:
            return found[0] if found else None
        return max(found, key=lambda x: x.best_speedup_lower)

    def ready(self) -> bool:
        """Whether the server answers and has room for more."""
        try:
            return bool(self._once("GET", "/readyz", None, {}, 0.0)[2]["ready"])
        except (OSError, http.client.HTTPException, KernelmillError):
            return False

    # -- rollouts -----------------------------------------------------------------------------

    def order(self, tasks: Sequence[str], *, id: str = "", **fields: Any) -> Dict[str, Any]:
        """Orders groups of episodes; `fields` are those of RolloutOrder in openapi.json. With an
        `id` the same order may come again and again, and is one."""
        # A try whose answer was lost must not order twice.
        body = {"id": id or "rollouts-" + uuid.uuid4().hex, "tasks": list(tasks), **fields}
        return self._ask("POST", "/v1/rollouts", body, extra_s=600.0)  # type: ignore[no-any-return]

    def order_status(self, order: str) -> Dict[str, Any]:
        """Where an order stands: how many groups are in which state."""
        return self._ask("GET", "/v1/rollouts/" + urllib.parse.quote(order, safe=""))  # type: ignore[no-any-return]

    def cancel_order(self, order: str) -> Dict[str, Any]:
        """Ends an order: no more of its groups begin. Says where it stands."""
        return self._ask("DELETE", "/v1/rollouts/" + urllib.parse.quote(order, safe=""))  # type: ignore[no-any-return]

    def rollouts(self, order: str, **options: Any) -> Rollouts:
        """The order's groups, batch by batch: `Rollouts(client, order, **options)`."""
        return Rollouts(self, order, **options)

    def declare_weights(
        self, version: str, path: str = "", *, adapter: str = "", servers: Sequence[Dict[str, str]] = ()
    ) -> Dict[str, Any]:
        """Says which version of the weights the policy servers have from now on. With `path`, the folder of
        a checkpoint as they see it, they are made to load it: those of the orders under way, or `servers`,
        each with `kind`, `base_url` and perhaps `api_key`, or `key`: the name of one that the server's operator
        lists. `adapter` names it as a LoRA adapter."""
        body: Dict[str, Any] = {"version": version}
        for key, value in (("path", path), ("adapter", adapter), ("servers", list(servers))):
            if value:
                body[key] = value
        loading_s = 3600.0 if path else 0.0
        return self._ask("POST", "/v1/weights", body, extra_s=loading_s)  # type: ignore[no-any-return]

    # -- seats --------------------------------------------------------------------------------

    def seat(self, kind: str, base_url: str = "", *, model: str = "", api_key: str = "", key: str = "") -> Seat:
        """Opens an OpenAI-compatible address for one episode of an agent, before the server at `base_url`
        (vllm, sglang, llamacpp or openai), which captures token ids and log-probabilities. `key` names a key
        that the operator of `kernelmill serve` lists, and stands for its address where `base_url` is not given."""
        body = {"kind": kind}
        for name, value in (("base_url", base_url), ("model", model), ("api_key", api_key), ("key", key)):
            if value:
                body[name] = value
        made = self._ask("POST", "/v1/seats", body)
        return Seat(self, made["id"], made["base_url"], made["model"])
