// A store that was damaged: records behind their checksums, artifacts, pages of the file.

#include <cstring>
#include <filesystem>

#include "messages/base/digest.hpp"
#include "messages/base/json_value.hpp"
#include "storage/artifacts.hpp"
#include "storage/lineage/keys.hpp"
#include "storage/lineage/page_check.hpp"
#include "storage/token_json.hpp"
#include "tests/fuzz/support.hpp"
#include "tests/fuzz/targets.hpp"

namespace kernelmill::fuzz {

namespace {

std::vector<uint64_t> aligned(std::string_view bytes) {
  std::vector<uint64_t> result((bytes.size() + 7) / 8 + 1);
  std::memcpy(result.data(), bytes.data(), bytes.size());
  return result;
}

void read_record(std::string_view words) {
  auto record = Message<wire::Record>::from_bytes(words.data(), words.size());
  check(record);
  if (!record) return;
  try {
    auto view = record->open();
    auto address = address_of(*view);
    check(address);
    read_all(*view);
    if (view->isTurn()) {
      check(artifact_store{scratch_folder() + "/artifacts"}.candidate(view->getTurn()));
      auto completion = view->getTurn().getCompletion();
      token_audit_json(completion);
      weight_versions_json(completion);
    }
  } catch (const kj::Exception&) {
    // A reader of a record with a right checksum and wrong words catches.
  }
}

// As it lies in the file, and with a checksum that is right, which no accident makes.
void read_values(std::string_view bytes) {
  store_key key{};
  std::memcpy(key.data(), bytes.data(), std::min(bytes.size(), key.size()));
  auto copy = aligned(bytes);
  check(read_value(key, {reinterpret_cast<const char*>(copy.data()), bytes.size()}));
  auto words = bytes.substr(0, bytes.size() / 8 * 8);
  if (words.empty()) return;
  std::vector<uint64_t> value((words.size() + value_header_bytes) / 8);
  auto* first = reinterpret_cast<unsigned char*>(value.data());
  write_value(first, key, {words.data(), words.size()}, 1 + key[2] % 2);
  auto read = read_value(key, {reinterpret_cast<const char*>(first), value.size() * 8});
  promise(read.has_value(), "what was written is read");
  promise(std::string_view(read->data(), read->size()) == words, "and is the same");
  read_record(words);
  if (bytes.empty()) return;
  // One bit less is seen.
  first[value_header_bytes + key[0] % words.size()] ^= static_cast<unsigned char>(1 << key[1] % 8);
  promise(!read_value(key, {reinterpret_cast<const char*>(first), value.size() * 8}),
          "a changed bit is seen");
}

void read_artifact(std::string_view bytes) {
  static const std::string sha256(64, 'a');
  static const std::string folder = scratch_folder() + "/artifacts";
  std::filesystem::create_directories(folder + "/aa");
  write_file(folder + "/aa/" + sha256.substr(2) + ".zst", bytes);
  auto text = artifact_store{folder}.get(sha256);
  check(text);
  promise(!text, "content of another hash is refused");
}

} // namespace

void store(std::string_view bytes) {
  read_values(bytes);
  read_artifact(bytes);
  memory_file_path file{bytes};
  missing_pages(file.path());
  index_key(bytes);
}

} // namespace kernelmill::fuzz
