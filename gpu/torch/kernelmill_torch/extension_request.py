"""What a candidate asks of torch.utils.cpp_extension, as plain data.

The recorder (which runs where extensions are built) and the candidate's process (where they are
loaded) both turn a call of `load_inline` or `load` into a request and name it by `key`; equal calls
get equal keys. A request is a dict of strings, booleans, lists and dicts:

    name              the Python module's name
    sources           [{"name": "main.cpp", "text": ...}, {"name": "cuda.cu", "text": ...}]
    inline            True for load_inline: headers and bindings are added to its sources
    functions         {name: docstring} of the bindings, or None for none
    headers           False: torch's headers are not added (no_implicit_headers)
    error_handling    False: bindings do not translate torch's errors
    is_python_module  False: the library registers operators and is no module
    with_cuda         True, False or None, as given
    cflags, cuda_cflags, ldflags, include_paths    lists of strings, as given

verbose, build_directory, keep_intermediates and use_pch change nothing in the product and are left
out. SYCL sources are refused.
"""

import hashlib
import inspect
import json
import os
import re
from typing import Any, Callable, Dict, List, Optional

Request = Dict[str, Any]

MOST_FILE_BYTES = 1 << 20
MOST_FILES = 32
HEADERS = (".h", ".hpp", ".hh", ".cuh", ".inl")

_HARMLESS = ("build_directory", "verbose", "keep_intermediates", "use_pch", "is_standalone")


class RequestError(ValueError):
    """The arguments are none that torch would take, or ask for what is not supported here."""


def _strings(value: Any, what: str) -> List[str]:
    """A list of str out of None, a str, or a list or tuple of str (or of paths)."""
    if value is None:
        return []
    if isinstance(value, (str, os.PathLike)):
        value = [value]
    if not isinstance(value, (list, tuple)):
        raise RequestError(f"{what} must be a string or a list of strings, not {type(value).__name__}")
    result = []
    for one in value:
        if not isinstance(one, (str, os.PathLike)):
            raise RequestError(f"{what} must hold strings, not {type(one).__name__}")
        result.append(str(os.fspath(one)))
    return result


def _functions(value: Any) -> Optional[Dict[str, str]]:
    """{name: docstring} out of what load_inline takes as `functions`."""
    if value is None:
        return None
    if isinstance(value, dict):
        return {str(name): str(text) for name, text in value.items()}
    if isinstance(value, tuple):
        value = list(value)
    return {name: name for name in _strings(value, "functions")}


def _common(arguments: Dict[str, Any], ldflags: Any) -> Request:
    name = arguments.pop("name", None)
    if not isinstance(name, str):
        raise RequestError("name must be a string")
    with_cuda = arguments.pop("with_cuda", None)
    request: Request = {
        "name": name,
        "cflags": _strings(arguments.pop("extra_cflags", None), "extra_cflags"),
        "cuda_cflags": _strings(arguments.pop("extra_cuda_cflags", None), "extra_cuda_cflags"),
        "ldflags": _strings(ldflags, "extra_ldflags"),
        "include_paths": _strings(arguments.pop("extra_include_paths", None), "extra_include_paths"),
        "with_cuda": None if with_cuda is None else bool(with_cuda),
        "is_python_module": bool(arguments.pop("is_python_module", True)),
    }
    for sycl in ("sycl_sources", "extra_sycl_cflags", "with_sycl"):
        if arguments.pop(sycl, None):
            raise RequestError(f"{sycl} is not supported: only C++ and CUDA sources are built")
    for one in _HARMLESS:
        arguments.pop(one, None)
    return request


def _finish(arguments: Dict[str, Any]) -> None:
    if arguments:
        raise RequestError(f"unexpected argument {sorted(arguments)[0]!r}")


def normalize_inline(**arguments: Any) -> Request:
    """The request of torch.utils.cpp_extension.load_inline(**arguments).

    Raises RequestError for arguments that load_inline has not or that cannot be built.
    """
    request = _common(arguments, arguments.pop("extra_ldflags", None))
    cpp = _strings(arguments.pop("cpp_sources", None), "cpp_sources")
    cuda = _strings(arguments.pop("cuda_sources", None), "cuda_sources")
    sources = [{"name": "main.cpp", "text": "\n".join(cpp)}]
    if cuda:
        sources.append({"name": "cuda.cu", "text": "\n".join(cuda)})
    request.update(
        inline=True,
        sources=sources,
        functions=_functions(arguments.pop("functions", None)),
        headers=not arguments.pop("no_implicit_headers", False),
        error_handling=bool(arguments.pop("with_pytorch_error_handling", True)),
    )
    _finish(arguments)
    return request


def _read(path: str) -> str:
    try:
        with open(path, "rb") as file:
            data = file.read(MOST_FILE_BYTES + 1)
    except OSError as problem:
        raise RequestError(f"failed to read {path}: {problem.strerror}") from None
    if len(data) > MOST_FILE_BYTES:
        raise RequestError(f"{path} has more than {MOST_FILE_BYTES} bytes")
    return data.decode("utf-8", "replace")


def _with_headers(paths: List[str], folders: List[str]) -> List[Dict[str, str]]:
    """The files, and the headers that they include by a plain name, from beside them or from `folders`."""
    places = [os.path.dirname(os.path.abspath(p)) for p in paths] + folders
    result = [{"name": os.path.basename(p), "text": _read(p)} for p in paths]
    known = {x["name"] for x in result}
    for file in result:  # grows under way: headers include headers
        for name in re.findall(r'^\s*#\s*include\s*"([\w.+-]+)"', file["text"], re.MULTILINE):
            if name in known or len(result) >= MOST_FILES or not name.endswith(HEADERS):
                continue
            found = next((x for x in (os.path.join(p, name) for p in places) if os.path.isfile(x)), None)
            if found is not None:
                known.add(name)
                result.append({"name": name, "text": _read(found)})
    return result


def normalize_files(**arguments: Any) -> Request:
    """The request of torch.utils.cpp_extension.load(**arguments), which reads the files in `sources`.

    Headers that they include by a plain name become sources too. Each file may have 1 MiB. Raises
    RequestError for a file that cannot be read, and as normalize_inline.
    """
    request = _common(arguments, arguments.pop("extra_ldflags", None))
    sources = _with_headers(_strings(arguments.pop("sources", None), "sources"), request["include_paths"])
    request.update(inline=False, sources=sources, functions=None, headers=False, error_handling=True)
    _finish(arguments)
    return request


def key(request: Request) -> str:
    """SHA-256 of the request's canonical JSON text, 64 hexadecimal digits.

    Folders of the module's own are left out: they have other names each time, and their files are in it."""
    lasting = [x for x in request.get("include_paths") or [] if not x.startswith("/tmp")]
    text = json.dumps(dict(request, include_paths=lasting), sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def install(answer: Callable[[Request], Any]) -> None:
    """Replaces torch.utils.cpp_extension.load_inline and load: both return answer(request).

    Positional arguments are bound as this torch's own functions bind them. Calls with arguments that
    make no request raise RequestError.
    """
    from torch.utils import cpp_extension

    def replacement(original: Callable[..., Any], normalize: Callable[..., Request]) -> Callable[..., Any]:
        signature = inspect.signature(original)

        def call(*args: Any, **kwargs: Any) -> Any:
            known = {k: v for k, v in kwargs.items() if k in signature.parameters}
            try:
                arguments = dict(signature.bind(*args, **known).arguments)
            except TypeError as problem:
                raise RequestError(f"{original.__name__}: {problem}") from None
            # An argument of a newer torch than this one is taken when it changes nothing here.
            arguments.update({k: v for k, v in kwargs.items() if k not in known})
            return answer(normalize(**arguments))

        call.__name__ = original.__name__
        call.__doc__ = original.__doc__
        return call

    cpp_extension.load_inline = replacement(cpp_extension.load_inline, normalize_inline)
    cpp_extension.load = replacement(cpp_extension.load, normalize_files)
