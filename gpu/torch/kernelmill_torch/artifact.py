"""What a build of the contract `torch` made (gpu/task/torch_artifact.hpp), and its extensions put in place."""

import importlib.machinery
import importlib.util
import json
import os
import sys
from dataclasses import dataclass, field
from typing import Any

from kernelmill_torch import extension_request

MAGIC = b"kernelmill-torch-2\n"
MODULE_NAME = "candidate"  # Triton's digests of a kernel hold its module's name


@dataclass
class Artifact:
    source: bytes
    extensions: dict[str, tuple[str, bytes]] = field(default_factory=dict)  # key -> (name, library)
    triton_files: dict[str, str] = field(default_factory=dict)  # see triton_ahead.py
    entry: str = ""  # see entry.py


def read(fd: int) -> Artifact:
    """Reads an artifact, or plain source text, from a descriptor and closes it. Raises ValueError."""
    with os.fdopen(fd, "rb") as file:
        file.seek(0)
        data = file.read()
    if not data.startswith(MAGIC):
        return Artifact(data)
    end = data.index(b"\n", len(MAGIC))
    size = int(data[len(MAGIC) : end])
    header = json.loads(data[end + 1 : end + 1 + size])
    at = end + 1 + size
    result = Artifact(
        data[at : at + header["source_bytes"]], triton_files=header["triton_files"], entry=header.get("entry", "")
    )
    at += header["source_bytes"]
    for x in header["extensions"]:
        result.extensions[x["key"]] = (x["name"], data[at : at + x["bytes"]])
        at += x["bytes"]
    return result


class ExtensionNotBuilt(RuntimeError):
    """load_inline or load was called with arguments that were not seen when the module was imported ahead."""


def offer_extensions(found: Artifact, directory: str) -> None:
    """Lets load_inline and load give what was built ahead instead of building."""
    loaded: dict[str, Any] = {}

    def give(request: dict):
        key = extension_request.key(request)
        if key in loaded:
            return loaded[key]
        if key not in found.extensions:
            raise ExtensionNotBuilt(
                f"the extension {request.get('name')!r} was not built ahead: call load_inline at "
                "module level or in __init__, with arguments that do not change"
            )
        name, library = found.extensions[key]
        # A folder of its own: two extensions may have one name, and a library that is loaded is not written over.
        os.makedirs(f"{directory}/{key[:16]}", exist_ok=True)
        path = f"{directory}/{key[:16]}/{name}.so"
        with open(path, "wb") as file:
            file.write(library)
        loader = importlib.machinery.ExtensionFileLoader(name, path)
        module = importlib.util.module_from_spec(importlib.util.spec_from_file_location(name, path, loader=loader))
        loader.exec_module(module)
        sys.modules[name] = module
        loaded[key] = module
        return module

    extension_request.install(give)
