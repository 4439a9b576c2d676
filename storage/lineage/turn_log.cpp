#include "storage/lineage/turn_log.hpp"

#include <cstring>

#include "storage/lineage/lmdb_values.hpp"

namespace kernelmill {

turn_entry turn_entry_of(const turn_key& id, const store_key& key) {
  turn_entry result;
  std::memcpy(result.data(), id.data(), id.size());
  std::memcpy(result.data() + id.size(), key.data(), key.size());
  return result;
}

int append_turns(MDB_txn* txn, MDB_dbi log, const std::vector<turn_entry>& turns) {
  if (turns.empty()) return 0;
  lmdb_cursor end;
  if (int code = mdb_cursor_open(txn, log, &end.at); code != 0) return code;
  MDB_val key{}, value{};
  uint64_t number = 0;
  int code = mdb_cursor_get(end.at, &key, &value, MDB_LAST);
  if (code == 0) std::memcpy(&number, key.mv_data, sizeof number);
  if (code != 0 && code != MDB_NOTFOUND) return code;
  for (const auto& turn : turns) {
    ++number;
    key = {sizeof number, &number};
    value = val_of(turn);
    if (code = mdb_cursor_put(end.at, &key, &value, MDB_APPEND); code != 0) return code;
  }
  return 0;
}

expected<std::optional<store_key>> find_in_log(lmdb_environment& env, MDB_txn* txn, MDB_dbi log,
                                               const turn_key& id) {
  lmdb_cursor here;
  MDB_val key{}, value{};
  int code = mdb_cursor_open(txn, log, &here.at);
  if (code == 0) code = mdb_cursor_get(here.at, &key, &value, MDB_LAST);
  for (; code == 0; code = mdb_cursor_get(here.at, &key, &value, MDB_PREV)) {
    if (value.mv_size != std::tuple_size_v<turn_entry>)
      return tl::unexpected(env.failure(MDB_CORRUPTED, "read"));
    auto* bytes = static_cast<const unsigned char*>(value.mv_data);
    if (std::memcmp(bytes, id.data(), id.size()) != 0) continue;
    store_key found;
    std::memcpy(found.data(), bytes + id.size(), found.size());
    return found;
  }
  if (code != MDB_NOTFOUND) return tl::unexpected(env.failure(code, "read"));
  return std::nullopt;
}

} // namespace kernelmill
