#include "storage/run_tags.hpp"

#include <algorithm>
#include <set>

#include "messages/base/json_value.hpp"

namespace kernelmill {

namespace {

std::string tags_file(const run_directory& run) {
  return run.path + "/tags.json";
}

expected<void> check_tag(const std::string& tag) {
  constexpr size_t longest_tag = 64;
  if (tag.size() <= longest_tag && is_run_name(tag)) return {};
  return configuration_error("usage",
                             "failed to tag the run: \"" + tag +
                                 "\" is no tag, which has up to 64 letters, digits, '.', '_' and "
                                 "'-', and begins with neither '.' nor '-'",
                             "choose another word");
}

} // namespace

std::vector<std::string> tags_of(const run_directory& run) {
  std::set<std::string> result;
  auto document = read_json(tags_file(run));
  if (!document || !document->is_object()) return {};
  for (const auto& tag : document->value("tags", nlohmann::ordered_json::array()))
    if (tag.is_string()) result.insert(tag.get<std::string>());
  return {result.begin(), result.end()};
}

expected<std::vector<std::string>> change_tags(const run_directory& run,
                                               const std::vector<std::string>& added,
                                               const std::vector<std::string>& removed) {
  auto before = tags_of(run);
  std::set<std::string> tags{before.begin(), before.end()};
  for (const auto& tag : added) {
    KM_TRY(check_tag(tag));
    tags.insert(tag);
  }
  for (const auto& tag : removed) tags.erase(tag);
  KM_TRY(write_json(tags_file(run), {{"schema_version", run_schema_version}, {"tags", tags}}));
  return std::vector<std::string>{tags.begin(), tags.end()};
}

} // namespace kernelmill
