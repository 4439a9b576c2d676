#include "storage/lineage/keys.hpp"

#include <algorithm>
#include <cstring>

#include <xxhash.h>

#include "messages/base/digest.hpp"
#include "storage/lineage/store.hpp"

namespace kernelmill {

namespace {

constexpr uint32_t value_magic = 0x31524d4b; // "KMR1"

struct value_header {
  uint32_t magic = value_magic;
  uint16_t schema = 1;
  uint16_t flags = 0;
  uint64_t checksum = 0;
};
static_assert(sizeof(value_header) == value_header_bytes);
static_assert(std::endian::native == std::endian::little, "headers are stored as they lie");

template <class T>
void put_big_endian(unsigned char* into, T value) {
  for (size_t i = 0; i < sizeof(T); ++i)
    into[i] = static_cast<unsigned char>(value >> (8 * (sizeof(T) - 1 - i)));
}

uint64_t checksum(const store_key& key, const value_header& header, std::span<const char> words) {
  unsigned char seed[sizeof(store_key) + 8];
  std::memcpy(seed, key.data(), key.size());
  std::memcpy(seed + key.size(), &header, 8);
  return XXH3_64bits_withSeed(words.data(), words.size(), XXH3_64bits(seed, sizeof seed));
}

tl::unexpected<error> invalid(const std::string& cause) {
  return infrastructure_error("invalid_record", "failed to commit a record: " + cause);
}

std::string_view view_of(capnp::Text::Reader text) {
  return {text.begin(), text.size()};
}

bool closes(std::string_view state) {
  constexpr std::string_view states[] = {"finished", "incomplete", "cancelled", "failed"};
  return std::find(std::begin(states), std::end(states), state) != std::end(states);
}

expected<record_address> address_of_run(wire::RunRecord::Reader run) {
  record_address result;
  result.run = view_of(run.getRun());
  auto hash = run_hash(result.run);
  auto state = view_of(run.getState());
  if (state != "running" && !closes(state))
    return invalid("a run's state is running, finished, incomplete, cancelled or failed, not \"" +
                   std::string{state} + "\"");
  auto section = state == "running" ? key_section::opening : key_section::closing;
  result.key = make_key(hash, section, 0, 0, run.getOpening());
  return result;
}

expected<record_address> address_of_turn(wire::TurnRecord::Reader turn) {
  record_address result;
  auto episode = turn.getEpisode();
  result.run = view_of(episode.getRun());
  auto id = index_key(view_of(turn.getTurnId()));
  if (!id) return invalid(id.error().message);
  if (turn.getTurn() == key_last) return invalid("its turn is out of range");
  result.turn = *id;
  result.key = make_key(run_hash(result.run), key_section::episodes, episode.getGroup(),
                        episode.getMember(), turn.getTurn());
  return result;
}

} // namespace

uint64_t run_hash(std::string_view run) {
  return XXH3_64bits(run.data(), run.size());
}

store_key make_key(uint64_t run, key_section section, uint32_t group, uint32_t member,
                   uint32_t turn) {
  store_key key;
  put_big_endian(key.data(), run);
  put_big_endian(key.data() + 8, static_cast<uint32_t>(section));
  put_big_endian(key.data() + 12, group);
  put_big_endian(key.data() + 16, member);
  put_big_endian(key.data() + 20, turn);
  return key;
}

store_key key_after_run(uint64_t run) {
  store_key key;
  put_big_endian(key.data(), run);
  std::memset(key.data() + 8, 0xff, key.size() - 8);
  return key;
}

uint32_t group_of(const store_key& key) {
  uint32_t result = 0;
  for (size_t i = 12; i < 16; ++i) result = result << 8 | key[i];
  return result;
}

expected<std::array<unsigned char, 16>> index_key(std::string_view turn_id) {
  if (turn_id.size() != 64 || turn_id.find_first_not_of("0123456789abcdef") != turn_id.npos)
    return configuration_error("invalid_turn_id", "a turn id is 64 lower-case hex digits, not \"" +
                                                      std::string{turn_id.substr(0, 80)} + "\"");
  auto nibble = [&](size_t i) {
    auto c = turn_id[i];
    return static_cast<unsigned>(c <= '9' ? c - '0' : c - 'a' + 10);
  };
  std::array<unsigned char, 16> result;
  for (size_t i = 0; i < result.size(); ++i)
    result[i] = static_cast<unsigned char>(nibble(2 * i) << 4 | nibble(2 * i + 1));
  return result;
}

expected<record_address> address_of(wire::Record::Reader record) {
  auto result = [&]() -> expected<record_address> {
    switch (record.which()) {
      case wire::Record::TURN: return address_of_turn(record.getTurn());
      case wire::Record::RUN: return address_of_run(record.getRun());
      case wire::Record::EPISODE: {
        auto where = record.getEpisode().getEpisode();
        record_address x;
        x.run = view_of(where.getRun());
        x.key = make_key(run_hash(x.run), key_section::episodes, where.getGroup(),
                         where.getMember(), key_last);
        return x;
      }
      case wire::Record::GROUP: {
        auto group = record.getGroup();
        record_address x;
        x.run = view_of(group.getRun());
        x.key =
            make_key(run_hash(x.run), key_section::episodes, group.getGroup(), key_last, key_last);
        return x;
      }
    }
    return invalid("its kind is not known to this version");
  }();
  if (result && result->run.empty()) return invalid("it names no run");
  bool member_out_of_range =
      (record.isTurn() && record.getTurn().getEpisode().getMember() == key_last) ||
      (record.isEpisode() && record.getEpisode().getEpisode().getMember() == key_last);
  if (result && member_out_of_range) return invalid("its member is out of range");
  return result;
}

std::string flaw_of(wire::Record::Reader record) {
  if (!record.isEpisode()) return {};
  auto x = record.getEpisode();
  auto where = x.getEpisode();
  auto rewards = x.getRewards().size();
  if (rewards == 0 || x.getBestTurn() < rewards) return {};
  return "the end of g" + std::to_string(where.getGroup()) + ".e" +
         std::to_string(where.getMember()) + " says that the best of its " +
         std::to_string(rewards) + " turns is number " + std::to_string(x.getBestTurn());
}

uint16_t schema_of(wire::Record::Reader record) {
  if (!record.isTurn()) return 1;
  auto turn = record.getTurn();
  if (turn.getCalls().size() > 0 || turn.getCandidates().size() > 0 ||
      turn.getVerdict().getOutcome() == wire::Outcome::OPEN)
    return 3;
  return turn.getCandidate().isOfCompletion() ? 2 : 1;
}

void write_value(unsigned char* into, const store_key& key, std::span<const char> words,
                 uint16_t schema) {
  value_header header;
  header.schema = schema;
  header.checksum = checksum(key, header, words);
  std::memcpy(into, &header, sizeof header);
  std::memcpy(into + sizeof header, words.data(), words.size());
}

expected<std::span<const char>> read_value(const store_key& key, std::span<const char> value) {
  auto damaged = [&](const char* cause) {
    return infrastructure_error(
        "store_damaged", "failed to read record " + to_hex(key.data(), key.size()) + ": " + cause,
        "restore the store from a copy; other records can still be read");
  };
  value_header header;
  if (value.size() <= sizeof header || value.size() % 8 != 0) return damaged("it is cut off");
  std::memcpy(&header, value.data(), sizeof header);
  if (header.magic != value_magic) return damaged("it does not begin as a record");
  auto words = value.subspan(sizeof header);
  if (checksum(key, header, words) != header.checksum) return damaged("its checksum is wrong");
  if (header.schema > store_schema_version)
    return configuration_error("store_newer",
                               "failed to read a record of schema version " +
                                   std::to_string(header.schema) + ": this program knows " +
                                   std::to_string(store_schema_version),
                               "use the newer kernelmill that wrote it");
  return words;
}

} // namespace kernelmill
