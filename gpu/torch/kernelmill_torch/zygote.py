"""The warm process: torch and Triton are imported, CUDA is never initialised, candidates are forked from it.

Started by the C++ referee inside bubblewrap, without a candidate's code, the problem's code or any result in reach.
Descriptor 3 is a SOCK_SEQPACKET socket to the torch referee, descriptor 4 the program of the system-call filter.
It forks on {"op": "fork"} with three descriptors (page, socket, printed), answers with the pid and its descriptor,
and says {"ended": pid, "status": code} later: 128 + signal, or below 0 when the waiter itself was killed."""

import argparse
import gc
import os
import select
import signal
import socket
import sys
import traceback

from kernelmill_torch import channel, native

CONTROL, FILTER = 3, 4
MOST_CHILDREN = 64


def import_ahead(cuda: bool) -> dict[str, str]:
    """Imports what candidates import; says which versions these are."""
    import torch
    import torch.nn.functional  # noqa: F401
    import torch.utils.cpp_extension  # noqa: F401

    if cuda:
        import torch._dynamo  # noqa: F401, of which a profile needs parts, and which takes seconds
        import torch._inductor.config  # noqa: F401
        import torch.profiler  # noqa: F401

    found = {"python": sys.version.split()[0], "torch": torch.__version__, "triton": ""}
    try:
        import triton
        import triton.language  # noqa: F401

        found["triton"] = triton.__version__
        if cuda:
            # The helper library that Triton builds with a C compiler; it starts nothing on the GPU.
            from triton.backends.nvidia.driver import CudaUtils

            CudaUtils()
    except Exception as problem:  # a candidate that wants Triton will say so itself
        found["triton_problem"] = str(problem)[:200]
    return found


def become_candidate(lib, options, descriptors: list[int], number: int) -> None:
    """In the forked process: walls first, then the loop of the candidate; never returns."""
    try:
        page, sock, printed = descriptors
        os.dup2(os.open("/dev/null", os.O_RDONLY), 0)
        os.dup2(printed, 1)
        os.dup2(printed, 2)
        os.dup2(sock, 10)
        os.dup2(page, 11)
        os.dup2(FILTER, 12)
        os.closerange(3, 10)
        os.closerange(13, 1024)
        walls = native.Isolation(options.uid_base + number % 200, 256, options.tmpfs_bytes, options.data_bytes,
                                 options.file_bytes, 12)
        if lib.km_isolate(walls) != 0:
            channel.send(socket.socket(fileno=10), {"failed": lib.km_isolate_problem().decode()})
            os._exit(120)
        os.close(12)
        from kernelmill_torch import candidate

        candidate.serve(lib, socket.socket(fileno=10), 11, options.device)
        os._exit(0)
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
    options = parser.parse_args()
    for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        os.environ[name] = str(options.threads)
    lib = native.load(options.library)
    control = socket.socket(fileno=CONTROL)
    facts = import_ahead(options.device == "cuda")
    import kernelmill_torch.candidate  # noqa: F401

    gc.collect()
    gc.freeze()  # pages stay shared with the children
    channel.send(control, {"ready": facts})
    serve(lib, options, control)


def serve(lib, options, control: socket.socket) -> None:
    """Forks when told to, reaps what ended; ends with the referee."""
    children: dict[int, int] = {}  # descriptor -> pid
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
                channel.send(control, {"ended": pid, "status": status})
                continue
            try:
                message, descriptors = channel.receive(control)
            except channel.Closed:
                for pid in children.values():
                    os.kill(pid, signal.SIGKILL)
                return
            if message.get("op") != "fork" or len(descriptors) != 3 or len(children) >= MOST_CHILDREN:
                channel.send(control, {"failed": "no such request"})
                continue
            number += 1
            pid = os.fork()
            if pid == 0:
                become_candidate(lib, options, descriptors, number)
            handle = os.pidfd_open(pid)
            for fd in descriptors:
                os.close(fd)
            children[handle] = pid
            poll.register(handle, select.POLLIN)
            channel.send(control, {"pid": pid}, (handle,))


if __name__ == "__main__":
    main()
