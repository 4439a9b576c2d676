#include "messages/log/logger.hpp"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <shared_mutex>
#include <vector>

#include <fmt/format.h>
#include <spdlog/async.h>
#include <spdlog/async_logger.h>
#include <spdlog/sinks/base_sink.h>
#include <spdlog/sinks/rotating_file_sink.h>

namespace kernelmill {

namespace {

using std::chrono::system_clock;

// Lines that wait for the log's thread: some MB at most.
constexpr size_t queue_lines = 8192;

// Warnings that people are shown within the interval. A server that restarts gives one a request.
constexpr uint32_t shown_at_once = 8;
constexpr std::chrono::seconds shown_interval{10};

using show_function = std::function<void(std::string_view)>;

/// Shows lines to people. Only the log's thread calls it.
class terminal_sink final : public spdlog::sinks::base_sink<spdlog::details::null_mutex> {
public:
  terminal_sink(show_function show, bool all) : show_(std::move(show)), all_(all) {}

  void show(std::string_view text) {
    if (show_) show_(text);
  }

  /// What a flood has kept back.
  void tell_hidden() {
    if (hidden_ > 0) show(fmt::format("{} more warnings are in the log", hidden_));
    hidden_ = 0;
  }

protected:
  void sink_it_(const spdlog::details::log_msg& x) override {
    if (!all_ && x.time - since_ >= shown_interval) {
      since_ = x.time;
      shown_ = 0;
      tell_hidden();
    }
    if (!all_ && ++shown_ > shown_at_once)
      ++hidden_;
    else
      show({x.payload.data(), x.payload.size()});
  }

  void flush_() override {
    // nop
  }

private:
  show_function show_;
  bool all_;
  system_clock::time_point since_{};
  uint32_t shown_ = 0;
  uint64_t hidden_ = 0;
};

using pool_ptr = std::shared_ptr<spdlog::details::thread_pool>;

std::shared_ptr<spdlog::async_logger> through(const pool_ptr& pool, spdlog::sink_ptr sink) {
  sink->set_pattern("%v");
  auto result = std::make_shared<spdlog::async_logger>(
      "kernelmill", std::move(sink), pool, spdlog::async_overflow_policy::overrun_oldest);
  result->set_level(spdlog::level::trace);
  result->flush_on(spdlog::level::trace); // the log's thread has time; people read along
  return result;
}

} // namespace

struct logger::state {
  log_options options;
  std::shared_ptr<terminal_sink> terminal;
  std::shared_ptr<spdlog::async_logger> file; // null: none
  std::shared_ptr<spdlog::async_logger> shown;

  std::atomic<bool> closed{false};
  std::shared_mutex pool_mutex; // a line that is being queued keeps the pool alive
  pool_ptr pool;                // guarded by pool_mutex; null when closed

  std::mutex mutex;
  std::vector<std::weak_ptr<const log_redaction>> redactions; // guarded by mutex

  ~state() { close(); }

  bool is_shown(log_level level) const {
    return options.show && (options.show_all ? level >= options.level : level >= log_level::warn);
  }

  bool is_passed_on(log_level level) const {
    return level >= log_level::warn && options.parent.takes(level);
  }

  std::string redact(std::string_view message);
  void write(log_level level, const log_place& place, std::string_view message);
  void open_file();
  void close();
};

std::string logger::state::redact(std::string_view message) {
  std::vector<std::shared_ptr<const log_redaction>> all;
  {
    std::lock_guard guard{mutex};
    std::erase_if(redactions, [&](const auto& x) {
      auto known = x.lock();
      if (known) all.push_back(known);
      return !known;
    });
  }
  std::string result{message};
  for (const auto& one : all) result = (*one)(std::move(result));
  return result;
}

void logger::state::write(log_level level, const log_place& place, std::string_view message) {
  auto clean = redact(message);
  auto when = system_clock::now();
  if (is_passed_on(level)) options.parent.write(level, place, clean);
  std::shared_lock guard{pool_mutex};
  if (!pool) return;
  auto put = [&](auto& to, log_format format) {
    auto line = log_line(format, when, level, place, clean);
    to->log(spdlog::log_clock::now(), spdlog::source_loc{}, spdlog::level::info,
            spdlog::string_view_t{line.data(), line.size()});
  };
  if (file && level >= options.level) put(file, options.format);
  if (is_shown(level)) put(shown, options.show_all ? options.format : log_format::text);
}

void logger::state::open_file() {
  auto sink = std::make_shared<spdlog::sinks::rotating_file_sink_st>(
      options.file, options.file_bytes, std::max(options.files, 1u) - 1);
  file = through(pool, std::move(sink));
  // Called on the log's thread, which shows what it cannot write.
  file->set_error_handler([terminal = terminal, told = false](const std::string& why) mutable {
    if (!std::exchange(told, true)) terminal->show("failed to write the log: " + why);
  });
}

void logger::state::close() {
  pool_ptr last;
  {
    std::unique_lock guard{pool_mutex};
    closed = true;
    last = std::move(pool);
  }
  if (!last) return;
  auto overrun = last->overrun_counter();
  last.reset(); // writes what is queued and ends the thread: the sinks are ours now
  if (overrun > 0 && file) {
    auto line = log_line(options.format, system_clock::now(), log_level::warn, {"log", {}, {}, {}},
                         fmt::format("{} lines were lost: they came faster than they could be "
                                     "written",
                                     overrun));
    for (auto& sink : file->sinks()) {
      try {
        sink->log({"kernelmill", spdlog::level::info, line});
        sink->flush();
      } catch (const spdlog::spdlog_ex&) {
        // nop: a disk that is full was told of
      }
    }
  }
  terminal->tell_hidden();
}

expected<logger> logger::open(log_options options) {
  auto x = std::make_shared<state>();
  x->options = std::move(options);
  x->pool = std::make_shared<spdlog::details::thread_pool>(queue_lines, 1);
  x->terminal = std::make_shared<terminal_sink>(x->options.show, x->options.show_all);
  x->shown = through(x->pool, x->terminal);
  x->shown->set_error_handler([](const std::string&) {}); // spdlog's own writes to stderr
  if (x->options.file.empty()) return logger{std::move(x)};
  try {
    x->open_file();
  } catch (const spdlog::spdlog_ex& why) {
    return infrastructure_error("io_error", std::string{"failed to open the log: "} + why.what(),
                                "look at the file system's space and rights");
  }
  return logger{std::move(x)};
}

bool logger::takes(log_level level) const noexcept {
  if (!state_ || state_->closed) return false;
  return (state_->file && level >= state_->options.level) || state_->is_shown(level) ||
         state_->is_passed_on(level);
}

void logger::write(log_level level, const log_place& place, std::string_view message) const {
  if (takes(level)) state_->write(level, place, message);
}

void logger::hide(const std::shared_ptr<const log_redaction>& what) const {
  if (!state_) return;
  std::lock_guard guard{state_->mutex};
  state_->redactions.push_back(what);
}

void logger::close() const {
  if (state_) state_->close();
}

} // namespace kernelmill
