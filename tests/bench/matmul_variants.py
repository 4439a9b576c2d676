"""Real variants of a tiled matrix product, and a stand-in for a policy that changes them.

A variant is one value for each of seven choices: 768 kernels for `native/matmul` in C++, and as many in CUDA. Their
optimum is known by measuring all of them. What a choice is worth depends on the others: a copied panel pays only if it
is used more than once, and a large tile only as long as it fits the registers.
"""

import dataclasses
import hashlib
import itertools
import re

TASK = "native/matmul"
BROKEN = 0.2  # of the answers do not compile or are wrong
MOST_FRESH = 3  # choices that an answer changes in the plain kernel
MOST_CHANGED = 2  # that it changes in any other

CPP_SOURCE = """#include <algorithm>
#include <vector>

constexpr long kRows = {kRows};
constexpr long kColumns = {kColumns};
constexpr long kUnroll = {kUnroll};
constexpr bool kPack = {kPack};
constexpr bool kAcross = {kAcross};
using sum_type = {sum_type};

// One step of the inner dimension. Inner loop: {kLanes}.
static inline void step(sum_type (&sum)[kRows][kColumns], const float* a, const float* b, long k) {{
{step}
}}

static void tile(const float* a, const float* b, float* c, long n, long k, long stride) {{
  sum_type sum[kRows][kColumns] = {{}};
  long t = 0;
  for (; t + kUnroll <= k; t += kUnroll)
    for (long u = 0; u < kUnroll; ++u) step(sum, a + t + u, b + (t + u) * stride, k);
  for (; t < k; ++t) step(sum, a + t, b + t * stride, k);
  for (long r = 0; r < kRows; ++r)
    for (long s = 0; s < kColumns; ++s) c[r * n + s] = float(sum[r][s]);
}}

static void edge(const float* a, const float* b, float* c, long rows, long columns, long n, long k) {{
  for (long i = 0; i < rows; ++i)
    for (long j = 0; j < columns; ++j) {{
      double sum = 0;
      for (long t = 0; t < k; ++t) sum += double(a[i * k + t]) * b[t * n + j];
      c[i * n + j] = float(sum);
    }}
}}

static void pack(const float* b, float* panel, long n, long k) {{
  for (long t = 0; t < k; ++t) std::copy_n(b + t * n, kColumns, panel + t * kColumns);
}}

static void place(const float* a, const float* b, float* c, float* panel, long i, long j, long m, long n, long k) {{
  const long rows = std::min(kRows, m - i), columns = std::min(kColumns, n - j);
  if (rows < kRows || columns < kColumns) return edge(a + i * k, b + j, c + i * n + j, rows, columns, n, k);
  if (kPack && (!kAcross || i == 0)) pack(b + j, panel, n, k);
  tile(a + i * k, kPack ? panel : b + j, c + i * n + j, n, k, kPack ? kColumns : n);
}}

extern "C" void solve(const float* a, const float* b, float* c, int m, int n, int k) {{
  std::vector<float> panel(kPack ? k * kColumns : 0);
  if (kAcross)
    for (long j = 0; j < n; j += kColumns)
      for (long i = 0; i < m; i += kRows) place(a, b, c, panel.data(), i, j, m, n, k);
  else
    for (long i = 0; i < m; i += kRows)
      for (long j = 0; j < n; j += kColumns) place(a, b, c, panel.data(), i, j, m, n, k);
}}
"""
CPP_STEPS = {
    "rows": """  for (long s = 0; s < kColumns; ++s)
    for (long r = 0; r < kRows; ++r) sum[r][s] += sum_type(a[r * k]) * b[s];""",
    "columns": """  for (long r = 0; r < kRows; ++r)
#pragma omp simd
    for (long s = 0; s < kColumns; ++s) sum[r][s] += sum_type(a[r * k]) * b[s];""",
}
CUDA_SOURCE = """constexpr int kSide = {kSide};
constexpr int kRows = {kRows};
constexpr int kColumns = {kColumns};
constexpr int kDepth = {kDepth};
constexpr bool kPad = {kPad};
constexpr bool kAhead = {kAhead};
constexpr int kTall = kSide * kRows, kWide = kSide * kColumns, kThreads = kSide * kSide;

// Columns of a thread: {kColumnsOf}.
__global__ void __launch_bounds__(kThreads) multiply(const float* a, const float* b, float* c, int m, int n, int k) {{
  __shared__ __align__(16) float left[kDepth][kTall + 4 * kPad], right[kDepth][kWide];
  const long across = (long(n) - 1) / kWide + 1;
  const long top = blockIdx.x / across * kTall, first = blockIdx.x % across * kWide;
  const int tx = threadIdx.x % kSide, ty = threadIdx.x / kSide;
  constexpr int kLeft = (kTall * kDepth - 1) / kThreads + 1, kRight = (kWide * kDepth - 1) / kThreads + 1;
  float u[kLeft], v[kRight], sum[kRows][kColumns] = {{}};

  auto load = [&](long start) {{
#pragma unroll
    for (int e = 0; e < kLeft; ++e) {{
      const int at = threadIdx.x + e * kThreads;
      const long i = top + at / kDepth, t = start + at % kDepth;
      u[e] = at < kTall * kDepth && i < m && t < k ? a[i * k + t] : 0;
    }}
#pragma unroll
    for (int e = 0; e < kRight; ++e) {{
      const int at = threadIdx.x + e * kThreads;
      const long t = start + at / kWide, j = first + at % kWide;
      v[e] = at < kWide * kDepth && t < k && j < n ? b[t * n + j] : 0;
    }}
  }};
  auto store = [&] {{
#pragma unroll
    for (int e = 0; e < kLeft; ++e)
      if (const int at = threadIdx.x + e * kThreads; at < kTall * kDepth) left[at % kDepth][at / kDepth] = u[e];
#pragma unroll
    for (int e = 0; e < kRight; ++e)
      if (const int at = threadIdx.x + e * kThreads; at < kWide * kDepth) right[at / kWide][at % kWide] = v[e];
  }};

  if (kAhead) load(0);
  for (long start = 0; start < k; start += kDepth) {{
    if (!kAhead) load(start);
    store();
    __syncthreads();
    if (kAhead && start + kDepth < k) load(start + kDepth);
#pragma unroll
    for (int t = 0; t < kDepth; ++t) {{
      float l[kRows], r[kColumns];
#pragma unroll
      for (int i = 0; i < kRows; ++i) l[i] = left[t][ty * kRows + i];
{step}
#pragma unroll
      for (int i = 0; i < kRows; ++i)
#pragma unroll
        for (int j = 0; j < kColumns; ++j) sum[i][j] += l[i] * r[j];
    }}
    __syncthreads();
  }}
#pragma unroll
  for (int i = 0; i < kRows; ++i)
#pragma unroll
    for (int j = 0; j < kColumns; ++j) {{
      const long row = top + ty * kRows + i, column = first + {column};
      if (row < m && column < n) c[row * n + column] = sum[i][j];
    }}
}}

extern "C" void solve(const float* a, const float* b, float* c, int m, int n, int k) {{
  const long blocks = ((long(m) - 1) / kTall + 1) * ((long(n) - 1) / kWide + 1);
  multiply<<<unsigned(blocks), kThreads>>>(a, b, c, m, n, k);
}}
"""
CUDA_STEPS = {
    "spread": """#pragma unroll
      for (int j = 0; j < kColumns; ++j) r[j] = right[t][tx + j * kSide];""",
    "adjacent": """      if constexpr (kColumns % 4 == 0) {
#pragma unroll
        for (int j = 0; j < kColumns; j += 4) {
          const float4 four = *reinterpret_cast<const float4*>(&right[t][tx * kColumns + j]);
          r[j] = four.x, r[j + 1] = four.y, r[j + 2] = four.z, r[j + 3] = four.w;
        }
      } else {
#pragma unroll
        for (int j = 0; j < kColumns; ++j) r[j] = right[t][tx * kColumns + j];
      }""",
}


@dataclasses.dataclass(frozen=True)
class Family:
    """768 kernels in one language. The last choice is told by a comment, and decides the text of a step."""

    language: str  # as a code fence names it
    suffix: str
    backend: str
    choices: dict
    source: str
    steps: dict  # of the last choice: what else it puts into the source
    niches: tuple  # of the last choice, as a search reads them off the text (actors/search/search_niche.cpp)
    told: str  # how the comment begins
    wrong: tuple  # (text, its replacement): how an answer is broken

    @property
    def plain(self):
        """The kernel that everything begins with."""
        return (0,) * len(self.choices)

    def source_of(self, variant):
        """The kernel; `variant` has the position of each choice's value."""
        values = {name: values[at] for at, (name, values) in zip(variant, self.choices.items(), strict=True)}
        return self.source.format(**self.steps[list(values.values())[-1]], **values)

    def variant_of(self, source):
        """The variant that a kernel is; None for other text."""
        result, last = [], list(self.choices)[-1]
        for name, values in self.choices.items():
            found = re.search(rf"{self.told}: (\w+)" if name == last else rf"\b{name} = (\w+);", source)
            words = [str(x) for x in values]
            if not found or found[1] not in words:
                return None
            result.append(words.index(found[1]))
        return tuple(result)

    def all_variants(self):
        return list(itertools.product(*(range(len(x)) for x in self.choices.values())))

    def niche_of(self, variant):
        return self.niches[variant[-1]]

    def answer(self, parent, *seed):
        """What the policy makes of a kernel; of the plain one if it is shown none. (kernel, what was changed)"""
        variant = list(parent)
        changes = 1 + draw(*seed, "count") % (MOST_FRESH if parent == self.plain else MOST_CHANGED)
        order = sorted(range(len(self.choices)), key=lambda i: draw(*seed, "choice", i))
        changed = []
        for i in order[:changes]:
            name, values = list(self.choices.items())[i]
            variant[i] = (variant[i] + 1 + draw(*seed, "value", i) % (len(values) - 1)) % len(values)
            changed.append(f"{name} {values[variant[i]]}")
        text = self.source_of(variant)
        if draw(*seed, "broken") < BROKEN * 2**64:
            text = text.replace(*self.wrong[draw(*seed, "how") % len(self.wrong)], 1)
        return text, ", ".join(changed)


def draw(*what):
    """64 random bits that depend on nothing but `what`."""
    text = ":".join(map(str, what)).encode()
    return int.from_bytes(hashlib.sha256(text).digest()[:8], "little")


CPP = Family(
    language="cpp",
    suffix=".cpp",
    backend="cpu",
    choices={
        "kRows": (1, 2, 4, 8),  # of a tile that stays in registers
        "kColumns": (4, 8, 16, 32),
        "kUnroll": (1, 2, 4),  # steps of the inner dimension at a time
        "kPack": ("false", "true"),  # the panel of b that a tile reads is copied together
        "kAcross": ("false", "true"),  # columns of tiles are finished one after another
        "sum_type": ("double", "float"),
        "kLanes": ("rows", "columns"),  # what the inner loop goes along; columns are vectorised
    },
    source=CPP_SOURCE,
    steps={name: {"step": x} for name, x in CPP_STEPS.items()},
    niches=("plain", "simd"),
    told="Inner loop",
    wrong=(
        ("sum += double(a[i * k + t])", "sum += 2 * double(a[i * k + t])"),
        ("long t = 0;", "long t = 0"),
    ),
)
CUDA = Family(
    language="cuda",
    suffix=".cu",
    backend="cuda",
    choices={
        "kSide": (8, 16),  # of the square of threads of a block
        "kRows": (1, 2, 4, 8),  # of the tile that a thread keeps in registers
        "kColumns": (1, 2, 4, 8),
        "kDepth": (8, 16, 32),  # steps of the inner dimension in shared memory
        "kPad": ("false", "true"),  # columns of a's tile spread over the banks
        "kAhead": ("false", "true"),  # the next tile is read while this one is multiplied
        "kColumnsOf": ("spread", "adjacent"),  # adjacent ones are read four at a time
    },
    source=CUDA_SOURCE,
    steps={
        "spread": {"step": CUDA_STEPS["spread"], "column": "tx + j * kSide"},
        "adjacent": {"step": CUDA_STEPS["adjacent"], "column": "tx * kColumns + j"},
    },
    niches=("shared_memory", "shared_memory+vector_loads"),
    told="Columns of a thread",
    wrong=(("sum[i][j] += l[i]", "sum[i][j] += 2 * l[i]"), ("store();\n", "store()\n")),
)
FAMILIES = {x.language: x for x in (CPP, CUDA)}
