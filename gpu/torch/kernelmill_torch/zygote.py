"""The warm process: torch and Triton are imported, CUDA is never initialised, candidates are forked from it.

Started by the C++ referee inside bubblewrap, without a candidate's code, the problem's code or any result in reach.
Descriptor 3 is a SOCK_SEQPACKET socket to the torch referee, descriptor 4 the program of the system-call filter.
It forks on {"op": "fork"} with three descriptors (page, socket, printed), answers with the pid and its descriptor,
and says {"ended": pid, "status": code} later: 128 + signal, or below 0 when the waiter itself was killed.
On the compilers' side it forks recorders: {"op": "record"} with source, product, printed, a pipe for the status and
perhaps the arguments of ModelNew."""

import argparse
import fcntl
import gc
import os
import resource
import select
import signal
import socket
import sys
import traceback

from kernelmill_torch import candidate, channel, languages, native, record, triton_ahead

CONTROL, FILTER = 3, 4
MOST_CHILDREN = 64


def import_ahead(cuda: bool, ahead: bool) -> dict[str, str]:
    """Imports what candidates import; says which versions these are."""
    import torch
    import torch.nn.functional  # noqa: F401
    import torch.utils.cpp_extension  # noqa: F401

    if cuda:
        import torch._dynamo  # noqa: F401, of which a profile needs parts, and which takes seconds
        import torch._inductor.config  # noqa: F401
        import torch.profiler  # noqa: F401

    found = {"python": sys.version.split()[0], "torch": torch.__version__, "triton": ""}
    found["missing"] = " ".join(languages.missing())
    try:
        import triton
        import triton.language  # noqa: F401

        found["triton"] = triton.__version__
        if cuda:
            # The helper library that Triton builds with a C compiler; it starts nothing on the GPU.
            from triton.backends.nvidia.driver import CudaUtils

            CudaUtils()
            # Each candidate has a cache of its own and would build it again.
            candidate.TRITON_FILES.update(triton_ahead.cache_files())
            triton_ahead.read_compiler_key()
        if ahead:
            triton_ahead.warm_up()
    except Exception as problem:  # a candidate that wants Triton will say so itself
        found["triton_problem"] = str(problem)[:200]
    return found


def place(wanted: dict[int, int]) -> None:
    """Puts descriptors at numbers below 100 and closes all others; 0 is /dev/null."""
    high = {at: fcntl.fcntl(fd, fcntl.F_DUPFD, 100) for at, fd in wanted.items()}
    high[0] = fcntl.fcntl(os.open("/dev/null", os.O_RDONLY), fcntl.F_DUPFD, 100)
    os.closerange(3, 100)
    for at, fd in high.items():
        os.dup2(fd, at)
    os.closerange(100, 1024)


def become_candidate(lib, options, descriptors: list[int], number: int) -> None:
    """In the forked process: walls first, then the loop of the candidate; never returns."""
    try:
        page, sock, printed = descriptors
        place({1: printed, 2: printed, 10: sock, 11: page, 12: FILTER})
        walls = native.Isolation(
            options.uid_base + number % 200, 256, options.tmpfs_bytes, options.data_bytes, options.file_bytes, 12
        )
        if lib.km_isolate(walls) != 0:
            channel.send(socket.socket(fileno=10), {"failed": lib.km_isolate_problem().decode()})
            os._exit(120)
        os.close(12)
        candidate.serve(lib, socket.socket(fileno=10), 11, options.device)
        os._exit(0)
    except BaseException:
        traceback.print_exc()
    os._exit(121)


def become_recorder(lib, options, request: dict, descriptors: list[int], number: int) -> None:
    """In the forked process: walls first, then record.py on a candidate's source; never returns."""
    try:
        seconds = int(request["cpu_seconds"])
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 1))
        with os.fdopen(os.dup(descriptors[0]), "rb") as file:
            file.seek(0)
            source = file.read()
        init = b""
        if len(descriptors) > 4:
            with os.fdopen(os.dup(descriptors[4]), "rb") as file:
                file.seek(0)
                init = file.read()
        place({1: descriptors[2], 2: descriptors[2], 10: descriptors[1], 12: FILTER})
        walls = native.Isolation(
            options.uid_base + number % 200, 256, options.tmpfs_bytes, options.data_bytes, options.file_bytes, 12
        )
        if lib.km_isolate(walls) != 0:
            print(lib.km_isolate_problem().decode(), flush=True)
            os._exit(120)
        os.close(12)
        os.makedirs("/tmp/build")
        for name, data in (("candidate.py", source), ("init.pt", init)):
            with open("/tmp/build/" + name, "wb") as file:
                file.write(data)
        record.main(
            [
                "/tmp/build/candidate.py",
                "/proc/self/fd/10",
                request["backend"],
                request["capability"],
                "/tmp/build/init.pt" if init else "-",
                request.get("entry", ""),
            ]
        )
    except BaseException:
        traceback.print_exc()
    os._exit(121)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--library", required=True)
    parser.add_argument("--device", choices=("cpu", "cuda"), required=True)
    parser.add_argument("--uid-base", type=int, default=0)
    parser.add_argument("--tmpfs-bytes", type=int, default=1 << 30)
    parser.add_argument("--data-bytes", type=int, default=0)
    parser.add_argument("--file-bytes", type=int, default=256 << 20)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--triton-ahead", action="store_true", help="recorders will compile Triton for a GPU")
    options = parser.parse_args()
    for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        os.environ[name] = str(options.threads)
    os.environ["TRITON_CACHE_DIR"] = triton_ahead.DIRECTORY
    if options.device == "cpu" and not options.triton_ahead:
        os.environ["TRITON_INTERPRET"] = "1"  # no kernel of it could run otherwise; read when it is imported
    lib = native.load(options.library)
    control = socket.socket(fileno=CONTROL)
    facts = import_ahead(options.device == "cuda", options.triton_ahead)
    gc.collect()
    gc.freeze()  # pages stay shared with the children
    channel.send(control, {"ready": facts})
    serve(lib, options, control)


def tell(pipe: int, status: int) -> None:
    """Says how a recorder ended to whoever waits for it."""
    try:
        os.write(pipe, status.to_bytes(4, sys.byteorder, signed=True))
    except OSError:
        pass  # nobody waits any more
    os.close(pipe)


def serve(lib, options, control: socket.socket) -> None:
    """Forks when told to, reaps what ended; ends with the referee."""
    children: dict[int, int] = {}  # descriptor -> pid
    waiting: dict[int, int] = {}  # pid -> pipe of whoever waits for a recorder
    poll = select.poll()
    poll.register(control, select.POLLIN)
    number = 0
    while True:
        for fd, _ in poll.poll():
            if fd != control.fileno():
                poll.unregister(fd)
                pid = children.pop(fd)
                status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
                os.close(fd)
                if pid in waiting:
                    tell(waiting.pop(pid), status)
                else:
                    channel.send(control, {"ended": pid, "status": status})
                continue
            try:
                message, descriptors = channel.receive(control)
            except channel.Closed:
                for pid in children.values():
                    os.kill(pid, signal.SIGKILL)
                return
            wanted = {"fork": (3, 3), "record": (4, 5)}.get(message.get("op"), (99, 99))
            if not wanted[0] <= len(descriptors) <= wanted[1] or len(children) >= MOST_CHILDREN:
                channel.send(control, {"failed": "no such request"})
                continue
            number += 1
            pid = os.fork()
            if pid == 0 and message["op"] == "fork":
                become_candidate(lib, options, descriptors, number)
            elif pid == 0:
                become_recorder(lib, options, message, descriptors, number)
            if message["op"] == "record":
                waiting[pid] = os.dup(descriptors[3])
            handle = os.pidfd_open(pid)
            for fd in descriptors:
                os.close(fd)
            children[handle] = pid
            poll.register(handle, select.POLLIN)
            channel.send(control, {"pid": pid}, (handle,))


if __name__ == "__main__":
    main()
