#pragma once

// What the codes of LMDB and of the system say about a store. Private to storage/.

#include <string>

#include "messages/error.hpp"

namespace kernelmill {

inline constexpr unsigned max_store_readers = 256;

/// "failed to `verb` the store `where`": what `code`, of LMDB or errno, means for it.
error store_failure(int code, const char* verb, const std::string& where);

} // namespace kernelmill
