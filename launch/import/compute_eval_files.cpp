#include "launch/import/compute_eval_files.hpp"

#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>

#include <openssl/evp.h>

#include "launch/import/problem_spec.hpp"
#include "launch/import/tar_gz.hpp"
#include "messages/base/digest.hpp"
#include "messages/base/files.hpp"
#include "messages/base/json_depth.hpp"
#include "messages/base/text.hpp"
#include "messages/base/utf8.hpp"

namespace kernelmill {

namespace {

namespace fs = std::filesystem;

constexpr const char* list_name = "problems.jsonl";
constexpr const char* spec_name = "problem-spec.yaml";
constexpr int deepest_folder = 6;
constexpr size_t most_folders = 20'000;

constexpr const char* what_compute_eval_reads =
    "give a *-problems.tar.gz, its problems.jsonl, or a folder that holds one or problem-spec.yaml";

using sources = std::vector<compute_eval_source>;

// The pack's own hash of a line, which ends with a line feed.
std::string md5_of(std::string_view line) {
  std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context{EVP_MD_CTX_new(),
                                                                  EVP_MD_CTX_free};
  unsigned char bytes[EVP_MAX_MD_SIZE];
  unsigned size = 0;
  if (!context || EVP_DigestInit_ex(context.get(), EVP_md5(), nullptr) != 1 ||
      EVP_DigestUpdate(context.get(), line.data(), line.size()) != 1 ||
      EVP_DigestUpdate(context.get(), "\n", 1) != 1 ||
      EVP_DigestFinal_ex(context.get(), bytes, &size) != 1)
    return {};
  return to_hex(bytes, size);
}

expected<nlohmann::ordered_json> object_of(std::string_view text, const std::string& place) {
  if (!is_utf8(text)) return bad_compute_eval(place, "it is not UTF-8");
  if (nests_deeper(text)) return bad_compute_eval(place, "it nests too deep");
  auto result = nlohmann::ordered_json::parse(text, nullptr, false);
  if (result.is_discarded()) return bad_compute_eval(place, "it is no JSON");
  if (!result.is_object()) return bad_compute_eval(place, "it is no object");
  return result;
}

// What a pack's metadata.json says of its problems.
struct pack_facts {
  std::string release;
  std::map<std::string, std::string> hashes; // by task_id
  size_t count = 0;
  bool known = false;
};

expected<pack_facts> facts_of_pack(const compute_eval_pack& x) {
  pack_facts result;
  if (x.metadata.empty()) return result;
  auto place = x.place + ", metadata.json";
  auto document = object_of(x.metadata, place);
  KM_TRY(document);
  auto release = document->find("release");
  if (release == document->end() || !release->is_string() || release->empty())
    return bad_compute_eval(place, "release is missing or no text");
  result.release = release->get<std::string>();
  auto count = document->find("total_count");
  if (count == document->end() || !count->is_number_unsigned())
    return bad_compute_eval(place, "total_count is missing or no number");
  result.count = count->get<size_t>();
  result.known = true;
  if (auto hashes = document->find("task_id_hashes"); hashes != document->end()) {
    if (!hashes->is_object()) return bad_compute_eval(place, "task_id_hashes is no object");
    for (const auto& [id, hash] : hashes->items()) {
      if (!hash.is_string()) return bad_compute_eval(place, "a hash of task_id_hashes is no text");
      result.hashes[id] = hash.get<std::string>();
    }
  }
  return result;
}

expected<void> check_hash(const pack_facts& facts, const compute_eval_source& x,
                          std::string_view line) {
  if (facts.hashes.empty()) return {};
  auto id = x.record.value("task_id", nlohmann::ordered_json{});
  auto hash = facts.hashes.find(id.is_string() ? id.get<std::string>() : std::string{});
  if (hash == facts.hashes.end())
    return bad_compute_eval(x.place, "metadata.json has no hash of its task_id");
  if (lowered(hash->second) != md5_of(line))
    return bad_compute_eval(x.place, "it differs from its hash in metadata.json");
  return {};
}

expected<void> take_pack(const compute_eval_pack& pack, const std::string& release, sources& into) {
  auto facts = facts_of_pack(pack);
  KM_TRY(facts);
  std::string_view rest{pack.lines};
  size_t count = 0;
  for (size_t number = 1; !rest.empty(); ++number) {
    auto line = next_line(rest);
    if (trimmed(line).empty()) continue;
    auto place = pack.place + ", line " + std::to_string(number);
    auto record = object_of(line, place);
    KM_TRY(record);
    into.push_back({std::move(*record), place, facts->known ? facts->release : release});
    KM_TRY(check_hash(*facts, into.back(), line));
    ++count;
  }
  if (facts->known && facts->count != count)
    return bad_compute_eval(pack.place, "it holds " + std::to_string(count) +
                                            " problems, and its metadata.json says " +
                                            std::to_string(facts->count));
  return {};
}

expected<void> take_file(const fs::path& path, const std::string& release, sources& into) {
  if (path.filename() == spec_name) {
    auto record = read_problem_spec(path.parent_path().string());
    KM_TRY(record);
    into.push_back({std::move(*record), path.string(), release});
    return {};
  }
  auto pack = read_compute_eval_pack(path.string(), list_name);
  KM_TRY(pack);
  return take_pack(*pack, release, into);
}

bool is_source(const fs::path& path) {
  auto name = path.filename().string();
  return name == list_name || name == spec_name || name.ends_with("-problems.tar.gz");
}

// In the order of their names, so that messages do not depend on the disk.
expected<std::vector<fs::path>> sources_below(const fs::path& folder) {
  std::vector<fs::path> result;
  std::error_code code;
  size_t seen = 0;
  fs::recursive_directory_iterator entries{folder, fs::directory_options::skip_permission_denied,
                                           code};
  for (auto end = fs::recursive_directory_iterator{}; !code && entries != end;
       entries.increment(code)) {
    if (++seen > most_folders)
      return bad_compute_eval(folder.string(), "it holds more than 20,000 files: name a folder "
                                               "closer to the problems");
    if (entries.depth() >= deepest_folder) entries.disable_recursion_pending();
    std::error_code ignored;
    if (is_source(entries->path()) && entries->is_regular_file(ignored))
      result.push_back(entries->path());
  }
  if (code)
    return configuration_error("missing_file",
                               "failed to read " + folder.string() + ": " + code.message(),
                               what_compute_eval_reads);
  std::sort(result.begin(), result.end());
  return result;
}

} // namespace

tl::unexpected<error> bad_compute_eval(const std::string& place, const std::string& cause) {
  return configuration_error("bad_problem", "failed to read " + place + ": " + cause,
                             what_compute_eval_reads);
}

expected<compute_eval_pack> read_compute_eval_pack(const std::string& path, const char* name) {
  compute_eval_pack result;
  if (path.ends_with(".tar.gz") || path.ends_with(".tgz")) {
    auto files = read_tar_gz(path);
    KM_TRY(files);
    if (!files->contains(name)) return bad_compute_eval(path, std::string{"it holds no "} + name);
    if (!files->contains("metadata.json"))
      return bad_compute_eval(path, "it holds no metadata.json");
    result.lines = std::move(files->at(name));
    result.metadata = std::move(files->at("metadata.json"));
    result.place = path + ", " + name;
    return result;
  }
  auto text = read_whole(path);
  if (!text)
    return configuration_error("missing_file",
                               "failed to read " + path + ": it is not a readable file",
                               what_compute_eval_reads);
  result.lines = std::move(*text);
  result.place = path;
  auto beside = fs::path{path}.parent_path() / "metadata.json";
  std::error_code code;
  // Beside a list of another name a metadata.json may be that of another list.
  if (fs::path{path}.filename() == name && fs::exists(beside, code))
    result.metadata = read_whole(beside.string()).value_or("");
  return result;
}

expected<std::string> release_of_pack(const compute_eval_pack& x) {
  auto facts = facts_of_pack(x);
  KM_TRY(facts);
  return facts->release;
}

expected<std::vector<compute_eval_source>> find_compute_eval(const std::string& path,
                                                             const std::string& release) {
  std::error_code code;
  if (!fs::exists(path, code))
    return configuration_error("missing_file", "failed to read " + path + ": there is no such file",
                               what_compute_eval_reads);
  std::vector<fs::path> files{path};
  if (fs::is_directory(path, code)) {
    auto below = sources_below(path);
    KM_TRY(below);
    files = std::move(*below);
  }
  sources result;
  for (const auto& file : files) KM_TRY(take_file(file, release, result));
  if (result.empty()) return bad_compute_eval(path, "it holds no problem");
  return result;
}

} // namespace kernelmill
