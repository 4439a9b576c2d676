"""Device code for a plain process: the machine code that the contract `device` runs, and a `solve` that launches it.

NVRTC and nvcc make other machine code of half of the corpus (matmul_large_shared has 624 instructions by the one and
816 by the other), so what nvcc makes of a source says nothing of what was judged."""

import ctypes
import functools
import pathlib
import re
import shutil

from gpu_check.clocks import architecture
from gpu_check.common import task_spec

KINDS = {"f32": "float", "i32": "int"}

# The driver is asked for by name, for many hosts have no libcuda.so to link with.
HEAD = """#include <algorithm>
#include <cstdlib>

#include <cuda.h>
#include <dlfcn.h>

using std::max;
using std::min;

static inline int ceil_div(int a, int b) { return (a + b - 1) / b; }

template <class F>
static F driver(const char* name) {
  static void* library = dlopen("libcuda.so.1", RTLD_NOW);
  return reinterpret_cast<F>(dlsym(library, name));
}

static void check(CUresult code) {
  if (code != CUDA_SUCCESS) std::abort();
}

static CUfunction kernel(const char* name, unsigned shared) {
  static CUmodule code = [] {
    CUmodule x{};
    check(driver<decltype(&cuModuleLoad)>("cuModuleLoad")(&x, "CUBIN"));
    return x;
  }();
  CUfunction x{};
  check(driver<decltype(&cuModuleGetFunction)>("cuModuleGetFunction")(&x, code, name));
  if (shared > 0)
    check(driver<decltype(&cuFuncSetAttribute)>("cuFuncSetAttribute")(x, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, shared));
  return x;
}

static void launch(CUfunction kernel, dim3 grid, dim3 block, unsigned shared, void** given) {
  static auto start = driver<decltype(&cuLaunchKernel)>("cuLaunchKernel");
  check(start(kernel, grid.x, grid.y, grid.z, block.x, block.y, block.z, shared, nullptr, given, nullptr));
}

"""  # noqa: E501


@functools.cache
def toolkit():
    return pathlib.Path(shutil.which("nvcc")).resolve().parent.parent


@functools.cache
def nvrtc():
    return ctypes.CDLL(str(next(toolkit().glob("lib*/libnvrtc.so"), "libnvrtc.so")))


def cubin_of(source):
    """As the referee compiles it. Raises ValueError with NVRTC's words."""
    library, program, size = nvrtc(), ctypes.c_void_p(), ctypes.c_size_t()
    library.nvrtcCreateProgram(ctypes.byref(program), source.encode(), b"kernel.cu", 0, None, None)
    options = [
        f"-arch={architecture()}",
        "-std=c++20",
        *(f"--include-path={toolkit() / x}" for x in ("include", "include/cccl")),
    ]
    given = (ctypes.c_char_p * len(options))(*(x.encode() for x in options))
    what = "CUBIN" if library.nvrtcCompileProgram(program, len(options), given) == 0 else "ProgramLog"
    getattr(library, f"nvrtcGet{what}Size")(program, ctypes.byref(size))
    text = ctypes.create_string_buffer(size.value)
    getattr(library, f"nvrtcGet{what}")(program, text)
    library.nvrtcDestroyProgram(ctypes.byref(program))
    if what != "CUBIN":
        raise ValueError(text.value.decode())
    return text.raw


def split(text):
    """Parts between commas that are in no brackets."""
    parts, depth = [""], 0
    for c in text:
        depth += (c in "([{") - (c in ")]}")
        if c == "," and not depth:
            parts.append("")
        else:
            parts[-1] += c
    return [x.strip() for x in parts]


def parameters(source, kernel):
    """The types of a kernel's parameters; of pointers no more than that, for the source may have types of its own."""
    signature = re.search(rf"__global__[^;{{]*?\b{kernel}\(([^)]*)\)", source).group(1)
    return ["void*" if "*" in x else " ".join(x.split()[:-1]) for x in signature.split(",")]


def launcher(source, task, cubin):
    """A source for nvcc whose `solve` launches the machine code in a file, as the lines of `source` say."""
    arguments, body = [], []
    for x in task_spec(task)["arguments"]:
        kind = KINDS.get(x["type"], x["type"])
        arguments.append(
            f"{kind} {x['name']}"
            if x["role"] == "scalar"
            else f"{'const ' if x['role'] == 'input' else ''}{kind}* {x['name']}"
        )
    for name, size in re.findall(r"^// scratch: (\w+)\[(.*)\]\s*$", source, re.M):
        body.append(f"static char* {name} = nullptr;\n  if ({name} == nullptr) cudaMalloc(&{name}, {size});")
    for number, (name, shape, given) in enumerate(re.findall(r"^// launch: (\w+)<<<(.*)>>>\((.*)\)\s*$", source, re.M)):
        grid, block, *rest = split(shape)
        shared = rest[0] if rest else "0"
        types = parameters(source, name)
        values = [f"auto a{i} = ({kind})({x});" for i, (kind, x) in enumerate(zip(types, split(given), strict=True))]
        body.append(
            f'static CUfunction kernel_{number} = kernel("{name}", unsigned({shared}));\n  {{\n    '
            + "\n    ".join(values)
            + f"\n    void* given[] = {{{', '.join(f'&a{i}' for i in range(len(values)))}}};"
            + f"\n    launch(kernel_{number}, dim3({grid}), dim3({block}), unsigned({shared}), given);\n  }}"
        )
    return (
        HEAD.replace("CUBIN", str(cubin), 1)
        + f'extern "C" void solve({", ".join(arguments)}) {{\n  '
        + "\n  ".join(body)
        + "\n}\n"
    )
