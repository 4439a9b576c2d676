#include "storage/search_end.hpp"

#include "messages/base/json_value.hpp"

namespace kernelmill {

namespace {

std::string search_file(const run_directory& run) {
  return run.path + "/search.json";
}

/// The value at a path, or null: files of other versions have other ones.
nlohmann::ordered_json value_at(const nlohmann::ordered_json& from, const char* path) {
  const nlohmann::ordered_json::json_pointer where{path};
  return from.is_object() && from.contains(where) ? from[where] : nlohmann::ordered_json{};
}

} // namespace

bool asks_for_search(const nlohmann::ordered_json& config) {
  auto strategy = value_at(config, "/search/strategy");
  return strategy.is_string() && strategy != "off";
}

bool is_end_of_search(const nlohmann::ordered_json& document, uint64_t turns) {
  return document.is_object() && document.contains("winner") &&
         value_at(document, "/used/turns") == turns;
}

std::optional<nlohmann::ordered_json> read_search_end(const run_directory& run, uint64_t turns) {
  auto document = read_json(search_file(run));
  if (!document || !is_end_of_search(*document, turns)) return std::nullopt;
  return std::move(*document);
}

expected<void> write_search_end(const run_directory& run, const nlohmann::ordered_json& document) {
  return write_json(search_file(run), document);
}

} // namespace kernelmill
