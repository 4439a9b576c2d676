// `kernelmill ps`: asks the runs in progress. A run's node listens on control.sock of the run's
// directory; whoever connects gets one JSON document, the snapshot of its monitor, and the end of
// the stream.

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <map>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "launch/cli/terminal.hpp"
#include "launch/commands/commands.hpp"
#include "launch/commands/options.hpp"
#include "storage/run_directory.hpp"

namespace kernelmill::commands {

namespace {

using json = nlohmann::ordered_json;

constexpr size_t max_snapshot_bytes = size_t{256} << 20; // 100,000 episodes are about 40 MB
constexpr int silence_seconds = 10;

struct descriptor {
  int fd = -1;
  ~descriptor() {
    if (fd >= 0) ::close(fd);
  }
};

tl::unexpected<error> not_live(const run_directory& run, const std::string& cause) {
  return infrastructure_error("run_not_live", "failed to ask the run '" + run.name + "': " + cause,
                              "`kernelmill show " + run.path +
                                  "` reads what is stored; `kernelmill resume " + run.path +
                                  "` continues it");
}

/// A path in a run's directory can be longer than the 107 bytes of an address; its descriptor's
/// path below /proc never is.
expected<int> connect_to(const run_directory& run, descriptor& socket) {
  descriptor directory{::open(run.path.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC)};
  if (directory.fd < 0) return not_live(run, std::strerror(errno));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  auto path = fmt::format("/proc/self/fd/{}/control.sock", directory.fd);
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  socket.fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (socket.fd < 0) return not_live(run, std::strerror(errno));
  timeval limit{silence_seconds, 0};
  ::setsockopt(socket.fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  if (::connect(socket.fd, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0)
    return not_live(run, errno == ENOENT || errno == ECONNREFUSED ? "it is not in progress"
                                                                  : std::strerror(errno));
  return socket.fd;
}

expected<json> ask(const run_directory& run) {
  descriptor socket;
  auto connected = connect_to(run, socket);
  KM_TRY(connected);
  std::string text;
  char part[65536];
  for (;;) {
    auto n = ::recv(socket.fd, part, sizeof part, 0);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0)
      return not_live(run,
                      fmt::format("no answer for {} s: {}", silence_seconds, std::strerror(errno)));
    if (n == 0) break;
    text.append(part, static_cast<size_t>(n));
    if (text.size() > max_snapshot_bytes) return not_live(run, "its answer is larger than 256 MiB");
  }
  auto document = json::parse(text, nullptr, false);
  if (!document.is_object()) return not_live(run, "its answer is not a JSON object");
  return document;
}

/// Every snapshot in the tree that is of such an actor.
void collect(const json& node, std::string_view actor, std::vector<json>& out) {
  if (!node.is_object()) return;
  if (node.value("actor", "") == actor) out.push_back(node);
  if (auto children = node.find("children"); children != node.end() && children->is_array())
    for (const auto& child : *children) collect(child, actor, out);
}

double number_of(const json& snapshot, std::string_view name) {
  auto numbers = snapshot.find("numbers");
  if (numbers == snapshot.end() || !numbers->is_array()) return 0;
  for (const auto& x : *numbers)
    if (x.value("name", "") == name) return x.value("value", 0.0);
  return 0;
}

/// Requests to the policy that have failed and are tried again, by "RUN/g0.e1".
std::map<std::string, json> tried_requests(const json& snapshot) {
  std::vector<json> found;
  collect(snapshot, "policy_request", found);
  std::map<std::string, json> result;
  for (auto& x : found) result.insert_or_assign(x.value("id", ""), x);
  return result;
}

double now() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

json episode_json(const std::string& run, const json& x, const std::map<std::string, json>& tried) {
  json result = {{"run", run}, {"id", x.value("id", "")}, {"state", x.value("state", "")}};
  auto since = x.value("since", 0.0);
  result["age_seconds"] = since > 0 ? std::max(0.0, now() - since) : 0.0;
  auto detail = x.value("detail", "");
  auto request = tried.find(run + "/" + x.value("id", ""));
  if (request != tried.end() && x.value("state", "") == "thinking") {
    auto attempts = static_cast<uint32_t>(number_of(request->second, "attempts"));
    auto why = request->second.value("detail", "");
    result["policy"] = {
        {"state", request->second.value("state", "")}, {"attempts", attempts}, {"last_error", why}};
    detail += fmt::format("; policy attempt {}, last error: {}", attempts, why);
  }
  result["detail"] = detail;
  if (auto numbers = x.find("numbers"); numbers != x.end()) result["numbers"] = *numbers;
  return result;
}

expected<std::vector<run_directory>> chosen_runs(const invocation& in) {
  const auto& root = in.value("--root");
  std::vector<run_directory> result;
  if (in.has("RUN")) {
    auto run = find_run(in.value("RUN"), root);
    KM_TRY(run);
    result.push_back(*run);
    return result;
  }
  for (const auto& name : list_runs(root))
    if (auto run = find_run(name, root)) result.push_back(*run);
  return result;
}

expected<int> ps(const invocation& in) {
  auto runs = chosen_runs(in);
  KM_TRY(runs);
  json document = {{"runs", json::array()}, {"episodes", json::array()}};
  std::vector<std::vector<std::string>> rows;
  for (const auto& run : *runs) {
    auto snapshot = ask(run);
    if (!snapshot) {
      if (in.has("RUN")) return tl::unexpected<error>{snapshot.error()};
      continue; // not in progress
    }
    document["runs"].push_back(
        {{"run", run.name}, {"directory", run.path}, {"snapshot", *snapshot}});
    std::vector<json> episodes;
    collect(*snapshot, "episode", episodes);
    auto tried = tried_requests(*snapshot);
    for (const auto& x : episodes) {
      auto row = episode_json(run.name, x, tried);
      rows.push_back({run.name, row["id"], row["state"], cli::format_seconds(row["age_seconds"]),
                      cli::clean(row["detail"].get<std::string>())});
      document["episodes"].push_back(std::move(row));
    }
  }
  if (in.json)
    cli::print_json(document);
  else if (document["runs"].empty())
    cli::talk("no run is in progress below " + in.value("--root"));
  else if (rows.empty())
    cli::talk("no episode is live"); // a run is about to begin or to end
  else
    cli::print(cli::format_table({"RUN", "EPISODE", "STATE", "FOR>", "DETAIL"}, rows));
  return 0;
}

} // namespace

cli::command ps_row() {
  return {"ps",
          "Lists the live episodes of runs in progress and their states.",
          "kernelmill ps",
          "",
          {{"RUN",
            "Name of a run, or its directory. Default: all runs below --root.",
            false,
            false,
            completes::run,
            {}}},
          {runs_root()},
          ps};
}

} // namespace kernelmill::commands
