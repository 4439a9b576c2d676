#include "storage/lineage/map_pages.hpp"

#include <algorithm>

#include <sys/mman.h>
#include <unistd.h>

namespace kernelmill {

namespace {

constexpr size_t bytes_between = size_t{16} << 20;
constexpr size_t around_a_fault = size_t{64}
                                  << 10; // what Linux maps at once of a file in its cache

void give_back(const map_range& x) {
  static const auto page = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
  auto begin = x.low / page * page;
  ::madvise(reinterpret_cast<void*>(begin), x.high - begin, MADV_DONTNEED);
}

} // namespace

void map_range::add(const map_range& x) {
  low = std::min(low, x.low);
  high = std::max(high, x.high);
}

void map_pages::note(const map_range& where, size_t bytes) {
  std::scoped_lock lock{mutex_};
  read_.add(where);
  bytes_ += bytes;
  if (bytes_ < bytes_between) return;
  // All that was ever read, not only what is new: a fault maps neighbours that were given back.
  give_back(read_);
  bytes_ = 0;
}

void map_pages::forget() {
  std::scoped_lock lock{mutex_};
  read_ = {};
  bytes_ = 0;
}

void visited_pages::add(const MDB_val& x) {
  add(x, x.mv_size);
}

void visited_pages::add_sought(const MDB_val& x) {
  add(x, around_a_fault);
}

void visited_pages::add(const MDB_val& x, size_t mapped) {
  auto begin = reinterpret_cast<uintptr_t>(x.mv_data);
  read_.add({begin, begin + x.mv_size});
  bytes_ += mapped;
  if (bytes_ >= bytes_between) tell();
}

void visited_pages::tell() {
  if (read_.low < read_.high) pages_.note(read_, bytes_);
  read_ = {};
  bytes_ = 0;
}

} // namespace kernelmill
