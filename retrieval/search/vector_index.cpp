#include "retrieval/search/vector_index.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include <fmt/format.h>

#include "retrieval/search/byte_rows.hpp"
#include "retrieval/search/vector_rows.hpp"

namespace kernelmill {

namespace {

constexpr size_t block_rows = 1024;    // of a block that grows
constexpr size_t list_questions = 200; // that measure lists
constexpr float infinite = std::numeric_limits<float>::infinity();
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
  std::vector<float> turned(x.codes.size());
  turn_row(floats, dimension, turned.data());
  x.facts = round_row(turned.data(), turned.size(), x.codes.data());
  x.doubt = x.facts.error + (inner_product_error(dimension) + turning_error) * x.facts.norm;
  for (auto code : x.codes) x.shift += 128 * code;
  return x;
}

using found_rows = std::vector<std::vector<neighbour>>; // of each query

/// The rows that may be among the best `most` of one query: those whose score may reach what
/// `most` others reach at least.
class contenders {
public:
  contenders(size_t most, size_t dimension, const row_lift& lift)
      : most_(most), dimension_(dimension), lift_(&lift) {}

  void take(const rounded_query& query, const row_block& of, size_t begin, size_t count,
            const int32_t* products) {
    for (size_t i = 0; i < count; ++i) {
      auto row = begin + i;
      float score =
          query.facts.scale * of.scales[row] * static_cast<float>(products[i] - query.shift);
      float doubt = query.facts.norm * of.errors[row] + query.doubt * of.norms[row];
      if (score + doubt + lift_->most >= least_) keep(of, row, score, doubt);
    }
  }

  /// Compares the floats. Nothing is left out that could be among the best.
  std::vector<neighbour> best(const rounded_query& query) {
    std::vector<neighbour> result;
    lows_.clear(); // from here on what the best have
    // Those that may be the best tell how good the others must be: to sort all would take longer.
    auto first = std::min(found_.size(), most_);
    std::nth_element(found_.begin(), found_.begin() + static_cast<ptrdiff_t>(first), found_.end(),
                     [](const contender& a, const contender& b) { return a.at_most > b.at_most; });
    for (const auto& x : found_) {
      if (lows_.size() == most_ && x.at_most < lows_.front()) continue;
      auto score = inner_product(query.floats, x.floats, dimension_) + x.lift;
      if (!std::isfinite(score)) continue; // a file of another program may hold anything
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
    float lift;
    const float* floats;
  };

  void keep(const row_block& of, size_t row, float score, float doubt) {
    float lift = lift_->of ? lift_->of(of.first + row) : 0;
    if (lift == -infinite || score + doubt + lift < least_) return;
    found_.push_back({of.first + row, score + doubt + lift, lift, of.floats + row * dimension_});
    if (raise(score - doubt + lift)) least_ = lows_.front();
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
  const row_lift* lift_;
  float least_ = -infinite;
  std::vector<float> lows_;
  std::vector<contender> found_;
};

} // namespace

struct vector_index::implementation {
  size_t dimension = 0;
  size_t size = 0;
  std::vector<row_block> blocks;
  row_lists division;                       ///< of the first block; mostly none
  std::unique_ptr<vector_index> centres;    ///< of the lists
  std::vector<std::vector<uint32_t>> lists; ///< rows by centre

  expected<void> take_lists(row_lists x);
  expected<void> divide();
  expected<found_rows> search(const std::vector<float>& queries, size_t count, const row_lift& lift,
                              size_t probes) const;
  void scan_blocks(const std::vector<rounded_query>& asked, size_t first_block,
                   const row_lift& within, std::vector<contenders>& found) const;
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
  std::vector<float> turned(byte_row_stride(dimension));
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
      turn_row(row, dimension, turned.data());
      auto facts = round_row(turned.data(), turned.size(), to.codes + to.count * turned.size());
      to.scales[to.count] = facts.scale;
      to.errors[to.count] = facts.error;
      to.norms[to.count] = facts.norm;
      std::copy_n(row, dimension, to.floats + to.count * dimension);
    }
  }
  return {};
}

expected<std::vector<neighbour>> vector_index::search(const std::vector<float>& query, size_t count,
                                                      const row_lift& lift) const {
  if (query.size() != impl_->dimension) return other_dimension(query.size(), impl_->dimension);
  auto all = search_all(query, count, lift);
  KM_TRY(all);
  return std::move(all->front());
}

expected<std::vector<std::vector<neighbour>>>
vector_index::search_all(const std::vector<float>& queries, size_t count,
                         const row_lift& lift) const {
  return impl_->search(queries, count, lift, impl_->division.probes);
}

void vector_index::implementation::scan_blocks(const std::vector<rounded_query>& asked,
                                               size_t first_block, const row_lift& within,
                                               std::vector<contenders>& found) const {
  auto stride = byte_row_stride(dimension);
  auto scan = byte_scans().front().scan;
  int32_t products[rows_at_once];
  for (size_t at = first_block; at < blocks.size(); ++at) {
    const auto& block = blocks[at];
    auto end = std::min(block.count, within.last - std::min(within.last, block.first));
    for (size_t begin = within.first - std::min(within.first, block.first); begin < end;
         begin += rows_at_once) {
      auto rows = std::min(rows_at_once, end - begin);
      for (size_t i = 0; i < asked.size(); ++i) {
        scan(block.codes + begin * stride, rows, stride, asked[i].codes.data(), products);
        found[i].take(asked[i], block, begin, rows, products);
      }
    }
  }
}

/// `probes` 0: reads every row.
expected<found_rows> vector_index::implementation::search(const std::vector<float>& queries,
                                                          size_t count, const row_lift& lift,
                                                          size_t probes) const {
  if (dimension == 0 || queries.size() % dimension != 0)
    return other_dimension(queries.size(), dimension);
  std::vector<rounded_query> asked;
  for (size_t at = 0; at < queries.size(); at += dimension) {
    if (!can_round(queries.data() + at, dimension))
      return failed("search", "the query holds a number that is not finite");
    asked.push_back(rounded(queries.data() + at, dimension));
  }
  found_rows result(asked.size());
  count = std::min(count, size);
  if (count == 0) return result;
  std::vector<contenders> found(asked.size(), contenders{count, dimension, lift});
  if (probes > 0) {
    auto near = centres->search_all(queries, probes);
    KM_TRY(near);
    auto stride = byte_row_stride(dimension);
    auto scan = byte_scans().front().scan;
    for (size_t i = 0; i < asked.size(); ++i)
      for (const auto& centre : (*near)[i])
        for (size_t row : lists[centre.row]) {
          if (row < lift.first || row >= lift.last) continue;
          int32_t product = 0;
          scan(blocks[0].codes + row * stride, 1, stride, asked[i].codes.data(), &product);
          found[i].take(asked[i], blocks[0], row, 1, &product);
        }
  }
  scan_blocks(asked, probes > 0 ? 1 : 0, lift, found);
  for (size_t i = 0; i < asked.size(); ++i) result[i] = found[i].best(asked[i]);
  return result;
}

float vector_index::score(const std::vector<float>& query, size_t row) const {
  const auto& blocks = impl_->blocks;
  auto after = std::upper_bound(blocks.begin(), blocks.end(), row,
                                [](size_t x, const row_block& of) { return x < of.first; });
  const auto& of = *std::prev(after);
  return inner_product(query.data(), of.floats + (row - of.first) * impl_->dimension,
                       impl_->dimension);
}

std::pair<size_t, size_t> vector_index::lists() const {
  return {impl_->division.probes, impl_->lists.size()};
}

expected<void> vector_index::implementation::take_lists(row_lists x) {
  division = std::move(x);
  lists.clear();
  centres.reset();
  if (division.centres.empty()) return {};
  centres = std::make_unique<vector_index>(dimension);
  KM_TRY(centres->add(division.centres));
  lists.resize(centres->size());
  for (size_t row = 0; row < division.list_of.size(); ++row)
    lists[division.list_of[row]].push_back(static_cast<uint32_t>(row));
  return {};
}

/// Makes lists of a block, and measures how many a search must read.
expected<void> vector_index::implementation::divide() {
  const auto* floats = blocks[0].floats;
  auto pick = [&](size_t most) { // rows at even distances
    std::vector<float> rows;
    for (size_t step = std::max<size_t>(1, size / most), at = 0; at < size; at += step)
      rows.insert(rows.end(), floats + at * dimension, floats + (at + 1) * dimension);
    return rows;
  };
  auto count = static_cast<size_t>(std::sqrt(size));
  auto centred = centres_of(pick(64 * count), dimension, count);
  KM_TRY(centred);
  vector_index places{dimension};
  KM_TRY(places.add(*centred));
  row_lists made{std::move(*centred), {}, 0};
  for (size_t row = 0; row < size; ++row) {
    auto nearest = places.search({floats + row * dimension, floats + (row + 1) * dimension}, 1);
    KM_TRY(nearest);
    made.list_of.push_back(static_cast<uint32_t>(nearest->front().row));
  }
  KM_TRY(take_lists(std::move(made)));
  auto queries = pick(list_questions);
  auto want = search(queries, 10, {}, 0);
  KM_TRY(want);
  for (size_t probes = 2; probes <= count / 4; probes *= 2) {
    auto got = search(queries, 10, {}, probes);
    KM_TRY(got);
    size_t right = 0, all = 0;
    for (size_t i = 0; i < want->size(); ++i) {
      all += (*want)[i].size();
      for (const auto& x : (*want)[i])
        right += std::any_of((*got)[i].begin(), (*got)[i].end(),
                             [&](const neighbour& y) { return x.row == y.row; });
    }
    if (static_cast<double>(right) < least_list_recall * static_cast<double>(all)) continue;
    division.probes = static_cast<uint32_t>(probes);
    return {};
  }
  return take_lists({});
}

expected<std::string> vector_index::save(const std::string& path, size_t most_scanned) const {
  const auto& x = *impl_;
  if (x.size <= most_scanned) return write_row_file(path, x.dimension, x.blocks, {});
  // A file has one block, and so have its lists.
  implementation whole{x.dimension, x.size, {new_row_block(0, x.size, x.dimension)}, {}, {}, {}};
  auto& to = whole.blocks[0];
  if (!to.memory) return failed("save", "memory is used up");
  for (const auto& from : x.blocks) {
    auto stride = byte_row_stride(x.dimension);
    std::copy_n(from.codes, from.count * stride, to.codes + to.count * stride);
    std::copy_n(from.scales, from.count, to.scales + to.count);
    std::copy_n(from.errors, from.count, to.errors + to.count);
    std::copy_n(from.norms, from.count, to.norms + to.count);
    std::copy_n(from.floats, from.count * x.dimension, to.floats + to.count * x.dimension);
    to.count += from.count;
  }
  KM_TRY(whole.divide());
  return write_row_file(path, x.dimension, whole.blocks, whole.division);
}

expected<vector_index> vector_index::load(const std::string& path, const std::string& digest) {
  auto file = map_row_file(path, digest);
  KM_TRY(file);
  auto result = std::make_unique<implementation>();
  result->dimension = file->dimension;
  result->size = file->rows.count;
  result->blocks.push_back(std::move(file->rows));
  KM_TRY(result->take_lists(std::move(file->lists)));
  return vector_index{std::move(result)};
}

} // namespace kernelmill
