"""libkernelmill-torch.so: the shared page, memory of a GPU as descriptors, and the walls of a fork."""

import ctypes
import fcntl
import os
from ctypes import c_char_p, c_double, c_int, c_int32, c_size_t, c_uint32, c_uint64, c_void_p

PAGE_SIZE = 4096
# Commands of the page.
NOTHING, WAKE, CALL, COPY, LEAVE, WARM, BATCH, BATCH_NOW, FINISH = range(9)

TIMED_OUT = -1.0
ENDED = -2.0
SPAWNING = 2  # of km_still_stop
FAILED = -3.0


class Isolation(ctypes.Structure):
    """struct km_isolation."""

    _fields_ = [
        ("uid", c_uint32),
        ("processes", c_uint32),
        ("tmpfs_bytes", c_uint64),
        ("data_bytes", c_uint64),
        ("file_bytes", c_uint64),
        ("filter", c_int32),
    ]


class Watch(ctypes.Structure):
    """struct km_watch."""

    _fields_ = [
        ("word", c_uint64),
        ("number", c_uint32),
        ("seed", c_uint32),
        ("stretches", c_uint64),
        ("samples", c_uint64),
        ("outputs", c_uint32),
        ("bytes", c_uint32),
        ("seconds", c_double),
        ("released", c_double),
        ("over", c_double),
        ("sampled", c_double),
    ]


def load(path: str) -> ctypes.CDLL:
    """Opens the library and declares its functions."""
    lib = ctypes.CDLL(path)
    declarations = {
        "km_page_map": (c_void_p, [c_int]),
        "km_page_unmap": (None, [c_void_p]),
        "km_page_call": (
            c_double,
            [c_void_p, c_int, c_uint32, c_uint32, c_uint32, c_uint32, c_uint64, c_double, c_uint32],
        ),
        "km_page_await": (c_double, [c_void_p, c_int, c_double, c_uint32]),
        "km_page_status": (c_uint32, [c_void_p]),
        "km_page_wait": (c_uint32, [c_void_p, c_uint32]),
        "km_page_command": (c_uint32, [c_void_p]),
        "km_page_first": (c_uint32, [c_void_p]),
        "km_page_count": (c_uint32, [c_void_p]),
        "km_page_place": (c_uint32, [c_void_p]),
        "km_page_seed": (c_uint64, [c_void_p]),
        "km_page_done": (None, [c_void_p, c_uint32, c_uint32]),
        "km_batch_begin": (c_int, [c_void_p, c_uint32]),
        "km_batch_end": (c_int, [c_uint32]),
        "km_batch_note": (None, []),
        "km_batch_tell": (None, [c_void_p, c_double]),
        "km_batch_inside": (c_double, [c_void_p]),
        "km_batch_open_word": (c_size_t, []),
        "km_batch_force": (None, [c_void_p, c_uint32]),
        "km_batch_watch": (c_int, [c_void_p, c_int, ctypes.POINTER(Watch)]),
        "km_batch_release": (c_int, [c_int, ctypes.POINTER(Watch)]),
        "km_batch_sample": (c_int, [ctypes.POINTER(Watch)]),
        "km_gpu_kernels": (c_int, [c_char_p]),
        "km_gpu_compare": (c_int, [c_char_p, c_uint64, c_uint64, c_uint32]),
        "km_gpu_hide": (None, [c_void_p]),
        "km_still_of": (c_void_p, [c_int]),
        "km_still_free": (None, [c_void_p]),
        "km_still_stop": (c_int, [c_void_p]),
        "km_still_stopped": (c_int, [c_void_p]),
        "km_still_go_on": (None, [c_void_p]),
        "km_gpu_problem": (c_char_p, []),
        "km_gpu_create": (c_void_p, [c_size_t, ctypes.POINTER(c_size_t), ctypes.POINTER(c_int)]),
        "km_gpu_import": (c_void_p, [c_int, c_size_t]),
        "km_gpu_show": (c_uint64, [c_void_p, c_size_t]),
        "km_gpu_fence": (c_int, []),
        "km_gpu_unmap": (None, [c_void_p, c_size_t]),
        "km_gpu_name": (c_int, [c_uint64, ctypes.POINTER(c_uint64), ctypes.POINTER(c_size_t), c_char_p]),
        "km_gpu_open": (c_void_p, [c_char_p, ctypes.POINTER(c_size_t)]),
        "km_gpu_close": (None, [c_void_p]),
        "km_gpu_memory": (c_int, [ctypes.POINTER(c_size_t), ctypes.POINTER(c_size_t)]),
        "km_gpu_unpin": (None, []),
        "km_isolate": (c_int, [ctypes.POINTER(Isolation)]),
        "km_isolate_problem": (c_char_p, []),
    }
    for name, (result, arguments) in declarations.items():
        function = getattr(lib, name)
        function.restype = result
        function.argtypes = arguments
    return lib


def memory_file(name: str, size: int) -> int:
    """A new memory file of `size` zero bytes; close-on-exec. One that has a size keeps it, whoever has it open."""
    fd = os.memfd_create(name, os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    os.ftruncate(fd, size)
    if size:
        fcntl.fcntl(fd, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL)
    return fd
