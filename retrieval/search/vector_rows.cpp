#include "retrieval/search/vector_rows.hpp"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <cstring>

#include <fmt/format.h>
#include <sys/mman.h>

#include "retrieval/search/byte_rows.hpp"
#include "retrieval/search/mapped_file.hpp"

namespace kernelmill {

namespace {

static_assert(std::endian::native == std::endian::little, "files hold little-endian numbers");

constexpr char file_magic[8] = {'k', 'm', 'r', 'o', 'w', 's', '0', '2'};
constexpr size_t huge_page = size_t{2} << 20;

struct file_header {
  char magic[8];
  uint64_t dimension;
  uint64_t rows;
  uint64_t centres, probes;
  uint64_t unused[3]; // the codes begin at a multiple of 64
};
static_assert(sizeof(file_header) == 64);

/// Of the part that scans read: codes, scales, errors and norms.
size_t scanned_bytes(size_t rows, size_t dimension) {
  return rows * (byte_row_stride(dimension) + 3 * sizeof(float));
}

size_t list_bytes(const file_header& x) {
  return x.centres == 0 ? 0 : (x.centres * x.dimension + x.rows) * sizeof(float);
}

size_t float_bytes(size_t rows, size_t dimension) {
  return rows * dimension * sizeof(float);
}

/// A block whose scanned part is in memory, followed by `more` bytes.
row_block in_memory(size_t room, size_t dimension, size_t more) {
  row_block x;
  auto scanned = scanned_bytes(room, dimension);
  auto bytes = (scanned + more + huge_page - 1) / huge_page * huge_page;
  auto* memory = static_cast<std::byte*>(std::aligned_alloc(huge_page, bytes));
  if (memory == nullptr) return x;
  ::madvise(memory, bytes, MADV_HUGEPAGE);
  x.memory = std::shared_ptr<void>{memory, std::free};
  x.room = room;
  x.codes = reinterpret_cast<uint8_t*>(memory);
  x.scales = reinterpret_cast<float*>(memory + room * byte_row_stride(dimension));
  x.errors = x.scales + room;
  x.norms = x.errors + room;
  x.floats = reinterpret_cast<float*>(memory + scanned);
  return x;
}

} // namespace

row_block new_row_block(size_t first, size_t room, size_t dimension) {
  auto result = in_memory(room, dimension, float_bytes(room, dimension));
  result.first = first;
  return result;
}

expected<std::string> write_row_file(const std::string& path, size_t dimension,
                                     const std::vector<row_block>& blocks, const row_lists& lists) {
  file_header header{};
  std::memcpy(header.magic, file_magic, sizeof file_magic);
  header.dimension = dimension;
  for (const auto& x : blocks) header.rows += x.count;
  header.centres = lists.centres.size() / dimension;
  header.probes = lists.probes;
  digested_file file{path};
  file.write(&header, sizeof header);
  for (const auto& x : blocks) file.write(x.codes, x.count * byte_row_stride(dimension));
  for (auto part : {&row_block::scales, &row_block::errors, &row_block::norms})
    for (const auto& x : blocks) file.write(x.*part, x.count * sizeof(float));
  for (const auto& x : blocks) file.write(x.floats, float_bytes(x.count, dimension));
  file.write(lists.centres.data(), lists.centres.size() * sizeof(float));
  file.write(lists.list_of.data(), lists.list_of.size() * sizeof(uint32_t));
  return file.close();
}

expected<row_file> map_row_file(const std::string& path, const std::string& digest) {
  auto file = map_file(path, digest);
  KM_TRY(file);
  file_header header{};
  std::memcpy(&header, file->bytes, std::min(sizeof header, file->size));
  if (std::memcmp(header.magic, file_magic, sizeof file_magic) != 0)
    return damaged_index_file(path, "it holds no rows of an index");
  if (header.dimension == 0 || header.dimension > max_byte_row_dimension ||
      header.rows > file->size || header.centres > header.rows ||
      file->size != sizeof header + scanned_bytes(header.rows, header.dimension) +
                        float_bytes(header.rows, header.dimension) + list_bytes(header))
    return damaged_index_file(path, "its size is not the one of the rows that it names");
  row_file result{header.dimension, in_memory(header.rows, header.dimension, 0), {}};
  if (!result.rows.memory)
    return infrastructure_error(
        "index_failed", fmt::format("failed to open index file {}: memory is used up", path));
  const auto* at = file->bytes + sizeof header;
  auto scanned = scanned_bytes(header.rows, header.dimension);
  std::memcpy(result.rows.codes, at, scanned); // in one layout
  // Never written: a block of a file is full.
  result.rows.floats = const_cast<float*>(reinterpret_cast<const float*>(at + scanned));
  if (header.centres > 0) {
    const auto* centres = result.rows.floats + header.rows * header.dimension;
    const auto* lists =
        reinterpret_cast<const uint32_t*>(centres + header.centres * header.dimension);
    result.lists.centres.assign(centres, centres + header.centres * header.dimension);
    result.lists.list_of.assign(lists, lists + header.rows);
    result.lists.probes = static_cast<uint32_t>(header.probes);
    for (auto list : result.lists.list_of)
      if (list >= header.centres) return damaged_index_file(path, "a row is in no list");
  }
  result.rows.file = std::move(file->memory);
  result.rows.count = header.rows;
  return result;
}

} // namespace kernelmill
