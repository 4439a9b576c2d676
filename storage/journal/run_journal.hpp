#pragma once

// Follows a run's lineage: traces.jsonl and metrics.jsonl grow by a line for each turn, episode and
// group as it is committed. What a journal missed, because its process was killed between a commit
// and the line, or the disk was full, catch_up() adds: every committed record has its line once.
// Lines that are there stay where they are, so a reader that goes on from an offset misses nothing.
// TensorBoard's event file has a record for each group that ends, by the same rules.

#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "storage/journal/projections.hpp"
#include "storage/run_directory.hpp"

namespace kernelmill {

struct journal_options {
  bool events = false; ///< TensorBoard's file too
  size_t groups = 0;   ///< in all; 0: unknown
};

/// Thread safety: none; the thread that is told of commits owns it.
class run_journal {
public:
  /// Creates the files where they are not there yet.
  static expected<run_journal> open(const run_directory& run, const journal_options& options = {});

  run_journal(run_journal&& other) noexcept;
  run_journal& operator=(run_journal&& other) noexcept;
  ~run_journal();

  /// Appends the lines of a record that was committed just now as new; a run's own has none.
  expected<void> follow(const store& from, const artifact_store& artifacts,
                        wire::Record::Reader committed);

  /// The same for a caller with many records: the lines stay in memory, up to `most_pending`
  /// bytes of each file, until flush().
  expected<void> collect(const store& from, const artifact_store& artifacts,
                         wire::Record::Reader committed);
  expected<void> flush();

  static constexpr size_t most_pending = size_t{256} << 10;

  /// Cuts off half a line and adds the lines that are missing. A file with a line of no committed
  /// record, or of another version, is written anew.
  expected<void> catch_up(const store& from, const artifact_store& artifacts,
                          const std::string& run);

private:
  using names = std::unordered_set<std::string>; ///< of the records that have a line

  struct file {
    std::string path;
    int fd = -1;
    std::string pending; ///< lines that are not in the file yet
    names there;         ///< while catching up
    size_t found = 0;    ///< of them in the store
  };
  run_journal() = default;
  static expected<file> open_file(const std::string& path);
  expected<void> open_events(const run_directory& run);
  std::vector<file*> files();
  static expected<void> append(const file& to, const std::string& line);
  static expected<void> keep_whole_lines(file& x);
  static expected<void> cut(file& x, size_t bytes);
  expected<void> keep_whole_events();
  expected<void> begin_events();
  std::string next_event(const nlohmann::ordered_json& line, const stored_group& group);
  expected<void> add_missing_group(const stored_group& group);
  expected<void> add_missing(const stored_group& group, const artifact_store& artifacts);

  file traces_;
  file metrics_;
  file events_; ///< not open: there is none
  int64_t next_step_ = 0;
  size_t groups_ = 0;
};

} // namespace kernelmill
