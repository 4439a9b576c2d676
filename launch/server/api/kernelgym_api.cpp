// KernelGYM's requests, so that its clients find an evaluator here: POST /evaluate or
// /workflow/submit, which answer when the candidate is judged, /status and /results. Its reference
// code must be that of an installed task: references are trusted, and nothing that a client sends
// is.

#include <ctime>

#include <caf/all.hpp>

#include "launch/server/api/api_fields.hpp"
#include "launch/server/api/evaluation_api.hpp"
#include "launch/server/api/kernelgym_documents.hpp"
#include "messages/base/clock.hpp"

namespace kernelmill::services {

namespace {

using json = nlohmann::ordered_json;
using http::exchange_ptr;
using http::request;

constexpr size_t most_tasks = 1024;                 // of one request
constexpr size_t most_ids = 65536;                  // that are remembered
constexpr std::chrono::seconds longest_answer{600}; // then the client is told that it goes on

/// Without what KernelGYM's clients send and nothing here reads, and without what they send as
/// null.
nlohmann::json read_fields(const nlohmann::json& task, const fields& members) {
  auto result = nlohmann::json::object();
  for (const auto& one : members)
    if (auto i = task.find(one.name); i != task.end() && !i->is_null() && one.type != kind::any)
      result[one.name] = *i;
  return result;
}

http::response refusal_of(const error& why) {
  auto result = response_of(why);
  if (result.status == 400) result.headers.emplace_back("X-Error-Code", "VALIDATION_ERROR");
  return result;
}

error bad_field(const std::string& message) {
  return {fault_class::configuration, "bad_request", message, ""};
}

expected<evaluation_order> order_of_task(const api& x, const nlohmann::json& given,
                                         const std::string& where) {
  if (!given.is_object()) return tl::unexpected{bad_field("a task must be an object")};
  auto task = read_fields(given, kernelgym_task_fields());
  KM_TRY(check_fields(task, kernelgym_task_fields(), where));
  if (auto workflow = given.value("workflow", nlohmann::json{});
      workflow.is_string() && workflow != "kernelbench")
    return tl::unexpected{bad_field("the field \"" + where +
                                    "workflow\" must be kernelbench: no other is known here")};
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

/// Evaluations that are being waited for, on the service's thread.
struct gathering {
  std::vector<json> all;
  size_t left = 0;
  std::optional<error> fault;
};

/// The documents of evaluations when all are over, or have taken too long.
void when_over(const api_ptr& x, const std::string& client, const std::vector<std::string>& ids,
               std::function<void(const gathering&)> then) {
  auto so_far = std::make_shared<gathering>();
  so_far->all.resize(ids.size());
  so_far->left = ids.size();
  for (size_t i = 0; i < ids.size(); ++i) {
    auto question = std::make_shared<evaluation_query>();
    question->id = ids[i];
    question->client = client;
    question->wait = longest_answer;
    question->waiter = x->next_waiter++;
    question->reply = [so_far, i, then](const documents& found) {
      if (found)
        so_far->all[i] = found->front();
      else
        so_far->fault = found.error();
      if (--so_far->left == 0) then(*so_far);
    };
    caf::anon_send(x->service, atom::read_v, std::move(question));
  }
}

void remember(api& x, const std::string& client, const std::vector<std::string>& ids,
              const std::vector<json>& all) {
  std::lock_guard lock{x.kernelgym_mutex};
  if (x.kernelgym_ids.size() > most_ids) x.kernelgym_ids.clear();
  for (size_t i = 0; i < ids.size(); ++i)
    x.kernelgym_ids[own_name(client, ids[i])] = all[i]["id"].get<std::string>();
}

using answer_maker = std::function<json(const std::vector<std::string>&, const std::vector<json>&)>;

/// Enters the tasks of a request, and answers when they are judged. A client that leaves finds them
/// by their ids.
void enter(const api_ptr& x, const std::string& client, const std::vector<nlohmann::json>& tasks,
           const std::string& place, const exchange_ptr& to, const answer_maker& say) {
  auto entry = std::make_shared<evaluation_entry>();
  std::vector<std::string> ids;
  for (size_t i = 0; i < tasks.size(); ++i) {
    auto where = place.empty() ? place : place + "[" + std::to_string(i) + "].";
    auto order = order_of_task(*x, tasks[i], where);
    if (!order) return to->answer(refusal_of(order.error()));
    order->client = client;
    ids.push_back(order->name);
    entry->entry.orders.push_back(std::move(*order));
  }
  entry->entry.kept = true;
  entry->reply = [x, client, ids, to, say](const documents& all) {
    if (!all) return to->answer(response_of(all.error()));
    remember(*x, client, ids, *all);
    std::vector<std::string> ours;
    for (const auto& one : *all) ours.push_back(one["id"].get<std::string>());
    when_over(x, client, ours, [ids, to, say](const gathering& found) {
      to->answer(found.fault ? response_of(*found.fault) : json_response(200, say(ids, found.all)));
    });
  };
  caf::anon_send(x->service, atom::evaluate_v, std::move(entry));
}

void evaluate_one(const api_ptr& x, const std::string& client, const nlohmann::json& body,
                  const exchange_ptr& to) {
  enter(x, client, {body}, "", to,
        [](auto& ids, auto& all) { return kernelgym_result(ids.front(), all.front()); });
}

void evaluate_batch(const api_ptr& x, const std::string& client, const nlohmann::json& given,
                    const exchange_ptr& to) {
  auto body =
      read_fields(given.is_object() ? given : nlohmann::json::object(), kernelgym_batch_fields());
  if (auto ok = check_fields(body, kernelgym_batch_fields()); !ok)
    return to->answer(refusal_of(ok.error()));
  const auto& tasks = body["tasks"];
  if (tasks.empty() || tasks.size() > most_tasks)
    return to->answer(refusal_of(bad_field("the field \"tasks\" must hold 1 to 1024")));
  auto name = body.value("batch_id", "");
  enter(x, client, {tasks.begin(), tasks.end()}, "tasks", to, [name](auto& ids, auto& all) {
    auto results = json::array();
    size_t failed = 0;
    for (size_t i = 0; i < ids.size(); ++i) {
      results.push_back(kernelgym_result(ids[i], all[i]));
      failed += results.back()["status"] == "completed" ? 0 : 1;
    }
    return json{{"batch_id", name},
                {"total_tasks", ids.size()},
                {"completed_tasks", ids.size() - failed},
                {"failed_tasks", failed},
                {"batch_status", "completed"},
                {"results", results}};
  });
}

void submit_workflow(const api_ptr& x, const std::string& client, const nlohmann::json& given,
                     const exchange_ptr& to) {
  auto body = read_fields(given.is_object() ? given : nlohmann::json::object(),
                          kernelgym_workflow_fields());
  if (auto ok = check_fields(body, kernelgym_workflow_fields()); !ok)
    return to->answer(refusal_of(ok.error()));
  auto task = body["payload"];
  task["workflow"] = body.value("workflow", "kernelbench");
  for (const char* name : {"task_id", "force_refresh"})
    if (body.contains(name)) task[name] = body[name];
  enter(x, client, {task}, "", to,
        [](auto& ids, auto& all) { return kernelgym_workflow(ids.front(), all.front()); });
}

/// Asks the service of a task by the client's id; `say` makes the answer of its document.
template <class Atom>
void ask(const api_ptr& x, Atom what, const request& r, const exchange_ptr& to,
         json (*say)(const std::string&, const json&)) {
  const auto& task_id = r.parts.at("id");
  auto question = std::make_shared<evaluation_query>();
  question->client = r.client;
  {
    std::lock_guard lock{x->kernelgym_mutex};
    if (auto i = x->kernelgym_ids.find(own_name(r.client, task_id)); i != x->kernelgym_ids.end())
      question->id = i->second;
  }
  if (question->id.empty())
    return to->answer(response_of(
        {fault_class::configuration, "not_found", "there is no task \"" + task_id + "\"", ""}));
  question->reply = [to, task_id, say](const documents& all) {
    to->answer(all ? json_response(200, say(task_id, all->front())) : response_of(all.error()));
  };
  caf::anon_send(x->service, what, std::move(question));
}

json health_json(const evaluation_load& load) {
  return {{"status", "healthy"},
          {"timestamp", utc_text(std::time(nullptr))},
          {"gpu_status", json::object()},
          {"queue_status",
           {{"pending", load.waiting.load()},
            {"processing", load.running.load()},
            {"completed", load.done.load()}}},
          {"memory_usage", json::object()},
          {"active_tasks", load.running.load()},
          {"total_processed", load.done.load()},
          {"uptime", load.uptime_s()}};
}

json metrics_json(const evaluation_load& load) {
  auto done = static_cast<double>(load.done.load());
  auto uptime = load.uptime_s();
  return {{"timestamp", utc_text(std::time(nullptr))},
          {"performance_metrics",
           {{"throughput_per_hour", uptime > 0 ? done / uptime * 3600 : 0},
            {"success_rate",
             done > 0 ? json(static_cast<double>(load.accepted.load()) / done) : json(nullptr)}}},
          {"resource_metrics", json::object()},
          {"queue_metrics",
           {{"pending_tasks", load.waiting.load()},
            {"active_tasks", load.running.load()},
            {"completed_tasks", load.done.load()}}},
          {"error_metrics", {{"infrastructure", load.faults.load()}}}};
}

json queue_json(const evaluation_load& load) {
  return {{"pending", load.waiting.load()},
          {"pending_by_prefix", json::object()},
          {"worker_queues", json::object()}};
}

} // namespace

std::map<std::string, http::handler> kernelgym_handlers(const api_ptr& x) {
  std::map<std::string, http::handler> result;
  auto with_body = [x](auto then) {
    return [x, then](const request& r, exchange_ptr to) {
      auto body = read_json(r.body);
      if (!body) return to->answer(response_of(body.error()));
      then(x, r.client, *body, to);
    };
  };
  auto of_load = [x](json (*say)(const evaluation_load&)) {
    return [x, say](const request&, const exchange_ptr& to) {
      to->answer(json_response(200, say(*x->load)));
    };
  };
  result["kernelgym_evaluate"] = with_body(evaluate_one);
  result["kernelgym_batch"] = with_body(evaluate_batch);
  result["kernelgym_submit"] = with_body(submit_workflow);
  result["kernelgym_status"] = [x](const request& r, const exchange_ptr& to) {
    ask(x, atom::read_v, r, to, kernelgym_status);
  };
  result["kernelgym_result"] = [x](const request& r, const exchange_ptr& to) {
    ask(x, atom::read_v, r, to, kernelgym_result);
  };
  result["kernelgym_workflow"] = [x](const request& r, const exchange_ptr& to) {
    ask(x, atom::read_v, r, to, kernelgym_workflow);
  };
  result["kernelgym_cancel"] = [x](const request& r, const exchange_ptr& to) {
    ask(x, atom::cancel_v, r, to, kernelgym_status);
  };
  result["kernelgym_health"] = of_load(health_json);
  result["kernelgym_metrics"] = of_load(metrics_json);
  result["kernelgym_queue"] = of_load(queue_json);
  return result;
}

} // namespace kernelmill::services
