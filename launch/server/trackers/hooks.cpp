#include "launch/server/trackers/hooks.hpp"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <mutex>
#include <optional>
#include <thread>

#include <fcntl.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "actors/policy_client/http/http_client.hpp"
#include "actors/policy_client/http/secret.hpp"
#include "launch/server/trackers/hook_rules.hpp"
#include "launch/server/trackers/posting.hpp"
#include "messages/base/clock.hpp"
#include "messages/base/descriptor.hpp"

namespace kernelmill::trackers {

namespace {

using namespace std::chrono_literals;
using clock = std::chrono::steady_clock;

constexpr auto look_every = 1s;      // at the clock
constexpr auto ask_nodes_every = 5s; // a head notices a lost node after about ten
constexpr size_t most_waiting = 256; // events; older ones are left out
constexpr std::string_view hook_events[] = {
    "*", "run_ended", "no_progress", "infrastructure_faults", "integrity_findings", "node_lost"};
constexpr int tries = 3; // of one event
constexpr size_t most_answer = 64 << 10;

/// Ends a command that takes too long, with what it has started.
int wait_for(pid_t child, clock::time_point until) {
  for (auto pause = 5ms;; pause = std::min(pause * 2, 100ms)) {
    int status = 0;
    auto ended = ::waitpid(child, &status, WNOHANG);
    if (ended == child) return status;
    if (ended < 0) return -1;
    if (clock::now() >= until) break;
    std::this_thread::sleep_for(pause);
  }
  ::kill(-child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  return -1;
}

/// The event on the standard input; nothing of it, and no key, in arguments or environment.
std::string run_command(const std::vector<std::string>& command, const std::string& event,
                        const std::string& body, clock::time_point until) {
  descriptor input{::memfd_create("kernelmill-hook", MFD_CLOEXEC)};
  if (!input ||
      ::pwrite(input.get(), body.data(), body.size(), 0) != static_cast<ssize_t>(body.size()))
    return std::string{"no room for the event: "} + std::strerror(errno);
  std::vector<char*> words;
  for (const auto& x : command) words.push_back(const_cast<char*>(x.c_str()));
  words.push_back(nullptr);
  std::vector<std::string> kept{"KERNELMILL_EVENT=" + event};
  for (const char* name : {"PATH", "HOME", "LANG", "USER"})
    if (const auto* value = std::getenv(name)) kept.push_back(std::string{name} + "=" + value);
  std::vector<char*> environment;
  for (auto& x : kept) environment.push_back(x.data());
  environment.push_back(nullptr);
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_adddup2(&files, input.get(), 0);
  posix_spawn_file_actions_addopen(&files, 1, "/dev/null", O_WRONLY, 0);
  posix_spawn_file_actions_addopen(&files, 2, "/dev/null", O_WRONLY, 0);
  posix_spawnattr_t how;
  posix_spawnattr_init(&how);
  sigset_t none, usual;
  sigemptyset(&none);
  sigemptyset(&usual);
  for (int number : {SIGPIPE, SIGXFSZ, SIGINT, SIGTERM, SIGHUP}) sigaddset(&usual, number);
  posix_spawnattr_setsigmask(&how, &none);
  posix_spawnattr_setsigdefault(&how, &usual);
  posix_spawnattr_setflags(&how,
                           POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  pid_t child = 0;
  int failed = ::posix_spawnp(&child, words[0], &files, &how, words.data(), environment.data());
  posix_spawn_file_actions_destroy(&files);
  posix_spawnattr_destroy(&how);
  if (failed != 0) return std::strerror(failed);
  auto status = wait_for(child, until);
  if (status == 0) return {};
  if (status == -1) return "it took longer than hooks.timeout_ms and was ended";
  return WIFEXITED(status) ? "exit code " + std::to_string(WEXITSTATUS(status))
                           : "signal " + std::to_string(WTERMSIG(status));
}

/// With the address from its variable. Errors: "invalid_value".
expected<hooks_section> resolve(const hooks_section& settings) {
  auto wanted = settings;
  if (!wanted.url_env.empty()) {
    const auto* value = std::getenv(wanted.url_env.c_str());
    if (value == nullptr || *value == 0)
      return configuration_error("invalid_value",
                                 "failed to read hooks.url_env: the variable is not set",
                                 "set it, or leave hooks.url_env out");
    wanted.url = value;
  }
  for (const auto& event : wanted.on)
    if (std::find(std::begin(hook_events), std::end(hook_events), event) == std::end(hook_events))
      return configuration_error("invalid_value",
                                 "failed to read hooks.on: no event is called '" + event + "'",
                                 "events are run_ended, no_progress, infrastructure_faults, "
                                 "integrity_findings and node_lost");
  return wanted;
}

} // namespace

class run_hooks::impl {
public:
  impl(const hooks_section& x, const std::string& run, const std::string& directory, logger to,
       secret_ptr bearer, std::unique_ptr<http_client> transport)
      : settings(x), log(std::move(to)), token(std::move(bearer)), client(std::move(transport)),
        rules(x, run, directory, seconds_since_1970()) {
    thread = std::thread{[this] { work(); }};
  }

  ~impl() { finish(); }

  void finish() {
    if (!thread.joinable()) return;
    {
      std::lock_guard guard{mutex};
      ending = true;
      last_call = clock::now() + std::chrono::milliseconds{settings.timeout_ms};
    }
    wake.notify_all();
    thread.join();
  }

  void work();
  void tell(const json& event);
  std::string post(const std::string& body, clock::time_point until);
  void look_at_nodes();
  clock::time_point limit();
  bool pause(std::chrono::milliseconds time);

  hooks_section settings;
  logger log;
  secret_ptr token;
  std::unique_ptr<http_client> client;
  clock::time_point nodes_at;

  std::mutex mutex; ///< of what follows
  std::condition_variable wake;
  hook_rules rules;
  std::deque<json> waiting;
  std::function<std::optional<node_roster>()> ask_nodes;
  bool ending = false;
  clock::time_point last_call;
  std::thread thread;
};

/// Until when one attempt may take.
clock::time_point run_hooks::impl::limit() {
  auto result = clock::now() + std::chrono::milliseconds{settings.timeout_ms};
  std::lock_guard guard{mutex};
  return ending ? std::min(result, last_call) : result;
}

/// False when the time is up.
bool run_hooks::impl::pause(std::chrono::milliseconds time) {
  std::unique_lock lock{mutex};
  wake.wait_for(lock, time, [this] { return ending; });
  return !ending || clock::now() < last_call;
}

std::string run_hooks::impl::post(const std::string& body, clock::time_point until) {
  http_request x;
  x.url = settings.url;
  x.bearer = token;
  x.body = body;
  x.headers = {{"Content-Type", "application/json"}};
  x.body_limit = most_answer;
  // At the end of the run, an attempt that began before has no more time than what is left.
  auto response = post_until(*client, std::move(x), [&] { return std::min(until, limit()); });
  if (!response) return "it took longer than hooks.timeout_ms";
  if (response->status >= 200 && response->status < 300) return {};
  return response->status == 0 ? std::string{to_string(response->fault)}
                               : "status " + std::to_string(response->status);
}

void run_hooks::impl::tell(const json& event) {
  auto body = event.dump(-1, ' ', false, json::error_handler_t::replace);
  auto name = event.value("event", "");
  auto deliver = [&](const char* what, auto attempt) {
    std::string why;
    for (int i = 0; i < tries; ++i) {
      if (why = attempt(); why.empty()) return;
      if (!pause(std::chrono::seconds{1 << i})) break;
    }
    log.warn({"hooks", {}, {}, {}},
             "failed to tell the " + std::string{what} + " of " + name + ": " + why);
  };
  if (!settings.url.empty()) deliver("URL", [&] { return post(body, limit()); });
  if (!settings.command.empty())
    deliver("command", [&] { return run_command(settings.command, name, body, limit()); });
}

void run_hooks::impl::look_at_nodes() {
  std::function<std::optional<node_roster>()> ask;
  {
    std::lock_guard guard{mutex};
    if (!ask_nodes || clock::now() - nodes_at < ask_nodes_every) return;
    ask = ask_nodes;
  }
  bool first = nodes_at == clock::time_point{};
  nodes_at = clock::now();
  auto says = ask();
  if (says && first)
    log.info({"hooks", {}, {}, {}},
             "watches the head's nodes, " + std::to_string(says->names.size()));
  std::lock_guard guard{mutex};
  if (says) rules.look_at_nodes(says->names, says->lost, seconds_since_1970());
}

void run_hooks::impl::work() {
  std::unique_lock lock{mutex};
  for (;;) {
    rules.look_at_clock(seconds_since_1970());
    for (auto& x : rules.take()) waiting.push_back(std::move(x));
    while (waiting.size() > most_waiting) waiting.pop_front();
    if (!waiting.empty() && (!ending || clock::now() < last_call)) {
      auto event = std::move(waiting.front());
      waiting.pop_front();
      lock.unlock();
      tell(event);
      lock.lock();
      continue;
    }
    if (ending) return;
    lock.unlock();
    look_at_nodes();
    lock.lock();
    if (!ending) wake.wait_for(lock, look_every);
  }
}

run_hooks::run_hooks(std::unique_ptr<impl> x) : impl_(std::move(x)) {
  // nop
}

run_hooks::~run_hooks() = default;

void run_hooks::finish() {
  impl_->finish();
}

expected<void> run_hooks::check(const hooks_section& settings) {
  KM_TRY(resolve(settings));
  KM_TRY(load_secret(settings.token_env, settings.token_file));
  return {};
}

expected<std::unique_ptr<run_hooks>> run_hooks::start(const hooks_section& settings,
                                                      std::string run, std::string directory,
                                                      logger log) {
  auto resolved = resolve(settings);
  KM_TRY(resolved);
  auto& wanted = *resolved;
  if (wanted.url.empty() && wanted.command.empty()) return nullptr;
  auto token = load_secret(settings.token_env, settings.token_file);
  KM_TRY(token);
  std::unique_ptr<http_client> client;
  if (!wanted.url.empty()) {
    auto started = http_client::start();
    KM_TRY(started);
    client = std::move(*started);
  }
  return std::unique_ptr<run_hooks>{
      new run_hooks{std::make_unique<impl>(wanted, std::move(run), std::move(directory),
                                           std::move(log), std::move(*token), std::move(client))}};
}

void run_hooks::follow(wire::Record::Reader x) {
  std::lock_guard guard{impl_->mutex};
  impl_->rules.note(x, seconds_since_1970());
  if (!impl_->rules.empty()) impl_->wake.notify_all();
}

void run_hooks::watch_nodes(std::function<std::optional<node_roster>()> ask) {
  std::lock_guard guard{impl_->mutex};
  impl_->ask_nodes = std::move(ask);
}

} // namespace kernelmill::trackers
