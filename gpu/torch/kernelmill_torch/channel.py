"""Messages between our processes: one JSON object a packet of a SOCK_SEQPACKET socket, with descriptors."""

import json
import os
import select
import socket
from typing import Any, Optional

MOST_BYTES = 160_000  # the kernel's default room for a packet is 208 KiB
MOST_DESCRIPTORS = 16


class Closed(Exception):
    """The other end is gone."""


class TimedOut(Exception):
    """Nothing came before the deadline."""


def send(sock: socket.socket, message: dict, descriptors: tuple[int, ...] = ()) -> None:
    """Sends one message. Raises Closed when nobody is there to read it."""
    data = json.dumps(message).encode()
    if len(data) > MOST_BYTES:
        raise ValueError(f"a message of {len(data)} bytes")
    try:
        socket.send_fds(sock, [data], list(descriptors))
    except (BrokenPipeError, ConnectionResetError):
        raise Closed from None


def receive(sock: socket.socket, seconds: Optional[float] = None) -> tuple[dict[str, Any], list[int]]:
    """Receives one message and its descriptors, which are close-on-exec.

    Raises Closed at the end of the stream, TimedOut after `seconds`, ValueError for what is no message."""
    if seconds is not None:
        ready, _, _ = select.select([sock], [], [], max(seconds, 0))
        if not ready:
            raise TimedOut
    try:
        data, descriptors, flags, _ = socket.recv_fds(sock, MOST_BYTES + 1, MOST_DESCRIPTORS)
    except ConnectionResetError:
        raise Closed from None
    if not data:
        raise Closed
    for fd in descriptors:
        os.set_inheritable(fd, False)
    message = json.loads(data)
    if flags & (socket.MSG_TRUNC | socket.MSG_CTRUNC) or not isinstance(message, dict):
        raise ValueError("no message of ours")
    return message, descriptors
