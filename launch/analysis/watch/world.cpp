#include "launch/analysis/watch/world.hpp"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include <fmt/format.h>

#include "messages/base/descriptor.hpp"
#include "messages/framing.hpp"
#include "messages/identity.hpp"

namespace kernelmill::watch {

namespace {

constexpr int silence_ms = 10'000;

tl::unexpected<error> not_live(const run_directory& run, const std::string& cause) {
  return infrastructure_error("run_not_live", "failed to ask the run '" + run.name + "': " + cause,
                              "`kernelmill status " + run.path +
                                  "` says how it ended, and what continues it if anything is left");
}

/// A path in a run's directory can be longer than the 107 bytes of an address; its descriptor's
/// path below /proc never is.
expected<descriptor> connect_to(const run_directory& run, int more_flags = 0) {
  descriptor directory{::open(run.path.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC)};
  if (!directory) return not_live(run, std::strerror(errno));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  auto path = fmt::format("/proc/self/fd/{}/control.sock", directory.get());
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  descriptor result{::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | more_flags, 0)};
  if (!result) return not_live(run, std::strerror(errno));
  if (::connect(result.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 &&
      errno != EAGAIN) // too many clients wait there, so a process listens
    return not_live(run, errno == ENOENT || errno == ECONNREFUSED ? "it is not in progress"
                                                                  : std::strerror(errno));
  return result;
}

} // namespace

expected<snapshot> ask_control_socket(const run_directory& run) {
  auto socket = connect_to(run);
  KM_TRY(socket);
  auto answer = receive_frame(socket->get(), silence_ms);
  if (!answer) return not_live(run, answer.error().message);
  snapshot result{std::move(answer->words)};
  try {
    auto view = result.open();
    if (view->getActor() == "monitor") return result;
    return not_live(run, view->getDetail().cStr());
  } catch (const kj::Exception& why) {
    return not_live(run, std::string{"its answer cannot be read: "} + why.getDescription().cStr());
  }
}

// Behind the snapshot, so that a process of an older version, which closes then, is told apart.
expected<void> order_run(const run_directory& run, const std::string& verb) {
  auto socket = connect_to(run);
  KM_TRY(socket);
  if (auto first = receive_frame(socket->get(), silence_ms); !first)
    return not_live(run, first.error().message);
  constexpr uint32_t kind_of_order = 2;
  auto order = build<wire::Snapshot>([&](wire::Snapshot::Builder x) {
    x.setActor("order");
    x.setState(verb);
  });
  auto sent = send_message(socket->get(), kind_of_order, order, {}, silence_ms);
  auto answer = sent ? receive_frame(socket->get(), silence_ms)
                     : expected<frame>{tl::unexpected<error>{sent.error()}};
  if (!answer)
    return configuration_error(
        "not_live", "failed to " + verb + " the run '" + run.name + "': its process took no order",
        "is it of an older version? Then press Ctrl-C where it runs");
  snapshot says{std::move(answer->words)};
  try {
    auto view = says.open();
    if (view->getState() == "done") return {};
    return configuration_error(
        "not_live",
        "failed to " + verb + " the run '" + run.name + "': " + view->getDetail().cStr(),
        "`kernelmill " + verb + " " + run.name + " --head ADDR:PORT` asks it");
  } catch (const kj::Exception& why) {
    return not_live(run, std::string{"its answer cannot be read: "} + why.getDescription().cStr());
  }
}

bool is_worked_on(const run_directory& run) {
  return connect_to(run, SOCK_NONBLOCK).has_value();
}

world local_world(const std::string& root) {
  world result;
  result.root = root;
  result.ask_run = ask_control_socket;
  return result;
}

expected<std::vector<live_run>> live_runs(const world& in, const std::string& run) {
  std::vector<live_run> result;
  if (!run.empty()) {
    auto found = find_run(run, in.root);
    KM_TRY(found);
    auto says = in.ask_run(*found);
    KM_TRY(says);
    result.push_back({std::move(*found), std::move(*says)});
    return result;
  }
  for (const auto& name : list_runs(in.root)) {
    auto found = find_run(name, in.root);
    if (!found) continue;
    if (auto says = in.ask_run(*found)) result.push_back({std::move(*found), std::move(*says)});
  }
  return result;
}

expected<std::pair<run_directory, std::string>> locate(const world& in, const std::string& what) {
  auto slash = what.find_last_of('/');
  bool named = slash != std::string::npos && parse_name(what.substr(slash + 1));
  auto run = find_run(named ? what.substr(0, slash) : what, in.root);
  KM_TRY(run);
  return std::pair{std::move(*run), named ? what.substr(slash + 1) : std::string{}};
}

} // namespace kernelmill::watch
