#pragma once

// What the store must know of the disk beneath it and LMDB does not tell.

#include <cstdint>
#include <string>

namespace kernelmill {

/// Says whether statfs() names a filesystem whose mmap or locks are not those of one machine.
bool is_remote_filesystem(unsigned long magic) noexcept;

/// Creates `path` with at least `bytes` bytes of disk beneath it; returns 0 or an errno. LMDB
/// writes its lock file through a map, where a full disk would be a SIGBUS and not an error.
int reserve_file(const std::string& path, int64_t bytes);

/// Says why a write to `file` in `directory` ended early: ENOSPC, EDQUOT, EFBIG, or else EIO. LMDB
/// says EIO for all, and a disk that fills up half way through a write is the common case.
int cause_of_short_write(const std::string& directory, const std::string& file);

} // namespace kernelmill
