"""Real variants of a tiled matrix product, and a stand-in for a policy that changes them.

A variant is one value for each of seven choices: 768 kernels in C++ for `native/matmul`. Their optimum is known by
measuring all of them. What a choice is worth depends on the others: a copied panel pays only if it is used more than
once, and a large tile only as long as it fits the registers.
"""

import hashlib
import itertools
import re

TASK = "native/matmul"
CHOICES = {
    "kRows": (1, 2, 4, 8),  # of a tile that stays in registers
    "kColumns": (4, 8, 16, 32),
    "kUnroll": (1, 2, 4),  # steps of the inner dimension at a time
    "kPack": ("false", "true"),  # the panel of b that a tile reads is copied together
    "kAcross": ("false", "true"),  # columns of tiles are finished one after another
    "sum_type": ("double", "float"),
    "kLanes": ("rows", "columns"),  # what the inner loop goes along; columns are vectorised
}
PLAIN = (0,) * len(CHOICES)  # the kernel that everything begins with
BROKEN = 0.2  # of the answers do not compile or are wrong
MOST_FRESH = 3  # choices that an answer changes in the plain kernel
MOST_CHANGED = 2  # that it changes in any other

SOURCE = """#include <algorithm>
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
STEPS = {
    "rows": """  for (long s = 0; s < kColumns; ++s)
    for (long r = 0; r < kRows; ++r) sum[r][s] += sum_type(a[r * k]) * b[s];""",
    "columns": """  for (long r = 0; r < kRows; ++r)
#pragma omp simd
    for (long s = 0; s < kColumns; ++s) sum[r][s] += sum_type(a[r * k]) * b[s];""",
}


def source_of(variant):
    """The kernel in C++; `variant` has the position of each choice's value."""
    values = {name: values[at] for at, (name, values) in zip(variant, CHOICES.items(), strict=True)}
    return SOURCE.format(step=STEPS[values["kLanes"]], **values)


def variant_of(source):
    """The variant that a kernel is; None for other text."""
    result = []
    for name, values in CHOICES.items():
        found = re.search(r"Inner loop: (\w+)" if name == "kLanes" else rf"\b{name} = (\w+);", source)
        words = [str(x) for x in values]
        if not found or found[1] not in words:
            return None
        result.append(words.index(found[1]))
    return tuple(result)


def all_variants():
    return list(itertools.product(*(range(len(x)) for x in CHOICES.values())))


def niche_of(variant):
    """As a search reads it off the text (actors/search/search_niche.cpp)."""
    return "simd" if variant[-1] else "plain"


def draw(*what):
    """64 random bits that depend on nothing but `what`."""
    text = ":".join(map(str, what)).encode()
    return int.from_bytes(hashlib.sha256(text).digest()[:8], "little")


def answer(parent, *seed):
    """What the policy makes of a kernel; of the plain one if it is shown none. (kernel, what was changed)"""
    variant = list(parent)
    changes = 1 + draw(*seed, "count") % (MOST_FRESH if parent == PLAIN else MOST_CHANGED)
    order = sorted(range(len(CHOICES)), key=lambda i: draw(*seed, "choice", i))
    changed = []
    for i in order[:changes]:
        name, values = list(CHOICES.items())[i]
        variant[i] = (variant[i] + 1 + draw(*seed, "value", i) % (len(values) - 1)) % len(values)
        changed.append(f"{name} {values[variant[i]]}")
    text = source_of(variant)
    if draw(*seed, "broken") < BROKEN * 2**64:
        wrong = [("sum += double(a[i * k + t])", "sum += 2 * double(a[i * k + t])"), ("long t = 0;", "long t = 0")]
        text = text.replace(*wrong[draw(*seed, "how") % 2], 1)
    return text, ", ".join(changed)
