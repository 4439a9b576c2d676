#include "retrieval/search/vector_rows.hpp"

#include <bit>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "retrieval/search/byte_rows.hpp"

namespace kernelmill {

namespace {

static_assert(std::endian::native == std::endian::little, "files hold little-endian numbers");

constexpr char file_magic[8] = {'k', 'm', 'r', 'o', 'w', 's', '0', '1'};
constexpr size_t huge_page = size_t{2} << 20;

struct file_header {
  char magic[8];
  uint64_t dimension;
  uint64_t rows;
  uint64_t unused[5]; // the codes begin at a multiple of 64
};
static_assert(sizeof(file_header) == 64);

/// Of the part that scans read: codes, scales, errors and norms.
size_t scanned_bytes(size_t rows, size_t dimension) {
  return rows * (byte_row_stride(dimension) + 3 * sizeof(float));
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

tl::unexpected<error> not_mapped(const std::string& path, const std::string& cause) {
  return configuration_error("index_damaged",
                             fmt::format("failed to open index file {}: {}", path, cause),
                             "build it again with `kernelmill index build`");
}

std::string text_of(const XXH128_hash_t& x) {
  return fmt::format("xxh3:{:016x}{:016x}", x.high64, x.low64);
}

/// Writes to a file what goes into its digest, too.
class digested_file {
public:
  explicit digested_file(const std::string& path)
      : out_(path, std::ios::binary | std::ios::trunc), state_(XXH3_createState()) {
    XXH3_128bits_reset(state_.get());
  }

  void write(const void* bytes, size_t size) {
    XXH3_128bits_update(state_.get(), bytes, size);
    out_.write(static_cast<const char*>(bytes), static_cast<std::streamsize>(size));
  }

  bool close() {
    out_.close();
    return !out_.fail();
  }

  std::string digest() const { return text_of(XXH3_128bits_digest(state_.get())); }

private:
  struct free_state {
    void operator()(XXH3_state_t* x) const { XXH3_freeState(x); }
  };
  std::ofstream out_;
  std::unique_ptr<XXH3_state_t, free_state> state_;
};

} // namespace

row_block new_row_block(size_t first, size_t room, size_t dimension) {
  auto result = in_memory(room, dimension, float_bytes(room, dimension));
  result.first = first;
  return result;
}

expected<std::string> write_row_file(const std::string& path, size_t dimension,
                                     const std::vector<row_block>& blocks) {
  file_header header{};
  std::memcpy(header.magic, file_magic, sizeof file_magic);
  header.dimension = dimension;
  for (const auto& x : blocks) header.rows += x.count;
  digested_file file{path};
  file.write(&header, sizeof header);
  for (const auto& x : blocks) file.write(x.codes, x.count * byte_row_stride(dimension));
  for (auto part : {&row_block::scales, &row_block::errors, &row_block::norms})
    for (const auto& x : blocks) file.write(x.*part, x.count * sizeof(float));
  for (const auto& x : blocks) file.write(x.floats, float_bytes(x.count, dimension));
  if (!file.close())
    return infrastructure_error("index_not_written",
                                fmt::format("failed to write {}: {}", path, std::strerror(errno)),
                                "check that the folder is writable and its disk is not full");
  return file.digest();
}

expected<row_file> map_row_file(const std::string& path, const std::string& digest) {
  int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return not_mapped(path, std::strerror(errno));
  struct stat facts {};
  ::fstat(descriptor, &facts);
  auto size = static_cast<size_t>(facts.st_size);
  // All at once: to fault in page after page takes longer than the check.
  void* map = size < sizeof(file_header)
                  ? MAP_FAILED
                  : ::mmap(nullptr, size, PROT_READ, MAP_SHARED | MAP_POPULATE, descriptor, 0);
  auto cause = errno;
  ::close(descriptor);
  if (size < sizeof(file_header)) return not_mapped(path, "it is cut off");
  if (map == MAP_FAILED) return not_mapped(path, std::strerror(cause));
  std::shared_ptr<void> file{map, [size](void* x) { ::munmap(x, size); }};
  file_header header;
  std::memcpy(&header, map, sizeof header);
  if (std::memcmp(header.magic, file_magic, sizeof file_magic) != 0)
    return not_mapped(path, "it holds no rows of an index");
  if (header.dimension == 0 || header.dimension > max_byte_row_dimension || header.rows > size ||
      size != sizeof header + scanned_bytes(header.rows, header.dimension) +
                  float_bytes(header.rows, header.dimension))
    return not_mapped(path, "its size is not the one of the rows that it names");
  if (text_of(XXH3_128bits(map, size)) != digest)
    return not_mapped(path, "it is not the one that manifest.json names");
  row_file result{header.dimension, in_memory(header.rows, header.dimension, 0)};
  if (!result.rows.memory)
    return infrastructure_error(
        "index_failed", fmt::format("failed to open index file {}: memory is used up", path));
  auto* at = static_cast<std::byte*>(map) + sizeof header;
  auto scanned = scanned_bytes(header.rows, header.dimension);
  std::memcpy(result.rows.codes, at, scanned); // in one layout
  result.rows.floats = reinterpret_cast<float*>(at + scanned);
  result.rows.file = std::move(file);
  result.rows.count = header.rows;
  return result;
}

} // namespace kernelmill
