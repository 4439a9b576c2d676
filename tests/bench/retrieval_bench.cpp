// Searches of 50,000 rows of 768 floats, and of an index of 50,000 kernels, in one run:
//   retrieval_bench [--quick] [--index]
//
// Beside the product's own search stand FAISS's flat index (exact, too) and its HNSW (a graph),
// each as Debian builds it. HNSW takes minutes to build on random rows, where it finds next to
// nothing: of those it gets 10,000. Recall is the share of FAISS Flat's ten best. --quick: a tenth
// of everything; --index: the index of kernels alone.

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <memory>
#include <numeric>
#include <random>
#include <set>
#include <thread>

#include <faiss/IndexFlat.h>
#include <faiss/IndexHNSW.h>
#include <faiss/index_io.h>
#include <fmt/format.h>
#include <omp.h>

#include "retrieval/search/bm25.hpp"
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

/// Of this thread or of all: what other work on the machine takes does not count.
double processor_seconds(clockid_t of = CLOCK_THREAD_CPUTIME_ID) {
  timespec x{};
  ::clock_gettime(of, &x);
  return static_cast<double>(x.tv_sec) + 1e-9 * static_cast<double>(x.tv_nsec);
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

template <class T>
const auto& any_of(std::mt19937& engine, const T& of) {
  return of[engine() % std::size(of)];
}

constexpr const char* operators[] = {
    "matmul", "softmax",  "layer_norm", "relu",   "gelu",    "conv2d",    "max_pool",  "sum",
    "mean",   "cumsum",   "scan",       "gather", "scatter", "attention", "transpose", "sigmoid",
    "tanh",   "rms_norm", "batch_norm", "argmax", "top_k",   "dropout",   "embedding", "einsum"};

/// Code in the shape of what corpora hold: 2 to 5 KB of lines over few operators and many names.
/// Lines differ by more than names, as the guard sees them.
std::string code_of(std::mt19937& engine) {
  static const char* const words[] = {"row", "tile", "block", "mask",   "offset", "stride", "warp",
                                      "acc", "lane", "chunk", "shared", "weight", "bias",   "grid"};
  static const char* const calls[] = {"tl.load",   "tl.dot",     "tl.sum",   "tl.max",
                                      "tl.where",  "tl.exp",     "tl.log",   "tl.zeros",
                                      "tl.arange", "tl.maximum", "tl.store", "tl.program_id",
                                      "tl.trans",  "tl.cdiv",    "tl.sqrt",  "tl.atomic_add"};
  static const char* const signs[] = {" + ", " - ", " * ", " / ", " % ", " < ", " & ", ", "};
  auto main = any_of(engine, operators), second = any_of(engine, operators);
  auto text =
      fmt::format("def {}_{}_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):\n", main, second);
  auto term = [&] {
    auto name = fmt::format("{}_{}{}", any_of(engine, words), any_of(engine, words), engine() % 10);
    switch (engine() % 4) {
      case 0: return std::to_string(engine() % 4096);
      case 1: return name + "[" + any_of(engine, words) + "]";
      case 2: return fmt::format("{}({})", engine() % 2 ? main : any_of(engine, operators), name);
      default: return name;
    }
  };
  for (size_t lines = 40 + engine() % 60; lines > 0; --lines)
    text += fmt::format("    {} = {}({}{}{}{}{})\n", term(), any_of(engine, calls), term(),
                        any_of(engine, signs), term(), any_of(engine, signs), term());
  return text;
}

/// A problem in the shape of KernelBench's and KernelBook's: a module of a few layers, 1 KB.
std::string reference_of(std::mt19937& engine) {
  std::string layers, calls;
  for (size_t i = 0, count = 2 + engine() % 6; i < count; ++i) {
    auto name = any_of(engine, operators);
    layers += fmt::format("        self.layer{} = nn.{}({}, {})\n", i, name, 1 << engine() % 11,
                          1 << engine() % 11);
    calls += fmt::format("        x = torch.{}(self.layer{}(x), dim={})\n",
                         any_of(engine, operators), i, engine() % 4);
  }
  return fmt::format("import torch\nimport torch.nn as nn\n\n\nclass Model(nn.Module):\n"
                     "    def __init__(self, features):\n        super().__init__()\n{}\n"
                     "    def forward(self, x):\n{}        return x\n\n\n"
                     "def get_inputs():\n    return [torch.rand({}, {}, {})]\n\n\n"
                     "def get_init_inputs():\n    return [{}]\n",
                     layers, calls, 1 << engine() % 8, 1 << engine() % 9, 1 << engine() % 12,
                     1 << engine() % 10);
}

std::vector<kernel_example> random_kernels(size_t count, std::mt19937& engine) {
  std::vector<kernel_example> result;
  for (size_t i = 0; i < count; ++i) {
    kernel_example x;
    x.id = fmt::format("corpus/{}", i);
    x.task = fmt::format("corpus/problem_{}", i);
    x.operator_family = "reduction";
    x.backend = "cuda";
    x.source = code_of(engine);
    x.reference = reference_of(engine);
    x.language = "python";
    x.origin = "a corpus";
    x.split = "train";
    result.push_back(std::move(x));
  }
  return result;
}

double median(std::vector<double>& times) {
  std::sort(times.begin(), times.end());
  return times[times.size() / 2];
}

/// Search by words alone, over the kernels' texts.
void measure_words(const std::vector<kernel_example>& kernels, const std::string& folder) {
  bm25_index built;
  auto terms_of = [](const kernel_example& x) {
    term_list terms;
    add_words(terms, x.reference);
    add_words(terms, x.source);
    return terms;
  };
  auto build = seconds_of([&] {
    for (const auto& x : kernels) built.add(terms_of(x));
  });
  auto file = folder + "/words";
  auto digest = must(built.save(file));
  auto load = seconds_of([&] { must(bm25_index::load(file, digest)); });
  auto index = must(bm25_index::load(file, digest));
  std::mt19937 engine{6};
  std::vector<double> times;
  for (const auto& x : random_kernels(400, engine)) {
    auto terms = terms_of(x);
    times.push_back(seconds_of([&] { index.search(terms, 32); }));
  }
  auto middle = median(times);
  fmt::print("  by words alone (BM25): build {:.1f} s, load {:.1f} ms, query p50 {:.3f} ms, "
             "p99 {:.3f} ms\n",
             build, 1e3 * load, 1e3 * middle, 1e3 * times[times.size() * 99 / 100]);
}

/// Queries that no cache knows: a reference and a prompt each, from `threads` threads.
void measure_queries(const loaded_index& index, size_t threads, size_t each) {
  std::vector<std::vector<retrieval_query>> queries(threads);
  std::mt19937 engine{static_cast<unsigned>(7 + threads)};
  for (auto& mine : queries)
    for (size_t i = 0; i < each; ++i)
      mine.push_back({"Write a kernel that computes what the module does.\n" + reference_of(engine),
                      reference_of(engine),
                      4,
                      fmt::format("task{}", i % 40),
                      "reduction",
                      "cuda",
                      {},
                      {}});
  std::vector<std::vector<double>> times(threads);
  std::vector<double> processor(threads);
  auto all = seconds_of([&] {
    std::vector<std::thread> working;
    for (size_t i = 0; i < threads; ++i)
      working.emplace_back([&, i] {
        for (const auto& x : queries[i])
          times[i].push_back(seconds_of([&] { must(index.query(x)); }));
        processor[i] = processor_seconds();
      });
    for (auto& x : working) x.join();
  });
  auto middle = median(times[0]);
  fmt::print("  fused, {} thread{}: query p50 {:.2f} ms, p99 {:.2f} ms; {:.0f} distinct queries a "
             "second, {:.2f} ms of a processor each\n",
             threads, threads == 1 ? "" : "s", 1e3 * middle,
             1e3 * times[0][times[0].size() * 99 / 100], static_cast<double>(threads * each) / all,
             1e3 * std::accumulate(processor.begin(), processor.end(), 0.0) /
                 static_cast<double>(threads * each));
}

void measure_index(size_t count, const std::string& cards, const std::string& folder) {
  std::mt19937 engine{5};
  index_options options{cards, folder + "/index", random_kernels(count, engine), {}};
  size_t bytes = 0;
  for (const auto& x : options.kernels) bytes += x.source.size() + x.reference.size();
  fmt::print("\nindex of {} kernels with references, {} MB of code, built-in embedder\n", count,
             bytes >> 20);
  measure_words(options.kernels, folder);
  fmt::print("  build {:.1f} s\n", seconds_of([&] { must(build_index(options)); }));
  options.kernels.clear();
  std::vector<double> loads;
  auto before = processor_seconds(CLOCK_PROCESS_CPUTIME_ID);
  for (int i = 0; i < 5; ++i)
    loads.push_back(seconds_of([&] { must(open_index(options.directory)); }));
  auto processor = processor_seconds(CLOCK_PROCESS_CPUTIME_ID) - before;
  auto middle = median(loads);
  fmt::print("  load {:.0f} ms (of five, {:.0f} to {:.0f}), {:.0f} ms of a processor\n",
             1e3 * middle, 1e3 * loads.front(), 1e3 * loads.back(), 1e3 * processor / 5);
  auto index = must(open_index(options.directory));
  measure_queries(index, 1, 400);
  measure_queries(index, 2, 400);
}

int bench(bool quick, bool index_alone) {
  const size_t rows = quick ? 5000 : 50000, few = quick ? 1000 : 10000, asked = quick ? 50 : 200;
  auto folder = (std::filesystem::temp_directory_path() / "kernelmill-bench-XXXXXX").string();
  if (::mkdtemp(folder.data()) == nullptr) return 1;
  if (!index_alone) {
    auto queries = random_rows(asked, 2);
    compare("random", random_rows(rows, 1), queries, false, folder);
    compare("random", random_rows(few, 1), queries, true, folder);
    compare("clustered", clustered_rows(rows, rows / 100, 3), clustered_rows(asked, rows / 100, 4),
            true, folder);
  }
  const char* root = std::getenv("KERNELMILL_SOURCE_DIR");
  measure_index(rows, std::string{root ? root : "."} + "/configs/knowledge", folder);
  std::error_code ignored;
  std::filesystem::remove_all(folder, ignored);
  return 0;
}

} // namespace

} // namespace kernelmill

int main(int argc, char** argv) {
  auto given = [&](std::string_view option) {
    return std::count(argv + 1, argv + argc, option) > 0;
  };
  return kernelmill::bench(given("--quick"), given("--index"));
}
