#include "launch/server/api/openenv.hpp"

#include <deque>
#include <optional>
#include <random>
#include <utility>

#include <caf/send.hpp>

#include "actors/episode/prompt.hpp"
#include "launch/server/api/openenv_tasks.hpp"
#include "messages/base/digest.hpp"
#include "messages/base/json_fields.hpp"
#include "messages/base/json_value.hpp"

namespace kernelmill::services {

namespace {

using json = nlohmann::ordered_json;

constexpr int64_t usual_turns = 10; // kernrl's
constexpr int64_t most_turns = 1000;
constexpr size_t most_pending = 64; // messages that come while a step is judged

json error_json(const char* code, const std::string& message) {
  return {{"type", "error"}, {"data", {{"message", message}, {"code", code}}}};
}

const char* code_of(const error& x) {
  return x.category == "queue_full" ? "CAPACITY_REACHED" : "VALIDATION_ERROR";
}

std::string words_of(const error& x) {
  return x.message + (x.hint.empty() ? "" : "; " + x.hint);
}

// The largest error of an output, over the visible cases: of others a policy could read what lies
// there. Null where none was compared.
json largest_error(const json& verdict) {
  std::optional<double> result;
  for (const auto& x : verdict["cases"])
    if (x["visibility"] == "visible" && x["max_error"].is_number())
      result = std::max(result.value_or(0), x["max_error"].get<double>());
  return result ? json(*result) : json(nullptr);
}

// One connection's episode. Messages come on the server's thread, verdicts on the service's.
class session : public std::enable_shared_from_this<session> {
public:
  session(api_ptr x, std::string client, http::exchange_ptr to)
      : api_(std::move(x)), client_(std::move(client)), to_(std::move(to)) {}

  void take(std::string text) {
    std::unique_lock lock{mutex_};
    if (!judging_) return handle(text);
    if (pending_.size() < most_pending) return pending_.push_back(std::move(text));
    say(error_json("CAPACITY_REACHED", "a step is being judged, and too many messages wait"));
  }

  void gone() {
    std::lock_guard lock{mutex_};
    pending_.clear();
    if (judging_) caf::anon_send(api_->service, atom::drop_v, waiter_);
    to_.reset(); // which holds us
  }

private:
  void say(const json& x) {
    if (to_ != nullptr) to_->send(x.dump(-1, ' ', false, json::error_handler_t::replace));
  }

  void handle(const std::string& text) {
    auto message = read_json(text);
    if (!message) return say(error_json("INVALID_JSON", words_of(message.error())));
    if (!message->is_object() || !message->contains("type") || !(*message)["type"].is_string())
      return say(error_json("VALIDATION_ERROR", "a message is an object with a text \"type\""));
    auto type = (*message)["type"].get<std::string>();
    auto data = message->value("data", nlohmann::json::object());
    if (!data.is_object())
      return say(error_json("VALIDATION_ERROR", "the field \"data\" must be an object"));
    if (type == "reset") return reset(data);
    if (type == "step") return step(data);
    if (type == "state") return say({{"type", "state"}, {"data", state()}});
    if (type == "close") return to_ != nullptr ? to_->close() : void();
    say(error_json("UNKNOWN_TYPE",
                   "there is no message \"" + type + "\"; there are reset, step, state and close"));
  }

  // Other fields are let be, as OpenEnv's servers do.
  void reset(const nlohmann::json& data) {
    auto refuse = [this](const std::string& why) { say(error_json("VALIDATION_ERROR", why)); };
    auto given = [&](const char* name) { return data.contains(name) && !data[name].is_null(); };
    auto turns = given("max_turns") ? data["max_turns"] : nlohmann::json(usual_turns);
    if (!turns.is_number_integer() || turns < 1 || turns > most_turns)
      return refuse("the field \"max_turns\" must be a whole number from 1 to 1000");
    if (given("seed") && !data["seed"].is_number_unsigned())
      return refuse("the field \"seed\" must be a whole number, 0 or more");
    if (given("episode_id") && !data["episode_id"].is_string())
      return refuse("the field \"episode_id\" must be a text");
    const auto& all = api_->tasks->all();
    auto chosen = given("seed") ? data["seed"].get<uint64_t>() : std::random_device{}();
    auto what = all[chosen % all.size()];
    if (given("split") || given("index")) {
      auto drawn = task_at(*api_->tasks, data);
      if (!drawn) return refuse(words_of(drawn.error()));
      what = *drawn;
    }
    for (auto* name : {"problem_id", "task"})
      if (given(name)) {
        if (!data[name].is_string()) return refuse("the field \"problem_id\" must be a text");
        auto known = api_->tasks->find(data[name].get<std::string>());
        if (!known) return refuse(words_of(known.error()));
        what = *known;
      }
    task_ = what;
    max_turns_ = turns.get<int64_t>();
    episode_ = given("episode_id")
                   ? data["episode_id"].get<std::string>()
                   : sha256_hex(std::to_string(std::random_device{}())).substr(0, 16);
    turn_ = 0;
    best_reward_ = 0;
    best_speedup_ = 0;
    solved_ = false;
    say({{"type", "observation"},
         {"data",
          {{"observation", observation(nullptr, "")}, {"reward", nullptr}, {"done", false}}}});
  }

  void step(const nlohmann::json& data) {
    if (task_ == nullptr)
      return say(error_json("SESSION_ERROR", "no episode has begun; send a message \"reset\""));
    if (turn_ >= max_turns_)
      return say(error_json("SESSION_ERROR", "the episode is over; send a message \"reset\""));
    if (!data.contains("code") || !data["code"].is_string())
      return say(error_json("VALIDATION_ERROR", "the field \"code\" of an action must be a text"));
    auto code = data["code"].get<std::string>();
    // Models wrap what they write; code itself has no such marks.
    bool whole = code.find("```") != code.npos || code.find("<KERNEL>") != code.npos;
    auto order =
        order_of(*api_, {{"task", task_->id}, {whole ? "completion" : "source", code}}, "");
    if (!order) return say(error_json(code_of(order.error()), words_of(order.error())));
    order->client = client_;
    auto entry = std::make_shared<evaluation_entry>();
    entry->entry.orders.push_back(std::move(*order));
    entry->entry.kept = false;
    entry->entry.waiter = waiter_ = api_->next_waiter++;
    entry->reply = [self = shared_from_this()](const documents& all) { self->judged(all); };
    judging_ = true;
    caf::anon_send(api_->service, atom::evaluate_v, std::move(entry));
  }

  void judged(const documents& all) {
    std::unique_lock lock{mutex_};
    judging_ = false;
    answer(all);
    while (!judging_ && !pending_.empty()) {
      auto text = std::move(pending_.front());
      pending_.pop_front();
      handle(text);
    }
  }

  void answer(const documents& all) {
    if (!all) return say(error_json(code_of(all.error()), words_of(all.error())));
    const auto& verdict = all->front()["verdict"];
    if (verdict.is_null() || !verdict["reward"].is_number())
      return say(error_json("EXECUTION_ERROR",
                            "the machine failed, and the step did not take place: " +
                                (verdict.is_null() ? std::string{"it was cancelled"}
                                                   : text_in(verdict["error"], "message"))));
    ++turn_;
    auto reward = verdict["reward"].get<double>();
    auto gain = gain_of(reward);
    solved_ = solved_ || is_accepted(verdict);
    if (auto fast = speedup_of(verdict); fast.is_number())
      best_speedup_ = std::max(best_speedup_, fast.get<double>());
    const auto& said = all->front()["feedback"];
    say({{"type", "observation"},
         {"data",
          {{"observation",
            observation(&verdict, said.is_string() ? in_session(said.get<std::string>()) : "")},
           {"reward", gain},
           {"done", turn_ >= max_turns_}}}});
  }

  // By how much the best turn's reward grew; a penalty is not undone by a good turn before or after
  // it.
  double gain_of(double reward) {
    if (reward < 0) return reward;
    auto before = std::exchange(best_reward_, std::max(reward, best_reward_));
    return best_reward_ - before;
  }

  // An evaluation by itself is an episode of one turn.
  std::string in_session(std::string feedback) const {
    constexpr std::string_view alone = "Turn 1 of 1:";
    if (auto at = feedback.find(alone); at != feedback.npos)
      feedback.replace(at, alone.size(),
                       "Turn " + std::to_string(turn_) + " of " + std::to_string(max_turns_) + ":");
    return feedback;
  }

  json observation(const json* verdict, const std::string& feedback) const {
    bool compiled = verdict != nullptr && (*verdict)["compiled"].get<bool>();
    json result{
        {"problem_id", task_->id},
        {"problem_description", task_prompt(*task_, {})},
        {"reference_code", task_shelf::reference_of(*task_)},
        {"gpu_info", verdict != nullptr ? text_in(*verdict, "device") : api_->tasks->backend()},
        {"turn", turn_},
        {"max_turns", max_turns_},
        {"feedback", feedback},
        {"compilation_success", compiled},
        {"compilation_error", nullptr},
        {"correctness_pass", nullptr},
        {"max_diff", nullptr},
        {"speedup", nullptr}};
    if (verdict == nullptr) return result;
    if (!compiled) result["compilation_error"] = text_in((*verdict)["error"], "message");
    if (compiled) result["correctness_pass"] = is_accepted(*verdict);
    result["max_diff"] = largest_error(*verdict);
    result["speedup"] = speedup_of(*verdict);
    return result;
  }

  json state() const {
    bool begun = task_ != nullptr;
    return {{"episode_id", begun ? json(episode_) : json(nullptr)},
            {"step_count", turn_},
            {"problem_id", begun ? json(task_->id) : json(nullptr)},
            {"turn", turn_},
            {"max_turns", max_turns_},
            {"best_speedup", best_speedup_},
            {"solved", solved_}};
  }

  api_ptr api_;
  std::string client_;
  std::mutex mutex_;
  http::exchange_ptr to_;
  std::shared_ptr<const task> task_;
  std::string episode_;
  int64_t turn_ = 0;
  int64_t max_turns_ = usual_turns;
  double best_reward_ = 0;
  double best_speedup_ = 0;
  bool solved_ = false;
  bool judging_ = false;
  uint64_t waiter_ = 0;
  std::deque<std::string> pending_;
};

json object_schema(const char* title, json properties, json required) {
  return {{"title", title},
          {"type", "object"},
          {"properties", std::move(properties)},
          {"required", std::move(required)}};
}

json schema_document() {
  auto a = [](const char* type) { return json{{"type", type}}; };
  auto maybe = [](const char* type) {
    return json{{"anyOf", json::array({{{"type", type}}, {{"type", "null"}}})}};
  };
  json action{{"code", a("string")}, {"metadata", a("object")}};
  json observation{{"problem_id", a("string")},
                   {"problem_description", a("string")},
                   {"reference_code", a("string")},
                   {"gpu_info", a("string")},
                   {"turn", a("integer")},
                   {"max_turns", a("integer")},
                   {"feedback", a("string")},
                   {"compilation_success", a("boolean")},
                   {"compilation_error", maybe("string")},
                   {"correctness_pass", maybe("boolean")},
                   {"max_diff", maybe("number")},
                   {"speedup", maybe("number")}};
  json state{{"episode_id", maybe("string")}, {"step_count", a("integer")},
             {"problem_id", maybe("string")}, {"turn", a("integer")},
             {"max_turns", a("integer")},     {"best_speedup", a("number")},
             {"solved", a("boolean")}};
  return {{"action", object_schema("KernelAction", action, {"code"})},
          {"observation", object_schema("KernelObservation", observation, json::array())},
          {"state", object_schema("KernelState", state, json::array())}};
}

} // namespace

std::vector<http::route> openenv_routes(const api_ptr& x) {
  auto socket = [x](const http::request& r, const http::exchange_ptr& to) {
    auto made = std::make_shared<session>(x, r.client, to);
    to->on_text([made](std::string text) { made->take(std::move(text)); });
    to->on_gone([made] { made->gone(); });
  };
  json about{{"name", openenv_name},
             {"description", "GPU kernels, compiled, checked, timed and judged turn by turn"}};
  std::vector<http::route> result{{"GET", "/ws", {}, socket, false, true},
                                  fixed_route("/schema", schema_document()),
                                  fixed_route("/metadata", about)};
  for (auto& one : openenv_task_routes(x)) result.push_back(std::move(one));
  return result;
}

} // namespace kernelmill::services
