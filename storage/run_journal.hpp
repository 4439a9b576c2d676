#pragma once

// Follows a run's lineage and appends to traces.jsonl and metrics.jsonl as episodes and groups
// end. A journal that falls behind or fails loses nothing: rebuild_projections() catches up.

#include <string>
#include <string_view>

#include "storage/projections.hpp"

namespace kernelmill {

/// Thread safety: none; the thread that commits owns it.
class run_journal {
public:
  /// Creates the files where they are not there yet.
  static expected<run_journal> open(const run_directory& run);

  run_journal(run_journal&& other) noexcept;
  run_journal& operator=(run_journal&& other) noexcept;
  ~run_journal();

  /// Appends the line of an episode's or a group's record that was committed just now as new, and
  /// nothing for other records.
  expected<void> follow(const store& from, const artifact_store& artifacts,
                        wire::Record::Reader committed);

private:
  struct file {
    std::string path;
    int fd = -1;
  };
  run_journal(file traces, file metrics);
  static expected<file> open_file(const std::string& path);
  static expected<void> append(const file& to, const std::string& line);

  file traces_;
  file metrics_;
};

} // namespace kernelmill
