#pragma once

// Files that are whole or absent: written under a temporary name, synced, renamed, and their
// folder synced. A reader never meets half of one, whenever the power or the process went.

#include <string>
#include <string_view>

#include "messages/error.hpp"

namespace kernelmill {

/// Turns an errno into an error: "disk_full", "not_found", "read_only" or "io_error".
error file_error(int code, const char* verb, const std::string& path);

expected<std::string> read_file(const std::string& path);

/// Returns when the new content is on disk; the old one stays when it fails.
expected<void> write_file(const std::string& path, std::string_view bytes);

/// Keeps the first `kept` bytes of a file, puts `bytes` behind them and returns when they are on
/// disk. What was left behind `kept` by a writer that was killed is dropped; so is a write that
/// fails.
expected<void> append_file(const std::string& path, size_t kept, std::string_view bytes);

/// Writes all bytes to an open file. `path`: what errors call it.
expected<void> write_all(int fd, std::string_view bytes, const std::string& path);

/// Creates a folder and its parents and syncs what it added.
expected<void> make_directories(const std::string& path);

expected<void> sync_directory(const std::string& path);

/// A file that appears under its name only when commit() has returned. Large files are written
/// piece by piece, so memory stays small.
/// Thread safety: none.
class atomic_file {
public:
  static expected<atomic_file> create(const std::string& path);

  atomic_file(atomic_file&& other) noexcept;
  atomic_file& operator=(atomic_file&& other) noexcept;
  ~atomic_file(); ///< removes the temporary file unless commit() has succeeded

  expected<void> append(std::string_view bytes);

  /// Syncs and renames; `sync_folder` false leaves the folder to the caller, which has more files.
  expected<void> commit(bool sync_folder = true);

private:
  atomic_file(std::string path, std::string temporary, int fd);
  expected<void> flush();
  void discard() noexcept;

  std::string path_;
  std::string temporary_;
  std::string buffer_;
  int fd_ = -1;
};

} // namespace kernelmill
