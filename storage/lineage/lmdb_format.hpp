#pragma once

// How LMDB 0.9 lays out data.mdb on machines of 64 bits, where the page size is the machine's.

#include <cstddef>
#include <cstdint>

namespace kernelmill::lmdb_format {

inline constexpr uint32_t magic = 0xbeefc0de;
inline constexpr size_t header_bytes = 16; ///< of a page
inline constexpr uint64_t no_page = ~uint64_t{0};

// Flags of a page.
inline constexpr uint16_t branch_page = 0x01, leaf_page = 0x02, overflow_page = 0x04,
                          keys_alone = 0x20;
// Flags of an entry.
inline constexpr uint16_t big_value = 0x01, sub_tree = 0x02;
inline constexpr int most_depth = 64;

struct tree {
  uint32_t pad; // in the first tree of a meta page: the page size
  uint16_t flags, depth;
  uint64_t branches, leaves, overflows, entries, root;
};
static_assert(sizeof(tree) == 48);

struct meta {
  uint32_t magic, version;
  uint64_t address, map_bytes;
  tree trees[2]; // of free pages, and of names
  uint64_t last_page, transaction;
};
static_assert(sizeof(meta) == 136);

} // namespace kernelmill::lmdb_format
