#pragma once

// Where a process writes what happened. A line goes through a queue to one thread that owns file
// and terminal, so no actor waits for a disk: when the queue is full its oldest line is lost, and
// the log's last line says how many were.
//
// A logger is a handle that is passed down. A default one is silent, so callers without a log need
// no other code.

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "messages/error.hpp"
#include "messages/log/line.hpp"

namespace kernelmill {

struct log_options;

/// Takes a secret out of a text.
using log_redaction = std::function<std::string(std::string)>;

/// Thread safety: any thread.
class logger {
public:
  logger() = default; ///< silent

  /// Errors: "io_error" and others of a file that cannot be opened.
  static expected<logger> open(log_options options);

  /// Whether a line of this level goes anywhere: spares making a text that is not written.
  bool takes(log_level level) const noexcept;
  void write(log_level level, const log_place& place, std::string_view message) const;

  void debug(const log_place& place, std::string_view message) const {
    write(log_level::debug, place, message);
  }
  void info(const log_place& place, std::string_view message) const {
    write(log_level::info, place, message);
  }
  void warn(const log_place& place, std::string_view message) const {
    write(log_level::warn, place, message);
  }
  void error(const log_place& place, std::string_view message) const {
    write(log_level::error, place, message);
  }

  /// Every later line goes through `what` for as long as its owner keeps it.
  void hide(const std::shared_ptr<const log_redaction>& what) const;

  /// Returns when all lines are written; later ones go nowhere. Waits for the disk.
  void close() const;

private:
  struct state;
  explicit logger(std::shared_ptr<state> x) : state_(std::move(x)) {}

  std::shared_ptr<state> state_;
};

struct log_options {
  log_level level = log_level::info;
  log_format format = log_format::text;

  std::string file; ///< empty: none
  uint64_t file_bytes = uint64_t{16} << 20;
  uint32_t files = 4; ///< with the one that is being written

  /// Shows a line to people, without its newline; called on the log's thread. May be empty.
  std::function<void(std::string_view)> show;
  /// Everything in `format`; else warnings and errors as text, the first few of a flood.
  bool show_all = false;

  /// Gets the warnings and errors too.
  logger parent;
};

} // namespace kernelmill
