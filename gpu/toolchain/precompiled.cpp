#include "gpu/toolchain/precompiled.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>

#include <sys/stat.h>
#include <unistd.h>

#include "gpu/toolchain/build_cache.hpp"
#include "gpu/toolchain/compiler_run.hpp"
#include "messages/base/digest.hpp"
#include "messages/base/files.hpp"
#include "messages/base/text.hpp"

namespace kernelmill {

namespace fs = std::filesystem;

const std::string_view precompiled_header_text = R"(#include <algorithm>
#include <array>
#include <bit>
#include <cfloat>
#include <climits>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <numeric>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>
#include <omp.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif
)";

namespace {

// Those that cost 50 ms and more, whether precompiled themselves or built on such.
constexpr std::array heavy_headers = std::to_array<std::string_view>(
    {"algorithm",     "array",         "chrono",    "cmath",
     "complex",       "deque",         "execution", "experimental/simd",
     "functional",    "immintrin.h",   "iostream",  "map",
     "math.h",        "memory",        "numeric",   "queue",
     "random",        "ranges",        "set",       "span",
     "sstream",       "string",        "thread",    "tuple",
     "unordered_map", "unordered_set", "valarray",  "vector",
     "x86intrin.h"});

constexpr uint64_t build_memory = uint64_t{4} << 30;
constexpr int build_deadline_ms = 300'000;
constexpr uint64_t most_product = uint64_t{1} << 30; // torch's headers: 0.2 GB

// "include <vector>" for "  #  include <vector>"; empty for lines that are no directive.
std::string_view directive(std::string_view line) {
  line = trimmed(line);
  if (line.empty() || line.front() != '#') return {};
  return trimmed(line.substr(1));
}

bool includes_heavy(std::string_view text) {
  auto open = text.find('<');
  auto close = text.find('>', open);
  if (open == text.npos || close == text.npos) return false;
  auto name = trimmed(text.substr(open + 1, close - open - 1));
  return std::find(heavy_headers.begin(), heavy_headers.end(), name) != heavy_headers.end();
}

} // namespace

bool wants_precompiled_headers(std::string_view source) {
  bool heavy = false;
  bool meddled = false;
  while (!source.empty()) {
    auto end = source.find('\n');
    auto text = directive(source.substr(0, end));
    source.remove_prefix(end == source.npos ? source.size() : end + 1);
    if (text.starts_with("include")) {
      if (meddled) return false;
      heavy = heavy || includes_heavy(text);
    } else if (text.starts_with("define") || text.starts_with("undef") ||
               (text.starts_with("pragma") && !text.starts_with("pragma once"))) {
      meddled = true;
    }
  }
  return heavy;
}

precompiled_headers::precompiled_headers(sandbox& walls, std::string directory, std::string key,
                                         std::vector<std::string> compile)
    : walls_(walls), directory_(std::move(directory)), key_(std::move(key)),
      compile_(std::move(compile)) {
  // nop
}

void precompiled_headers::replace_text(std::string text, std::vector<bind_mount> mounts) {
  text_ = std::move(text);
  mounts_ = std::move(mounts);
}

std::string precompiled_headers::find_or_build() {
  std::lock_guard guard{mutex_};
  // Another process may have evicted it since.
  bool vanished = !found_.empty() && ::access((found_ + "/kernelmill.hpp.gch").c_str(), R_OK) != 0;
  if (tried_ && !vanished) return found_;
  tried_ = true;
  found_.clear();
  auto place = directory_ + "/headers-" + key_;
  if (is_whole(place) || build(place)) found_ = place;
  return found_;
}

// The digest is written with the file, so a file cut short by a full disk is noticed.
bool precompiled_headers::is_whole(const std::string& place) const {
  auto binary = read_whole(place + "/kernelmill.hpp.gch");
  auto digest = read_whole(place + "/sha256");
  return binary && digest && sha256_hex(*binary) == *digest;
}

bool precompiled_headers::build(const std::string& place) {
  compiler_job job;
  job.argv = compile_;
  for (auto* x : {"-x", "c++-header", "kernelmill.hpp", "-o", product_path}) job.argv.push_back(x);
  job.source_name = "kernelmill.hpp";
  job.source = text_;
  job.mounts = mounts_;
  job.product_bytes = most_product;
  job.deadline_ms = build_deadline_ms;
  job.memory_bytes = build_memory;
  auto outcome = run_compiler(walls_, job);
  if (!outcome || outcome->status.code != 0) return false;
  auto binary = read_whole(outcome->product.get());
  if (!binary || binary->empty()) return false;
  // Whole before it has its name; whoever comes second throws his own away.
  auto temporary = place + ".XXXXXX";
  if (!::mkdtemp(temporary.data())) return false;
  bool written = write_atomically(temporary + "/kernelmill.hpp", text_, 0444) &&
                 write_atomically(temporary + "/kernelmill.hpp.gch", *binary, 0444) &&
                 write_atomically(temporary + "/sha256", sha256_hex(*binary), 0444);
  ::chmod(temporary.c_str(), 0755); // the compiler runs as another user
  std::error_code failed;
  if (written) fs::rename(temporary, place, failed);
  if (written && failed && !is_whole(place)) {
    // In the way lies something damaged.
    fs::remove_all(place, failed);
    fs::rename(temporary, place, failed);
  }
  std::error_code ignored;
  fs::remove_all(temporary, ignored);
  return is_whole(place);
}

} // namespace kernelmill
