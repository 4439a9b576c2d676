#include "launch/server/api/openenv_tasks.hpp"

#include <algorithm>

#include "actors/episode/prompt.hpp"
#include "messages/base/json_value.hpp"
#include "storage/export/split.hpp"

namespace kernelmill::services {

namespace {

using json = nlohmann::ordered_json;
using task_list = std::vector<std::shared_ptr<const task>>;

json spec_of(const task_list& all, size_t index, const std::string& split) {
  const auto& x = *all[index];
  return {{"id", x.id},
          {"index", index},
          {"split", split},
          {"title", x.title},
          {"verb", x.verb},
          {"difficulty", x.difficulty},
          {"operator_family", x.operator_family},
          {"prompt", task_prompt(x, {})}};
}

json specs_of(const task_list& all, size_t start, size_t stop, const std::string& split) {
  auto result = json::array();
  for (size_t i = start; i < stop; ++i) result.push_back(spec_of(all, i, split));
  return result;
}

// A bound of a range as Python's slices have it: below 0 it counts from the end.
size_t bound_of(const nlohmann::json& given, const char* name, size_t count, size_t otherwise) {
  auto found = given.find(name);
  if (found == given.end() || !found->is_number_integer()) return otherwise;
  auto size = static_cast<int64_t>(count);
  auto at = std::clamp(found->get<int64_t>(), -size, size);
  return static_cast<size_t>(at < 0 ? at + size : at);
}

expected<size_t> index_in(const task_list& all, const nlohmann::json& given) {
  auto index = given.find("index");
  if (index == given.end() || !index->is_number_unsigned() || *index >= all.size())
    return configuration_error(
        "bad_request",
        "the field \"index\" must be a whole number below " + std::to_string(all.size()), "");
  return index->get<size_t>();
}

expected<std::string> split_in(const nlohmann::json& given) {
  auto split = given.find("split");
  if (split == given.end() || !split->is_string())
    return configuration_error("bad_request", "the field \"split\" must be a text", "");
  return split->get<std::string>();
}

expected<json> listed(const task_list& all, const nlohmann::json&, const std::string& split) {
  return json{{"tasks", specs_of(all, 0, all.size(), split)}, {"env_name", openenv_name}};
}

expected<json> counted(const task_list& all, const nlohmann::json&, const std::string&) {
  return json{{"num_tasks", all.size()}};
}

expected<json> one_of(const task_list& all, const nlohmann::json& given, const std::string& split) {
  auto index = index_in(all, given);
  KM_TRY(index);
  return json{{"task", spec_of(all, *index, split)}};
}

expected<json> range_of(const task_list& all, const nlohmann::json& given,
                        const std::string& split) {
  auto start = bound_of(given, "start", all.size(), 0);
  auto stop = bound_of(given, "stop", all.size(), all.size());
  return json{{"tasks", specs_of(all, start, std::max(start, stop), split)}};
}

using answering = expected<json> (*)(const task_list&, const nlohmann::json&, const std::string&);

expected<json> answer_to(const task_shelf& tasks, const std::string& body, answering with) {
  auto given = read_json(body);
  KM_TRY(given);
  if (!given->is_object()) return configuration_error("bad_request", "the body is no object", "");
  auto split = split_in(*given);
  KM_TRY(split);
  auto all = tasks_of_split(tasks, *split);
  KM_TRY(all);
  return with(*all, *given, *split);
}

http::route asking(const api_ptr& x, const char* name, answering with) {
  auto handle = [x, with](const http::request& r, const http::exchange_ptr& to) {
    auto answer = answer_to(*x->tasks, r.body, with);
    to->answer(answer ? json_response(200, *answer) : http::error_response(400, answer.error()));
  };
  return {"POST", std::string{"/"} + openenv_name + "/" + name, {}, handle};
}

} // namespace

http::route fixed_route(std::string path, const json& document) {
  auto handle = [answer = json_response(200, document)](
                    const http::request&, const http::exchange_ptr& to) { to->answer(answer); };
  return {"GET", std::move(path), {}, handle};
}

expected<std::shared_ptr<const task>> task_at(const task_shelf& from, const nlohmann::json& given) {
  auto split = split_in(given);
  KM_TRY(split);
  auto all = tasks_of_split(from, *split);
  KM_TRY(all);
  auto index = index_in(*all, given);
  KM_TRY(index);
  return (*all)[*index];
}

expected<task_list> tasks_of_split(const task_shelf& from, const std::string& split) {
  if (split != "train" && split != "dev")
    return configuration_error("unknown_task", "there is no split \"" + split + "\"",
                               "the splits are train and dev");
  task_list result;
  for (const auto& x : from.all())
    if (exports::split_of(x->id, x->split) == split) result.push_back(x);
  return result;
}

std::vector<http::route> openenv_task_routes(const api_ptr& x) {
  json splits = json::array();
  splits.push_back({{"name", "train"}, {"type", "train"}});
  splits.push_back({{"name", "dev"}, {"type", "validation"}});
  return {fixed_route("/list_environments", json::array({openenv_name})),
          fixed_route(std::string{"/"} + openenv_name + "/splits", splits),
          asking(x, "tasks", listed),
          asking(x, "num_tasks", counted),
          asking(x, "task", one_of),
          asking(x, "task_range", range_of)};
}

} // namespace kernelmill::services
