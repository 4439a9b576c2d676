#include <unordered_set>

#include "messages/base/json_depth.hpp"
#include "storage/bundle/bundle_file.hpp"
#include "storage/bundle/tar.hpp"

namespace kernelmill::bundles {

namespace {

using json = nlohmann::ordered_json;

tl::unexpected<error> bad_list(const std::string& why) {
  return configuration_error("bad_bundle",
                             std::string{"failed to read the bundle: "} + list_path + " " + why,
                             "ask for the bundle again; this one was changed or is none");
}

bool is_digest(const json& x) {
  if (!x.is_string()) return false;
  const auto& text = x.get_ref<const std::string&>();
  return text.size() == 64 && text.find_first_not_of("0123456789abcdef") == text.npos;
}

bool is_listed(const json& x) {
  return x.is_object() && x.size() == 3 && x.contains("path") && x["path"].is_string() &&
         x.contains("size") && x["size"].is_number_unsigned() && x.contains("sha256") &&
         is_digest(x["sha256"]);
}

expected<std::vector<listed_file>> files_of_list(const json& listed, const limits& most) {
  if (!listed.is_array()) return bad_list("has no list of files");
  if (listed.size() > most.files)
    return bad_list("names " + std::to_string(listed.size()) + " files, more than are accepted");
  std::vector<listed_file> result;
  std::unordered_set<std::string> seen{list_path, signature_path};
  uint64_t bytes = 0;
  for (const auto& x : listed) {
    auto where = "is wrong in entry " + std::to_string(result.size() + 1);
    if (!is_listed(x)) return bad_list(where + ": it wants path, size and sha256");
    listed_file file{x["path"].get<std::string>(), x["size"].get<uint64_t>(),
                     x["sha256"].get<std::string>()};
    if (auto why = wrong_path(file.path); !why.empty())
      return bad_list(where + ": the path is refused, since " + std::string{why});
    if (!seen.insert(file.path).second)
      return bad_list(where + ": " + file.path + " is named twice");
    if (file.size > largest_file || file.size > most.bytes - bytes)
      return bad_list("promises more than " + std::to_string(most.bytes) +
                      " bytes, which is more than is accepted");
    bytes += file.size;
    result.push_back(std::move(file));
  }
  return result;
}

} // namespace

// A line a file, so that people can search it.
std::string list_text(const json& facts, const std::vector<listed_file>& files) {
  auto replace = json::error_handler_t::replace;
  std::string result = "{\n";
  for (const auto& [key, value] : facts.items())
    result += " " + json(key).dump() + ": " + value.dump(-1, ' ', false, replace) + ",\n";
  result += " \"files\": [";
  for (size_t i = 0; i < files.size(); ++i)
    result +=
        std::string{i == 0 ? "\n  " : ",\n  "} +
        json{{"path", files[i].path}, {"size", files[i].size}, {"sha256", files[i].sha256}}.dump();
  return result + "\n ]\n}\n";
}

expected<parsed_list> parse_list(std::string_view text, const limits& most) {
  if (nests_deeper(text)) return bad_list("nests too deeply");
  auto document = json::parse(text, nullptr, false);
  if (!document.is_object()) return bad_list("is no JSON object");
  auto version = document.find("schema_version");
  if (version == document.end() || !version->is_number_unsigned())
    return bad_list("has no schema_version");
  if (*version > bundle_schema_version)
    return configuration_error("newer_schema",
                               "failed to read the bundle: its schema version is " +
                                   version->dump() + ", this program knows " +
                                   std::to_string(bundle_schema_version),
                               "use the newer kernelmill that wrote it");
  auto files = files_of_list(document.value("files", json{}), most);
  KM_TRY(files);
  document.erase("files");
  return parsed_list{std::move(document), std::move(*files)};
}

} // namespace kernelmill::bundles
