#pragma once

// Keys and values of the store, byte by byte (docs/reference/store.md). Keys are 24 bytes and
// every value is a multiple of 8, so LMDB keeps every value 8-aligned, in a leaf or in an overflow
// page, and a record is read where it lies.
//
//   key:   run hash | section | group | member | turn     8 + 4 x 4 bytes, big-endian
//   value: magic | schema version | flags | checksum      4 + 2 + 2 + 8 bytes, little-endian,
//          then the words of the Message<Record>
//
// The checksum is XXH3-64 of the words, seeded with the hash of key and header, so that a right
// value under a wrong key is damage too. XXH3 runs at memory speed; SHA-256 would halve the rate
// of commits and still could not stop a process that can write the file.

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "messages/error.hpp"
#include "messages/lineage.capnp.h"

namespace kernelmill {

using store_key = std::array<unsigned char, 24>;

inline constexpr size_t value_header_bytes = 16;

/// Sections of a run, in key order.
enum class key_section : uint32_t {
  opening = 0,  ///< the run's records in state "running", one for each time it was opened
  episodes = 1, ///< turns, episodes and groups
  closing = 2,  ///< the run's records in other states: how each of those times ended
};

/// Sorts after every turn of an episode, and after every member of a group.
inline constexpr uint32_t key_last = UINT32_MAX;

uint64_t run_hash(std::string_view run);

store_key make_key(uint64_t run, key_section section, uint32_t group, uint32_t member,
                   uint32_t turn);

/// Returns the first key after every key of `run`; the caller stops there.
store_key key_after_run(uint64_t run);

uint32_t group_of(const store_key& key);

/// What a record is filed under.
struct record_address {
  store_key key{};
  std::string_view run;                              ///< lives as long as the record
  std::optional<std::array<unsigned char, 16>> turn; ///< key of the turn index
};

/// Errors: "invalid_record" names the field that is missing or out of range.
expected<record_address> address_of(wire::Record::Reader record);

/// Names what readers assume of a record, its checksum does not prove, and is false; else empty.
std::string flaw_of(wire::Record::Reader record);

/// The turn index holds the first 16 of the 32 bytes: half the size, and 2^-64 for a collision
/// among 2^32 turns, which find_turn would notice.
expected<std::array<unsigned char, 16>> index_key(std::string_view turn_id);

/// The lowest schema version whose programs read the whole of `record`.
uint16_t schema_of(wire::Record::Reader record);

/// Writes header and words into `into`, which has room for both.
void write_value(unsigned char* into, const store_key& key, std::span<const char> words,
                 uint16_t schema);

/// Checks the header and the checksum; returns the words.
expected<std::span<const char>> read_value(const store_key& key, std::span<const char> value);

} // namespace kernelmill
