#pragma once

// The one place that knows LMDB's rules: one environment a folder and a process, a writer's lock
// (both store_claim's), reads beside a writer, a map that grows only without readers, and what
// each code means (store_failure). Private to storage/.

#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include <lmdb.h>

#include "messages/error.hpp"
#include "storage/lineage/map_pages.hpp"
#include "storage/lineage/read_gate.hpp"
#include "storage/lineage/store.hpp"
#include "storage/lineage/store_claim.hpp"
#include "storage/lineage/store_failure.hpp"

namespace kernelmill {

/// Thread safety: any number of threads; writes take turns.
class lmdb_environment {
public:
  static expected<std::unique_ptr<lmdb_environment>> open(const store_options& options);
  ~lmdb_environment();
  lmdb_environment(const lmdb_environment&) = delete;
  lmdb_environment& operator=(const lmdb_environment&) = delete;

  struct databases {
    MDB_dbi records = 0, turns = 0, meta = 0;
  };

  /// Runs `work` in a read transaction.
  using read_work = std::function<expected<void>(MDB_txn*, const databases&)>;
  expected<void> read(const read_work& work);

  /// Runs `work` in a write transaction and commits it. `work` answers with LMDB's code; it runs
  /// again after the map has grown. On error nothing of it remains.
  using write_work = std::function<expected<int>(MDB_txn*, const databases&)>;
  expected<void> write(const write_work& work);

  /// Where scans say which pages they have read.
  map_pages& pages() { return pages_; }

  /// Turns a code of LMDB or errno into an error about this store.
  error failure(int code, const char* verb) const {
    return store_failure(code, verb, options_.directory);
  }

private:
  explicit lmdb_environment(store_options options);
  expected<void> start(bool may_create);
  void stop() noexcept;
  expected<void> open_databases(bool may_create);
  expected<void> check_schema(MDB_txn* txn, bool may_create);
  expected<int> attempt(const write_work& work);
  expected<void> grow();
  void revive();
  void reopen();
  void tend_readers();

  store_options options_;
  store_claim claim_;
  MDB_env* env_ = nullptr;
  databases databases_;
  read_gate gate_;
  map_pages pages_;
  std::mutex writer_;
  int64_t tended_ = 0; // when stale readers were last looked for, in seconds
};

} // namespace kernelmill
