#include "tests/fault/cut_disk.hpp"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <functional>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace kernelmill::power_cut {

using disk_calls::call;
using disk_calls::kind;
namespace fs = std::filesystem;

// -- content ------------------------------------------------------------------------------------

content::page& content::own(size_t i) {
  auto& here = pages_[i];
  if (here == nullptr)
    here = std::make_shared<page>(page{std::string(page_bytes, '\0'), 0});
  else if (here.use_count() > 1)
    here = std::make_shared<page>(*here);
  here->print = 0;
  return *here;
}

void content::resize(uint64_t bytes) {
  if (bytes < size_ && bytes % page_bytes != 0) {
    auto& last = own(bytes / page_bytes).bytes;
    std::fill(last.begin() + static_cast<std::ptrdiff_t>(bytes % page_bytes), last.end(), '\0');
  }
  size_ = bytes;
  pages_.resize((bytes + page_bytes - 1) / page_bytes);
}

void content::write(uint64_t offset, std::string_view bytes) {
  if (bytes.empty()) return;
  if (offset + bytes.size() > size_) resize(offset + bytes.size());
  while (!bytes.empty()) {
    auto at = offset % page_bytes;
    auto part = bytes.substr(0, page_bytes - at);
    own(offset / page_bytes).bytes.replace(at, part.size(), part);
    offset += part.size();
    bytes.remove_prefix(part.size());
  }
}

std::string content::text() const {
  std::string result;
  result.reserve(pages_.size() * page_bytes);
  for (auto& x : pages_)
    if (x)
      result += x->bytes;
    else
      result.append(page_bytes, '\0');
  result.resize(size_);
  return result;
}

uint64_t content::print() const {
  auto print_of = [](const std::string& bytes) { return std::hash<std::string>{}(bytes) | 1; };
  static const auto print_of_zeros = print_of(std::string(page_bytes, '\0'));
  uint64_t result = size_;
  for (auto& x : pages_) {
    if (x && x->print == 0) x->print = print_of(x->bytes);
    result = (result ^ (x ? x->print : print_of_zeros)) * 0x9e3779b97f4a7c15;
    result ^= result >> 29;
  }
  return result;
}

// -- disk ---------------------------------------------------------------------------------------

void disk::take(const call& x) {
  switch (x.what) {
    case kind::write:
    case kind::cut: pending_[x.file].push_back(&x); break;
    case kind::sync:
      for (auto* earlier : pending_[x.file]) apply(*earlier, 0, earlier->bytes.size());
      pending_.erase(x.file);
      break;
    case kind::link:
    case kind::unlink: names_pending_.push_back(&x); break;
    case kind::sync_directory:
      std::erase_if(names_pending_, [&](auto* name) {
        bool of_it = fs::path{name->path}.parent_path() == fs::path{x.path.empty() ? "/" : x.path};
        if (of_it) rename(*name);
        return of_it;
      });
      break;
    case kind::mark: break;
  }
}

disk disk::after(fate how, std::mt19937& random) const {
  disk result = *this;
  if (how == fate::dropped) return result;
  auto luck = [&] { return how == fate::kept || random() % 2 == 0; };
  for (auto& [file, calls] : pending_)
    for (auto* x : calls) {
      if (x->what == kind::cut && luck()) result.apply(*x, 0, 0);
      for (size_t at = 0; at < x->bytes.size(); at += sector - (x->offset + at) % sector)
        if (luck()) result.apply(*x, at, sector - (x->offset + at) % sector);
    }
  for (auto* x : names_pending_)
    if (luck()) result.rename(*x);
  return result;
}

const content* disk::find(const std::string& path) const {
  for (auto folder = fs::path{path}.parent_path(); folder != "/"; folder = folder.parent_path())
    if (!names_.contains(folder.string())) return nullptr;
  auto name = names_.find(path);
  if (name == names_.end()) return nullptr;
  auto found = contents_.find(name->second);
  static const content empty;
  return found == contents_.end() ? &empty : &found->second;
}

void disk::apply(const call& x, size_t from, size_t size) {
  auto& of_file = contents_[x.file];
  if (x.what == kind::cut)
    of_file.resize(x.offset);
  else
    of_file.write(x.offset + from, std::string_view{x.bytes}.substr(from, size));
}

void disk::rename(const call& x) {
  if (x.what == kind::link)
    names_[x.path] = x.file;
  else
    names_.erase(x.path);
}

// -- image_file ---------------------------------------------------------------------------------

image_file::~image_file() {
  forget();
}

void image_file::forget() {
  if (fd_ >= 0) ::close(fd_);
  ::unlink(path_.c_str());
  fd_ = -1;
  size_ = 0;
  held_.clear();
}

bool image_file::hold(const content* wanted) {
  constexpr uint64_t between_looks = 64;
  if (wanted == nullptr) {
    forget();
    return ::access(path_.c_str(), F_OK) != 0;
  }
  if (fd_ < 0) {
    fd_ = ::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    struct stat facts {};
    ::fstat(fd_, &facts);
    inode_ = facts.st_ino;
  }
  // The size first: what lies beyond the end of either is zeros afterwards.
  auto shorter = std::min(size_, wanted->size());
  if (::ftruncate(fd_, static_cast<off_t>(shorter)) != 0 ||
      ::ftruncate(fd_, static_cast<off_t>(wanted->size())) != 0)
    return false;
  const auto& pages = wanted->pages();
  held_.resize(pages.size());
  for (size_t i = 0; i < pages.size(); ++i) {
    if (held_[i] == pages[i]) continue;
    static const std::string zeros(content::page_bytes, '\0');
    auto at = i * content::page_bytes;
    auto size = std::min<uint64_t>(content::page_bytes, wanted->size() - at);
    const auto& bytes = pages[i] ? pages[i]->bytes : zeros;
    if (::pwrite(fd_, bytes.data(), size, static_cast<off_t>(at)) != static_cast<ssize_t>(size))
      return false;
    held_[i] = pages[i];
  }
  size_ = wanted->size();
  return times_++ % between_looks != 0 || holds(*wanted);
}

bool image_file::holds(const content& wanted) const {
  std::string there(wanted.size() + 1, '\0');
  auto size = ::pread(fd_, there.data(), there.size(), 0);
  there.resize(static_cast<size_t>(std::max<ssize_t>(size, 0)));
  return there == wanted.text();
}

void image_file::note(const std::vector<call>& calls) {
  auto name = "/" + fs::path{path_}.filename().string();
  auto changes = [&](const call& x) {
    if (x.what == kind::link || x.what == kind::unlink) return x.path == name;
    if (fd_ < 0 || x.file != inode_) return false;
    // A longer file is cut again before the next content.
    return x.what == kind::write || (x.what == kind::cut && x.offset < size_);
  };
  if (std::any_of(calls.begin(), calls.end(), changes)) forget();
}

} // namespace kernelmill::power_cut
