#include "storage/fsck/pages.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "storage/files.hpp"
#include "storage/lineage/lmdb_format.hpp"

namespace kernelmill {

using namespace lmdb_format;

struct data_pages::state {
  const char* bytes = nullptr;
  size_t size = 0, page_bytes = 0;
  std::optional<meta> latest;
  std::vector<bool> seen; ///< pages of trees
  std::vector<std::string> flaws;

  ~state() {
    if (bytes != nullptr) ::munmap(const_cast<char*>(bytes), size);
  }

  uint64_t pages() const { return size / page_bytes; }

  template <class T>
  T at(size_t offset) const {
    T result{};
    if (offset + sizeof result <= size) std::memcpy(&result, bytes + offset, sizeof result);
    return result;
  }

  void flaw(std::string what) {
    constexpr size_t most = 100; // of a file that is noise
    if (flaws.size() < most) flaws.push_back(std::move(what));
  }

  void read_meta();
  struct node {
    std::string_view key, value;
    uint64_t child = 0; ///< of a branch
    uint16_t flags = 0;
  };
  std::optional<node> node_of(uint64_t page, size_t index, bool branch) const;
  size_t count_of(uint64_t page) const;
  void walk(uint64_t page, int depth, const std::function<void(const node&)>& visit);
};

// LMDB takes the meta page with the higher transaction.
void data_pages::state::read_meta() {
  for (size_t i = 0; i < 2; ++i) {
    auto x = at<meta>(i * page_bytes + header_bytes);
    if (x.magic != magic || x.trees[0].pad != page_bytes) {
      flaw("page " + std::to_string(i) + " is none of LMDB's");
      continue;
    }
    if (!latest || x.transaction > latest->transaction) latest = x;
  }
  if (latest && latest->last_page >= pages())
    flaw("the file ends after " + std::to_string(pages()) + " of " +
         std::to_string(latest->last_page + 1) + " pages");
}

size_t data_pages::state::count_of(uint64_t page) const {
  auto lower = at<uint16_t>(page * page_bytes + 12);
  return lower < header_bytes || lower > page_bytes ? 0 : (lower - header_bytes) / 2;
}

std::optional<data_pages::state::node> data_pages::state::node_of(uint64_t page, size_t index,
                                                                  bool branch) const {
  auto base = page * page_bytes;
  size_t where = at<uint16_t>(base + header_bytes + 2 * index);
  if (where < header_bytes || where + 8 > page_bytes) return std::nullopt;
  node result;
  uint64_t low = at<uint16_t>(base + where) | uint64_t{at<uint16_t>(base + where + 2)} << 16;
  result.flags = at<uint16_t>(base + where + 4);
  size_t key_bytes = at<uint16_t>(base + where + 6);
  if (where + 8 + key_bytes > page_bytes) return std::nullopt;
  result.key = {bytes + base + where + 8, key_bytes};
  if (branch) {
    result.child = low | uint64_t{result.flags} << 32;
    return result;
  }
  auto value = base + where + 8 + key_bytes;
  if ((result.flags & big_value) == 0) {
    if (value + low > base + page_bytes) return std::nullopt;
    result.value = {bytes + value, low};
    return result;
  }
  if (value + 8 > base + page_bytes) return std::nullopt;
  auto first = at<uint64_t>(value);
  if (first < 2 || first >= pages() || low > size - first * page_bytes - header_bytes ||
      (at<uint16_t>(first * page_bytes + 10) & overflow_page) == 0)
    return std::nullopt;
  result.value = {bytes + first * page_bytes + header_bytes, low};
  return result;
}

void data_pages::state::walk(uint64_t page, int depth,
                             const std::function<void(const node&)>& visit) {
  if (page == no_page) return;
  auto name = "page " + std::to_string(page);
  if (page < 2 || page >= pages()) return flaw(name + " is beyond the end of the file");
  if (depth > most_depth || seen[page]) return flaw(name + " is met twice");
  seen[page] = true;
  auto flags = at<uint16_t>(page * page_bytes + 10);
  bool branch = (flags & branch_page) != 0;
  if ((!branch && (flags & leaf_page) == 0) || at<uint64_t>(page * page_bytes) != page)
    return flaw(name + " is neither a branch nor a leaf of a tree");
  for (size_t i = 0, count = count_of(page); i < count; ++i) {
    auto x = node_of(page, i, branch);
    if (!x)
      flaw(name + " has an entry that lies outside of it");
    else if (branch)
      walk(x->child, depth + 1, visit);
    else
      visit(*x);
  }
}

data_pages::data_pages(std::unique_ptr<state> x) : state_(std::move(x)) {
  // nop
}
data_pages::data_pages(data_pages&&) noexcept = default;
data_pages& data_pages::operator=(data_pages&&) noexcept = default;
data_pages::~data_pages() = default;

expected<data_pages> data_pages::open(const std::string& path) {
  auto result = std::make_unique<state>();
  int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return tl::unexpected<error>{file_error(errno, "open", path)};
  struct stat facts {};
  void* map = MAP_FAILED;
  if (::fstat(fd, &facts) == 0 && facts.st_size > 0)
    map = ::mmap(nullptr, static_cast<size_t>(facts.st_size), PROT_READ, MAP_PRIVATE, fd, 0);
  int code = errno;
  ::close(fd);
  result->page_bytes = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  if (map == MAP_FAILED && facts.st_size > 0)
    return tl::unexpected<error>{file_error(code, "read", path)};
  if (map != MAP_FAILED) {
    result->bytes = static_cast<const char*>(map);
    result->size = static_cast<size_t>(facts.st_size);
  }
  result->seen.assign(result->pages() + 1, false);
  result->read_meta();
  return data_pages{std::move(result)};
}

void data_pages::visit(const std::string& database, const visitor& visit) {
  if (!state_->latest) return;
  std::optional<tree> found;
  std::fill(state_->seen.begin(), state_->seen.end(), false);
  state_->walk(state_->latest->trees[1].root, 0, [&](const state::node& x) {
    if (x.key != database || (x.flags & sub_tree) == 0 || x.value.size() != sizeof(tree)) return;
    std::memcpy(&found.emplace(), x.value.data(), sizeof(tree));
  });
  if (!found) {
    // A store begins with all of its databases; only one that was never finished lacks them.
    if (state_->latest->trees[1].root != no_page) state_->flaw("it has no database " + database);
    return;
  }
  uint64_t count = 0;
  state_->walk(found->root, 0, [&](const state::node& x) {
    ++count;
    visit(x.key, x.value);
  });
  if (count != found->entries)
    state_->flaw("database " + database + " leads to " + std::to_string(count) + " of " +
                 std::to_string(found->entries) + " entries");
}

void data_pages::visit_leaves(const visitor& visit) const {
  const auto& x = *state_;
  for (uint64_t page = 2; page < x.pages(); ++page) {
    auto flags = x.at<uint16_t>(page * x.page_bytes + 10);
    if ((flags & leaf_page) == 0 || (flags & (branch_page | keys_alone)) != 0) continue;
    for (size_t i = 0, count = x.count_of(page); i < count; ++i)
      if (auto found = x.node_of(page, i, false)) visit(found->key, found->value);
  }
}

void data_pages::visit_large_values(const std::function<void(std::string_view)>& visit) const {
  const auto& x = *state_;
  for (uint64_t page = 2; page < x.pages(); ++page) {
    if (x.at<uint16_t>(page * x.page_bytes + 10) != overflow_page) continue;
    uint64_t count = x.at<uint32_t>(page * x.page_bytes + 12);
    auto from = page * x.page_bytes + header_bytes;
    auto end = std::min<uint64_t>(page + count, x.pages()) * x.page_bytes;
    if (end > from) visit({x.bytes + from, end - from});
  }
}

const std::vector<std::string>& data_pages::flaws() const noexcept {
  return state_->flaws;
}

} // namespace kernelmill
