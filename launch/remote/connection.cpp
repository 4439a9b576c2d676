#include "launch/remote/connection.hpp"

#include <algorithm>
#include <optional>

#include <fmt/format.h>
#include <sys/utsname.h>

#include "launch/remote/parcel.hpp"
#include "messages/base/json_fields.hpp"
#include "messages/base/text.hpp"

namespace kernelmill::remote {

namespace {

constexpr const char* mark = "kernelmill-remote ";
constexpr size_t most_banner = 64 << 10;
constexpr int greeting_wait_ms = 60'000;

tl::unexpected<error> no_program(const std::string& host, const std::string& why,
                                 const std::string& hint) {
  return configuration_error("remote_program", "failed to run Kernelmill on " + host + ": " + why,
                             hint);
}

// Waits for the first line. At the end of the output before it, ssh or the program has failed.
expected<greeting> greet(ssh_process& ssh, std::string& text) {
  while (true) {
    if (auto found = read_greeting(text)) return *found;
    if (text.size() > most_banner) return broken_rules("it prints without end at login");
    auto more = ssh.receive(text, greeting_wait_ms);
    KM_TRY(more);
    if (!*more) return tl::unexpected<error>{ssh.failure()};
  }
}

expected<void> check_machine(const std::string& host, const greeting& there) {
  utsname here{};
  ::uname(&here);
  if (there.system == here.sysname && there.machine == here.machine) return {};
  return no_program(host,
                    fmt::format("it is {} {}, and this Kernelmill is for {} {}", there.system,
                                there.machine, here.sysname, here.machine),
                    "install the same Kernelmill there, built for that machine, and on its PATH");
}

expected<void> bring(const std::string& host, const parcel& own, int wake) {
  auto ssh = ssh_process::start(host, unpack_script(own.sha256), wake);
  KM_TRY(ssh);
  auto sent = write_tar(own, [&](std::string_view bytes) { return ssh->send(bytes); });
  KM_TRY(sent);
  ssh->close_input();
  std::string text;
  while (true) {
    auto more = ssh->receive(text, connection::usual_wait_ms);
    KM_TRY(more);
    if (!*more) break;
    if (text.size() > most_banner) return broken_rules("it prints without end");
  }
  if (ssh->wait() != 0) return tl::unexpected<error>{ssh->failure()};
  return {};
}

} // namespace

std::optional<greeting> read_greeting(std::string& text) {
  size_t begin = 0;
  for (size_t end; (end = text.find('\n', begin)) != std::string::npos; begin = end + 1) {
    auto line = std::string_view{text}.substr(begin, end - begin);
    if (!line.starts_with(mark)) continue;
    auto words = split(line.substr(std::string_view{mark}.size()), ' ');
    greeting result;
    result.ready = words[0] == "ready";
    if (words.size() > 2) {
      result.system = words[1].substr(0, 64);
      result.machine = words[2].substr(0, 64);
    }
    text.erase(0, end + 1);
    return result;
  }
  return std::nullopt;
}

// One line without single quotes, exclamation marks or newlines: csh and fish pass it on as well.
std::string server_script(const std::string& sha256, const std::string& build) {
  return fmt::format(
      "d=\"${{XDG_CACHE_HOME:-$HOME/.cache}}/kernelmill/remote\"; p=\"$d/programs/{0}\"; "
      "q=\"$(command -v kernelmill)\"; "
      "if [ -x \"$p/bin/kernelmill\" ]; then touch \"$p\"; echo; echo {1}ready; "
      "exec \"$p/bin/kernelmill\" __remote serve \"$d\"; fi; "
      "if [ -n \"$q\" ] && [ \"$(\"$q\" __remote build 2>/dev/null)\" = \"{2}\" ]; then echo; "
      "echo {1}ready; exec \"$q\" __remote serve \"$d\"; fi; "
      "echo; echo {1}missing \"$(uname -s)\" \"$(uname -m)\"",
      sha256, mark, build);
}

// Under its name only when it is whole.
std::string unpack_script(const std::string& sha256) {
  return fmt::format(
      "d=\"${{XDG_CACHE_HOME:-$HOME/.cache}}/kernelmill/remote/programs\"; t=\"$d/new.$$\"; "
      "mkdir -p \"$t\" && tar -xf - -C \"$t\" && {{ mv -T \"$t\" \"$d/{0}\" 2>/dev/null || "
      "{{ rm -rf \"$t\"; [ -d \"$d/{0}\" ]; }}; }} || {{ rm -rf \"$t\"; exit 1; }}",
      sha256);
}

expected<connection> connection::open(const std::string& host, const std::string& build, int wake,
                                      const std::function<void(const std::string&)>& talk) {
  static const auto own = own_parcel(); // hashed once for all connections
  KM_TRY(own);
  bool brought = false;
  while (true) {
    auto ssh = ssh_process::start(host, server_script(own->sha256, build), wake);
    KM_TRY(ssh);
    std::string text;
    auto found = greet(*ssh, text);
    KM_TRY(found);
    if (!found->ready) {
      if (brought) return no_program(host, "what was brought is gone", "try again");
      KM_TRY(check_machine(host, *found));
      talk(fmt::format("{}: bringing Kernelmill, {:.0f} MiB, once", host,
                       static_cast<double>(own->bytes) / (1 << 20)));
      KM_TRY(bring(host, *own, wake));
      brought = true;
      continue;
    }
    connection result{std::move(*ssh)};
    result.reader_.add(text);
    KM_TRY(result.send({"hello", {{"protocol", protocol_version}}}));
    auto hello = result.next(greeting_wait_ms);
    if (!hello && hello.error().category == "remote_unreachable" && result.ssh_.wait() != 255)
      return no_program(host, "it does not start: " + hello.error().message,
                        "install Kernelmill there; a build for an older system runs on newer ones");
    KM_TRY(hello);
    if (hello->verb != "hello" || count_in(hello->head, "protocol", 0) != protocol_version)
      return no_program(host, "it is of another version",
                        "install the same version there, or remove it from its PATH");
    return result;
  }
}

expected<frame> connection::next(int wait_ms) {
  while (true) {
    auto whole = reader_.next();
    KM_TRY(whole);
    if (*whole) {
      if ((*whole)->verb == "error") return tl::unexpected<error>{error_of(**whole)};
      return std::move(**whole);
    }
    std::string part;
    auto more = ssh_.receive(part, wait_ms);
    KM_TRY(more);
    if (!*more) return tl::unexpected<error>{ssh_.failure()};
    reader_.add(part);
  }
}

expected<frame> connection::next_of(const char* verb, int wait_ms) {
  auto x = next(wait_ms);
  KM_TRY(x);
  if (x->verb != verb) return broken_rules(std::string{"it answered something else than "} + verb);
  return x;
}

} // namespace kernelmill::remote
