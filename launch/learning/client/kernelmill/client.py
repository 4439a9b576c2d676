"""Requests to an evaluation server, and its answers as objects."""

import dataclasses
import http.client
import json
import random
import ssl
import time
import urllib.parse
import uuid
from typing import TYPE_CHECKING, Any, Dict, Iterable, List, Optional, Sequence, Tuple, Type, Union

if TYPE_CHECKING:
    from .rollouts import Rollouts
    from .seat import Seat


class KernelmillError(Exception):
    """What the server said: `status` (0: it did not answer), `category`, `message` and `hint`."""

    def __init__(self, status: int, category: str, message: str, hint: str = "") -> None:
        super().__init__(message + (f" ({hint})" if hint else ""))
        self.status = status
        self.category = category
        self.message = message
        self.hint = hint


class RequestError(KernelmillError):
    """The request is wrong; the message names the field."""


class Unauthorized(KernelmillError):
    """The token is missing or wrong."""


class NotFound(KernelmillError):
    """There is no evaluation of this id."""


class LeaseLost(RequestError):
    """The groups went to another trainer, or will: do not learn from them."""


class Fenced(RequestError):
    """Another trainer of this name has started since: end this one."""


class Busy(KernelmillError):
    """The queue was full for longer than `Client.patience`."""


class Unavailable(KernelmillError):
    """The server does not answer."""


@dataclasses.dataclass(frozen=True)
class Candidate:
    """What is to be judged: the source, or a policy's whole `completion`."""

    task: str
    source: Optional[str] = None
    completion: Optional[str] = None
    name: str = ""
    contract: str = "auto"

    def to_json(self) -> Dict[str, str]:
        given = {k: v for k, v in dataclasses.asdict(self).items() if v is not None}
        if not self.name:
            del given["name"]
        return given


@dataclasses.dataclass(frozen=True)
class Evaluation:
    """One candidate on its way, or judged. `document` is all that the server said."""

    document: Dict[str, Any]

    @property
    def id(self) -> str:
        return str(self.document["id"])

    @property
    def state(self) -> str:
        """waiting, building, evaluating, done or cancelled."""
        return str(self.document["state"])

    @property
    def over(self) -> bool:
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
        return self.verdict is not None and bool(self.verdict["correct"])

    @property
    def speedup(self) -> Optional[float]:
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
    id: str
    title: str
    verb: str
    contract: str
    difficulty: str
    operator_family: str
    digest: str
    prompt: str


_ERRORS: Dict[int, Type[KernelmillError]] = {
    400: RequestError,
    401: Unauthorized,
    404: NotFound,
    409: RequestError,
    413: RequestError,
    429: Busy,
}
_BY_CATEGORY: Dict[str, Type[KernelmillError]] = {"lease_lost": LeaseLost, "consumer_fenced": Fenced}


class Client:
    """Asks one server. May be shared by threads: each request has its own connection.

    patience: seconds for which a full queue (429, 503) or a lost connection is asked again.
    timeout: seconds for one answer that is not waited for.
    ca_file: PEM of whoever signed the certificate of an https server; else the system's are trusted.
    """

    POLL_S = 20.0  # how long one request waits for an evaluation's end

    def __init__(
        self,
        url: str,
        token: Optional[str] = None,
        patience: float = 600.0,
        timeout: float = 60.0,
        ca_file: Optional[str] = None,
    ) -> None:
        parts = urllib.parse.urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"no URL of a server: {url!r}")
        self.url = url.rstrip("/")
        self._parts = parts
        self._token = token
        self._trust = ssl.create_default_context(cafile=ca_file) if parts.scheme == "https" else None
        self.patience = patience
        self.timeout = timeout

    def __repr__(self) -> str:
        return f"Client({self.url!r})"

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
        path = "/v1/evaluations/" + urllib.parse.quote(evaluation_id, safe="")
        return Evaluation(self._ask("DELETE", path))

    def tasks(self) -> List[Task]:
        known = [x.name for x in dataclasses.fields(Task)]  # a later server may say more
        return [Task(**{k: x[k] for k in known}) for x in self._ask("GET", "/v1/tasks")["tasks"]]

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
        return self._ask("DELETE", "/v1/rollouts/" + urllib.parse.quote(order, safe=""))  # type: ignore[no-any-return]

    def rollouts(self, order: str, **options: Any) -> "Rollouts":
        """The order's groups, batch by batch: `Rollouts(client, order, **options)`."""
        from .rollouts import Rollouts

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
        return self._ask(
            "POST",
            "/v1/weights",
            body,  # type: ignore[no-any-return]
            extra_s=3600.0 if path else 0.0,
        )

    # -- seats --------------------------------------------------------------------------------

    def seat(self, kind: str, base_url: str = "", *, model: str = "", api_key: str = "", key: str = "") -> "Seat":
        """Opens an OpenAI-compatible address for one episode of an agent, before the server at `base_url`
        (vllm, sglang, llamacpp or openai), which captures token ids and log-probabilities. `key` names a key
        that the operator of `kernelmill serve` lists, and stands for its address where `base_url` is not given."""
        from .seat import Seat

        body = {"kind": kind}
        for name, value in (("base_url", base_url), ("model", model), ("api_key", api_key), ("key", key)):
            if value:
                body[name] = value
        made = self._ask("POST", "/v1/seats", body)
        return Seat(self, made["id"], made["base_url"], made["model"])

    # -- HTTP ---------------------------------------------------------------------------------

    def _ask(
        self, method: str, path: str, body: Any = None, headers: Optional[Dict[str, str]] = None, extra_s: float = 0.0
    ) -> Any:
        end = time.monotonic() + self.patience
        pause = 0.1
        while True:
            error: Union[KernelmillError, None] = None
            try:
                status, after, answer = self._once(method, path, body, headers or {}, extra_s)
                if status < 300:
                    return answer
                what = answer.get("error", {})
                by_status = _ERRORS.get(status, Unavailable if status >= 500 else KernelmillError)
                kind = _BY_CATEGORY.get(what.get("category", ""), by_status)
                error = kind(
                    status, what.get("category", ""), what.get("message", f"HTTP {status}"), what.get("hint", "")
                )
                if status not in (429, 503):
                    raise error
            except (OSError, http.client.HTTPException) as x:
                after = 0.0
                error = Unavailable(0, "unreachable", f"{self.url} does not answer: {x}")
            pause = min(max(2 * pause, after), 30.0)
            wait = pause * random.uniform(0.5, 1.0)
            if time.monotonic() + wait > end:
                raise error
            time.sleep(wait)

    def _once(
        self, method: str, path: str, body: Any, headers: Dict[str, str], extra_s: float
    ) -> Tuple[int, float, Any]:
        where, port, limit = self._parts.hostname or "", self._parts.port, self.timeout + extra_s
        link = (
            http.client.HTTPConnection(where, port, timeout=limit)
            if self._trust is None
            else http.client.HTTPSConnection(where, port, timeout=limit, context=self._trust)
        )
        try:
            sent = dict(headers, Connection="close")
            if self._token:
                sent["Authorization"] = "Bearer " + self._token
            if body is not None:
                sent["Content-Type"] = "application/json"
            text = None if body is None else json.dumps(body)
            try:
                link.request(method, self._parts.path.rstrip("/") + path, text, sent)
            except (BrokenPipeError, ConnectionResetError):
                if link.sock is None:
                    raise  # it was lost before it was there: a server that ends
                # It refused the body before it had all of it; its answer says why.
            answer = link.getresponse()
            data = answer.read()
            try:
                document = json.loads(data)
            except ValueError:
                document = {"error": {"message": f"HTTP {answer.status}"}}
            try:
                after = float(answer.getheader("Retry-After") or 0)
            except ValueError:
                after = 0.0
            return answer.status, after, document
        finally:
            link.close()
