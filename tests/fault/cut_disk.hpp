#pragma once

// What a disk holds when the power goes after any of the recorded calls. There are tens of
// thousands of such disks, and each differs from the one before in a few pages: contents share
// their pages, and the file that a store opens is rewritten only where it differs.

#include <cstdint>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "tests/fault/disk_calls.hpp"

namespace kernelmill::power_cut {

constexpr size_t sector = 512;

/// The bytes of one file. A copy shares its pages with the original until one of them is written.
class content {
public:
  struct page {
    std::string bytes;
    uint64_t print = 0; ///< of the bytes; 0: not computed
  };
  using page_ptr = std::shared_ptr<page>; // null: zeros

  static constexpr size_t page_bytes = 4096;

  void write(uint64_t offset, std::string_view bytes);
  void resize(uint64_t bytes);

  uint64_t size() const { return size_; }
  const std::vector<page_ptr>& pages() const { return pages_; }
  std::string text() const;

  /// Equal for equal bytes.
  uint64_t print() const;

private:
  page& own(size_t i);

  uint64_t size_ = 0;
  std::vector<page_ptr> pages_; // zeros follow the last byte
};

enum class fate { dropped, kept, torn };

/// Holds what was synced, and knows what was not yet. The calls must outlive it.
class disk {
public:
  void take(const disk_calls::call& x);

  /// What is there once the power is back.
  disk after(fate how, std::mt19937& random) const;

  bool changes_nothing() const { return pending_.empty() && names_pending_.empty(); }

  /// Nothing when there is no such name, or a folder above it has none.
  const content* find(const std::string& path) const;

private:
  void apply(const disk_calls::call& x, size_t from, size_t size);
  void rename(const disk_calls::call& x);

  std::map<uint64_t, content> contents_; // by inode
  std::map<std::string, uint64_t> names_;
  std::map<uint64_t, std::vector<const disk_calls::call*>> pending_;
  std::vector<const disk_calls::call*> names_pending_;
};

/// A file on a real disk that is given one content after another.
class image_file {
public:
  explicit image_file(std::string path) : path_(std::move(path)) {
    // nop
  }
  ~image_file();
  image_file(const image_file&) = delete;
  image_file& operator=(const image_file&) = delete;

  /// Null: there is no file. False when the file does not hold what it should afterwards, which
  /// is looked at now and then.
  bool hold(const content* wanted);

  /// A store used the file and made these calls below its folder.
  void note(const std::vector<disk_calls::call>& calls);

private:
  void forget();
  bool holds(const content& wanted) const;

  std::string path_;
  int fd_ = -1;
  uint64_t inode_ = 0;
  uint64_t size_ = 0;
  std::vector<content::page_ptr> held_;
  uint64_t times_ = 0;
};

} // namespace kernelmill::power_cut
