#include "retrieval/search/vector_index.hpp"

#include <algorithm>
#include <functional>
#include <limits>

#include <fmt/format.h>

#include "retrieval/search/byte_rows.hpp"
#include "retrieval/search/vector_rows.hpp"

namespace kernelmill {

namespace {

constexpr size_t block_rows = 1024;  // of a block that grows
constexpr size_t rows_at_once = 128; // of one pass of several queries: they stay in the cache

tl::unexpected<error> failed(const char* verb, const std::string& cause) {
  return infrastructure_error("index_failed",
                              fmt::format("failed to {} the vector index: {}", verb, cause));
}

tl::unexpected<error> other_dimension(size_t query, size_t index) {
  return failed("search", fmt::format("the query has {} floats, the index {}", query, index));
}

struct rounded_query {
  const float* floats;
  std::vector<int8_t> codes;
  byte_row facts;
  float doubt;   ///< times a row's norm: what may be off by this query
  int32_t shift; ///< rows lie 128 too high
};

rounded_query rounded(const float* floats, size_t dimension) {
  rounded_query x{floats, std::vector<int8_t>(byte_row_stride(dimension)), {}, 0, 0};
  x.facts = round_row(floats, dimension, x.codes.data());
  x.doubt = x.facts.error + inner_product_error(dimension) * x.facts.norm;
  for (auto code : x.codes) x.shift += 128 * code;
  return x;
}

/// The rows that may be among the best `most` of one query: those whose score may reach what
/// `most` others reach at least.
class contenders {
public:
  contenders(size_t most, size_t dimension) : most_(most), dimension_(dimension) {}

  void take(const rounded_query& query, const row_block& of, size_t begin, size_t count,
            const int32_t* products) {
    for (size_t i = 0; i < count; ++i) {
      auto row = begin + i;
      float score =
          query.facts.scale * of.scales[row] * static_cast<float>(products[i] - query.shift);
      float doubt = query.facts.norm * of.errors[row] + query.doubt * of.norms[row];
      if (score + doubt >= least_) keep(of, row, score - doubt, score + doubt);
    }
  }

  /// Compares the floats. Nothing is left out that could be among the best.
  std::vector<neighbour> best(const rounded_query& query) {
    std::sort(found_.begin(), found_.end(),
              [](const contender& a, const contender& b) { return a.at_most > b.at_most; });
    std::vector<neighbour> result;
    lows_.clear(); // from here on what the best have
    for (const auto& x : found_) {
      if (lows_.size() == most_ && x.at_most < lows_.front()) break;
      auto score = inner_product(query.floats, x.floats, dimension_);
      result.push_back({x.row, score});
      raise(score);
    }
    std::sort(result.begin(), result.end(), [](const neighbour& a, const neighbour& b) {
      return a.score != b.score ? a.score > b.score : a.row < b.row;
    });
    if (result.size() > most_) result.resize(most_);
    return result;
  }

private:
  struct contender {
    size_t row;
    float at_most;
    const float* floats;
  };

  void keep(const row_block& of, size_t row, float at_least, float at_most) {
    found_.push_back({of.first + row, at_most, of.floats + row * dimension_});
    if (raise(at_least)) least_ = lows_.front();
  }

  /// Says whether there are `most` scores by now. The least of the greatest stands first.
  bool raise(float score) {
    if (lows_.size() < most_) {
      lows_.push_back(score);
      std::push_heap(lows_.begin(), lows_.end(), std::greater<>{});
    } else if (score > lows_.front()) {
      std::pop_heap(lows_.begin(), lows_.end(), std::greater<>{});
      lows_.back() = score;
      std::push_heap(lows_.begin(), lows_.end(), std::greater<>{});
    }
    return lows_.size() == most_;
  }

  size_t most_, dimension_;
  float least_ = -std::numeric_limits<float>::infinity();
  std::vector<float> lows_;
  std::vector<contender> found_;
};

} // namespace

struct vector_index::implementation {
  size_t dimension = 0;
  size_t size = 0;
  std::vector<row_block> blocks;
};

vector_index::vector_index(size_t dimension) : impl_(std::make_unique<implementation>()) {
  impl_->dimension = dimension;
}

vector_index::vector_index(std::unique_ptr<implementation> x) : impl_(std::move(x)) {
  // nop
}

vector_index::vector_index(vector_index&&) noexcept = default;
vector_index& vector_index::operator=(vector_index&&) noexcept = default;
vector_index::~vector_index() = default;

size_t vector_index::dimension() const {
  return impl_->dimension;
}
size_t vector_index::size() const {
  return impl_->size;
}

expected<void> vector_index::add(const std::vector<float>& rows) {
  auto dimension = impl_->dimension;
  if (dimension == 0 || dimension > max_byte_row_dimension || rows.size() % dimension != 0)
    return failed("extend", fmt::format("{} floats are no rows of {}", rows.size(), dimension));
  auto count = rows.size() / dimension;
  for (size_t i = 0; i < count; ++i)
    if (!can_round(rows.data() + i * dimension, dimension))
      return failed("extend", "a row holds a number that is not finite");
  for (size_t done = 0; done < count;) {
    auto& blocks = impl_->blocks;
    if (blocks.empty() || blocks.back().count == blocks.back().room) {
      auto block = new_row_block(impl_->size, std::max(count - done, block_rows), dimension);
      if (!block.memory) return failed("extend", "memory is used up");
      blocks.push_back(std::move(block));
    }
    auto& to = blocks.back();
    for (; done < count && to.count < to.room; ++done, ++to.count, ++impl_->size) {
      const auto* row = rows.data() + done * dimension;
      auto facts = round_row(row, dimension, to.codes + to.count * byte_row_stride(dimension));
      to.scales[to.count] = facts.scale;
      to.errors[to.count] = facts.error;
      to.norms[to.count] = facts.norm;
      std::copy_n(row, dimension, to.floats + to.count * dimension);
    }
  }
  return {};
}

expected<std::vector<neighbour>> vector_index::search(const std::vector<float>& query,
                                                      size_t count) const {
  if (query.size() != impl_->dimension) return other_dimension(query.size(), impl_->dimension);
  auto all = search_all(query, count);
  KM_TRY(all);
  return std::move(all->front());
}

expected<std::vector<std::vector<neighbour>>>
vector_index::search_all(const std::vector<float>& queries, size_t count) const {
  auto dimension = impl_->dimension, stride = byte_row_stride(dimension);
  if (dimension == 0 || queries.size() % dimension != 0)
    return other_dimension(queries.size(), dimension);
  std::vector<rounded_query> asked;
  for (size_t at = 0; at < queries.size(); at += dimension) {
    if (!can_round(queries.data() + at, dimension))
      return failed("search", "the query holds a number that is not finite");
    asked.push_back(rounded(queries.data() + at, dimension));
  }
  std::vector<std::vector<neighbour>> result(asked.size());
  count = std::min(count, impl_->size);
  if (count == 0) return result;
  std::vector<contenders> found(asked.size(), contenders{count, dimension});
  auto scan = byte_scans().front().scan;
  int32_t products[rows_at_once];
  for (const auto& block : impl_->blocks) {
    for (size_t begin = 0; begin < block.count; begin += rows_at_once) {
      auto rows = std::min(rows_at_once, block.count - begin);
      for (size_t i = 0; i < asked.size(); ++i) {
        scan(block.codes + begin * stride, rows, stride, asked[i].codes.data(), products);
        found[i].take(asked[i], block, begin, rows, products);
      }
    }
  }
  for (size_t i = 0; i < asked.size(); ++i) result[i] = found[i].best(asked[i]);
  return result;
}

expected<std::string> vector_index::save(const std::string& path) const {
  return write_row_file(path, impl_->dimension, impl_->blocks);
}

expected<vector_index> vector_index::load(const std::string& path, const std::string& digest) {
  auto file = map_row_file(path, digest);
  KM_TRY(file);
  auto result = std::make_unique<implementation>();
  result->dimension = file->dimension;
  result->size = file->rows.count;
  result->blocks.push_back(std::move(file->rows));
  return vector_index{std::move(result)};
}

} // namespace kernelmill
