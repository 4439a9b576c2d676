"""A server of one's own, for as long as a `with` block lasts."""

import contextlib
import os
import secrets
import subprocess
import tempfile
from typing import Iterator, Optional, Sequence

from .client import Client
from .program import find_program
from .transport import KernelmillError


@contextlib.contextmanager
def serve(
    backend: str = "auto",
    *,
    program: Optional[str] = None,
    tasks: Optional[str] = None,
    options: Sequence[str] = (),
    patience: float = 600.0,
    with_token: bool = True,
) -> Iterator[Client]:
    """Starts `kernelmill serve` on a free port of this machine and gives a client of it.

    It is protected by a token that no other program knows, and ends with the block; it ends also when
    this process does. Without a token everybody on this machine may ask, as clients must that
    cannot send one. `program` is the path of kernelmill; without it $KERNELMILL, then that of the
    wheel, then PATH.
    `tasks` is a folder of tasks; `options` are more options of the command.
    """
    path = find_program(program)
    with tempfile.TemporaryDirectory(prefix="kernelmill-serve-") as folder:
        command = [path, "serve", "--backend", backend, "--end-with-stdin", *options]
        token = secrets.token_hex(32) if with_token else None
        if token:
            token_file = os.path.join(folder, "token")
            with open(os.open(token_file, os.O_WRONLY | os.O_CREAT, 0o600), "w") as file:
                file.write(token)
            command += ["--token-file", token_file]
        if tasks:
            command += ["--root", tasks]
        with open(os.path.join(folder, "stderr"), "w+b") as said:
            server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=said, text=True)
            assert server.stdin and server.stdout
            try:
                url = server.stdout.readline().strip()
                if not url:
                    server.wait()
                    said.seek(0)
                    raise KernelmillError(0, "serve_failed", said.read().decode(errors="replace").strip())
                yield Client(url, token, patience)
            finally:
                server.stdin.close()
                try:
                    server.wait(timeout=30)
                except subprocess.TimeoutExpired:
                    server.kill()
                    server.wait()
                server.stdout.close()
