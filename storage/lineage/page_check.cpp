#include "storage/lineage/page_check.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "storage/lineage/lmdb_format.hpp"

namespace kernelmill {

namespace {

using namespace lmdb_format;

constexpr int most_tries = 16; // a writer may be at work

struct file {
  int fd = -1;
  uint64_t bytes = 0;
  ~file() {
    if (fd >= 0) ::close(fd);
  }
  bool read(void* into, size_t size, uint64_t at) const {
    return ::pread(fd, into, size, static_cast<off_t>(at)) == static_cast<ssize_t>(size);
  }
};

// That of the latest transaction; nothing when the file has none.
std::optional<meta> latest_meta(const file& from) {
  std::optional<meta> result;
  auto page = static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
  for (uint64_t i = 0; i < 2; ++i) {
    meta x{};
    if (!from.read(&x, sizeof x, i * page + header_bytes) || x.magic != magic) continue;
    if (x.trees[0].pad != page) continue;
    if (!result || x.transaction > result->transaction) result = x;
  }
  return result;
}

template <class T>
T at(const std::vector<char>& page, size_t offset) {
  T result{};
  if (offset + sizeof result <= page.size())
    std::memcpy(&result, page.data() + offset, sizeof result);
  return result;
}

class walker {
public:
  walker(const file& from, uint64_t page_bytes) : file_(from), page_(page_bytes) {
    // nop
  }

  bool has_all(uint64_t root, int depth = 0) {
    if (root == no_page) return true;
    if (depth > most_depth || !has(root, 1)) return false;
    std::vector<char> page(page_);
    if (!file_.read(page.data(), page.size(), root * page_)) return false;
    auto flags = at<uint16_t>(page, 10);
    if ((flags & keys_alone) != 0) return true;
    if ((flags & (branch_page | leaf_page)) == 0) return false;
    size_t count =
        at<uint16_t>(page, 12) < header_bytes ? 0 : (at<uint16_t>(page, 12) - header_bytes) / 2;
    for (size_t i = 0; i < count; ++i) {
      size_t node = at<uint16_t>(page, header_bytes + 2 * i);
      bool ok = (flags & branch_page) != 0 ? has_all(child_of(page, node), depth + 1)
                                           : has_value(page, node, depth);
      if (!ok) return false;
    }
    return true;
  }

private:
  bool has(uint64_t page, uint64_t count) const {
    return page < file_.bytes / page_ && count <= file_.bytes / page_ - page;
  }

  static uint64_t low_word(const std::vector<char>& page, size_t node) {
    return at<uint16_t>(page, node) | uint64_t{at<uint16_t>(page, node + 2)} << 16;
  }

  static uint64_t child_of(const std::vector<char>& page, size_t node) {
    return low_word(page, node) | uint64_t{at<uint16_t>(page, node + 4)} << 32;
  }

  bool has_value(const std::vector<char>& page, size_t node, int depth) {
    auto flags = at<uint16_t>(page, node + 4);
    auto value = node + 8 + at<uint16_t>(page, node + 6);
    if ((flags & big_value) != 0) {
      auto pages = (header_bytes - 1 + low_word(page, node)) / page_ + 1;
      return has(at<uint64_t>(page, value), pages);
    }
    return (flags & sub_tree) == 0 || has_all(at<tree>(page, value).root, depth + 1);
  }

  const file& file_;
  uint64_t page_;
};

} // namespace

std::optional<std::string> missing_pages(const std::string& data_file) {
  file from;
  from.fd = ::open(data_file.c_str(), O_RDONLY | O_CLOEXEC);
  if (from.fd < 0) return std::nullopt;
  uint64_t wanted = 0;
  for (int i = 0; i < most_tries; ++i) {
    auto now = latest_meta(from);
    struct stat facts {};
    if (!now || ::fstat(from.fd, &facts) != 0) return std::nullopt;
    from.bytes = static_cast<uint64_t>(facts.st_size);
    auto page = uint64_t{now->trees[0].pad};
    wanted = (now->last_page + 1) * page;
    if (from.bytes >= wanted) return std::nullopt;
    walker walk{from, page};
    if (walk.has_all(now->trees[0].root) && walk.has_all(now->trees[1].root)) return std::nullopt;
    auto later = latest_meta(from);
    if (later && later->transaction == now->transaction) break;
  }
  return "data.mdb was cut off: it has " + std::to_string(from.bytes) + " of " +
         std::to_string(wanted) + " bytes";
}

bool is_unborn(const std::string& data_file) {
  file from;
  from.fd = ::open(data_file.c_str(), O_RDONLY | O_CLOEXEC);
  struct stat facts {};
  auto page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  if (from.fd < 0 || ::fstat(from.fd, &facts) != 0 || facts.st_size == 0) return false;
  auto size = static_cast<size_t>(facts.st_size);
  std::vector<char> bytes(2 * page, 0);
  if (size > bytes.size() || !from.read(bytes.data(), size, 0)) return false;
  for (size_t i = 0; i < 2; ++i) {
    meta x{};
    auto* first = bytes.data() + i * page;
    std::memcpy(&x, first + header_bytes, sizeof x);
    bool empty = x.magic == magic && x.transaction == 0 && x.trees[0].root == no_page &&
                 x.trees[1].root == no_page;
    auto* rest = empty ? first + header_bytes + sizeof x : first;
    if (std::any_of(rest, first + page, [](char c) { return c != 0; })) return false;
  }
  return true;
}

} // namespace kernelmill
