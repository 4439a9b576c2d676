#include "retrieval/search/mapped_file.hpp"

#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

namespace kernelmill {

namespace {

// It tells damage, not malice: a folder of an index is its user's. At 20 GB/s all of a file can be
// checked whenever it is opened.
std::string text_of(const XXH128_hash_t& x) {
  return fmt::format("xxh3:{:016x}{:016x}", x.high64, x.low64);
}

} // namespace

tl::unexpected<error> damaged_index_file(const std::string& path, const std::string& cause) {
  return configuration_error("index_damaged",
                             fmt::format("failed to open index file {}: {}", path, cause),
                             "build it again with `kernelmill index build`");
}

digested_file::digested_file(const std::string& path)
    : path_(path), out_(path, std::ios::binary | std::ios::trunc), state_(XXH3_createState()) {
  XXH3_128bits_reset(static_cast<XXH3_state_t*>(state_.get()));
}

void digested_file::free_state::operator()(void* x) const {
  XXH3_freeState(static_cast<XXH3_state_t*>(x));
}

void digested_file::write(const void* bytes, size_t size) {
  XXH3_128bits_update(static_cast<XXH3_state_t*>(state_.get()), bytes, size);
  out_.write(static_cast<const char*>(bytes), static_cast<std::streamsize>(size));
}

expected<std::string> digested_file::close() {
  out_.close();
  if (out_.fail())
    return infrastructure_error("index_not_written",
                                fmt::format("failed to write {}: {}", path_, std::strerror(errno)),
                                "check that the folder is writable and its disk is not full");
  return text_of(XXH3_128bits_digest(static_cast<XXH3_state_t*>(state_.get())));
}

expected<mapped_file> map_file(const std::string& path, const std::string& digest) {
  int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return damaged_index_file(path, std::strerror(errno));
  struct stat facts {};
  ::fstat(descriptor, &facts);
  auto size = static_cast<size_t>(facts.st_size);
  // All at once: to fault in page after page takes longer than the check.
  void* map = size == 0
                  ? MAP_FAILED
                  : ::mmap(nullptr, size, PROT_READ, MAP_SHARED | MAP_POPULATE, descriptor, 0);
  auto cause = errno;
  ::close(descriptor);
  if (size == 0) return damaged_index_file(path, "it is empty");
  if (map == MAP_FAILED) return damaged_index_file(path, std::strerror(cause));
  std::shared_ptr<const void> memory{
      map, [size](const void* x) { ::munmap(const_cast<void*>(x), size); }};
  if (text_of(XXH3_128bits(map, size)) != digest)
    return damaged_index_file(path, "it is not the one that manifest.json names");
  return mapped_file{std::move(memory), static_cast<const std::byte*>(map), size};
}

} // namespace kernelmill
