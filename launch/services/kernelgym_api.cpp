// KernelGYM's requests, so that its clients find an evaluator here: POST /evaluate, poll /status,
// fetch /results. Its reference code must be that of an installed task: references are trusted, and
// nothing that a client sends is.

#include <caf/all.hpp>

#include "launch/services/api_fields.hpp"
#include "launch/services/evaluation_api.hpp"

namespace kernelmill::services {

namespace {

using json = nlohmann::ordered_json;
using http::exchange_ptr;
using http::request;

constexpr size_t most_tasks = 1024; // of one request
constexpr size_t most_ids = 65536;  // that are remembered

const char* status_of(const json& evaluation) {
  auto state = evaluation["state"].get<std::string>();
  if (state == "waiting") return "pending";
  if (state == "cancelled") return "cancelled";
  if (state != "done") return "processing";
  return evaluation["verdict"]["outcome"] == "infrastructure" ? "failed" : "completed";
}

json error_message(const json& evaluation) {
  if (evaluation["verdict"].is_null()) return nullptr;
  auto text = evaluation["verdict"]["error"]["message"].get<std::string>();
  return text.empty() ? json(nullptr) : json(text);
}

json error_code(const json& verdict) {
  if (verdict["outcome"] == "accepted") return nullptr;
  if (verdict["outcome"] == "infrastructure") return "SYSTEM";
  auto category = verdict["category"].get<std::string>();
  if (!verdict["format_ok"].get<bool>()) return "VALIDATION";
  if (!verdict["compiled"].get<bool>()) return "COMPILATION";
  if (category.find("timeout") != category.npos || category.find("deadline") != category.npos)
    return "TIMEOUT";
  return verdict["cases"].empty() ? "RUNTIME" : "CORRECTNESS";
}

bool broke_a_rule(const json& verdict) {
  return !verdict["integrity"]["clean"].get<bool>();
}

json status_json(const std::string& task_id, const json& evaluation) {
  return {{"task_id", task_id},
          {"status", status_of(evaluation)},
          {"error_message", error_message(evaluation)}};
}

/// Fields of the request that change nothing here.
json not_used() {
  auto result = json::array();
  for (const auto& one : kernelgym_task_fields())
    if (std::string{one.doc}.starts_with("Not used")) result.push_back(one.name);
  return result;
}

json result_json(const std::string& task_id, const json& evaluation) {
  const auto& verdict = evaluation["verdict"];
  bool judged = !verdict.is_null();
  auto timing = judged ? verdict["timing"] : json::object();
  bool timed = judged && timing.value("measured", false);
  return {{"task_id", task_id},
          {"status", status_of(evaluation)},
          {"compiled", judged && verdict["compiled"].get<bool>()},
          {"correctness", judged && verdict["correct"].get<bool>()},
          {"decoy_kernel", judged && broke_a_rule(verdict)},
          {"reference_runtime", timed ? number_or_null(timing["reference_ms"]) : json(nullptr)},
          {"kernel_runtime", timed ? number_or_null(timing["candidate_ms"]) : json(nullptr)},
          {"speedup",
           timed && timing["speedup"]["low"].is_number() ? timing["speedup"]["low"] : json(0)},
          {"metadata",
           {{"evaluation", evaluation["id"]}, {"not_used", not_used()}, {"verdict", verdict}}},
          {"error_message", error_message(evaluation)},
          {"error_code", judged ? error_code(verdict) : json(nullptr)}};
}

expected<evaluation_order> order_of_task(const api& x, const nlohmann::json& task,
                                         const std::string& where) {
  KM_TRY(check_fields(task, kernelgym_task_fields(), where));
  auto known = x.tasks->by_reference(task["reference_code"].get<std::string>());
  if (known == nullptr)
    return configuration_error(
        "unknown_task",
        "the field \"" + where + "reference_code\" is the reference of no task that is installed",
        "references are trusted here, so they are installed: `kernelmill task import kernelbench`");
  auto order = order_of(
      x, {{"task", known->id}, {"source", task["kernel_code"]}, {"name", task["task_id"]}}, where);
  if (order) order->allow_cache = !task.value("force_refresh", true);
  return order;
}

/// Enters the tasks of a request; the client polls for their ends.
void enter(const api_ptr& x, const std::vector<nlohmann::json>& tasks, bool many,
           const exchange_ptr& to) {
  auto entry = std::make_shared<desk_entry>();
  std::vector<std::string> ids;
  for (size_t i = 0; i < tasks.size(); ++i) {
    auto where = many ? "tasks[" + std::to_string(i) + "]." : std::string{};
    auto order = order_of_task(*x, tasks[i], where);
    if (!order) return to->answer(response_of(order.error()));
    ids.push_back(order->name);
    entry->entry.orders.push_back(std::move(*order));
  }
  entry->reply = [x, ids, many, to](const documents& all) {
    if (!all) return to->answer(response_of(all.error()));
    auto list = json::array();
    {
      std::lock_guard lock{x->kernelgym_mutex};
      if (x->kernelgym_ids.size() > most_ids) x->kernelgym_ids.clear();
      for (size_t i = 0; i < ids.size(); ++i)
        x->kernelgym_ids[ids[i]] = (*all)[i]["id"].get<std::string>();
    }
    for (size_t i = 0; i < ids.size(); ++i) list.push_back(status_json(ids[i], (*all)[i]));
    to->answer(json_response(200, many ? list : list.front()));
  };
  caf::anon_send(x->desk, atom::evaluate_v, std::move(entry));
}

void evaluate_batch(const api_ptr& x, const nlohmann::json& body, const exchange_ptr& to) {
  if (auto ok = check_fields(body, kernelgym_batch_fields()); !ok)
    return to->answer(response_of(ok.error()));
  const auto& tasks = body["tasks"];
  if (tasks.empty() || tasks.size() > most_tasks)
    return to->answer(response_of({fault_class::configuration, "bad_request",
                                   "the field \"tasks\" must hold 1 to 1024", ""}));
  enter(x, {tasks.begin(), tasks.end()}, true, to);
}

/// Asks the desk of a task by the client's id; `say` makes the answer of its document.
template <class Atom>
void ask(const api_ptr& x, Atom what, const std::string& task_id, const exchange_ptr& to,
         json (*say)(const std::string&, const json&)) {
  auto question = std::make_shared<desk_question>();
  {
    std::lock_guard lock{x->kernelgym_mutex};
    if (auto i = x->kernelgym_ids.find(task_id); i != x->kernelgym_ids.end())
      question->id = i->second;
  }
  if (question->id.empty())
    return to->answer(response_of(
        {fault_class::configuration, "not_found", "there is no task \"" + task_id + "\"", ""}));
  question->reply = [to, task_id, say](const documents& all) {
    to->answer(all ? json_response(200, say(task_id, all->front())) : response_of(all.error()));
  };
  caf::anon_send(x->desk, what, std::move(question));
}

} // namespace

std::map<std::string, http::handler> kernelgym_handlers(const api_ptr& x) {
  std::map<std::string, http::handler> result;
  auto with_body = [x](auto then) {
    return [x, then](const request& r, exchange_ptr to) {
      auto body = read_json(r.body);
      if (!body) return to->answer(response_of(body.error()));
      then(*body, to);
    };
  };
  result["kernelgym_evaluate"] = with_body(
      [x](const nlohmann::json& body, const exchange_ptr& to) { enter(x, {body}, false, to); });
  result["kernelgym_batch"] = with_body(
      [x](const nlohmann::json& body, const exchange_ptr& to) { evaluate_batch(x, body, to); });
  result["kernelgym_status"] = [x](request r, exchange_ptr to) {
    ask(x, atom::read_v, r.parts["id"], to, status_json);
  };
  result["kernelgym_result"] = [x](request r, exchange_ptr to) {
    ask(x, atom::read_v, r.parts["id"], to, result_json);
  };
  result["kernelgym_cancel"] = [x](request r, exchange_ptr to) {
    ask(x, atom::cancel_v, r.parts["id"], to, status_json);
  };
  result["kernelgym_health"] = [](const request&, exchange_ptr to) {
    to->answer(json_response(200, {{"status", "ok"}}));
  };
  return result;
}

} // namespace kernelmill::services
