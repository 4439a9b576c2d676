"""Compiles snippets: all of a language as one file, and a pair as a program that compares its two forms."""

import os
import pathlib
import re
import shutil
import subprocess

from cards.corpus import TYPES

HERE = pathlib.Path(__file__).resolve().parent
USUAL = "".join(f"#include <{x}>\n" for x in ("algorithm", "cmath", "cstddef", "cstdint", "cstring", "vector"))
PRELUDES = {
    "cpp": USUAL + "#include <immintrin.h>\n#include <omp.h>\n",
    "cuda": USUAL + "#include <cuda_bf16.h>\n#include <cuda_fp16.h>\n#include <cuda_runtime.h>\n",
    "hip": USUAL + "#include <hip/hip_fp16.h>\n#include <hip/hip_runtime.h>\n",
}
# Threads that spin take cores from each other where other work runs too, and threads that are not bound may share one.
OPENMP = {"OMP_WAIT_POLICY": "passive", "OMP_PROC_BIND": "spread"}
SUFFIXES = {"cpp": ".cpp", "cuda": ".cu", "hip": ".hip"}


def compiler(language, native=False):
    """The command without its files, or None where the compiler is missing. `native`: for this machine, to be run; else
    for the widest machine that snippets are written for."""
    if language == "cpp":
        found = shutil.which("g++")
        target = ["-march=native"] if native else ["-march=sapphirerapids"]
        return found and [found, "-std=c++20", "-O3", "-fopenmp", *target]
    if language == "cuda":
        found = shutil.which("nvcc") or "/usr/local/cuda/bin/nvcc"
        target = ["-gencode", "arch=compute_90a,code=sm_90a", "-lcuda"]
        return [found, "-std=c++20", "-O3", *target] if pathlib.Path(found).exists() else None
    found = shutil.which("hipcc")
    # gfx940 is the MI300's first name, which Debian's compiler knows; newer compilers know gfx942 alone.
    target = os.environ.get("KERNELMILL_CARDS_HIP_ARCH", "gfx940")
    return found and [found, "-std=c++20", "-O3", f"--offload-arch={target}"]


def run(command, limit=600):
    """(whether it went well, what it printed)"""
    done = subprocess.run(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=limit,
        env={**OPENMP, **os.environ},
    )
    return done.returncode == 0, done.stdout


def parts_of(snippet):
    """(its #include lines, the rest with its lines kept)"""
    includes = re.findall(r"^#include.*\n", snippet.text, re.M)
    return includes, re.sub(r"^#include.*$", "", snippet.text, flags=re.M)


def one_file(language, snippets):
    """The text of one source with each snippet in a namespace of its own, so that one call of the compiler does."""
    parts = [(x, *parts_of(x)) for x in snippets]
    text = PRELUDES[language] + "".join(sorted({y for x in parts for y in x[1]}))
    if language == "hip":  # so that functions that no kernel calls reach the code generator
        text += "#undef __device__\n#define __device__ __attribute__((device, used))\n"
    for x, _, rest in parts:
        name = re.sub(r"\W", "_", f"{x.path.parent.name}_{x.path.stem}")
        text += f'namespace card_{name} {{\n#line {2 if x.bench else 1} "{x.path}"\n{rest}\n}}\n'
    return text


def compile_all(language, snippets, folder):
    """What the compiler has to say of any; empty when all are well."""
    command = compiler(language)
    source = folder / f"all{SUFFIXES[language]}"
    source.write_text(one_file(language, snippets))
    # Relocatable, so that ptxas also sees device functions that no kernel calls; for HIP see one_file.
    quiet = {"cpp": ["-w", "-Wno-psabi"], "cuda": ["-w", "-rdc=true"], "hip": ["-w"]}[language]
    well, said = run([*command, *quiet, "-c", source, "-o", folder / "all.o"])
    return "" if well else said or "the compiler failed"


def wrapper(snippet):
    """The source of one form, with a function that the harness calls."""
    includes, rest = parts_of(snippet)
    call = []
    for i, x in enumerate(snippet.bench.arguments):
        if x.type:
            call.append(f"static_cast<{'' if x.out else 'const '}{TYPES[x.type]}*>(a[{i}])")
        else:
            call.append(x.value + ("f" if "." in x.value else ""))
    return (
        PRELUDES[snippet.language] + "".join(includes) + f"namespace {{\n{rest}\n}}\n"
        f'extern "C" void km_{snippet.path.stem}(void** a) {{ f({", ".join(call)}); }}\n'
    )


def driver(bench, seconds):
    rows = []
    for x in bench.arguments:
        kind = x.type or "int"
        rows.append(
            f'{{"{kind}", {x.count if x.type else 1}, sizeof({TYPES[kind]}), {str(x.out).lower()}, {x.below or 100}}}'
        )
    return f'#include "harness.hpp"\nint main() {{ return cards::compare({{{", ".join(rows)}}}, {seconds}); }}\n'


def compare(card, folder, seconds):
    """Builds the card's pair and runs it: (JSON text, "") or ("", what went wrong)."""
    language = card.after.language
    suffix = SUFFIXES[language]
    files = {"before": wrapper(card.before), "after": wrapper(card.after), "main": driver(card.after.bench, seconds)}
    for name, text in files.items():
        (folder / (name + suffix)).write_text(text)
    program = folder / "pair"
    sources = [folder / (name + suffix) for name in files]
    well, said = run([*compiler(language, native=True), "-w", f"-I{HERE}", *sources, "-o", program])
    if not well:
        return "", said
    well, said = run([program])
    return (said, "") if well else ("", f"the pair failed: {said}")
