#pragma once

// Where the rows of a vector index lie. In a file:
//
//   codes    rows of byte_row_stride bytes      what a scan reads
//   scales, errors, norms: a float a row each
//   floats   rows of `dimension` floats         what is read of the best alone
//   lists    centres and a number a row         of an index that has them
//
// The floats of a file stay there, mapped. The rest is copied: memory has large pages, and a scan
// over large pages takes half the time.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "messages/error.hpp"
#include "retrieval/search/row_lists.hpp"

namespace kernelmill {

struct row_block {
  std::shared_ptr<void> memory;     ///< freed with its last owner
  std::shared_ptr<const void> file; ///< null: the floats are in memory, too
  size_t first = 0;                 ///< number of its first row
  size_t count = 0;
  size_t room = 0; ///< rows; a block of a file is full
  uint8_t* codes = nullptr;
  float* scales = nullptr;
  float* errors = nullptr;
  float* norms = nullptr;
  float* floats = nullptr;
};

/// An empty block; its memory is null when there is none.
row_block new_row_block(size_t first, size_t room, size_t dimension);

/// Writes the rows of all blocks as one and returns the digest of the file.
expected<std::string> write_row_file(const std::string& path, size_t dimension,
                                     const std::vector<row_block>& blocks, const row_lists& lists);

struct row_file {
  size_t dimension = 0;
  row_block rows;
  row_lists lists;
};

/// Maps what write_row_file wrote. Refuses another file than the one with `digest`.
expected<row_file> map_row_file(const std::string& path, const std::string& digest);

} // namespace kernelmill
