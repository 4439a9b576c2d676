#include "retrieval/search/bm25.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <span>
#include <unordered_map>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "retrieval/search/mapped_file.hpp"
#include "retrieval/search/words.hpp"

namespace kernelmill {

namespace {

static_assert(std::endian::native == std::endian::little, "files hold little-endian numbers");

constexpr char words_magic[8] = {'k', 'm', 'w', 'o', 'r', 'd', 's', '1'};

enum term_kind : uint64_t { of_words = 1, of_operators = 2 };

constexpr uint8_t most_times = 255; // of one term in one row: more would not change its score

struct words_header {
  char magic[8];
  uint64_t rows, terms, postings;
  uint64_t length; ///< terms of all rows, repeated ones too
  uint64_t unused[3];
};
static_assert(sizeof(words_header) == 64);

// A file: the header, and one after the other
//
//   terms    8 bytes each, rising
//   starts   8 bytes: where a term's rows begin; one more for the end
//   lengths  4 bytes a row
//   rows     4 bytes a posting, rising within a term
//   times    1 byte a posting
size_t file_bytes(const words_header& x) {
  return sizeof x + 8 * x.terms + 8 * (x.terms + 1) + 4 * x.rows + 5 * x.postings;
}

struct posting {
  uint32_t row;
  uint8_t times;
};

/// The part that lies in a file.
struct mapped_words {
  std::shared_ptr<const void> memory;
  std::span<const uint64_t> terms, starts;
  std::span<const uint32_t> lengths, rows;
  std::span<const uint8_t> times;

  /// The places of a term's postings.
  std::pair<size_t, size_t> find(uint64_t term) const {
    auto at = std::lower_bound(terms.begin(), terms.end(), term);
    if (at == terms.end() || *at != term) return {0, 0};
    auto i = static_cast<size_t>(at - terms.begin());
    return {starts[i], starts[i + 1]};
  }
};

/// A term of a query, and the rows that have it.
struct asked_term {
  uint64_t term;
  size_t first, last; ///< in the file
  const std::vector<posting>* added;

  size_t rows() const { return last - first + (added ? added->size() : 0); }
};

void make_unique(term_list& x) {
  std::sort(x.begin(), x.end());
  x.erase(std::unique(x.begin(), x.end()), x.end());
}

/// The best so far; the least of them stands first.
class best_rows {
public:
  explicit best_rows(size_t count) : count_(count) {}

  bool takes(const neighbour& x) const {
    return rows_.size() < count_ || is_better(x, rows_.front());
  }

  void take(const neighbour& x) {
    if (rows_.size() == count_) {
      std::pop_heap(rows_.begin(), rows_.end(), is_better);
      rows_.pop_back();
    }
    rows_.push_back(x);
    std::push_heap(rows_.begin(), rows_.end(), is_better);
  }

  std::vector<neighbour> sorted() && {
    std::sort_heap(rows_.begin(), rows_.end(), is_better);
    return std::move(rows_);
  }

private:
  static bool is_better(const neighbour& a, const neighbour& b) {
    return a.score != b.score ? a.score > b.score : a.row < b.row;
  }

  size_t count_;
  std::vector<neighbour> rows_;
};

} // namespace

void add_words(term_list& to, std::string_view text) {
  std::string folded;
  auto add = [&](std::string_view x) {
    to.push_back(XXH3_64bits_withSeed(x.data(), x.size(), of_words));
  };
  each_run(text, [&](std::string_view run) {
    if (!fold_word(run, folded)) return;
    add(folded);
    each_part(
        run, [&](size_t begin, size_t size) { add(std::string_view{folded}.substr(begin, size)); });
  });
}

uint64_t operator_term(std::string_view name) {
  return XXH3_64bits_withSeed(name.data(), name.size(), of_operators);
}

struct bm25_index::implementation {
  mapped_words mapped;
  std::unordered_map<uint64_t, std::vector<posting>> added; ///< rows after those of the file
  std::vector<uint32_t> lengths;                            ///< of these rows
  uint64_t length = 0;                                      ///< of all rows

  size_t size() const { return mapped.lengths.size() + lengths.size(); }
  uint32_t length_of(size_t row) const {
    auto in_file = mapped.lengths.size();
    return row < in_file ? mapped.lengths[row] : lengths[row - in_file];
  }

  asked_term find(uint64_t term) const {
    auto [first, last] = mapped.find(term);
    auto at = added.find(term);
    return {term, first, last, at == added.end() ? nullptr : &at->second};
  }
  std::vector<asked_term> rarest(const term_list& query) const;
  void sum_up(const asked_term& x, std::vector<float>& sums, std::vector<uint32_t>& touched) const;
};

bm25_index::bm25_index() : impl_(std::make_unique<implementation>()) {
  // nop
}

bm25_index::bm25_index(bm25_index&&) noexcept = default;
bm25_index& bm25_index::operator=(bm25_index&&) noexcept = default;
bm25_index::~bm25_index() = default;

size_t bm25_index::size() const {
  return impl_->size();
}

size_t bm25_index::rows_with(uint64_t term) const {
  return impl_->find(term).rows();
}

void bm25_index::add(term_list terms) {
  auto row = static_cast<uint32_t>(size());
  impl_->lengths.push_back(static_cast<uint32_t>(terms.size()));
  impl_->length += terms.size();
  std::sort(terms.begin(), terms.end());
  for (auto from = terms.begin(); from != terms.end();) {
    auto to = std::find_if(from, terms.end(), [&](uint64_t x) { return x != *from; });
    auto times = static_cast<uint8_t>(std::min<ptrdiff_t>(to - from, most_times));
    impl_->added[*from].push_back({row, times});
    from = to;
  }
}

/// Those that a search reads, rarest first. The first is always among them.
std::vector<asked_term> bm25_index::implementation::rarest(const term_list& query) const {
  std::vector<asked_term> result;
  for (auto term : query)
    if (auto x = find(term); x.rows() > 0) result.push_back(x);
  auto most = std::min(result.size(), most_searched_terms);
  std::partial_sort(result.begin(), result.begin() + static_cast<ptrdiff_t>(most), result.end(),
                    [](const asked_term& a, const asked_term& b) {
                      return a.rows() != b.rows() ? a.rows() < b.rows() : a.term < b.term;
                    });
  result.resize(most);
  for (size_t i = 0, rows = 0; i < result.size(); ++i) {
    rows += result[i].rows();
    if (i > 0 && rows > most_read_rows) result.resize(i);
  }
  return result;
}

void bm25_index::implementation::sum_up(const asked_term& x, std::vector<float>& sums,
                                        std::vector<uint32_t>& touched) const {
  auto all = static_cast<double>(size()), having = static_cast<double>(x.rows());
  auto rarity = static_cast<float>(std::log1p((all - having + 0.5) / (having + 0.5)));
  auto mean = static_cast<float>(static_cast<double>(length) / all);
  auto fixed = bm25_saturation * (1 - bm25_length_share);
  auto by_length = bm25_saturation * bm25_length_share / mean;
  auto add = [&](uint32_t row, uint8_t times) {
    auto n = static_cast<float>(times);
    auto held_back = fixed + by_length * static_cast<float>(length_of(row));
    if (sums[row] == 0) touched.push_back(row);
    sums[row] += rarity * n * (bm25_saturation + 1) / (n + held_back);
  };
  for (auto i = x.first; i < x.last; ++i) add(mapped.rows[i], mapped.times[i]);
  if (x.added)
    for (const auto& one : *x.added) add(one.row, one.times);
}

std::vector<neighbour> bm25_index::search(term_list query, size_t count,
                                          const std::function<bool(size_t row)>& keeps) const {
  if (count == 0) return {};
  make_unique(query);
  // A sum for each row, all zero between searches: to make them anew would cost more than a search.
  thread_local std::vector<float> sums;
  thread_local std::vector<uint32_t> touched;
  if (sums.size() < size()) sums.resize(size());
  touched.clear();
  for (const auto& x : impl_->rarest(query)) impl_->sum_up(x, sums, touched);
  best_rows best{count};
  for (auto row : touched) {
    neighbour x{row, std::exchange(sums[row], 0.0F)};
    if (best.takes(x) && (!keeps || keeps(row))) best.take(x);
  }
  return std::move(best).sorted();
}

// -- on disk ----------------------------------------------------------------------------------

expected<std::string> bm25_index::save(const std::string& path) const {
  const auto& x = *impl_;
  term_list terms(x.mapped.terms.begin(), x.mapped.terms.end());
  for (const auto& [term, rows] : x.added) terms.push_back(term);
  make_unique(terms);
  std::vector<asked_term> all;
  std::vector<uint64_t> starts{0};
  for (auto term : terms) {
    all.push_back(x.find(term));
    starts.push_back(starts.back() + all.back().rows());
  }
  words_header header{};
  std::memcpy(header.magic, words_magic, sizeof words_magic);
  header.rows = size();
  header.terms = terms.size();
  header.postings = starts.back();
  header.length = x.length;
  digested_file file{path};
  auto write = [&](auto part) { file.write(part.data(), part.size_bytes()); };
  file.write(&header, sizeof header);
  write(std::span{terms});
  write(std::span{starts});
  write(x.mapped.lengths);
  write(std::span{x.lengths});
  std::vector<uint32_t> rows;
  std::vector<uint8_t> times;
  for (const auto& one : all) {
    rows.assign(x.mapped.rows.begin() + static_cast<ptrdiff_t>(one.first),
                x.mapped.rows.begin() + static_cast<ptrdiff_t>(one.last));
    if (one.added)
      for (const auto& y : *one.added) rows.push_back(y.row);
    write(std::span{rows});
  }
  for (const auto& one : all) {
    times.assign(x.mapped.times.begin() + static_cast<ptrdiff_t>(one.first),
                 x.mapped.times.begin() + static_cast<ptrdiff_t>(one.last));
    if (one.added)
      for (const auto& y : *one.added) times.push_back(y.times);
    write(std::span{times});
  }
  return file.close();
}

expected<bm25_index> bm25_index::load(const std::string& path, const std::string& digest) {
  auto file = map_file(path, digest);
  KM_TRY(file);
  words_header header{};
  std::memcpy(&header, file->bytes, std::min(sizeof header, file->size));
  if (std::memcmp(header.magic, words_magic, sizeof words_magic) != 0)
    return damaged_index_file(path, "it holds no words of an index");
  auto most = file->size; // so that no product below is too large
  if (header.rows > most || header.terms > most || header.postings > most ||
      file->size != file_bytes(header))
    return damaged_index_file(path, "its size is not the one of the words that it names");
  bm25_index result;
  auto& x = result.impl_->mapped;
  x.memory = std::move(file->memory);
  const auto* at = file->bytes + sizeof header;
  auto take = [&](auto& part, size_t count) {
    using number = typename std::remove_reference_t<decltype(part)>::element_type;
    part = {reinterpret_cast<number*>(at), count};
    at += part.size_bytes();
  };
  take(x.terms, header.terms);
  take(x.starts, header.terms + 1);
  take(x.lengths, header.rows);
  take(x.rows, header.postings);
  take(x.times, header.postings);
  result.impl_->length = header.length;
  // A file of another program may hold anything.
  uint32_t greatest = 0;
  for (auto row : x.rows) greatest = std::max(greatest, row);
  if (!std::is_sorted(x.starts.begin(), x.starts.end()) || x.starts.front() != 0 ||
      x.starts.back() != header.postings || (header.postings > 0 && greatest >= header.rows))
    return damaged_index_file(path, "it names rows that it does not have");
  return result;
}

} // namespace kernelmill
