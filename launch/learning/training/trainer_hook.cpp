#include "launch/learning/training/trainer_hook.hpp"

#include <filesystem>
#include <future>

#include "actors/policy_client/http/http_client.hpp"
#include "launch/cli/terminal.hpp"
#include "storage/files.hpp"
#include "storage/run_directory.hpp"

namespace kernelmill::training {

namespace {

using namespace std::chrono_literals;
using answer = nlohmann::json;

constexpr uint32_t most_tries = 600;
constexpr size_t longest_quote = 400;

tl::unexpected<error> trainer_failed(const std::string& what, std::string hint) {
  return configuration_error("trainer_failed", "failed to learn: " + what, std::move(hint));
}

expected<answer> by_command(const train_config& config, child_processes& programs,
                            const std::string& folder, const go_on& check) {
  const child_command one{"trainer", config.trainer_command};
  for (uint32_t left = 3;; --left) {
    auto done = programs.run_once(one, folder + "/request.json", check);
    if (done) break;
    if (done.error().category != "part_killed" || left <= 1)
      return tl::unexpected<error>{done.error()};
    cli::talk("train: " + render(done.error()) + "; the step is taken again");
  }
  std::error_code code;
  if (!std::filesystem::exists(folder + "/result.json", code)) return answer::object();
  auto said = read_json(folder + "/result.json");
  KM_TRY(said);
  return answer(*said);
}

/// The response, or nothing when it was not reached.
expected<http_response> ask_once(http_client& client, const train_config& config,
                                 const std::string& body, const go_on& check) {
  http_request request;
  request.url = config.trainer_url;
  request.headers = {{"Content-Type", "application/json"}};
  request.body = body;
  request.timeout_ms = static_cast<uint32_t>(config.trainer_timeout_s * 1000);
  auto done = std::make_shared<std::promise<http_response>>();
  auto response = done->get_future();
  auto id =
      client.submit(std::move(request), [done](http_response x) { done->set_value(std::move(x)); });
  while (response.wait_for(200ms) != std::future_status::ready)
    if (auto ok = check(); !ok) {
      client.cancel(id);
      return tl::unexpected<error>{ok.error()};
    }
  return response.get();
}

expected<answer> by_url(const train_config& config, const answer& request, const go_on& check) {
  auto client = http_client::start({});
  KM_TRY(client);
  auto body = request.dump();
  for (uint32_t left = most_tries;; --left) {
    auto said = ask_once(**client, config, body, check);
    KM_TRY(said);
    auto quote = cli::clean(said->body.substr(0, longest_quote));
    if (said->fault == transport_fault::none && said->status == 200) {
      auto x = answer::parse(said->body, nullptr, false);
      if (x.is_object()) return x;
      return trainer_failed(config.trainer_url + " answered no JSON object: " + quote,
                            "it answers {\"weights\": PATH, \"metrics\": {...}}");
    }
    if (said->fault == transport_fault::timeout)
      return trainer_failed(config.trainer_url + " had no answer within " +
                                std::to_string(config.trainer_timeout_s) + " s",
                            "raise trainer.timeout_s");
    if (said->fault == transport_fault::none && said->status != 503)
      return trainer_failed(config.trainer_url + " answered " + std::to_string(said->status) +
                                ": " + quote,
                            "see what the trainer says; the same command goes on from this step");
    if (left == 0)
      return trainer_failed(config.trainer_url + " is not there: " + said->detail,
                            "is the trainer up?");
    std::this_thread::sleep_for(1s);
    KM_TRY(check());
  }
}

} // namespace

expected<learned_step> have_learned(const train_config& config, child_processes& programs,
                                    const answer& request, const std::string& folder,
                                    const go_on& check) {
  std::error_code code;
  std::filesystem::remove(folder + "/result.json", code); // of an earlier try
  KM_TRY(write_file(folder + "/request.json", request.dump(1) + "\n"));
  auto said = config.trainer_url.empty() ? by_command(config, programs, folder, check)
                                         : by_url(config, request, check);
  KM_TRY(said);
  learned_step result;
  result.weights = request["checkpoint"].get<std::string>();
  if (said->contains("weights")) {
    if (!(*said)["weights"].is_string())
      return trainer_failed("the trainer's \"weights\" is no text",
                            "it is the path of the checkpoint");
    result.weights = (*said)["weights"].get<std::string>();
  }
  if (!std::filesystem::exists(result.weights, code))
    return trainer_failed("the trainer left no checkpoint at " + result.weights,
                          "write it to the `checkpoint` of the request, or answer with its path as "
                          "`weights`");
  result.metrics = said->value("metrics", answer::object());
  return result;
}

} // namespace kernelmill::training
