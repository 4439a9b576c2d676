#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "messages/error.hpp"
#include "retrieval/search/index.hpp"

namespace kernelmill::test {

inline std::string knowledge_folder() {
  const char* root = std::getenv("KERNELMILL_SOURCE_DIR");
  return std::string{root != nullptr ? root : "."} + "/configs/knowledge";
}

/// A folder that goes away with its owner.
class temporary_folder {
public:
  temporary_folder() {
    auto pattern = (std::filesystem::temp_directory_path() / "kernelmill-test-XXXXXX").string();
    path_ = ::mkdtemp(pattern.data());
  }
  ~temporary_folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  temporary_folder(const temporary_folder&) = delete;
  temporary_folder& operator=(const temporary_folder&) = delete;

  const std::string& path() const { return path_; }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }

  void write(const std::string& name, const std::string& text) const {
    std::filesystem::create_directories(std::filesystem::path{*this / name}.parent_path());
    std::ofstream{*this / name, std::ios::binary} << text;
  }

private:
  std::string path_;
};

/// A well-formed card.
inline std::string card_text(const std::string& id, const std::string& body,
                             const std::string& family = "reduction") {
  return "---\nid: " + id + "\ntitle: About " + id +
         "\nkind: operator\noperator_family: " + family + "\nbackends: cpu\ntags: test\n---\n" +
         body + "\n";
}

template <class T>
std::string failure(const expected<T>& x) {
  return x ? "" : x.error().category + ": " + render(x.error());
}

// Kernels that the tests take as verified. The second is the first in other words.
inline const std::string row_sum_kernel = R"(
#include <cstddef>
extern "C" void solve(const float* x, float* y, int rows, int cols) {
  for (int r = 0; r < rows; ++r) {
    const float* row = x + static_cast<size_t>(r) * cols;
    float a = 0, b = 0, c = 0, d = 0;
    int i = 0;
    for (; i + 4 <= cols; i += 4) {
      a += row[i];
      b += row[i + 1];
      c += row[i + 2];
      d += row[i + 3];
    }
    for (; i < cols; ++i) a += row[i];
    y[r] = (a + b) + (c + d);
  }
}
)";

inline const std::string row_sum_renamed = R"(
// a summation, written from scratch
#include <cstddef>
extern "C" void solve(const float* __restrict input, float* __restrict output, int m, int n)
{
    for (int line = 0; line < m; ++line)
    {
        const float* p = input + static_cast<size_t>(line) * n;
        float s0 = 0.0f, s1 = 0.0f, s2 = 0.0f, s3 = 0.0f; /* four chains */
        int k = 0;
        for (; k + 4 <= n; k += 4)
        {
            s0 += p[k]; s1 += p[k + 1];
            s2 += p[k + 2]; s3 += p[k + 3];
        }
        for (; k < n; ++k) s0 += p[k];
        output[line] = (s0 + s1) + (s2 + s3);
    }
}
)";

inline const std::string transpose_kernel = R"(
#include <algorithm>
extern "C" void solve(const float* x, float* y, int rows, int cols) {
  constexpr int tile = 32;
  #pragma omp parallel for
  for (int r0 = 0; r0 < rows; r0 += tile)
    for (int c0 = 0; c0 < cols; c0 += tile)
      for (int c = c0; c < std::min(c0 + tile, cols); ++c)
        for (int r = r0; r < std::min(r0 + tile, rows); ++r)
          y[static_cast<long>(c) * rows + r] = x[static_cast<long>(r) * cols + c];
}
)";

inline const std::string row_max_kernel = R"(
#include <cmath>
extern "C" void solve(const float* x, float* y, int rows, int cols) {
  for (int r = 0; r < rows; ++r) {
    float best = -INFINITY;
    for (int i = 0; i < cols; ++i) best = fmaxf(best, x[(long)r * cols + i]);
    y[r] = best;
  }
}
)";

/// A kernel that a turn verified.
inline kernel_example verified(std::string task, std::string source, std::string id,
                               double speedup = 1.5) {
  kernel_example x;
  x.id = std::move(id);
  x.task = std::move(task);
  x.operator_family = "reduction";
  x.source = std::move(source);
  x.speedup = speedup;
  return x;
}

/// A query in words.
inline retrieval_query about(std::string text, size_t count, std::string task = {},
                             std::string family = {}, std::string backend = {}) {
  return {std::move(text),    {}, count, std::move(task), std::move(family),
          std::move(backend), {}, {}};
}

} // namespace kernelmill::test
