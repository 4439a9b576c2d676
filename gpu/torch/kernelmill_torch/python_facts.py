"""Prints, as one line of JSON, what Kernelmill must know of this interpreter and its torch.

Run by path, isolated (-I), outside the sandbox. Exit code 3: torch cannot be imported.
"""

import json
import os
import sys
import sysconfig


def _version(module: str) -> str:
    try:
        from importlib.metadata import version

        return version(module)
    except Exception:
        return ""


def _state(path: str) -> list:
    """By what a change of a file or folder is seen: path, time of the last change in ns, bytes."""
    try:
        found = os.stat(path)
    except OSError:
        return [path, 0, -1]
    return [path, found.st_mtime_ns, found.st_size]


def main() -> int:
    here = os.path.dirname(os.path.abspath(__file__))
    paths = [p for p in sys.path if p and os.path.isabs(p) and os.path.realpath(p) != os.path.realpath(here)]
    try:
        import torch
        from torch.utils import cpp_extension
    except Exception as problem:
        print(json.dumps({"error": f"{type(problem).__name__}: {problem}"[:500]}))
        return 3
    cuda = torch.version.cuda or ""
    facts = {
        "executable": sys.executable,
        "version": ".".join(str(x) for x in sys.version_info[:3]),
        "prefix": sys.prefix,
        "base_prefix": sys.base_prefix,
        "path": paths,
        "torch": torch.__version__,
        "torch_directory": os.path.dirname(os.path.realpath(torch.__file__)),
        "torch_libraries": cpp_extension.TORCH_LIB_PATH,
        "torch_includes": cpp_extension.include_paths(),
        "torch_cuda": cuda,
        "triton": _version("triton"),
        "cuda_home": cpp_extension.CUDA_HOME or "",
        "cxx11_abi": bool(torch._C._GLIBCXX_USE_CXX11_ABI),
        "extension_suffix": sysconfig.get_config_var("EXT_SUFFIX") or ".so",
        "python_include": sysconfig.get_path("include", scheme="posix_prefix") or "",
    }
    home = os.path.dirname(torch.__file__)
    # The folder that torch is in changes whenever a package beside it comes or goes.
    facts["depends"] = [
        _state(x)
        for x in (
            sys.executable,
            os.path.abspath(__file__),
            os.path.dirname(home),
            home + "/version.py",
            cpp_extension.__file__,
            "/usr/local",
            "/usr/local/cuda",
            "/usr/bin/nvcc",
            facts["cuda_home"],
        )
    ]
    print(json.dumps(facts))
    return 0


if __name__ == "__main__":
    sys.exit(main())
