#include "launch/analysis/watch/records.hpp"
#include "launch/analysis/watch/views.hpp"
#include "messages/base/json_value.hpp"
#include "messages/base/suggest.hpp"

namespace kernelmill::watch {

expected<json> answer(const world& in, const std::string& view, const json& query) {
  using maker = expected<json> (*)(const world&, const json&);
  static const std::vector<std::pair<std::string, maker>> all{
      {"runs", runs_view},     {"ps", ps_view},           {"explain", explain_view},
      {"actors", actors_view}, {"nodes", nodes_view},     {"gpus", gpus_view},
      {"stats", stats_view},   {"lineage", lineage_view}, {"logs", logs_view},
      {"turns", turns_view},   {"top", top_view},         {"records", records_view}};
  std::vector<std::string> names;
  for (const auto& [name, make] : all) {
    if (name == view) return make(in, query);
    names.push_back(name);
  }
  auto meant = closest(view, names);
  return configuration_error("usage", "failed to show '" + view + "': there is no such view",
                             meant.empty() ? "is the other side of another version?"
                                           : "did you mean '" + meant + "'?");
}

} // namespace kernelmill::watch
