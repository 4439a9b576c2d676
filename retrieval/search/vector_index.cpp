#include "retrieval/search/vector_index.hpp"

#include <algorithm>

#include <faiss/IndexFlat.h>
#include <faiss/index_io.h>
#include <fmt/format.h>
#include <omp.h>

namespace kernelmill {

namespace {

// FAISS moved the name of this type between its releases.
using row_number = decltype(faiss::Index::ntotal);

// FAISS would start an OpenMP team in every thread that calls it; a node has other work for its
// cores. The setting belongs to the calling thread and is put back.
class one_omp_thread {
public:
  one_omp_thread() : before_(omp_get_max_threads()) { omp_set_num_threads(1); }
  ~one_omp_thread() { omp_set_num_threads(before_); }
  one_omp_thread(const one_omp_thread&) = delete;
  one_omp_thread& operator=(const one_omp_thread&) = delete;

private:
  int before_;
};

/// The one place where FAISS's and the allocator's exceptions become values.
template <class F>
auto guarded(const char* verb, F&& f) -> expected<decltype(f())> {
  try {
    one_omp_thread guard;
    return f();
  } catch (const std::exception& e) {
    return infrastructure_error("index_failed",
                                fmt::format("failed to {} the vector index: {}", verb, e.what()));
  }
}

} // namespace

struct vector_index::implementation {
  std::unique_ptr<faiss::IndexFlat> flat;
};

vector_index::vector_index(size_t dimension)
    : impl_(std::make_unique<implementation>(implementation{
          std::make_unique<faiss::IndexFlatIP>(static_cast<row_number>(dimension))})) {
  // nop
}

vector_index::vector_index(std::unique_ptr<implementation> x) : impl_(std::move(x)) {
  // nop
}

vector_index::vector_index(vector_index&&) noexcept = default;
vector_index& vector_index::operator=(vector_index&&) noexcept = default;
vector_index::~vector_index() = default;

size_t vector_index::dimension() const {
  return static_cast<size_t>(impl_->flat->d);
}
size_t vector_index::size() const {
  return static_cast<size_t>(impl_->flat->ntotal);
}

expected<void> vector_index::add(const std::vector<float>& rows) {
  if (rows.size() % dimension() != 0)
    return infrastructure_error("index_failed",
                                fmt::format("failed to extend the vector index: {} floats are no "
                                            "rows of {}",
                                            rows.size(), dimension()));
  auto ok = guarded("extend", [&] {
    impl_->flat->add(static_cast<row_number>(rows.size() / dimension()), rows.data());
    return true;
  });
  KM_TRY(ok);
  return {};
}

expected<std::vector<neighbour>> vector_index::search(const std::vector<float>& query,
                                                      size_t count) const {
  if (query.size() != dimension())
    return infrastructure_error("index_failed",
                                fmt::format("failed to search the vector index: the query has {} "
                                            "floats, the index {}",
                                            query.size(), dimension()));
  count = std::min(count, size());
  if (count == 0) return std::vector<neighbour>{};
  return guarded("search", [&] {
    std::vector<float> scores(count);
    std::vector<row_number> rows(count);
    impl_->flat->search(1, query.data(), static_cast<row_number>(count), scores.data(),
                        rows.data());
    std::vector<neighbour> result;
    for (size_t i = 0; i < count; ++i)
      if (rows[i] >= 0) result.push_back({static_cast<size_t>(rows[i]), scores[i]});
    // FAISS's heap leaves the order of equal scores open; answers must replay.
    std::sort(result.begin(), result.end(), [](const neighbour& a, const neighbour& b) {
      return a.score != b.score ? a.score > b.score : a.row < b.row;
    });
    return result;
  });
}

expected<void> vector_index::save(const std::string& path) const {
  auto ok = guarded("save", [&] {
    faiss::write_index(impl_->flat.get(), path.c_str());
    return true;
  });
  KM_TRY(ok);
  return {};
}

expected<vector_index> vector_index::load(const std::string& path) {
  auto loaded = guarded(
      "load", [&] { return std::unique_ptr<faiss::Index>{faiss::read_index(path.c_str())}; });
  KM_TRY(loaded);
  auto* flat = dynamic_cast<faiss::IndexFlat*>(loaded->get());
  if (flat == nullptr || flat->metric_type != faiss::METRIC_INNER_PRODUCT || flat->d <= 0)
    return infrastructure_error("index_failed",
                                fmt::format("failed to load the vector index: {} holds another "
                                            "kind of index",
                                            path),
                                "build it again with `kernelmill index build`");
  loaded->release();
  return vector_index{
      std::make_unique<implementation>(implementation{std::unique_ptr<faiss::IndexFlat>{flat}})};
}

} // namespace kernelmill
