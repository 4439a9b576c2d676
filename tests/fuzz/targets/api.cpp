// Requests of the evaluation service as its router gets them: method, target and headers in the
// first lines, the body behind an empty one. Whatever is asked is answered, and never with an error
// of the server's own. Seats and orders of rollouts read the body further than their routes do.

#include "launch/server/api/api_fields.hpp"
#include "launch/server/api/evaluation_api.hpp"
#include "launch/server/api/seat_capture.hpp"
#include "launch/server/http/exchange_state.hpp"
#include "launch/server/http/router.hpp"
#include "launch/server/rollouts/order_config.hpp"
#include "messages/base/json_depth.hpp"
#include "tests/fuzz/support.hpp"
#include "tests/fuzz/targets.hpp"

namespace kernelmill::fuzz {

namespace {

using namespace nlohmann::literals;
using services::evaluation_load;
using services::task_shelf;

const services::api_ptr& service() {
  static const services::api_ptr one = [] {
    std::vector<std::string> problems;
    auto tasks = task_shelf::open({KERNELMILL_FUZZ_TASKS}, {}, {}, true, problems);
    promise(tasks.has_value() && problems.empty(), "the installed tasks can be read");
    auto result = std::make_shared<services::api>();
    result->tasks = std::make_shared<const task_shelf>(std::move(*tasks));
    result->load = std::make_shared<evaluation_load>();
    return result;
  }();
  return one;
}

const http::router& routes() {
  static const http::router one{services::evaluation_routes(service()),
                                {nullptr, nullptr, {"localhost"}}};
  return one;
}

http::request request_of(std::string_view bytes, std::string& target) {
  http::request result;
  auto end = bytes.find("\n\n");
  auto head = lines_of(bytes.substr(0, end), 32);
  if (end != bytes.npos) result.body = bytes.substr(end + 2);
  if (!head.empty()) {
    auto blank = head[0].find(' ');
    result.method = head[0].substr(0, blank);
    if (blank != std::string::npos) target = head[0].substr(blank + 1);
  }
  for (size_t i = 1; i < head.size(); ++i)
    if (auto colon = head[i].find(": "); colon != std::string::npos)
      result.headers[head[i].substr(0, colon)] = head[i].substr(colon + 2);
  return result;
}

void check_response(const http::response& x) {
  promise(x.status >= 200 && x.status < 500, "no client makes an error of the server's own");
  promise(x.status < 400 || x.body.find("\"category\"") != std::string::npos, "a refusal says why");
  http::reason_of(x.status);
}

// A body is what an agent asks, and what a server answers to that.
void take_a_seat(const std::string& body) {
  for (bool chat : {true, false})
    for (auto kind : {server_kind::openai, server_kind::vllm, server_kind::sglang}) {
      auto asked = services::read_seat_request(body, chat, kind, "m");
      check(asked);
      if (!asked) asked.emplace();
      asked->chat = chat;
      auto row = services::read_seat_answer(*asked, body);
      check(row);
      if (!row) continue;
      promise(!row->flaw.empty() || row->ids.size() == row->logprobs.size(),
              "what is said to be exact is so");
      promise(!services::trace_row(*row)
                   .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace)
                   .empty(),
              "a row can be written");
      services::seat_events(*asked, row->response);
    }
}

void order(const std::string& body) {
  static const policy_keys keys{{{"lab", "http://127.0.0.1:1/v1", "LAB_KEY", ""}}};
  if (nests_deeper(body)) return; // the route refuses these
  auto config = rollouts::order_config(body, keys);
  check(config);
  promise(!config || !config->contains("/policy/api_key_env"_json_pointer) ||
              config->at("/policy/api_key_env"_json_pointer) == "LAB_KEY" ||
              config->at("/policy/api_key_env"_json_pointer) == "",
          "no variable of the machine is named but by a key of the operator's");
}

} // namespace

void api(std::string_view bytes) {
  std::string where;
  auto request = request_of(bytes, where);
  take_a_seat(request.body);
  order(request.body);
  auto chosen = routes().choose(request, where);
  if (auto* refused = std::get_if<http::response>(&chosen)) return check_response(*refused);
  auto state = std::make_shared<http::exchange::state>(size_t{1} << 20);
  try {
    std::get<const http::route*>(chosen)->handle(std::move(request),
                                                 std::make_shared<http::exchange>(state));
  } catch (const std::exception& e) {
    std::string words = std::string{"a handler throws nothing: "} + e.what();
    promise(false, words.c_str());
  }
  auto step = state->next();
  // There is no service: a request that was taken for it gets no answer but 500.
  if (step.head && step.head->status != 500) check_response(*step.head);
}

} // namespace kernelmill::fuzz
