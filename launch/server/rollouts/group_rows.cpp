#include "launch/server/rollouts/group_rows.hpp"

#include <algorithm>
#include <set>

#include "actors/handoff/lease_table.hpp"
#include "messages/base/json_value.hpp"
#include "storage/export/rows/rows.hpp"
#include "storage/export/split.hpp"

namespace kernelmill::rollouts {

namespace {

// Rows of turns leave out members, and with them what the others are compared with.
bool is_of_groups(exports::form x) {
  return exports::filters_of(x) == exports::filtering::tasks && x != exports::form::preference;
}

std::vector<std::string> versions_of(const exports::group& x) {
  std::set<std::string> all;
  for (const auto& episode : x.episodes)
    for (const auto& turn : episode.turns)
      for (const auto& span : turn.versions)
        if (!span.version.empty()) all.insert(span.version);
  return {all.begin(), all.end()};
}

uint64_t count_of(const exports::left_out& x, const char* why) {
  auto i = x.find(why);
  return i == x.end() ? 0 : i->second;
}

} // namespace

std::string form_names() {
  std::string result;
  for (auto x : exports::all_forms)
    if (is_of_groups(x)) result += (result.empty() ? "" : ", ") + std::string{to_string(x)};
  return result;
}

expected<exports::form> trainer_form(const std::string& name) {
  auto x = exports::form_of(name);
  if (x && is_of_groups(*x)) return *x;
  return configuration_error("bad_request", "the field \"form\" must be one of " + form_names());
}

expected<handoff::group_rows> read_rows(const store& from, const artifact_store& artifacts,
                                        const exports::permits& may, const std::string& run,
                                        uint32_t group, const row_options& options) {
  auto stored = read_group(from, run, group);
  KM_TRY(stored);
  if (!stored->end)
    return infrastructure_error("not_found",
                                "group " + std::to_string(group) + " of " + run + " has not ended");
  const exports::licence_gate gate{{&may}};
  auto admitted = gate.admit(may, *stored);
  if (!admitted) return handoff::group_rows{0, {}, handoff::licence_forbids, "[]"};
  auto material = exports::read_material(*admitted, artifacts, run);
  KM_TRY(material);
  material->split = exports::split_of(material->task, "");
  material->temperature = options.temperature;

  exports::left_out without;
  exports::row_context in;
  in.group_id = group;
  in.without = &without;
  auto rows = exports::row::array();
  KM_TRY(exports::make_rows(options.as, *material, in, [&](exports::row x) -> expected<void> {
    rows.push_back(std::move(x));
    return {};
  }));

  handoff::group_rows result;
  auto compared =
      static_cast<uint64_t>(std::count_if(material->episodes.begin(), material->episodes.end(),
                                          [](const auto& x) { return x.advantage.has_value(); }));
  auto ids = count_of(without, handoff::without_token_ids);
  auto logprobs = count_of(without, handoff::without_logprobs);
  result.delivered = static_cast<uint32_t>(compared - std::min(compared, ids + logprobs));
  result.versions = versions_of(*material);
  if (material->episodes.empty())
    result.flaw = handoff::incomplete;
  else if (compared == 0)
    result.flaw = handoff::not_compared;
  else if (result.delivered == 0 || rows.empty())
    result.flaw = ids >= logprobs && ids > 0 ? handoff::without_token_ids
                  : logprobs > 0             ? handoff::without_logprobs
                                             : handoff::not_compared;
  result.rows = rows.dump(-1, ' ', false, exports::row::error_handler_t::replace);
  return result;
}

} // namespace kernelmill::rollouts
