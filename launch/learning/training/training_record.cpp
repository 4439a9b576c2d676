#include "launch/learning/training/training_record.hpp"

#include <algorithm>
#include <ctime>
#include <filesystem>

#include <fcntl.h>
#include <unistd.h>

#include "messages/base/descriptor.hpp"
#include "storage/files.hpp"
#include "storage/journal/event_tags.hpp"
#include "storage/run_directory.hpp"

namespace kernelmill::training {

namespace {

using record_line = training_record::line;
namespace fs = std::filesystem;

constexpr std::string_view events_end = ".kernelmill";

// A line that no newline ends was being written when its process was killed, and does not count
// yet; one that is whole without it was edited by hand.
expected<training_record::file> file_of(const std::string& path, const char* counted) {
  training_record::file result{path, {}, 0, false};
  std::error_code code;
  if (!fs::exists(path, code)) return result;
  auto text = read_file(path);
  KM_TRY(text);
  for (size_t at = 0; at < text->size();) {
    auto newline = text->find('\n', at);
    bool is_ended = newline != text->npos;
    auto end = is_ended ? newline : text->size();
    auto x = record_line::parse(text->substr(at, end - at), nullptr, false);
    if (!x.is_object() || !x.contains(counted) || !x[counted].is_number_unsigned()) {
      if (!is_ended) break;
      return configuration_error("training_damaged",
                                 "failed to read " + path + ":" +
                                     std::to_string(result.lines.size() + 1) +
                                     ": it is no line of a training",
                                 "remove the lines from there on; these steps are taken again");
    }
    result.lines.push_back(std::move(x));
    result.bytes = at = end + is_ended;
    result.is_open = !is_ended;
  }
  return result;
}

event_values step_event(const record_line& x, uint64_t total) {
  auto line = x;
  for (const char* key : {"step", "time/step_max"})
    line.erase(key); // group_event() has other uses for them
  auto result = group_event(line, {}, x["step"].get<int64_t>(), total);
  for (auto& [tag, value] : result.scalars)
    if (tag == "Batch/NumGroups")
      value = static_cast<double>(x.value("groups", record_line::array()).size());
  return result;
}

/// "pass@1" as eval/Pass@1, "fast_1.5" as eval/Fast1.5x.
event_values evaluation_event(const record_line& x) {
  event_values result;
  result.step = x["after"].get<int64_t>();
  result.wall_time = x.value("timestamp", 0.0);
  for (const auto& [key, value] : x.items()) {
    if (!value.is_array() || value.size() != 3 || !value[0].is_number()) continue;
    auto tag = key.starts_with("pass@")   ? "Pass@" + key.substr(5)
               : key.starts_with("fast_") ? "Fast" + key.substr(5) + "x"
               : key == "reward"          ? std::string{"Reward"}
                                          : key;
    result.scalars.emplace_back("eval/" + tag, value[0].get<double>());
  }
  return result;
}

/// The one file of ours in the folder, or its name.
std::string event_path(const std::string& folder) {
  std::error_code code;
  for (fs::directory_iterator i{folder, code}, end; !code && i != end; i.increment(code))
    if (auto name = i->path().string(); name.ends_with(events_end)) return name;
  char host[256] = "localhost";
  [[maybe_unused]] auto named = ::gethostname(host, sizeof host - 1);
  return folder + "/events.out.tfevents." + std::to_string(std::time(nullptr)) + "." + host +
         std::string{events_end};
}

} // namespace

expected<training_record> training_record::open(const std::string& dir, uint64_t steps) {
  training_record result;
  result.dir_ = dir;
  result.total_ = steps;
  auto done = file_of(dir + "/checkpoints.jsonl", "step");
  KM_TRY(done);
  result.steps_ = std::move(*done);
  auto evaluated = file_of(dir + "/evaluations.jsonl", "after");
  KM_TRY(evaluated);
  result.evaluations_ = std::move(*evaluated);
  for (size_t i = 0; i < result.steps().size(); ++i) {
    const auto& x = result.steps()[i];
    if (x["step"] != i || !x.contains("version") || !x.contains("weights"))
      return configuration_error("training_damaged",
                                 "failed to read " + dir +
                                     "/checkpoints.jsonl:" + std::to_string(i + 1) +
                                     ": it is not the line of step " + std::to_string(i),
                                 "name another dir, or remove the lines from there on");
    for (const auto& group : x.value("groups", record_line::array()))
      result.learned_.insert(group.get<std::string>());
  }
  return result;
}

bool training_record::is_evaluated(uint64_t after) const {
  return std::any_of(evaluations().begin(), evaluations().end(),
                     [&](const line& x) { return x["after"] == after; });
}

expected<void> training_record::file::add(line x) {
  auto text = (is_open ? "\n" : "") + json_line(x) + "\n";
  KM_TRY(append_file(path, bytes, text));
  bytes += text.size();
  is_open = false;
  lines.push_back(std::move(x));
  return {};
}

expected<void> training_record::add_step(line x) {
  KM_TRY(steps_.add(std::move(x)));
  for (const auto& group : steps().back().value("groups", line::array()))
    learned_.insert(group.get<std::string>());
  return write_events();
}

expected<void> training_record::add_evaluation(line x) {
  KM_TRY(evaluations_.add(std::move(x)));
  return write_events();
}

// An evaluation after k steps stands before step k.
expected<void> training_record::write_events() {
  KM_TRY(make_directories(dir_ + "/tensorboard"));
  auto path = event_path(dir_ + "/tensorboard");
  std::error_code code;
  auto before = fs::exists(path, code) ? read_file(path) : expected<std::string>{std::string{}};
  KM_TRY(before);
  auto there = read_events(*before);
  descriptor events{::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644)};
  if (!events || ::ftruncate(events.get(), static_cast<off_t>(there.bytes)) != 0 ||
      ::lseek(events.get(), 0, SEEK_END) < 0)
    return tl::unexpected<error>{file_error(errno, "write", path)};
  size_t written =
      there.events.empty() ? 0 : there.events.size() - 1; // the first one has no values
  std::string text = there.events.empty()
                         ? event_record(first_event(static_cast<double>(std::time(nullptr))))
                         : "";
  size_t number = 0;
  auto add = [&](const event_values& x) {
    if (number++ >= written) text += event_record(encode_event(x));
  };
  for (size_t i = 0; i <= steps().size(); ++i) {
    for (const auto& x : evaluations())
      if (x["after"] == i) add(evaluation_event(x));
    if (i < steps().size()) add(step_event(steps()[i], total_));
  }
  return write_all(events.get(), text, path);
}

} // namespace kernelmill::training
