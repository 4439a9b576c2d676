"""A relay between a run and its policy server: it can cut, fall silent, and witnesses what was asked for.

A request for turn t of an episode says that turn t - 1 was acknowledged: the run does not ask for it otherwise. What
the run says of itself is not needed for that.
"""

import asyncio
import contextlib
import re
import threading

REQUEST = re.compile(rb"X-Request-Id: [^/\r]+/(g\d+\.e\d+)\.t(\d+)\.a\d+\r", re.IGNORECASE)


class Relay:
    """Listens on a free port of the loopback, on a thread of its own."""

    def __init__(self):
        self.upstream = 0  # the server's port; 0: there is no server
        self.port = 0
        self.asked: dict = {}  # episode -> the latest turn that was asked for
        self.requests = 0
        self._cut = False
        self._open: set = set()
        self._loop = asyncio.new_event_loop()
        ready = threading.Event()
        threading.Thread(target=self._live, args=(ready,), daemon=True).start()
        ready.wait()

    # -- what happens to it -----------------------------------------------------------------------

    def cut(self) -> None:
        """Every connection is reset, and new ones are."""
        self._cut = True
        self._loop.call_soon_threadsafe(self._abort)

    def heal(self) -> None:
        self._cut = False

    def silence(self) -> None:
        """Nothing comes through, and neither side is told."""
        self._loop.call_soon_threadsafe(self._passing.clear)

    def speak(self) -> None:
        self._loop.call_soon_threadsafe(self._passing.set)

    # -- its thread -------------------------------------------------------------------------------

    def _live(self, ready) -> None:
        asyncio.set_event_loop(self._loop)

        async def listen():
            self._passing = asyncio.Event()
            self._passing.set()
            server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
            self.port = server.sockets[0].getsockname()[1]
            ready.set()
            await server.serve_forever()

        self._loop.run_until_complete(listen())

    def _abort(self) -> None:
        for writer in self._open:
            writer.transport.abort()

    async def _serve(self, reader, writer) -> None:
        if self._cut or not self.upstream:
            writer.transport.abort()
            return
        try:
            from_server, to_server = await asyncio.open_connection("127.0.0.1", self.upstream)
        except OSError:
            writer.transport.abort()
            return
        both = {writer, to_server}
        self._open |= both
        pumps = [
            asyncio.ensure_future(self._pump(reader, to_server, True)),
            asyncio.ensure_future(self._pump(from_server, writer, False)),
        ]
        await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
        for pump in pumps:
            pump.cancel()
        self._open -= both
        for one in both:
            one.transport.abort()

    async def _pump(self, reader, writer, is_request: bool) -> None:
        tail = b""
        with contextlib.suppress(OSError, asyncio.CancelledError):
            while data := await reader.read(65536):
                if is_request:
                    tail = self._witness(tail + data)
                await self._passing.wait()
                writer.write(data)
                await writer.drain()

    def _witness(self, data: bytes) -> bytes:
        end = 0
        for found in REQUEST.finditer(data):
            episode, turn, end = found[1].decode(), int(found[2]), found.end()
            self.asked[episode] = max(turn, self.asked.get(episode, 0))
            self.requests += 1
        return data[end:][-300:]
