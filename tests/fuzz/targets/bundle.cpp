// Bundles that strangers made: as they are, and as what their stream unpacks to.

#include "storage/bundle/packed_stream.hpp"
#include "storage/bundle/proof.hpp"
#include "tests/fuzz/support.hpp"
#include "tests/fuzz/targets.hpp"

namespace kernelmill::fuzz {

namespace {

void read_bundle_file(const std::string& path) {
  bundles::limits small;
  small.list_bytes = 1 << 20;
  small.files = 1 << 12;
  small.bytes = 1 << 26;
  bundles::proof_check check;
  uint64_t taken = 0;
  auto done = bundles::read(path, small, nullptr, [&](const auto& file, std::string_view bytes) {
    promise(file.size == bytes.size(), "what is taken has the size that is listed");
    taken += bytes.size();
    check.take(file, bytes);
    return expected<void>{};
  });
  fuzz::check(done);
  if (!done) return;
  promise(taken <= done->bytes && done->bytes <= small.bytes, "no more is read than was promised");
  for (const auto& line : check.finish("seed")) promise(!line.empty(), "a problem has words");
  auto again = bundles::parse_list(bundles::list_text({{"schema_version", 1}}, done->files), small);
  promise(again && again->files.size() == done->files.size(), "a list that we write can be read");
}

} // namespace

void bundle(std::string_view bytes) {
  memory_file_path file{bytes};
  read_bundle_file(file.path());
  auto path = scratch_folder() + "/packed.tar.zst";
  auto to = atomic_file::create(path);
  if (!to) return;
  bundles::packer packed{*to};
  if (!packed.append(bytes) || !packed.finish() || !to->commit()) return;
  read_bundle_file(path);
}

} // namespace kernelmill::fuzz
