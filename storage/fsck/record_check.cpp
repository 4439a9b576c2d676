#include "storage/fsck/record_check.hpp"

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include <capnp/serialize.h>
#include <kj/exception.h>

#include "messages/base/digest.hpp"
#include "messages/identity.hpp"
#include "storage/lineage/store.hpp"

namespace kernelmill::fsck {

namespace {

uint32_t word_at(const store_key& key, size_t offset) {
  uint32_t result = 0;
  for (size_t i = 0; i < 4; ++i) result = result << 8 | key[offset + i];
  return result;
}

struct parts {
  key_section section;
  uint32_t group, member, turn;
};

parts parts_of(const store_key& key) {
  return {static_cast<key_section>(word_at(key, 8)), word_at(key, 12), word_at(key, 16),
          word_at(key, 20)};
}

std::optional<store_key> key_of(std::string_view bytes) {
  store_key result{};
  if (bytes.size() != result.size()) return std::nullopt;
  std::memcpy(result.data(), bytes.data(), result.size());
  return result;
}

tl::unexpected<error> damaged(const std::string& why) {
  return infrastructure_error("store_damaged", why);
}

expected<void> check_record(const store_key& key, wire::Record::Reader record) {
  auto where = address_of(record);
  KM_TRY(where);
  if (where->key != key) return damaged("it lies under the key of another record");
  if (auto flaw = flaw_of(record); !flaw.empty()) return damaged(flaw);
  if (!record.isTurn()) return {};
  auto turn = record.getTurn();
  auto of = turn.getEpisode();
  episode_id episode{of.getRun(), of.getTask(), of.getGroup(), of.getMember()};
  if (turn.getTurnId() != turn_id(episode, turn.getTurn()))
    return damaged("its turn id is not that of its run, task, episode and turn");
  return {};
}

// -- names and index ----------------------------------------------------------------------------

void check_meta(data_pages& pages, contents& in, fsck_report& report) {
  std::set<std::string> named;
  bool schema = false;
  pages.visit("meta", [&](std::string_view key, std::string_view value) {
    schema = schema || key == "schema_version";
    if (key.size() == 12 && key.starts_with("run/")) named.insert(std::string{key.substr(4)});
    if (!key.starts_with("run/")) return;
    auto expected_key = make_key(run_hash(value), key_section::opening, 0, 0, 0);
    if (std::memcmp(expected_key.data(), key.data() + 4, std::min<size_t>(8, key.size() - 4)) == 0)
      return;
    add(report, finding_state::damage, "run_name", "a run's name has another hash than its key");
    in.rebuild = true;
  });
  std::string last;
  for (const auto& [key, value] : in.records) {
    std::string run{reinterpret_cast<const char*>(key.data()), 8};
    if (run == last) continue;
    last = run;
    if (named.contains(run)) continue;
    add(report, finding_state::damage, "run_name",
        "the run " + to_hex(key.data(), 8) + " has records and no name");
    in.rebuild = true;
  }
  if (schema || in.records.empty()) return;
  add(report, finding_state::damage, "index", "the store does not say its schema version");
  in.rebuild = true;
}

// Each turn has one entry in the index, and each entry one turn.
void check_index(data_pages& pages, contents& in, fsck_report& report) {
  std::map<store_key, std::string> entries;
  uint64_t wrong = 0;
  pages.visit("turn_log", [&](std::string_view, std::string_view value) {
    auto key = value.size() == 40 ? key_of(value.substr(16)) : std::nullopt;
    bool fresh = key && entries.emplace(*key, std::string{value.substr(0, 16)}).second;
    if (!fresh) ++wrong;
  });
  uint64_t missing = 0;
  for (const auto& [key, value] : in.records) {
    auto record = read_record(key, value);
    if (!record || !record->open()->isTurn()) continue;
    auto id = index_key(record->open()->getTurn().getTurnId().cStr());
    auto entry = entries.find(key);
    if (entry == entries.end()) {
      ++missing;
      continue;
    }
    if (std::memcmp(entry->second.data(), id->data(), id->size()) != 0) ++wrong;
    entries.erase(entry);
  }
  for (const auto& [key, id] : entries)
    if (!in.damaged.contains(key)) ++wrong; // a damaged record is told of by itself
  if (missing + wrong == 0) return;
  add(report, finding_state::damage, "index",
      "the index of turns lacks " + std::to_string(missing) + " turns and has " +
          std::to_string(wrong) + " entries that are wrong, doubled or of no turn");
  in.rebuild = true;
}

// -- records ------------------------------------------------------------------------------------

void read_tree(data_pages& pages, contents& in, fsck_report& report) {
  pages.visit("records", [&](std::string_view bytes, std::string_view value) {
    auto key = key_of(bytes);
    if (!key) {
      add(report, finding_state::damage, "record",
          "a record has a key of " + std::to_string(bytes.size()) + " bytes");
      in.rebuild = true;
      return;
    }
    auto record = read_record(*key, value);
    if (record && in.records.emplace(*key, value).second) return;
    in.newer = in.newer || (!record && record.error().category == "store_newer");
    if (!record) in.damaged.insert(*key);
    in.rebuild = true;
  });
}

// A large value without its key: the record says itself where it belongs, and the checksum agrees
// or not.
std::optional<std::pair<store_key, std::string_view>> address_large(std::string_view bytes) {
  if (bytes.size() <= value_header_bytes + sizeof(capnp::word)) return std::nullopt;
  auto rest = bytes.substr(value_header_bytes);
  std::vector<capnp::word> words(rest.size() / sizeof(capnp::word));
  std::memcpy(words.data(), rest.data(), words.size() * sizeof(capnp::word));
  try {
    auto count = capnp::expectedSizeInWordsFromPrefix(kj::arrayPtr(words.data(), words.size()));
    if (count == 0 || count > words.size()) return std::nullopt;
    capnp::FlatArrayMessageReader reader{kj::arrayPtr(words.data(), count), reader_limits(count)};
    auto where = address_of(reader.getRoot<wire::Record>());
    if (!where) return std::nullopt;
    return std::pair{where->key, bytes.substr(0, value_header_bytes + count * sizeof(capnp::word))};
  } catch (const kj::Exception&) {
    return std::nullopt;
  }
}

// Pages outside of the trees still hold records of before: the checksum says which are whole.
void salvage(const data_pages& pages, contents& in, fsck_report& report) {
  uint64_t found = 0;
  auto take = [&](const store_key& key, std::string_view value) {
    if (in.records.contains(key) || !read_record(key, value)) return;
    in.records.emplace(key, value);
    in.damaged.erase(key);
    ++found;
  };
  pages.visit_leaves([&](std::string_view bytes, std::string_view value) {
    if (auto key = key_of(bytes)) take(*key, value);
  });
  pages.visit_large_values([&](std::string_view bytes) {
    if (auto x = address_large(bytes)) take(x->first, x->second);
  });
  if (found > 0)
    add(report, finding_state::damage, "salvaged",
        std::to_string(found) + " records are whole in pages that no tree leads to");
}

} // namespace

void add(fsck_report& to, finding_state state, const char* kind, std::string what) {
  to.findings.push_back({state, kind, std::move(what)});
}

std::string name_of(const store_key& key) {
  auto x = parts_of(key);
  if (x.section != key_section::episodes) return "the run's record " + std::to_string(x.turn);
  auto result = "g" + std::to_string(x.group);
  if (x.member == key_last) return result;
  result += ".e" + std::to_string(x.member);
  return x.turn == key_last ? result : result + ".t" + std::to_string(x.turn);
}

expected<Message<wire::Record>> read_record(const store_key& key, std::string_view value) {
  auto words = read_value(key, {value.data(), value.size()});
  KM_TRY(words);
  auto message = Message<wire::Record>::from_bytes(words->data(), words->size());
  KM_TRY(message);
  try {
    auto view = message->open();
    KM_TRY(check_record(key, *view));
    return message;
  } catch (const kj::Exception& e) {
    return damaged(std::string{"its words cannot be read: "} + e.getDescription().cStr());
  }
}

contents read_contents(data_pages& pages, fsck_report& report) {
  contents result;
  read_tree(pages, result, report);
  if (result.newer) return result;
  if (!pages.flaws().empty()) {
    for (const auto& flaw : pages.flaws()) add(report, finding_state::damage, "page", flaw);
    result.rebuild = true;
  }
  if (result.rebuild) salvage(pages, result, report);
  if (result.rebuild && result.records.empty())
    add(report, finding_state::lost, "record", "no record can be read at all");
  for (const auto& key : result.damaged)
    add(report, finding_state::lost, "record",
        "the record of " + name_of(key) + " is damaged and has no other copy in the store");
  auto told = pages.flaws().size();
  check_meta(pages, result, report);
  check_index(pages, result, report);
  for (auto i = told; i < pages.flaws().size(); ++i) {
    add(report, finding_state::damage, "page", pages.flaws()[i]);
    result.rebuild = true;
  }
  report.records = result.records.size();
  return result;
}

std::vector<stored_group> groups_of(const contents& in, const std::string& run) {
  std::vector<stored_group> result;
  auto hash = run_hash(run);
  auto i = in.records.lower_bound(make_key(hash, key_section::episodes, 0, 0, 0));
  auto end =
      in.records.upper_bound(make_key(hash, key_section::episodes, key_last, key_last, key_last));
  for (; i != end; ++i) {
    auto where = parts_of(i->first);
    auto record = read_record(i->first, i->second);
    if (!record) continue;
    if (result.empty() || result.back().group != where.group)
      result.push_back({where.group, {}, {}});
    auto& group = result.back();
    if (where.member == key_last) {
      group.end = std::move(*record);
      continue;
    }
    if (group.episodes.empty() || group.episodes.back().member != where.member)
      group.episodes.push_back({where.member, {}, {}});
    auto& episode = group.episodes.back();
    if (where.turn == key_last)
      episode.end = std::move(*record);
    else
      episode.turns.push_back(std::move(*record));
  }
  return result;
}

namespace {

void check_episode(const std::string& name, const stored_episode& x, fsck_report& report) {
  uint32_t next = 0;
  auto lost = [&](uint32_t turn) {
    add(report, finding_state::lost, "sequence",
        name + ".t" + std::to_string(turn) + " is not there, and what came after it is");
  };
  for (const auto& record : x.turns) {
    auto number = record.open()->getTurn().getTurn();
    for (; next < number; ++next) lost(next);
    next = number + 1;
  }
  if (x.end)
    for (auto turns = x.end->open()->getEpisode().getTurns(); next < turns; ++next) lost(next);
  report.turns += x.turns.size();
}

} // namespace

void check_sequences(const contents& in, const std::string& run, fsck_report& report) {
  for (const auto& group : groups_of(in, run)) {
    auto name = "g" + std::to_string(group.group);
    for (const auto& episode : group.episodes) {
      auto episode_name = name + ".e" + std::to_string(episode.member);
      check_episode(episode_name, episode, report);
      if (group.end && !episode.end)
        add(report, finding_state::lost, "sequence",
            "the end of " + episode_name + " is not there, and that of its group is");
    }
    auto members = group.end ? group.end->open()->getGroup().getReturns().size() : 0;
    for (uint32_t i = 0; i < members; ++i)
      if (std::none_of(group.episodes.begin(), group.episodes.end(),
                       [&](auto& x) { return x.member == i; }))
        add(report, finding_state::lost, "sequence",
            name + ".e" + std::to_string(i) + " is not there, and the end of its group is");
  }
  auto hash = run_hash(run);
  auto has = [&](key_section section, uint32_t number) {
    return in.records.contains(make_key(hash, section, 0, 0, number));
  };
  auto ended = in.records.lower_bound(make_key(hash, key_section::closing, 0, 0, 0));
  auto end = in.records.upper_bound(key_after_run(hash));
  for (; ended != end; ++ended)
    if (auto number = parts_of(ended->first).turn; !has(key_section::opening, number))
      add(report, finding_state::lost, "sequence",
          "opening " + std::to_string(number) + " of the run is not there, and its end is");
}

} // namespace kernelmill::fsck
