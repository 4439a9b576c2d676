"""Compiles snippets: all of a language as one file, and a pair as a program that compares its two forms."""

import json
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


def namespace_of(snippet):
    return "card_" + re.sub(r"\W", "_", f"{snippet.path.parent.name}_{snippet.path.stem}")


def one_file(language, snippets):
    """The text of one source with each snippet in a namespace of its own, so that one call of the compiler does."""
    parts = [(x, *parts_of(x)) for x in snippets]
    text = PRELUDES[language] + "".join(sorted({y for x in parts for y in x[1]}))
    if language == "hip":  # so that functions that no kernel calls reach the code generator
        text += "#undef __device__\n#define __device__ __attribute__((device, used))\n"
    for x, _, rest in parts:
        text += f'namespace {namespace_of(x)} {{\n#line {2 if x.bench else 1} "{x.path}"\n{rest}\n}}\n'
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


def call_of(snippet):
    """A function that the harness calls, with the snippet's arguments."""
    values = []
    for i, x in enumerate(snippet.bench.arguments):
        if x.type:
            values.append(f"static_cast<{'' if x.out else 'const '}{TYPES[x.type]}*>(a[{i}])")
        else:
            values.append(x.value + ("f" if "." in x.value else ""))
    name = namespace_of(snippet)
    return f'extern "C" void call_{name}(void** a) {{ {name}::f({", ".join(values)}); }}\n'


def main_of(pairs):
    """The source of the program: `pair NUMBER SECONDS` compares the pair of this number."""
    declared, cases = "", ""
    for number, card in enumerate(pairs):
        before, after = (f"call_{namespace_of(x)}" for x in (card.before, card.after))
        declared += f'extern "C" void {before}(void**);\nextern "C" void {after}(void**);\n'
        rows = []
        for x in card.after.bench.arguments:
            count, kind = (x.count, x.type) if x.type else (1, "int")
            rows.append(f'{{"{kind}", {count}, sizeof({TYPES[kind]}), {str(x.out).lower()}, {x.below or 100}}}')
        cases += f"  case {number}: return cards::compare({{{', '.join(rows)}}}, {before}, {after}, seconds);\n"
    return (
        f'#include "harness.hpp"\n#include <cstdlib>\n{declared}int main(int, char** words) {{\n'
        f"  double seconds = std::atof(words[2]);\n  switch (std::atoi(words[1])) {{\n{cases}  }}\n  return 1;\n}}\n"
    )


def build_pairs(pairs, folder):
    """Builds one program of all pairs, which are of one language: what the compiler said, or ""."""
    language = pairs[0].after.language
    suffix = SUFFIXES[language]
    snippets = [y for x in pairs for y in (x.before, x.after)]
    # Two sources, so that no call is inlined into the loop that times it.
    files = {"pairs": one_file(language, snippets) + "".join(map(call_of, snippets)), "main": main_of(pairs)}
    for name, text in files.items():
        (folder / (name + suffix)).write_text(text)
    sources = [folder / (name + suffix) for name in files]
    well, said = run([*compiler(language, native=True), "-w", f"-I{HERE}", *sources, "-o", folder / "pair"])
    return "" if well else said or "the compiler failed"


def compare(number, folder, seconds):
    """Runs the program of build_pairs for one pair: what harness.hpp prints, or {"failed": why}."""
    well, said = run([folder / "pair", str(number), str(seconds)])
    return json.loads(said) if well else {"failed": f"the pair failed: {said}"}
