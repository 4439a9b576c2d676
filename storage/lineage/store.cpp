#include "storage/lineage/store.hpp"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <unordered_map>

#include <capnp/serialize.h>
#include <kj/exception.h>

#include "storage/lineage/keys.hpp"
#include "storage/lineage/lmdb_environment.hpp"
#include "storage/lineage/lmdb_values.hpp"
#include "storage/lineage/map_pages.hpp"
#include "storage/lineage/turn_log.hpp"

namespace kernelmill {

struct store::state {
  explicit state(std::unique_ptr<lmdb_environment> x) : env(std::move(x)) {
    // nop
  }

  std::unique_ptr<lmdb_environment> env;
  std::mutex mutex;
  std::unordered_map<uint64_t, std::string> known_runs; // by hash; committed ones only
};

namespace {

expected<store_key> key_of(const MDB_val& x) {
  store_key key{};
  if (x.mv_size != key.size())
    return infrastructure_error("store_damaged", "failed to read a record: its key is " +
                                                     std::to_string(x.mv_size) + " bytes long");
  std::memcpy(key.data(), x.mv_data, key.size());
  return key;
}

// The boundary to Cap'n Proto's exceptions for everything that is read from the store.
template <class F>
auto guarded(const char* what, F&& f) -> decltype(f()) {
  try {
    return f();
  } catch (const kj::Exception& e) {
    return infrastructure_error("store_damaged", std::string{"failed to read "} + what + ": " +
                                                     e.getDescription().cStr());
  }
}

// Opens the words where they lie when they are aligned, which they are with the keys of today.
expected<bool> visit_value(const store_key& key, const MDB_val& value,
                           const record_visitor& visit) {
  auto words = read_value(key, bytes_of(value));
  KM_TRY(words);
  size_t count = words->size() / sizeof(capnp::word);
  kj::Array<capnp::word> copy;
  auto at = reinterpret_cast<const capnp::word*>(words->data());
  if (reinterpret_cast<uintptr_t>(words->data()) % sizeof(capnp::word) != 0) {
    copy = kj::heapArray<capnp::word>(count);
    std::memcpy(copy.begin(), words->data(), words->size());
    at = copy.begin();
  }
  return guarded("a record", [&]() -> expected<bool> {
    capnp::FlatArrayMessageReader reader{kj::arrayPtr(at, count), reader_limits(count)};
    auto record = reader.getRoot<wire::Record>();
    if (auto flaw = flaw_of(record); !flaw.empty())
      return infrastructure_error(
          "store_damaged", "failed to read a record: its checksum is right, but " + flaw,
          "was it written by another program? restore the store from a copy");
    return visit(record);
  });
}

// Visits [first, last], both included.
expected<void> scan(lmdb_environment& env, const store_key& first, const store_key& last,
                    const record_visitor& visit) {
  return env.read([&](MDB_txn* txn, const lmdb_environment::databases& in) -> expected<void> {
    lmdb_cursor here;
    if (int code = mdb_cursor_open(txn, in.records, &here.at); code != 0)
      return tl::unexpected(env.failure(code, "read"));
    visited_pages pages{env.pages()};
    auto key = val_of(first);
    MDB_val value{};
    int code = mdb_cursor_get(here.at, &key, &value, MDB_SET_RANGE);
    for (; code == 0; code = mdb_cursor_get(here.at, &key, &value, MDB_NEXT)) {
      auto found = key_of(key);
      KM_TRY(found);
      if (*found > last) return {};
      auto more = visit_value(*found, value, visit);
      KM_TRY(more);
      pages.add(value); // its checksum is right, so it lies where it says
      if (key.mv_data != static_cast<const void*>(first.data())) pages.add(key);
      if (!*more) return {};
    }
    if (code != MDB_NOTFOUND) return tl::unexpected(env.failure(code, "read"));
    return {};
  });
}

// -- committing ---------------------------------------------------------------------------------

struct item {
  record_address where;
  std::string run;
  const Message<wire::Record>* record;
  uint16_t schema;
};

expected<std::vector<item>> items_of(const std::vector<Message<wire::Record>>& batch) {
  std::vector<item> result;
  result.reserve(batch.size());
  for (const auto& record : batch) {
    auto ok = guarded("a record that is to be committed", [&]() -> expected<void> {
      auto view = record.open();
      auto where = address_of(*view);
      KM_TRY(where);
      result.push_back({*where, std::string{where->run}, &record, schema_of(*view)});
      result.back().where.run = {};
      return {};
    });
    KM_TRY(ok);
  }
  return result;
}

// Writes the run's name once; two names with one hash would share records.
expected<int> put_run(MDB_txn* txn, MDB_dbi meta, const store_key& key, const std::string& run) {
  std::array<unsigned char, 12> name{'r', 'u', 'n', '/'};
  std::memcpy(name.data() + 4, key.data(), 8);
  auto name_val = val_of(name);
  auto value = val_of(run);
  int code = mdb_put(txn, meta, &name_val, &value, MDB_NOOVERWRITE);
  if (code != MDB_KEYEXIST) return code;
  std::string there{static_cast<const char*>(value.mv_data), value.mv_size};
  if (there == run) return 0;
  return configuration_error("run_name_taken",
                             "failed to commit a record of run " + run + ": the store files run " +
                                 there + " under the same hash",
                             "give the run another name");
}

// Returns whether the record is new.
expected<bool> put_record(MDB_txn* txn, const lmdb_environment::databases& in, const item& x,
                          int& code) {
  auto key = val_of(x.where.key);
  MDB_val value{value_header_bytes + x.record->size(), nullptr};
  // Reserved space is filled in place: one copy, from the message into the page.
  code = mdb_put(txn, in.records, &key, &value, MDB_NOOVERWRITE | MDB_RESERVE);
  if (code == MDB_KEYEXIST) {
    code = 0;
    return false;
  }
  if (code != 0) return false;
  write_value(static_cast<unsigned char*>(value.mv_data), x.where.key,
              {x.record->data(), x.record->size()}, x.schema);
  return true;
}

// A store that an older program made says what its newest record needs, so that the older program
// refuses it as a whole.
int raise_schema(MDB_txn* txn, MDB_dbi meta, uint32_t needed) {
  if (needed < 2) return 0;
  std::string_view name = "schema_version";
  auto key = val_of(name);
  MDB_val value{};
  uint32_t there = 0;
  int code = mdb_get(txn, meta, &key, &value);
  if (code == 0 && value.mv_size == sizeof there) std::memcpy(&there, value.mv_data, sizeof there);
  if (code != 0 && code != MDB_NOTFOUND) return code;
  if (there >= needed) return 0;
  value = {sizeof needed, &needed};
  return mdb_put(txn, meta, &key, &value, 0);
}

} // namespace

// -- store --------------------------------------------------------------------------------------

store::store(std::unique_ptr<state> x) : state_(std::move(x)) {
  // nop
}
store::store(store&&) noexcept = default;
store& store::operator=(store&&) noexcept = default;
store::~store() = default;

expected<store> store::open(const store_options& options) {
  auto env = lmdb_environment::open(options);
  KM_TRY(env);
  return store{std::make_unique<state>(std::move(*env))};
}

expected<std::vector<bool>> store::commit(const std::vector<Message<wire::Record>>& batch) {
  std::vector<bool> fresh(batch.size(), false);
  if (batch.empty()) return fresh;
  auto items = items_of(batch);
  KM_TRY(items);
  // Ascending keys touch each page of the trees once. Stable: of two equal records in a batch
  // the first is the one that is new.
  std::vector<size_t> order(items->size());
  std::iota(order.begin(), order.end(), size_t{0});
  auto by_key = [&](size_t a, size_t b) { return (*items)[a].where.key < (*items)[b].where.key; };
  std::stable_sort(order.begin(), order.end(), by_key);
  std::vector<turn_entry> new_turns;
  std::unordered_map<uint64_t, std::string> new_runs;

  auto work = [&](MDB_txn* txn, const lmdb_environment::databases& in) -> expected<int> {
    new_turns.clear();
    new_runs.clear();
    uint16_t schema = 1;
    for (auto i : order) {
      const auto& x = (*items)[i];
      auto hash = run_hash(x.run);
      auto known = state_->known_runs.find(hash);
      if ((known == state_->known_runs.end() || known->second != x.run) &&
          new_runs[hash] != x.run) {
        auto code = put_run(txn, in.meta, x.where.key, x.run);
        if (!code || *code != 0) return code;
        new_runs[hash] = x.run;
      }
      int code = 0;
      auto is_new = put_record(txn, in, x, code);
      if (code != 0) return code;
      fresh[i] = *is_new;
      if (*is_new) schema = std::max(schema, x.schema);
      if (*is_new && x.where.turn) new_turns.push_back(turn_entry_of(*x.where.turn, x.where.key));
    }
    if (int code = raise_schema(txn, in.meta, schema); code != 0) return code;
    return append_turns(txn, in.turns, new_turns);
  };
  std::scoped_lock lock{state_->mutex};
  KM_TRY(state_->env->write(work));
  state_->known_runs.merge(new_runs);
  return fresh;
}

expected<void> store::scan_run(const std::string& run, const record_visitor& visit) const {
  auto hash = run_hash(run);
  return scan(*state_->env, make_key(hash, key_section::opening, 0, 0, 0), key_after_run(hash),
              visit);
}

expected<void> store::scan_openings(const std::string& run, const record_visitor& visit) const {
  auto hash = run_hash(run);
  for (auto section : {key_section::opening, key_section::closing})
    if (auto ok = scan(*state_->env, make_key(hash, section, 0, 0, 0),
                       make_key(hash, section, key_last, key_last, key_last), visit);
        !ok)
      return ok;
  return {};
}

expected<void> store::scan_episode(const std::string& run, uint32_t group, uint32_t member,
                                   const record_visitor& visit) const {
  auto hash = run_hash(run);
  return scan(*state_->env, make_key(hash, key_section::episodes, group, member, 0),
              make_key(hash, key_section::episodes, group, member, key_last), visit);
}

expected<void> store::scan_group(const std::string& run, uint32_t group,
                                 const record_visitor& visit) const {
  auto hash = run_hash(run);
  return scan(*state_->env, make_key(hash, key_section::episodes, group, 0, 0),
              make_key(hash, key_section::episodes, group, key_last, key_last), visit);
}

expected<std::vector<uint32_t>> store::groups(const std::string& run) const {
  std::vector<uint32_t> result;
  auto hash = run_hash(run);
  auto& env = *state_->env;
  auto ok = env.read([&](MDB_txn* txn, const lmdb_environment::databases& in) -> expected<void> {
    lmdb_cursor here;
    if (int code = mdb_cursor_open(txn, in.records, &here.at); code != 0)
      return tl::unexpected(env.failure(code, "read"));
    auto last = make_key(hash, key_section::episodes, key_last, key_last, key_last);
    visited_pages pages{env.pages()};
    for (uint64_t next = 0; next <= key_last;) {
      auto first = make_key(hash, key_section::episodes, static_cast<uint32_t>(next), 0, 0);
      auto key = val_of(first);
      MDB_val value{};
      int code = mdb_cursor_get(here.at, &key, &value, MDB_SET_RANGE);
      if (code == MDB_NOTFOUND) return {};
      if (code != 0) return tl::unexpected(env.failure(code, "read"));
      auto found = key_of(key);
      KM_TRY(found);
      if (*found > last) return {};
      if (key.mv_data != static_cast<const void*>(first.data())) pages.add_sought(key);
      result.push_back(group_of(*found));
      next = uint64_t{result.back()} + 1;
    }
    return {};
  });
  KM_TRY(ok);
  return result;
}

expected<std::optional<Message<wire::Record>>> store::find_turn(const std::string& turn_id) const {
  auto id = index_key(turn_id);
  KM_TRY(id);
  std::optional<Message<wire::Record>> result;
  auto& env = *state_->env;
  auto ok = env.read([&](MDB_txn* txn, const lmdb_environment::databases& in) -> expected<void> {
    auto where = find_in_log(env, txn, in.turns, *id);
    KM_TRY(where);
    if (!*where) return {};
    auto key = val_of(**where);
    MDB_val value{};
    if (int code = mdb_get(txn, in.records, &key, &value); code != 0)
      return tl::unexpected(env.failure(code == MDB_NOTFOUND ? MDB_CORRUPTED : code, "read"));
    auto words = read_value(**where, bytes_of(value));
    KM_TRY(words);
    auto message = Message<wire::Record>::from_bytes(words->data(), words->size());
    KM_TRY(message);
    return guarded("a turn", [&]() -> expected<void> {
      auto view = message->open();
      if (view->isTurn() && turn_id == view->getTurn().getTurnId().cStr()) result = *message;
      return {};
    });
  });
  KM_TRY(ok);
  return result;
}

expected<std::vector<std::string>> store::runs() const {
  std::vector<std::string> result;
  auto& env = *state_->env;
  auto ok = env.read([&](MDB_txn* txn, const lmdb_environment::databases& in) -> expected<void> {
    lmdb_cursor here;
    if (int code = mdb_cursor_open(txn, in.meta, &here.at); code != 0)
      return tl::unexpected(env.failure(code, "read"));
    std::string_view prefix = "run/";
    auto key = val_of(prefix);
    MDB_val value{};
    int code = mdb_cursor_get(here.at, &key, &value, MDB_SET_RANGE);
    for (; code == 0; code = mdb_cursor_get(here.at, &key, &value, MDB_NEXT)) {
      auto name = bytes_of(key);
      if (!std::string_view{name.data(), name.size()}.starts_with(prefix)) return {};
      result.emplace_back(static_cast<const char*>(value.mv_data), value.mv_size);
    }
    if (code != MDB_NOTFOUND) return tl::unexpected(env.failure(code, "read"));
    return {};
  });
  KM_TRY(ok);
  std::sort(result.begin(), result.end());
  return result;
}

uint64_t store::record_count() const {
  uint64_t count = 0;
  auto& env = *state_->env;
  [[maybe_unused]] auto ok =
      env.read([&](MDB_txn* txn, const lmdb_environment::databases& in) -> expected<void> {
        MDB_stat stat{};
        if (mdb_stat(txn, in.records, &stat) == 0) count = stat.ms_entries;
        return {};
      });
  return count;
}

} // namespace kernelmill
