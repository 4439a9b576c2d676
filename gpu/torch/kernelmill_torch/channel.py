"""Messages between our processes: one JSON object a packet of a SOCK_SEQPACKET socket, with descriptors."""

import json
import os
import select
import socket
from array import array
from typing import Any, Optional

MOST_BYTES = 160_000  # the kernel's default room for a packet is 208 KiB
MOST_DESCRIPTORS = 16


class Closed(Exception):
    """The other end is gone."""


class TimedOut(Exception):
    """Nothing came before the deadline."""


def send(sock: socket.socket, message: dict, descriptors: tuple[int, ...] = (), wait: bool = True) -> None:
    """Sends one message; characters that are none become question marks. Raises Closed when nobody is there to read it,
    ValueError for what cannot be sent, and TimedOut where there is no room for it, unless it may `wait`."""
    data = json.dumps(message, allow_nan=False, ensure_ascii=False).encode("utf-8", "replace")
    if len(data) > MOST_BYTES:
        raise ValueError(f"a message of {len(data)} bytes")
    try:
        # Not socket.send_fds(), which drops its flags.
        rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array("i", descriptors))] if descriptors else []
        sock.sendmsg([data], rights, 0 if wait else socket.MSG_DONTWAIT)
    except BlockingIOError:
        raise TimedOut from None
    except (BrokenPipeError, ConnectionResetError):
        raise Closed from None


def receive(sock: socket.socket, seconds: Optional[float] = None) -> tuple[dict[str, Any], list[int]]:
    """Receives one message and its descriptors, which are close-on-exec.

    Raises Closed at the end of the stream, TimedOut after `seconds`, ValueError for what is no message."""
    if seconds is not None:
        poll = select.poll()  # knows descriptors of any number
        poll.register(sock, select.POLLIN)
        if not poll.poll(max(seconds, 0) * 1000):
            raise TimedOut
    try:
        data, descriptors, flags, _ = socket.recv_fds(sock, MOST_BYTES + 1, MOST_DESCRIPTORS)
    except ConnectionResetError:
        raise Closed from None
    if not data:
        raise Closed
    for fd in descriptors:
        os.set_inheritable(fd, False)
    try:
        message = json.loads(data)
    except (ValueError, RecursionError):
        message = None
    if flags & (socket.MSG_TRUNC | socket.MSG_CTRUNC) or not isinstance(message, dict):
        for fd in descriptors:
            os.close(fd)
        raise ValueError("no message of ours")
    return message, descriptors
