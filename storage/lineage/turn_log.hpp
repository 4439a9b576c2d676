#pragma once

// Which record a turn's id is of. Private to storage/.

#include <array>
#include <optional>
#include <vector>

#include "storage/lineage/keys.hpp"
#include "storage/lineage/lmdb_environment.hpp"

namespace kernelmill {

using turn_key = std::array<unsigned char, 16>;

/// A turn's id, then the key of its record.
using turn_entry = std::array<unsigned char, std::tuple_size_v<turn_key> + sizeof(store_key)>;

turn_entry turn_entry_of(const turn_key& id, const store_key& key);

/// Turn ids are hashes: kept in their own order, every commit would write a page for each of them.
/// In the order of their commits they fill one page. Returns LMDB's code.
int append_turns(MDB_txn* txn, MDB_dbi log, const std::vector<turn_entry>& turns);

/// Reads the log from its end, 40 bytes a turn: a million turns take some 20 ms.
expected<std::optional<store_key>> find_in_log(lmdb_environment& env, MDB_txn* txn, MDB_dbi log,
                                               const turn_key& id);

} // namespace kernelmill
