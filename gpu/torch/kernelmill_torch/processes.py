"""The referee's end of a process that the warm one forked: command, clock, stop, end."""

import contextlib
import math
import os
import select
import signal
import socket
import time
from typing import TYPE_CHECKING, Any, Optional

from kernelmill_torch import channel, native
from kernelmill_torch.faults import Fault
from kernelmill_torch.stillness import children_of, processor_seconds, scheduled, seconds_without_core, threads_of
from kernelmill_torch.warm import START_SECONDS, Zygote

if TYPE_CHECKING:
    from kernelmill_torch.arena import Arena
    from kernelmill_torch.reach import Reach

SPIN = 20_000  # looks before sleeping: 0.2 to 1 ms
SPIN_AWAKE = 20 * SPIN  # of one that was woken and is about to be told more
# Which of its own faults a process may name; each is a candidate's. Any other word would be a message of its own.
OWN_FAULTS = frozenset(
    {
        "extension_not_built",
        "import_error",
        "init_error",
        "missing_model",
        "out_of_memory",
        "runtime_error",
        "wrong_dtype",
        "wrong_shape",
        "wrong_type",
    }
)
MOST_PATIENCE = (
    4.0  # deadlines' worth of time in which a process was ready and had no core; it can bring that about itself
)
WORDS_SECONDS = 5.0  # in which one that says that it failed says how
ENDING_SECONDS = 10.0  # in which a process that was killed is gone
ENDING_LOOK = 0.1  # seconds between two looks at one that is not
AT_REST_SECONDS = 3.0  # without any work, also on a busy machine: it waits for something


def kills_for_memory() -> Optional[int]:
    """How often the kernel of this machine has ended somebody for want of memory; None where it does not tell."""
    try:
        with open("/proc/vmstat") as file:
            return next((int(line.split()[1]) for line in file if line.startswith("oom_kill ")), None)
    except OSError:
        return None


class Process:
    """One forked process. Whatever it says is hearsay."""

    waited = 0.0  # seconds in which it was told to do something and had not done it

    def __init__(self, lib, zygote: Zygote, who: str):
        self.lib, self.zygote, self.who = lib, zygote, who
        self.sock, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        page = native.memory_file("kernelmill-page", native.PAGE_SIZE)
        self.printed = native.memory_file("kernelmill-printed", 0)
        self.page = lib.km_page_map(page)
        try:
            self.pid, self.pidfd = zygote.fork((page, theirs.fileno(), self.printed))
        finally:
            theirs.close()
            os.close(page)
        self.note_kills()
        self.up = self.clocked = False
        self._first = 0  # its own number out here, once known
        self._firstfd = -1
        self._still: Optional[int] = None  # of native/still.cpp
        self.arena: Optional["Arena"] = None  # the bench's, which it maps
        self.reach: Optional["Reach"] = None  # of what its calls return
        self.place = 0  # of the layouts of its sets, the one that its next calls use
        self._ending: list[int] = []  # numbers of all that it was when it was killed
        self._given = 0.0  # seconds by which its deadlines were prolonged
        self.until = (
            math.inf
        )  # when all its time is over: each wait for it may be as long as one deadline, and prolonged
        self.batches = 0  # that were begun
        self._worked: dict[int, float] = {}  # seconds of its threads, when they were spread
        self._open_word = 0
        self.is_working = False  # though it was killed; see ends()

    def settle(self, seconds: float = START_SECONDS) -> None:
        """Waits until it is behind its walls and has its GPU. Raises Fault, of the infrastructure."""
        if self.up:
            return
        try:
            message, _ = channel.receive(self.sock, seconds)
        except (channel.Closed, channel.TimedOut, ValueError):
            raise Fault(
                "infrastructure",
                "python_failed",
                "a forked Python process did not start: " + (self.output() or "it said nothing"),
            ) from None
        if "failed" in message:
            raise Fault(
                "infrastructure",
                "sandbox_unavailable",
                "failed to wall in a Python process: " + str(message["failed"])[:300],
                "`kernelmill doctor` names what the sandbox lacks",
            )
        try:
            self._firstfd = os.pidfd_open(self.number())  # now, for later it may do as it likes
        except OSError:
            raise Fault("infrastructure", "python_failed", "a forked Python process ended at once") from None
        self.up = True

    def ask(self, message: dict[str, Any], seconds: float, descriptors: tuple[int, ...] = ()) -> dict[str, Any]:
        """One exchange over the socket. Raises Fault, the process's own."""
        self.go_on()
        self.leave_page(seconds)
        began = time.monotonic()
        try:
            channel.send(self.sock, message, descriptors, wait=False)
            reply, received = self._receive(seconds)
        except channel.TimedOut:
            self.kill()
            raise self.fault("timed_out", f"did not finish within {seconds:.0f} s ({message['op']})") from None
        except (channel.Closed, ValueError):
            raise self.ended() from None
        finally:
            self.waited += time.monotonic() - began
        for fd in received:
            os.close(fd)
        if "error" in reply:
            raise self.told(reply["error"])
        return reply

    def _within(self, seconds: float) -> float:
        """So many seconds, and none after all its time is over: the referee must answer then, whoever had the core."""
        return max(0.0, min(seconds, self.until - time.monotonic()))

    def _receive(self, seconds: float) -> tuple[dict[str, Any], list[int]]:
        """Its next message. Raises TimedOut after `seconds` and those in which it had no core, and what receive() raises."""
        more = self._within(seconds)
        while True:
            try:
                return channel.receive(self.sock, more)
            except channel.TimedOut:
                more = self._more_time(seconds)
                if more == 0:
                    raise

    def _more_time(self, deadline: float) -> float:
        """Seconds by which a deadline that has passed is prolonged: those in which it had no core and that prolonged none
        yet. 0: it had its time."""
        without = min(seconds_without_core(self.number()), MOST_PATIENCE * deadline)
        more = self._within(without - self._given)
        if more < 0.1:
            return 0.0
        self._given = without
        return more

    def call(self, command: int, first: int, count: int, seconds: float, spin: int = SPIN, seed: int = 0) -> float:
        """Seconds of a command of the page, by the clock out here. With a seed torch's generators begin with it. Raises
        Fault."""
        self.go_on()
        if not self.clocked:
            self.ask({"op": "page"}, seconds)
            self.clocked = True
        began = time.monotonic()
        taken = self.lib.km_page_call(
            self.page, self.pidfd, command, first, count, self.place, seed, self._within(seconds), spin
        )
        return self._well(taken, seconds, began)

    @property
    def open_word(self) -> int:
        """Where the referee's GPU finds the word that opens a batch."""
        if not self._open_word:
            self._open_word = self.lib.km_gpu_show(self.page, native.PAGE_SIZE) + self.lib.km_batch_open_word()
        return self._open_word

    def queue_batch(self, count: int, patience: float, seconds: float, seed: int = 0, apart: bool = False) -> bool:
        """Has it queue a batch of calls. False where it waits for the GPU in one of them, or says that it cannot: then the batch was
        opened, and is over. Raises Fault where it ended."""
        self.enter_page(seconds)
        self.batches += 1
        began = time.monotonic()
        taken = self.lib.km_page_call(
            self.page, self.pidfd, native.BATCH, int(apart), count, self.place, seed, self._within(patience), SPIN_AWAKE
        )
        self.waited += time.monotonic() - began
        if taken == native.ENDED:
            raise self.ended()
        if taken >= 0 and self.lib.km_page_status(self.page) == 0:
            return True
        self.lib.km_batch_force(self.page, self.batches)
        if taken < 0:
            taken = self.lib.km_page_await(self.page, self.pidfd, self._within(seconds), SPIN)
        try:
            self._well(taken, seconds, began)
        except Fault as e:
            if e.category == "timed_out" or not self.alive():
                raise
        return False

    def make_batch(
        self, count: int, seconds: float, seed: int = 0, apart: bool = False, spin: int = SPIN_AWAKE
    ) -> float:
        """A batch of calls at once. Its seconds. Raises Fault."""
        self.enter_page(seconds)
        self.batches += 1
        return self.call(native.BATCH_NOW, int(apart), count, seconds, spin, seed)

    def finish_batch(self, seconds: float) -> None:
        """Has it tell what the batch took by its own clock. Raises Fault."""
        self.call(native.FINISH, 0, 0, seconds, SPIN_AWAKE)

    def enter_page(self, seconds: float) -> None:
        """From the socket to the page, where clocked commands come. Raises Fault."""
        self.go_on()
        if not self.clocked:
            self.ask({"op": "page"}, seconds)
            self.clocked = True

    def row(self, count: int, seconds: float) -> None:
        """One row of calls that nobody times. Raises Fault."""
        self.call(native.CALL, 0, count, seconds)
        self.call(native.COPY, 0, count, seconds)
        self.stop()

    def _well(self, taken: float, seconds: float, began: float) -> float:
        """The seconds of a command that was given when it `began`, unless they stand for a fault."""
        while taken == native.TIMED_OUT and (more := self._more_time(seconds)) > 0:
            taken = self.lib.km_page_await(self.page, self.pidfd, more, SPIN)
            if taken >= 0:
                taken = time.monotonic() - began
        self.waited += time.monotonic() - began
        if taken >= 0:
            if self.lib.km_page_status(self.page) == 0:
                return taken
            taken = native.FAILED
        if taken == native.TIMED_OUT:
            self.kill()
            raise self.fault("timed_out", f"was still busy after {seconds:.1f} s")
        if taken == native.ENDED:
            raise self.ended()
        self.go_on()
        self.clocked = False
        began = time.monotonic()
        try:
            reply, received = channel.receive(self.sock, self._within(WORDS_SECONDS))
        except (channel.Closed, channel.TimedOut, ValueError):
            raise self.ended() from None
        finally:
            self.waited += time.monotonic() - began
        for fd in received:
            os.close(fd)
        raise self.told(reply.get("error"))

    # Between its batches a candidate is stopped: else it could look at inputs as they are written, and work when nobody counts.

    @property
    def stopped(self) -> bool:
        return self._still is not None and self.lib.km_still_stopped(self._still) != 0

    def stop(self) -> None:
        """Stops it and all that it started. Raises Fault."""
        if self._still is None:
            self._still = self.lib.km_still_of(self.number())
        if self.lib.km_still_stop(self._still) == native.SPAWNING:
            self.kill()
            raise self.fault("integrity", "started processes without end when it was to stand still")

    def go_on(self) -> None:
        """Lets it and all that it started go on, itself last."""
        if self._still is not None:
            self.lib.km_still_go_on(self._still)

    def number(self) -> int:
        """Its number out here."""
        if not self._first:
            self._numbers()
        return self._first

    def _numbers(self) -> list[int]:
        """Numbers out here of the process and all that it started; its waiter is none of them."""
        result: list[int] = []
        waiting = children_of(self._waiter())
        while waiting:
            number = waiting.pop()
            result.append(number)
            waiting.extend(children_of(number))
        if result:
            self._first = result[0]
        return result

    def leave_page(self, seconds: float) -> None:
        """Back to the socket."""
        if self.clocked:
            self.call(native.LEAVE, 0, 0, seconds)
            self.clocked = False

    def note_kills(self) -> None:
        """How often the kernel had ended somebody for want of memory when a candidate came; see ended()."""
        self._kills = kills_for_memory()

    def fault(self, category: str, what: str, hint: str = "") -> Fault:
        return Fault("candidate", category, f"{self.who} {what}", hint)

    def told(self, error: Any) -> Fault:
        """A fault in the process's own words, which are cleaned elsewhere."""
        error = error if isinstance(error, dict) else {}
        category = str(error.get("category"))
        message, trace = str(error.get("message", ""))[:4000], str(error.get("trace", ""))[:4000]
        return Fault(
            "candidate",
            category if category in OWN_FAULTS else "runtime_error",
            message + ("\n" + trace if trace else ""),
        )

    def ended(self) -> Fault:
        """How it ended."""
        status = self.zygote.status_of(self.pid)
        words = self.output()
        tail = ": " + words[-300:] if words else ""
        if status is None:
            return self.fault("crashed", "stopped answering" + tail)
        if status == -signal.SIGKILL:
            # Number 1 of a namespace cannot do that to itself; the kernel does where memory is short, and counts it.
            if self._kills is None or kills_for_memory() != self._kills:
                return self.fault("out_of_memory", "was ended by SIGKILL" + tail)
        if status < 0:  # its waiter was, which nobody inside can reach
            return Fault(
                "infrastructure",
                "killed_outside",
                f"{self.who} was killed from outside",
                "does something on this machine end processes? The work is tried again",
            )
        if status > 128:
            number = status - 128
            name = signal.Signals(number).name if number in set(signal.Signals) else f"signal {number}"
            if "terminate called" in words:  # abort() of number 1 of a namespace looks like SIGSEGV
                name = "an exception that nothing catches"
            return self.fault("crashed", f"was ended by {name}" + tail)
        hint = "return from forward, and load an extension without ending the process"
        return self.fault("exited", f"ended the process with exit code {status}" + tail, hint)

    def output(self) -> str:
        """What it printed: the first 4 KiB, control characters removed."""
        try:
            data = os.pread(self.printed, 4096, 0)
        except OSError:
            return ""
        text = data.decode("utf-8", "replace")
        return "".join(c for c in text if c.isprintable() or c in "\n\t").strip()

    def kill(self) -> None:
        """Ends it, which is number 1 of its namespace, with all that it started, and who waits for it."""
        self._ending = self._numbers() or self._ending  # whose waiter is gone has no known children
        for fd in (self._firstfd, self.pidfd):
            if fd < 0:
                continue
            try:
                signal.pidfd_send_signal(fd, signal.SIGKILL)
            except ProcessLookupError:
                pass

    def _waiter(self) -> int:
        """The number out here of the process that waits for it."""
        with open(f"/proc/self/fdinfo/{self.pidfd}") as file:
            for line in file:
                if line.startswith("Pid:"):
                    return int(line.split()[1])
        return -1

    def alive(self) -> bool:
        poll = select.poll()
        poll.register(self.pidfd, select.POLLIN)
        return not poll.poll(0)

    def ends(self, seconds: float, working: float = 0.0) -> bool:
        """Whether it, which was killed, is gone within so many seconds, or more while it works: to give back what it had mapped
        takes a processor's time, and a candidate maps what it likes. `is_working` says whether it did at last. Its waiter is gone
        at once; what it has on the GPU is gone when it is itself."""
        began = moved = time.monotonic()
        worked = self._all_worked()
        self.is_working = False
        while not self._is_gone(ENDING_LOOK):
            now, latest = time.monotonic(), self._all_worked()
            if latest != worked:
                worked, moved = latest, now
            self.is_working = now - moved < AT_REST_SECONDS
            if now - began >= max(seconds, working if self.is_working else 0.0):
                return False
        self.is_working = False
        return True

    def _is_gone(self, seconds: float) -> bool:
        """Whether it and its waiter are, within so many seconds. Number 1 of a namespace is the last to go there."""
        end = time.monotonic() + seconds
        for fd in (self.pidfd, self._firstfd):
            if fd < 0:
                continue
            poll = select.poll()
            poll.register(fd, select.POLLIN)
            if not poll.poll(max(0.0, end - time.monotonic()) * 1000):
                return False
        return True

    def spread_threads(self, cores: list[int]) -> None:
        """Leaves the first core to its first thread, where the others that have worked since the last time have a core each
        without it."""
        number = self.number()
        worked = {x: scheduled(f"{number}/task/{x}")[0] for x in threads_of(number)}
        busy = [x for x, seconds in worked.items() if x != number and seconds > self._worked.get(x, seconds)]
        self._worked = worked
        for thread in busy:
            with contextlib.suppress(OSError):  # it ended meanwhile
                os.sched_setaffinity(thread, cores[1:] if len(busy) < len(cores) else cores)

    def worked(self) -> float:
        """Seconds of a processor of it and all that it started and that is still there."""
        return sum(map(processor_seconds, self._numbers()))

    def _all_worked(self) -> dict[int, float]:
        """Seconds of a processor of it and all that it started, or was when it was killed."""
        return {x: processor_seconds(x) for x in {*self._ending, *self._numbers()}}

    def close(self, seconds: float = ENDING_SECONDS, working: float = 0.0) -> bool:
        """Ends it; False when it is still there after that time, as of ends()."""
        self.kill()
        gone = self.ends(seconds, working)
        self.sock.close()
        os.close(self.pidfd)
        if self._firstfd >= 0:
            os.close(self._firstfd)
        os.close(self.printed)
        if self.reach is not None:
            self.reach.close()
        if self._still is not None:
            self.lib.km_still_free(self._still)
            self._still = None
        if self._open_word:
            self.lib.km_gpu_hide(self.page)
        self.lib.km_page_unmap(self.page)
        self.page = None
        return gone
