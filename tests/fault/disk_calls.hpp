#pragma once

// Stands between this process's storage and the kernel: every write, sync, rename and cut of a file below
// one folder is told to a recorder. The functions that libc exports are defined again in disk_calls.cpp,
// so LMDB's calls come here too.

#include <cstdint>
#include <string>
#include <vector>

namespace kernelmill::disk_calls {

enum class kind : unsigned char {
  write,          ///< bytes at an offset of a file
  cut,            ///< a file has so many bytes
  sync,           ///< a file's contents are on disk
  link,           ///< a name appears in its folder, or (rename) replaces another
  unlink,         ///< a name is gone
  sync_directory, ///< a folder's names are on disk
  mark,           ///< the test says something
};

struct call {
  kind what = kind::mark;
  uint64_t file = 0; ///< inode
  std::string path;  ///< of a folder or name, below the recorded folder
  uint64_t offset = 0;
  std::string bytes;
  uint64_t mark = 0;
};

/// Records what happens below `folder` until stop() is called. One thread writes.
void record(const std::string& folder);
void say(uint64_t mark);
std::vector<call> stop();

} // namespace kernelmill::disk_calls
