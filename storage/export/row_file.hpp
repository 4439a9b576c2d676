#pragma once

// Where rows go: a file of JSON lines that appears when it is whole, or a stream. Memory stays
// small however many rows there are.

#include <functional>
#include <memory>
#include <string>

#include <nlohmann/json_fwd.hpp>

#include "messages/error.hpp"

namespace kernelmill::exports {

/// Takes bytes as they come.
using byte_taker = std::function<expected<void>(std::string_view)>;

struct written_file {
  std::string path; ///< within the export's folder; empty for a stream
  std::string split;
  std::string sha256; ///< of the bytes as written
  uint64_t rows = 0, bytes = 0;
};

class row_file {
public:
  /// `zstd` packs the lines into one zstd frame.
  static expected<row_file> create(const std::string& path, bool zstd);
  static row_file stream(byte_taker to, bool zstd);

  row_file(row_file&&) noexcept;
  row_file& operator=(row_file&&) noexcept;
  ~row_file(); ///< leaves nothing unless finish() has succeeded

  expected<void> append(const nlohmann::ordered_json& row);

  /// Ends the frame, and makes the file appear. `path` and `split` are the caller's.
  expected<written_file> finish();

private:
  struct state;
  explicit row_file(std::unique_ptr<state> x);
  std::unique_ptr<state> state_;
};

} // namespace kernelmill::exports
