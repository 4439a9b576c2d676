#include "launch/commands/monitoring.hpp"

#include <filesystem>
#include <mutex>

#include "launch/cli/terminal.hpp"
#include "launch/cluster/build_id.hpp"
#include "launch/commands/options.hpp"
#include "messages/base/json_value.hpp"
#include "storage/lineage/store.hpp"

namespace kernelmill::commands {

std::vector<cli::option_spec> access_options() {
  return {{"--token-file",
           "FILE",
           "Readers of the page must send the token in it; others must not be able to read it.",
           "",
           false,
           {},
           completes::file},
          {"--tls-certificate",
           "FILE",
           "Certificate (PEM) of the page. Required with its key beyond 127.0.0.1.",
           "",
           false,
           {},
           completes::file},
          {"--tls-key", "FILE", "Its key (PEM).", "", false, {}, completes::file}};
}

std::vector<cli::option_spec> with_monitor_options(std::vector<cli::option_spec> options) {
  options.push_back(
      {"--monitor",
       "ADDR:PORT",
       "Serves the page, the JSON API and /metrics there; a port alone means 127.0.0.1, and port 0 "
       "takes a free one. Beyond 127.0.0.1 a token and TLS are required.",
       "",
       false,
       {},
       nothing});
  for (auto& x : access_options()) options.push_back(std::move(x));
  return options;
}

expected<std::optional<page::options>> monitor_options(const cli::invocation& in,
                                                       const char* name) {
  const bool wanted = in.has(name) || !in.value(name).empty();
  for (const auto& x : access_options())
    if (in.has(x.name) && !wanted)
      return configuration_error("usage", x.name + " is for the page, and none is asked for",
                                 std::string{"give "} + name + " ADDR:PORT too");
  if (!wanted) return std::nullopt;
  page::options result;
  auto address = parse_listen_address(name, in.value(name));
  KM_TRY(address);
  result.listen = *address;
  if (in.has("--token-file")) {
    auto token = http::load_token(in.value("--token-file"));
    KM_TRY(token);
    result.token = *token;
  }
  result.certificate_file = in.value("--tls-certificate");
  result.key_file = in.value("--tls-key");
  if (result.certificate_file.empty() != result.key_file.empty())
    return configuration_error("usage", "a certificate without its key, or a key without one",
                               "give both --tls-certificate and --tls-key");
  result.build = build_id();
  return result;
}

expected<std::shared_ptr<void>> open_head_page(page::options options, head_window window) {
  options.world = std::move(window.world);
  options.control = [ask = window.ask](const std::string& verb,
                                       const run_directory& run) -> expected<void> {
    KM_TRY(ask(verb, run.name, {}));
    return {};
  };
  options.cluster = std::move(window.ask);
  auto service = page::service::start(std::move(options));
  KM_TRY(service);
  cli::talk("page: " + (*service)->url());
  return std::shared_ptr<page::service>{std::move(*service)};
}

// -- the page of a run ----------------------------------------------------------------------------

struct run_page::state {
  std::string directory;
  std::function<void()> cancel;
  std::mutex mutex;
  hosted_run* run = nullptr;
  std::unique_ptr<page::service> service;

  bool is_ours(const run_directory& x) const {
    std::error_code code;
    return x.path == directory || std::filesystem::equivalent(x.path, directory, code);
  }

  watch::world world() {
    watch::world result;
    result.root = std::filesystem::path{directory}.parent_path().string();
    result.ask_run = [this](const run_directory& x) -> expected<watch::snapshot> {
      return watch::ask_control_socket(x);
    };
    result.shared_store = [this](const run_directory& x) -> std::shared_ptr<const store> {
      if (!is_ours(x)) return nullptr;
      std::lock_guard guard{mutex};
      return run == nullptr ? nullptr : run->records();
    };
    return result;
  }

  expected<void> control(const std::string& verb, const run_directory& x) {
    std::lock_guard guard{mutex};
    if (!is_ours(x) || run == nullptr)
      return configuration_error(
          "not_live", "failed to " + verb + " '" + x.name + "': this process does not work on it",
          "ask the process that does");
    if (verb == "cancel")
      cancel();
    else
      run->pause(verb == "pause");
    return {};
  }
};

run_page::run_page(std::unique_ptr<state> x) : state_(std::move(x)) {
  // nop
}

run_page::~run_page() = default;

void run_page::show(hosted_run* run) {
  std::lock_guard guard{state_->mutex};
  state_->run = run;
}

std::string run_page::url() const {
  return state_->service->url();
}

expected<std::unique_ptr<run_page>>
run_page::start(page::options options, const std::string& directory, std::function<void()> cancel) {
  auto x = std::make_unique<state>();
  x->directory = directory;
  x->cancel = std::move(cancel);
  options.world = x->world();
  options.control = [raw = x.get()](const std::string& verb, const run_directory& run) {
    return raw->control(verb, run);
  };
  auto service = page::service::start(std::move(options));
  KM_TRY(service);
  x->service = std::move(*service);
  return std::unique_ptr<run_page>{new run_page{std::move(x)}};
}

} // namespace kernelmill::commands
