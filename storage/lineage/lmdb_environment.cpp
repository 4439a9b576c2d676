#include "storage/lineage/lmdb_environment.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "storage/disk.hpp"
#include "storage/files.hpp"
#include "storage/lineage/page_check.hpp"

namespace kernelmill {

namespace {

// What LMDB asks of its lock file: a header and 64 bytes a reader, in whole pages.
constexpr off_t lock_file_bytes = 64 * (max_store_readers + 64);

int64_t steady_seconds() {
  auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::seconds>(now).count();
}

} // namespace

// -- opening and closing ------------------------------------------------------------------------

lmdb_environment::lmdb_environment(store_options options) : options_(std::move(options)) {
  // nop
}

lmdb_environment::~lmdb_environment() {
  stop();
}

expected<std::unique_ptr<lmdb_environment>> lmdb_environment::open(const store_options& options) {
  std::unique_ptr<lmdb_environment> result{new lmdb_environment{options}};
  if (!options.read_only)
    if (auto ok = make_directories(options.directory); !ok) {
      auto why = ok.error();
      if (why.category == "read_only") why.category = "store_read_only";
      return tl::unexpected(std::move(why));
    }
  KM_TRY(result->claim_.take(options));
  KM_TRY(result->start(!options.read_only));
  return result;
}

namespace {

// The last pages of a transaction may never have been written. Reading beyond the end of the
// file would be a SIGBUS if anything damaged points there; a hole reads as zeros, which checks
// find.
void extend_data_file(MDB_env* env) {
  MDB_envinfo info;
  MDB_stat stat;
  int fd = -1;
  struct stat facts {};
  if (mdb_env_info(env, &info) != 0 || mdb_env_stat(env, &stat) != 0 ||
      mdb_env_get_fd(env, &fd) != 0 || ::fstat(fd, &facts) != 0)
    return;
  auto wanted = static_cast<off_t>((info.me_last_pgno + 1) * stat.ms_psize);
  if (facts.st_size < wanted) [[maybe_unused]]
    auto status = ::ftruncate(fd, wanted);
}

// LMDB keeps a second descriptor for synchronous writes and has no call for it; /proc lists it.
void close_on_exec(const std::string& directory) {
  auto real =
      std::unique_ptr<char, void (*)(void*)>{::realpath(directory.c_str(), nullptr), std::free};
  if (!real) return;
  std::string prefix = std::string{real.get()} + "/";
  std::error_code problem;
  for (std::filesystem::directory_iterator i{"/proc/self/fd", problem}, end; !problem && i != end;
       i.increment(problem)) {
    char target[4096];
    auto size = ::readlink(i->path().c_str(), target, sizeof target);
    if (size > 0 && std::string_view{target, static_cast<size_t>(size)}.starts_with(prefix))
      ::fcntl(std::atoi(i->path().filename().c_str()), F_SETFD, FD_CLOEXEC);
  }
}

} // namespace

expected<void> lmdb_environment::start(bool may_create) {
  const auto& where = options_.directory;
  bool writes = !options_.read_only;
  bool seated = ::access(where.c_str(), W_OK) == 0;
  if (writes || seated)
    if (int code = reserve_file(where + "/lock.mdb", lock_file_bytes); code != 0)
      return tl::unexpected(failure(code, "open"));
  auto data_file = where + "/data.mdb";
  if (may_create && is_unborn(data_file) && ::unlink(data_file.c_str()) != 0)
    return tl::unexpected(failure(errno, "open"));
  bool fresh = ::access(data_file.c_str(), F_OK) != 0;
  if (auto missing = missing_pages(data_file))
    return tl::unexpected(
        infrastructure_error("store_damaged", "failed to open the store " + where + ": " + *missing,
                             "restore it from a copy"));
  if (int code = mdb_env_create(&env_); code != 0) return tl::unexpected(failure(code, "open"));
  auto page = static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
  auto map = std::max<uint64_t>((options_.map_bytes + page - 1) / page * page, 16 * page);
  unsigned flags = MDB_NOTLS;
  if (!writes) flags |= MDB_RDONLY;
  if (!writes && !seated) flags |= MDB_NOLOCK;
  if (!options_.durable) flags |= MDB_NOSYNC;
  int code = mdb_env_set_maxreaders(env_, max_store_readers);
  if (code == 0) code = mdb_env_set_maxdbs(env_, 4);
  // A reader takes the map as the writer left it.
  if (code == 0 && writes) code = mdb_env_set_mapsize(env_, map);
  if (code == 0) code = mdb_env_open(env_, where.c_str(), flags, 0666);
  if (code != 0) {
    auto why = failure(code, "open");
    stop();
    return tl::unexpected(std::move(why));
  }
  close_on_exec(where);
  // LMDB syncs neither its first two pages before it writes others, nor the file's name.
  if (fresh && writes && options_.durable) {
    code = mdb_env_sync(env_, 1);
    auto named = code == 0 ? sync_directory(where) : tl::unexpected(failure(code, "create"));
    if (!named) {
      stop();
      return named;
    }
  }
  if (writes) extend_data_file(env_);
  tend_readers();
  auto ok = open_databases(may_create);
  if (!ok) stop();
  return ok;
}

void lmdb_environment::stop() noexcept {
  pages_.forget();
  if (env_) mdb_env_close(env_);
  env_ = nullptr;
}

expected<void> lmdb_environment::open_databases(bool may_create) {
  auto open_all = [this](MDB_txn* txn, unsigned flags) {
    int code = mdb_dbi_open(txn, "records", flags, &databases_.records);
    if (code == 0) code = mdb_dbi_open(txn, "turn_log", flags | MDB_INTEGERKEY, &databases_.turns);
    if (code == 0) code = mdb_dbi_open(txn, "meta", flags, &databases_.meta);
    return code;
  };
  // Look first: a store that is there already opens on a full disk too.
  MDB_txn* txn = nullptr;
  int code = mdb_txn_begin(env_, nullptr, MDB_RDONLY, &txn);
  if (code != 0) return tl::unexpected(failure(code, "open"));
  code = open_all(txn, 0);
  if (code == 0) {
    auto schema = check_schema(txn, false);
    mdb_txn_commit(txn); // not abort: that would close the handles
    return schema;
  }
  mdb_txn_abort(txn);
  if (code != MDB_NOTFOUND || !may_create) return tl::unexpected(failure(code, "open"));
  return write([&](MDB_txn* writing, const databases&) -> expected<int> {
    if (int status = open_all(writing, MDB_CREATE); status != 0) return status;
    KM_TRY(check_schema(writing, true));
    return 0;
  });
}

expected<void> lmdb_environment::check_schema(MDB_txn* txn, bool may_create) {
  char name[] = "schema_version";
  MDB_val key{sizeof name - 1, name};
  MDB_val value{};
  int code = mdb_get(txn, databases_.meta, &key, &value);
  uint32_t version = first_schema_version;
  if (code == MDB_NOTFOUND && may_create) {
    value = {sizeof version, &version};
    code = mdb_put(txn, databases_.meta, &key, &value, 0);
    return code == 0 ? expected<void>{} : tl::unexpected(failure(code, "create"));
  }
  if (code != 0 || value.mv_size != sizeof version)
    return tl::unexpected(failure(code == 0 ? MDB_CORRUPTED : code, "open"));
  std::memcpy(&version, value.mv_data, sizeof version);
  if (version > store_schema_version)
    return configuration_error("store_newer",
                               "failed to open the store " + options_.directory +
                                   ": it has schema version " + std::to_string(version) +
                                   ", this program knows " + std::to_string(store_schema_version),
                               "use the newer kernelmill that wrote it");
  return {};
}

// -- reading and writing ------------------------------------------------------------------------

namespace {

// Callbacks may throw (bad_alloc). The gate and LMDB's reader slot are given back all the same.
struct seat {
  explicit seat(read_gate& x) : gate(x) { gate.enter(); }
  ~seat() {
    if (txn) mdb_txn_abort(txn);
    gate.leave();
  }
  seat(const seat&) = delete;
  seat& operator=(const seat&) = delete;

  read_gate& gate;
  MDB_txn* txn = nullptr;
};

} // namespace

expected<void> lmdb_environment::read(const read_work& work) {
  for (bool again = true;; again = false) {
    {
      seat here{gate_};
      int code = env_ ? mdb_txn_begin(env_, nullptr, MDB_RDONLY, &here.txn) : MDB_PANIC;
      if (code == 0) return work(here.txn, databases_);
      if (code != MDB_MAP_RESIZED || !again) return tl::unexpected(failure(code, "read"));
    }
    // Another process has grown the store.
    gate_.alone([this] {
      pages_.forget();
      mdb_env_set_mapsize(env_, 0);
    });
  }
}

expected<void> lmdb_environment::write(const write_work& work) {
  if (options_.read_only) return tl::unexpected(failure(EROFS, "write"));
  if (!claim_.is_there())
    return infrastructure_error("store_removed",
                                "failed to write to the store " + options_.directory +
                                    ": its folder was removed while the run was in progress",
                                "what it held is lost; start the run again");
  std::scoped_lock lock{writer_};
  tend_readers();
  for (;;) {
    revive();
    auto code = attempt(work);
    KM_TRY(code);
    if (*code == 0) return {};
    if (*code == MDB_MAP_FULL) {
      if (auto ok = grow(); !ok) return ok;
      continue;
    }
    if (*code == EIO) *code = cause_of_short_write(options_.directory, "data.mdb");
    auto why = failure(*code, "write");
    revive();
    return tl::unexpected(std::move(why));
  }
}

// LMDB refuses everything, reads too, once a meta page could not be written. Opening it again
// goes back to the last commit that is whole.
void lmdb_environment::revive() {
  MDB_txn* txn = nullptr;
  if (env_ && mdb_txn_begin(env_, nullptr, MDB_RDONLY, &txn) != MDB_PANIC) {
    if (txn) mdb_txn_abort(txn);
    return;
  }
  reopen();
}

expected<int> lmdb_environment::attempt(const write_work& work) {
  if (!env_) return MDB_PANIC;
  MDB_txn* txn = nullptr;
  if (int code = mdb_txn_begin(env_, nullptr, 0, &txn); code != 0) return code;
  auto code = work(txn, databases_);
  if (code && *code == 0) return mdb_txn_commit(txn);
  mdb_txn_abort(txn);
  return code;
}

expected<void> lmdb_environment::grow() {
  MDB_envinfo info;
  mdb_env_info(env_, &info);
  int code = 0;
  bool alone = gate_.alone([&] {
    pages_.forget();
    code = mdb_env_set_mapsize(env_, info.me_mapsize * 2);
  });
  if (alone && code == 0) return {};
  if (!alone)
    return infrastructure_error("store_busy",
                                "failed to grow the store " + options_.directory +
                                    ": the thread that commits is reading it",
                                "commit outside of scans");
  // The old map is gone by now.
  reopen();
  return tl::unexpected(failure(code, "grow"));
}

// Never creates: creating writes, and this runs while a write holds the lock.
void lmdb_environment::reopen() {
  gate_.alone([this] {
    stop();
    [[maybe_unused]] auto ok = start(false);
  });
}

// A killed reader keeps its reader slot, and with it every page freed since.
void lmdb_environment::tend_readers() {
  constexpr int64_t interval = 60;
  auto now = steady_seconds();
  if (tended_ != 0 && now - tended_ < interval) return;
  tended_ = now;
  int dead = 0;
  if (env_) mdb_reader_check(env_, &dead);
}

} // namespace kernelmill
