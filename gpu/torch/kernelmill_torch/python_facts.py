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
    print(json.dumps(facts))
    return 0


if __name__ == "__main__":
    sys.exit(main())
