#include "launch/learning/training/child_processes.hpp"

#include <cerrno>
#include <filesystem>

#include <fcntl.h>
#include <unistd.h>

#include "launch/machine/programs.hpp"
#include "messages/base/descriptor.hpp"
#include "storage/files.hpp"

extern char** environ;

namespace kernelmill::training {

namespace {

using namespace std::chrono_literals;

constexpr auto quick = 20s;        ///< a process that ends earlier did not come up
constexpr uint32_t most_quick = 5; ///< in a row
constexpr int one_look_ms = 200;

std::string with_words(std::string text, const std::map<std::string, std::string>& words) {
  for (const auto& [word, value] : words) {
    auto mark = "{" + word + "}";
    for (size_t at = 0; (at = text.find(mark, at)) != text.npos; at += value.size())
      text.replace(at, mark.size(), value);
  }
  return text;
}

} // namespace

expected<process_spec> spec_of(const std::vector<std::string>& command,
                               const std::map<std::string, std::string>& words,
                               const std::string& directory) {
  process_spec result;
  for (const auto& word : command) result.argv.push_back(with_words(word, words));
  auto& program = result.argv.front();
  auto found = program.find('/') == program.npos
                   ? on_path(program)
                   : (std::filesystem::path{directory} / program).string();
  if (found.empty() || ::access(found.c_str(), X_OK) != 0)
    return configuration_error("not_found",
                               "failed to start '" + program + "': there is no such program",
                               "correct the command in the training's configuration");
  program = found;
  for (char** x = environ; *x != nullptr; ++x) result.environment.emplace_back(*x);
  result.directory = directory;
  return result;
}

error ended_child(const std::string& name, const exit_status& how, const std::string& log_folder) {
  bool killed = how.signal != 0;
  return {killed ? fault_class::infrastructure : fault_class::configuration,
          killed ? "part_killed" : "part_ended",
          "the " + name + " ended with " +
              (killed ? "signal " + std::to_string(how.signal) : std::to_string(how.code)),
          "see " + log_folder + "/" + name + ".log"};
}

child_processes::child_processes(std::shared_ptr<spawner> processes, std::string directory,
                                 std::string log_folder)
    : processes_(std::move(processes)), directory_(std::move(directory)),
      log_folder_(std::move(log_folder)) {
  watcher_ = std::jthread{[this](const std::stop_token& stop) { watch(stop); }};
}

child_processes::~child_processes() {
  watcher_.request_stop();
  if (watcher_.joinable()) watcher_.join();
}

void child_processes::set(const std::string& word, const std::string& value) {
  std::lock_guard guard{mutex_};
  words_[word] = value;
}

expected<child> child_processes::start(const child_command& x, const std::string& last_word) {
  auto words = [this] {
    std::lock_guard guard{mutex_};
    return words_;
  }();
  auto spec = spec_of(x.command, words, directory_);
  KM_TRY(spec);
  if (!last_word.empty()) spec->argv.push_back(last_word);
  auto path = log_folder_ + "/" + x.name + ".log";
  descriptor log{::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644)};
  if (log.get() < 0) return tl::unexpected<error>{file_error(errno, "open", path)};
  spec->descriptors = {{log.get(), 1}, {log.get(), 2}};
  return processes_->start(*spec);
}

expected<void> child_processes::add(child_command x) {
  auto process = start(x, {});
  KM_TRY(process);
  std::lock_guard guard{mutex_};
  running_.push_back({std::move(x), std::move(*process), 0, std::chrono::steady_clock::now()});
  return {};
}

void child_processes::restart(const std::string& name) {
  std::lock_guard guard{mutex_};
  for (auto& x : running_)
    if (x.what.name == name) {
      x.process.kill();
      x.quick_ends = 0;
      x.started = {}; // this end is ours, and no sign of trouble
    }
}

expected<void> child_processes::check() const {
  std::lock_guard guard{mutex_};
  if (trouble_) return tl::unexpected<error>{*trouble_};
  return {};
}

void child_processes::watch(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    std::this_thread::sleep_for(std::chrono::milliseconds{one_look_ms});
    for (size_t i = 0;; ++i) {
      child_command again;
      {
        std::lock_guard guard{mutex_};
        if (i >= running_.size()) break;
        auto& x = running_[i];
        if (x.process.running()) continue;
        x.quick_ends = std::chrono::steady_clock::now() - x.started < quick ? x.quick_ends + 1 : 0;
        auto ended = x.process.wait(one_look_ms);
        if (x.quick_ends >= most_quick) {
          if (!trouble_)
            trouble_ = ended_child(x.what.name, ended.value_or(exit_status{}), log_folder_);
          continue;
        }
        again = x.what;
      }
      auto process = start(again, {});
      std::lock_guard guard{mutex_};
      if (process) {
        running_[i].process = std::move(*process);
        running_[i].started = std::chrono::steady_clock::now();
      } else if (!trouble_) {
        trouble_ = process.error();
      }
    }
  }
}

} // namespace kernelmill::training
