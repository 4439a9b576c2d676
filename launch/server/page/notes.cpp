#include "launch/server/page/notes.hpp"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <mutex>
#include <random>

#include <fcntl.h>
#include <unistd.h>

#include <fmt/format.h>

#include "messages/base/clock.hpp"
#include "messages/base/descriptor.hpp"
#include "messages/base/json_value.hpp"
#include "messages/identity.hpp"

namespace kernelmill::page {

using watch::json;

namespace {

constexpr size_t most_text = 16 << 10;
constexpr uintmax_t most_file = 64 << 20;

std::string path_of(const run_directory& run) {
  return run.path + "/notes.jsonl";
}

tl::unexpected<error> bad(const std::string& message) {
  return configuration_error("bad_request", message,
                             "send {\"turn\", \"label\", \"quote\", \"text\"}");
}

expected<void> append(const run_directory& run, const json& line) {
  auto text = json_line(line) + "\n";
  descriptor file{::open(path_of(run).c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644)};
  // One write of a short line: two writers' lines do not mix.
  if (!file || ::write(file.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size()) ||
      ::fsync(file.get()) != 0)
    return infrastructure_error("io_error",
                                "failed to write " + path_of(run) + ": " + std::strerror(errno),
                                "look at the disk's room and the folder's rights");
  return {};
}

std::string new_id() {
  static std::random_device device;
  static std::mutex mutex;
  std::lock_guard guard{mutex};
  return fmt::format("{:08x}{:08x}", device(), device());
}

expected<void> check(const json& x) {
  if (!x.is_object()) return bad("failed to take the note: it is no object");
  for (auto i = x.begin(); i != x.end(); ++i) {
    if (i.key() != "turn" && i.key() != "label" && i.key() != "quote" && i.key() != "text")
      return bad("failed to take the note: unknown field \"" + i.key() + "\"");
    if (!i->is_string() || i->get_ref<const std::string&>().size() > most_text)
      return bad("failed to take the note: \"" + i.key() + "\" must be a text of at most 16 KiB");
  }
  auto turn = parse_name(x.value("turn", ""));
  if (!turn || !turn->turn) return bad("failed to take the note: \"turn\" must be like g3.e1.t2");
  auto label = x.value("label", "");
  if (label != "clean" && label != "reward_hack" && label != "rubric_leak" && label != "bug")
    return bad("failed to take the note: \"label\" must be clean, reward_hack, rubric_leak or bug");
  return {};
}

} // namespace

expected<json> notes_of(const run_directory& run) {
  auto result = json::array();
  std::ifstream from{path_of(run)};
  std::string line;
  uintmax_t bytes = 0;
  while (std::getline(from, line) && (bytes += line.size()) < most_file) {
    auto x = json::parse(line, nullptr, false);
    if (!x.is_object() || !x.contains("id")) continue; // half a line of a process that was killed
    if (!x.value("removed", false)) {
      result.push_back(std::move(x));
      continue;
    }
    for (size_t i = 0; i < result.size(); ++i)
      if (result[i]["id"] == x["id"]) result.erase(i--);
  }
  return json{{"notes", std::move(result)}};
}

expected<json> add_note(const run_directory& run, const json& note) {
  KM_TRY(check(note));
  json line = {{"id", new_id()}, {"at", seconds_since_1970()}};
  line.update(note);
  KM_TRY(append(run, line));
  return line;
}

expected<void> remove_note(const run_directory& run, const std::string& id) {
  auto all = notes_of(run);
  KM_TRY(all);
  for (const auto& x : (*all)["notes"])
    if (x["id"] == id)
      return append(run, {{"id", id}, {"at", seconds_since_1970()}, {"removed", true}});
  return configuration_error("not_found", "failed to find this note",
                             "GET /api/v1/runs/{run}/notes lists them");
}

} // namespace kernelmill::page
