#pragma once

// What of a store's records, names and index can be believed. Private to storage/fsck.

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <unordered_set>

#include "storage/fsck/fsck.hpp"
#include "storage/fsck/pages.hpp"
#include "storage/lineage/group_reader.hpp"
#include "storage/lineage/keys.hpp"

namespace kernelmill::fsck {

/// Everything that was found in data.mdb. Values live as long as the pages do.
struct contents {
  std::map<store_key, std::string_view> records; ///< whole ones, as they are stored
  std::set<store_key> damaged;                   ///< keys of those that are not
  bool rebuild = false;                          ///< the file must be made anew
  bool newer = false;                            ///< a record is of a newer schema
};

/// "g0.e1.t2", "g0.e1", "g0", or the run's own.
std::string name_of(const store_key& key);

/// A record that is whole in itself: checksum, schema, the key that it belongs under, the turn's
/// id.
expected<Message<wire::Record>> read_record(const store_key& key, std::string_view value);

/// Reads the pages, then records, names and index, and reports what is wrong with them.
contents read_contents(data_pages& pages, fsck_report& report);

/// Reports turns, ends and openings of `run` that must be there and are not.
void check_sequences(const contents& in, const std::string& run, fsck_report& report);

/// The whole records of each group of a run, in order.
std::vector<stored_group> groups_of(const contents& in, const std::string& run);

void add(fsck_report& to, finding_state state, const char* kind, std::string what);

} // namespace kernelmill::fsck
