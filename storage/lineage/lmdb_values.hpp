#pragma once

// What LMDB takes and gives, as bytes. Private to storage/.

#include <span>

#include <lmdb.h>

namespace kernelmill {

template <class Bytes>
MDB_val val_of(Bytes& x) {
  return {x.size(), const_cast<void*>(static_cast<const void*>(x.data()))};
}

inline std::span<const char> bytes_of(const MDB_val& x) {
  return {static_cast<const char*>(x.mv_data), x.mv_size};
}

/// REQUIRES: in a write transaction it goes before that ends.
struct lmdb_cursor {
  lmdb_cursor() = default;
  ~lmdb_cursor() {
    if (at) mdb_cursor_close(at);
  }
  lmdb_cursor(const lmdb_cursor&) = delete;
  lmdb_cursor& operator=(const lmdb_cursor&) = delete;

  MDB_cursor* at = nullptr;
};

} // namespace kernelmill
