"""A seat: an OpenAI-compatible address for one episode of an agent that owns its loop.

    with client.seat("vllm", "http://127.0.0.1:8000/v1", model="m") as seat:
        run_agent(base_url=seat.base_url, api_key=seat.api_key)
        rows = seat.trace()      # TRL's black-box trace

The server behind it tells token ids and log-probabilities, which the agent does not see and the trace has.
"""

import dataclasses
import urllib.parse
from types import TracebackType
from typing import Any, Dict, List, Optional, Type

from .transport import Transport


class Inexact(Exception):
    """A row's ids and log-probabilities are not exactly those that were sampled: do not train on it."""


@dataclasses.dataclass
class Seat:
    """Its trace ends with it: take it first, or with `close()`."""

    client: Transport
    id: str
    base_url: str
    model: str

    @property
    def api_key(self) -> str:
        """What the agent sends: the token of `kernelmill serve`."""
        return self.client._token or "none"

    def trace(self, exact: bool = True) -> List[Dict[str, Any]]:
        """A row for each answer. Raises Inexact where a row has a flaw, unless `exact` is False."""
        return self._rows("GET", self._path() + "/trace", exact)

    def close(self, exact: bool = False) -> List[Dict[str, Any]]:
        """Ends the seat, and returns its trace."""
        return self._rows("DELETE", self._path(), exact)

    def _path(self) -> str:
        return "/v1/seats/" + urllib.parse.quote(self.id, safe="")

    def _rows(self, method: str, path: str, exact: bool) -> List[Dict[str, Any]]:
        rows: List[Dict[str, Any]] = self.client._ask(method, path)["trace"]
        for number, row in enumerate(rows):
            if exact and row["flaw"] is not None:
                raise Inexact(f"answer {number} of {self.id}: {row['flaw']}")
        return rows

    def __enter__(self) -> "Seat":
        return self

    def __exit__(
        self, kind: Optional[Type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        self.close()
