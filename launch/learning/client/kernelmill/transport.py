"""Requests over HTTP, one connection each, repeated while the server is full or unreachable. Errors are exceptions.
Client, Rollouts and Seat use it."""

import http.client
import json
import random
import ssl
import time
import urllib.parse
from typing import Any, Dict, Optional, Tuple, Type, Union


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


_ERRORS: Dict[int, Type[KernelmillError]] = {
    400: RequestError,
    401: Unauthorized,
    404: NotFound,
    409: RequestError,
    413: RequestError,
    429: Busy,
}
_BY_CATEGORY: Dict[str, Type[KernelmillError]] = {"lease_lost": LeaseLost, "consumer_fenced": Fenced}


def _read_token(path: str) -> str:
    with open(path, encoding="utf-8") as file:
        return file.read()


class Transport:
    """One server, with the token and the certificates that its requests need."""

    def __init__(
        self,
        url: str,
        token: Optional[str] = None,
        patience: float = 600.0,
        timeout: float = 60.0,
        ca_file: Optional[str] = None,
        first_contact: float = 5.0,
        *,
        token_file: Optional[str] = None,
    ) -> None:
        parts = urllib.parse.urlsplit(url)
        if parts.username is not None or parts.password is not None:
            raise ValueError("the URL of a server holds no name and no password: give a token")
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"no URL of a server, such as http://127.0.0.1:8700: {url!r}")
        if token_file is not None:
            if token is not None:
                raise ValueError("a token and a token_file are given: keep one of them")
            token = _read_token(token_file)
        self.url = url.rstrip("/")
        self._parts = parts
        self._token = (token or "").strip() or None  # one that was read from a file has its newline
        if self._token and (not self._token.isascii() or not self._token.isprintable() or " " in self._token):
            raise ValueError("the token must be one word of ASCII")
        self._trust = ssl.create_default_context(cafile=ca_file) if parts.scheme == "https" else None
        self.patience = patience
        self.timeout = timeout
        self.first_contact = first_contact
        self._is_met = False  # it has answered once, so it is there and may be away for a while

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.url!r})"

    def _ask(
        self, method: str, path: str, body: Any = None, headers: Optional[Dict[str, str]] = None, extra_s: float = 0.0
    ) -> Any:
        begin = time.monotonic()
        pause = 0.1
        while True:
            error: Union[KernelmillError, None] = None
            try:
                status, after, answer = self._once(method, path, body, headers or {}, extra_s)
                self._is_met = True
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
            except ssl.SSLCertVerificationError as x:
                raise Unavailable(
                    0,
                    "certificate",
                    f"{self.url} is not trusted: {x.verify_message}",
                    "name the PEM of its authority: Client(url, ca_file=...)",
                ) from None
            except (OSError, http.client.HTTPException) as x:
                after = 0.0
                hint = "" if self._is_met else "start `kernelmill serve`, or correct the URL"
                error = Unavailable(0, "unreachable", f"{self.url} does not answer: {x}", hint)
            pause = min(max(2 * pause, after), 30.0)
            wait = pause * random.uniform(0.5, 1.0)
            patience = self.patience if self._is_met else min(self.patience, self.first_contact)
            if time.monotonic() + wait > begin + patience:
                raise error
            time.sleep(wait)

    def _once(
        self, method: str, path: str, body: Any, headers: Dict[str, str], extra_s: float
    ) -> Tuple[int, float, Any]:
        where, port, limit = self._parts.hostname or "", self._parts.port, self.timeout + extra_s
        # An address at which nothing is may keep silent, too.
        connecting = limit if self._is_met else min(limit, max(self.first_contact, 1.0))
        link = (
            http.client.HTTPConnection(where, port, timeout=connecting)
            if self._trust is None
            else http.client.HTTPSConnection(where, port, timeout=connecting, context=self._trust)
        )
        try:
            link.connect()
            link.sock.settimeout(limit)
            sent = dict(headers, Connection="close")
            if self._token:
                sent["Authorization"] = "Bearer " + self._token
            if body is not None:
                sent["Content-Type"] = "application/json"
            text = None if body is None else json.dumps(body)
            try:
                link.request(method, self._parts.path.rstrip("/") + path, text, sent)
            except (BrokenPipeError, ConnectionResetError):
                pass  # it refused the body before it had all of it; its answer says why
            answer = link.getresponse()
            data = answer.read()
            try:
                document = json.loads(data)
            except ValueError:
                if answer.status < 300 and data:
                    raise KernelmillError(
                        answer.status, "not_ours", f"{self.url} answers, and is no kernelmill", "correct the URL"
                    ) from None
                document = {"error": {"message": f"HTTP {answer.status}"}}
            try:
                after = float(answer.getheader("Retry-After") or 0)
            except ValueError:
                after = 0.0
            return answer.status, after, document
        finally:
            link.close()
