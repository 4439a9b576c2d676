"""Whose kernels ran: those that the candidate's own source defines, or a library's."""

import re

CUDA_KERNEL = re.compile(r"__global__\s+(?:__launch_bounds__\s*\([^)]*\)\s*|\w+\s+)*?void\s+"
                         r"(?:__launch_bounds__\s*\([^)]*\)\s*)?(\w+)\s*\(")
TRITON_KERNEL = re.compile(r"@(?:triton\.)?jit\b(?:\([^)]*\))?\s*\n\s*def\s+(\w+)")
COMPILES_WHEN_CALLED = re.compile(r"\btriton\b|\bcompile\b|\bjit\b")
IDENTIFIER = re.compile(r"[A-Za-z_]\w*")

LANGUAGES = {"cuda": CUDA_KERNEL, "hip": CUDA_KERNEL, "triton": TRITON_KERNEL}


def own_kernels(source: str, language: str) -> set[str]:
    """Names of the kernels that a module's source defines, in one language or in all."""
    patterns = [LANGUAGES[language]] if language in LANGUAGES else [CUDA_KERNEL, TRITON_KERNEL]
    return {name for pattern in patterns for name in pattern.findall(source)}


def may_compile_when_called(source: str) -> bool:
    """Whether a module's first call may take as long as compilers do: Triton's, torch.compile, torch.jit."""
    return bool(COMPILES_WHEN_CALLED.search(source))


def own_share(profile: list[list], own: set[str]) -> float:
    """The share of the GPU's time in kernels of these names, copies left out; `profile` is [[name, microseconds]]."""
    total = mine = 0.0
    for name, us in profile:
        if name.startswith(("Memcpy", "Memset")):
            continue
        total += us
        # "void relu_kernel<float>(float const*, float*, int)": the first name that is no return type.
        words = IDENTIFIER.findall(str(name).split("(")[0].split("<")[0])
        if own.intersection(words):
            mine += us
    return mine / total if total > 0 else 0.0
