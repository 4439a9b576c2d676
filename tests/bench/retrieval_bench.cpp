// Searches of 50,000 rows of 768 floats, and of an index of 50,000 kernels, in one run:
//   retrieval_bench [--quick]
//
// Beside the product's own search stand FAISS's flat index (exact, too) and its HNSW (a graph),
// each as Debian builds it. HNSW takes minutes to build on random rows, where it finds next to
// nothing: of those it gets 10,000. Recall is the share of FAISS Flat's ten best. --quick: a tenth
// of everything.

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <memory>
#include <random>
#include <set>
#include <thread>

#include <faiss/IndexFlat.h>
#include <faiss/IndexHNSW.h>
#include <faiss/index_io.h>
#include <fmt/format.h>
#include <omp.h>

#include "retrieval/search/embedder.hpp"
#include "retrieval/search/index.hpp"
#include "retrieval/search/vector_index.hpp"

namespace kernelmill {

namespace {

using faiss_row = decltype(faiss::Index::ntotal);

constexpr size_t dimension = 768, best = 10;

double now() {
  using namespace std::chrono;
  return duration<double>(steady_clock::now().time_since_epoch()).count();
}

template <class F>
double seconds_of(F&& f) {
  auto start = now();
  f();
  return now() - start;
}

template <class T>
T must(expected<T> x) {
  if (x) return std::move(*x);
  fmt::print(stderr, "retrieval_bench: {}\n", render(x.error()));
  std::exit(1);
}

std::vector<float> random_rows(size_t count, unsigned seed) {
  std::mt19937 engine{seed};
  std::normal_distribution<float> normal;
  std::vector<float> rows(count * dimension);
  for (auto& x : rows) x = normal(engine);
  for (size_t i = 0; i < count; ++i) normalize(&rows[i * dimension], dimension);
  return rows;
}

/// Rows around one centre for each hundred, as texts of alike subjects lie.
std::vector<float> clustered_rows(size_t count, size_t groups, unsigned seed) {
  auto centres = random_rows(groups, 77), rows = random_rows(count, seed);
  std::mt19937 engine{seed};
  for (size_t i = 0; i < count; ++i) {
    const auto* centre = &centres[engine() % groups * dimension];
    for (size_t k = 0; k < dimension; ++k) {
      auto& x = rows[i * dimension + k];
      x = centre[k] + 0.7F * x;
    }
    normalize(&rows[i * dimension], dimension);
  }
  return rows;
}

using found = std::vector<std::vector<size_t>>; // of each query

double recall(const found& got, const found& want) {
  size_t hits = 0, all = 0;
  for (size_t i = 0; i < want.size(); ++i) {
    std::set<size_t> right(want[i].begin(), want[i].end());
    all += right.size();
    for (auto row : got[i]) hits += right.contains(row);
  }
  return static_cast<double>(hits) / static_cast<double>(all);
}

/// Something that finds the best of one query or of many.
struct searcher {
  std::string name;
  double build = 0, load = 0;
  std::function<found(const float* queries, size_t count)> search;
  bool own_threads = false; ///< it takes two for many queries itself
};

void measure(const searcher& x, const std::vector<float>& queries, const found* want,
             found* answer = nullptr) {
  auto count = queries.size() / dimension;
  std::vector<double> times;
  found got;
  for (size_t i = 0; i < count; ++i)
    times.push_back(
        seconds_of([&] { got.push_back(x.search(&queries[i * dimension], 1).front()); }));
  std::sort(times.begin(), times.end());
  auto many = seconds_of([&] {
    if (x.own_threads) {
      x.search(queries.data(), count);
      return;
    }
    std::thread half{[&] { x.search(queries.data(), count / 2); }};
    x.search(&queries[count / 2 * dimension], count - count / 2);
    half.join();
  });
  fmt::print("  {:<22} {:>8.2f} {:>9.1f} {:>8.2f} {:>8.2f} {:>10.0f} {:>7.4f}\n", x.name, x.build,
             1e3 * x.load, 1e3 * times[count / 2], 1e3 * times[count * 99 / 100],
             static_cast<double>(count) / many, want ? recall(got, *want) : 1.0);
  if (answer) *answer = std::move(got);
}

searcher of_the_product(const std::vector<float>& rows, const std::string& folder) {
  searcher result{"kernelmill", 0, 0, {}, false};
  vector_index built{dimension};
  result.build = seconds_of([&] {
    if (auto added = built.add(rows); !added) std::exit(1);
  });
  auto file = folder + "/rows";
  auto digest = must(built.save(file));
  std::shared_ptr<vector_index> index;
  result.load = seconds_of(
      [&] { index = std::make_shared<vector_index>(must(vector_index::load(file, digest))); });
  result.search = [index](const float* queries, size_t count) {
    found answer;
    for (const auto& hits : must(index->search_all({queries, queries + count * dimension}, best))) {
      auto& to = answer.emplace_back();
      for (const auto& hit : hits) to.push_back(hit.row);
    }
    return answer;
  };
  return result;
}

searcher of_faiss(std::string name, std::shared_ptr<faiss::Index> index,
                  const std::vector<float>& rows, const std::string& folder) {
  searcher result{std::move(name), 0, 0, {}, true};
  omp_set_num_threads(2);
  result.build =
      seconds_of([&] { index->add(static_cast<faiss_row>(rows.size() / dimension), rows.data()); });
  auto file = folder + "/faiss";
  faiss::write_index(index.get(), file.c_str());
  result.load = seconds_of([&] { std::unique_ptr<faiss::Index>{faiss::read_index(file.c_str())}; });
  result.search = [index](const float* queries, size_t count) {
    std::vector<float> scores(count * best);
    std::vector<faiss_row> labels(count * best);
    omp_set_num_threads(count == 1 ? 1 : 2);
    index->search(static_cast<faiss_row>(count), queries, best, scores.data(), labels.data());
    found answer(count);
    for (size_t i = 0; i < labels.size(); ++i)
      answer[i / best].push_back(static_cast<size_t>(labels[i]));
    return answer;
  };
  return result;
}

void compare(const std::string& name, const std::vector<float>& rows,
             const std::vector<float>& queries, bool with_graph, const std::string& folder) {
  fmt::print("\n{} {} rows of {}, {} queries\n", rows.size() / dimension, name, dimension,
             queries.size() / dimension);
  fmt::print("  {:<22} {:>8} {:>9} {:>8} {:>8} {:>10} {:>7}\n", "", "build s", "load ms", "p50 ms",
             "p99 ms", "2 thr. q/s", "recall");
  found exact;
  measure(of_faiss("FAISS Flat", std::make_shared<faiss::IndexFlatIP>(dimension), rows, folder),
          queries, nullptr, &exact);
  measure(of_the_product(rows, folder), queries, &exact);
  if (!with_graph) return;
  auto graph = std::make_shared<faiss::IndexHNSWFlat>(dimension, 32, faiss::METRIC_INNER_PRODUCT);
  auto x = of_faiss("FAISS HNSW32 ef 16", graph, rows, folder);
  for (int ef : {16, 64, 256}) {
    graph->hnsw.efSearch = ef;
    x.name = fmt::format("FAISS HNSW32 ef {}", ef);
    measure(x, queries, &exact);
  }
}

// -- an index with texts ----------------------------------------------------------------------

/// Code in the shape of what corpora hold: 2 to 5 KB of lines over few operators and many names.
std::string code_of(std::mt19937& engine) {
  static const char* const operators[] = {
      "matmul", "softmax",  "layer_norm", "relu",   "gelu",    "conv2d",    "max_pool",  "sum",
      "mean",   "cumsum",   "scan",       "gather", "scatter", "attention", "transpose", "sigmoid",
      "tanh",   "rms_norm", "batch_norm", "argmax", "top_k",   "dropout",   "embedding", "einsum"};
  static const char* const words[] = {"row", "tile", "block", "mask",   "offset", "stride", "warp",
                                      "acc", "lane", "chunk", "shared", "weight", "bias",   "grid"};
  auto any = [&](const auto& of) { return of[engine() % std::size(of)]; };
  auto main = any(operators), second = any(operators);
  auto text =
      fmt::format("def {}_{}_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):\n", main, second);
  for (size_t lines = 40 + engine() % 60; lines > 0; --lines)
    text += fmt::format("    {}_{}{} = tl.load({}_ptr + {}_{} * {} + {}(x, {}))\n", any(words),
                        any(words), engine() % 10, any(words), any(words), engine() % 100,
                        engine() % 4096, engine() % 4 ? main : any(operators), engine() % 64);
  return text;
}

void measure_index(size_t kernels, const std::string& cards, const std::string& folder) {
  std::mt19937 engine{5};
  index_options options;
  options.knowledge = cards;
  options.directory = folder + "/index";
  size_t bytes = 0;
  for (size_t i = 0; i < kernels; ++i) {
    kernel_example x;
    x.task = fmt::format("corpus/{}", i);
    x.operator_family = "reduction";
    x.backend = "cuda";
    x.source = code_of(engine);
    x.id = fmt::format("row-{}", i);
    x.language = "triton";
    x.split = "train";
    bytes += x.source.size();
    options.kernels.push_back(std::move(x));
  }
  fmt::print("\nindex of {} kernels, {} MB of code, built-in embedder\n", kernels, bytes >> 20);
  fmt::print("  build {:.1f} s\n", seconds_of([&] { must(build_index(options)); }));
  options.kernels.clear();
  auto start = now();
  auto index = must(open_index(options.directory));
  fmt::print("  load {:.0f} ms\n", 1e3 * (now() - start));
  std::vector<std::string> queries;
  for (size_t i = 0; i < 400; ++i) queries.push_back(code_of(engine));
  auto ask = [&](size_t begin, size_t end, std::vector<double>& times) {
    for (size_t i = begin; i < end; ++i)
      times.push_back(seconds_of([&] {
        must(index.query({queries[i], {}, 4, "task", "reduction", "cuda", {}}));
      }));
  };
  std::vector<double> times;
  auto alone = seconds_of([&] { ask(0, queries.size(), times); });
  std::sort(times.begin(), times.end());
  fmt::print("  query p50 {:.2f} ms, p99 {:.2f} ms; {:.0f} a second on one thread\n",
             1e3 * times[times.size() / 2], 1e3 * times[times.size() * 99 / 100],
             static_cast<double>(queries.size()) / alone);
}

int bench(bool quick) {
  const size_t rows = quick ? 5000 : 50000, few = quick ? 1000 : 10000, asked = quick ? 50 : 200;
  auto folder = (std::filesystem::temp_directory_path() / "kernelmill-bench-XXXXXX").string();
  if (::mkdtemp(folder.data()) == nullptr) return 1;
  auto queries = random_rows(asked, 2);
  compare("random", random_rows(rows, 1), queries, false, folder);
  compare("random", random_rows(few, 1), queries, true, folder);
  compare("clustered", clustered_rows(rows, rows / 100, 3), clustered_rows(asked, rows / 100, 4),
          true, folder);
  const char* root = std::getenv("KERNELMILL_SOURCE_DIR");
  measure_index(rows, std::string{root ? root : "."} + "/configs/knowledge", folder);
  std::error_code ignored;
  std::filesystem::remove_all(folder, ignored);
  return 0;
}

} // namespace

} // namespace kernelmill

int main(int argc, char** argv) {
  return kernelmill::bench(argc > 1 && std::string_view{argv[1]} == "--quick");
}
