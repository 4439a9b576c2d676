"""Of the stand-in for torch. The recorder replaces both functions, by their signatures."""

import os

TORCH_LIB_PATH = os.path.dirname(os.path.abspath(__file__))
CUDA_HOME = ""


def include_paths():
    return []


def load_inline(
    name,
    cpp_sources,
    cuda_sources=None,
    functions=None,
    extra_cflags=None,
    extra_cuda_cflags=None,
    extra_ldflags=None,
    extra_include_paths=None,
    build_directory=None,
    verbose=False,
    with_cuda=None,
    is_python_module=True,
    with_pytorch_error_handling=True,
    keep_intermediates=True,
    no_implicit_headers=False,
):
    raise RuntimeError("nothing is built here")


def load(
    name,
    sources,
    extra_cflags=None,
    extra_cuda_cflags=None,
    extra_ldflags=None,
    extra_include_paths=None,
    build_directory=None,
    verbose=False,
    with_cuda=None,
    is_python_module=True,
    keep_intermediates=True,
):
    raise RuntimeError("nothing is built here")
