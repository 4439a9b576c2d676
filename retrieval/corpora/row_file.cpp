#include "retrieval/corpora/row_file.hpp"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <vector>

#include <fmt/format.h>

#include "messages/base/text.hpp"

namespace kernelmill {

namespace {

constexpr size_t most_row_bytes = size_t{64} << 20;
constexpr size_t chunk_bytes = size_t{1} << 20;

tl::unexpected<error> bad_rows(const std::string& path, uint64_t line, const std::string& cause,
                               std::string hint = {}) {
  return configuration_error(
      "malformed_corpus",
      fmt::format("failed to read {}{}: {}", path, line > 0 ? fmt::format(":{}", line) : "", cause),
      hint.empty() ? "make it JSON lines: one object a line" : std::move(hint));
}

/// What a file begins with when it is no text.
expected<void> check_start(const std::string& path, std::string_view start) {
  if (start.starts_with("PAR1"))
    return bad_rows(path, 0, "it is Parquet",
                    fmt::format("turn it into JSON lines: pip install 'kernelmill[parquet]', then "
                                "python -m kernelmill.json_lines {} --out {}.jsonl",
                                path, std::filesystem::path{path}.replace_extension().string()));
  if (start.starts_with("\x1f\x8b")) return bad_rows(path, 0, "it is packed", "gunzip it first");
  if (start.starts_with("\x28\xb5\x2f\xfd"))
    return bad_rows(path, 0, "it is packed", "unpack it first: zstd -d");
  return {};
}

class row_scanner {
public:
  row_scanner(const std::string& path, const std::function<bool(const file_row&)>& take)
      : path_(path), take_(take) {}

  bool done() const { return done_; }

  expected<void> scan(std::string_view chunk) {
    while (!chunk.empty() && !done_) {
      if (form_ == form::unknown) {
        start(chunk);
      } else {
        auto used = form_ == form::lines ? part_of_line(chunk) : part_of_array(chunk);
        KM_TRY(used);
        chunk.remove_prefix(*used);
      }
      if (row_.size() > most_row_bytes)
        return bad_rows(path_, begun_, fmt::format("a row has more than {} bytes", most_row_bytes),
                        "leave it out; if it is several rows, put each on a line of its own");
    }
    return {};
  }

  expected<void> end() {
    if (done_) return {};
    if (form_ == form::array)
      return bad_rows(path_, line_, "the array is cut off", "copy the file again");
    if (form_ == form::lines) emit();
    return {};
  }

private:
  enum class form : unsigned char { unknown, lines, array };

  void start(std::string_view& chunk) {
    if (chunk.starts_with("\xef\xbb\xbf")) chunk.remove_prefix(3);
    while (!chunk.empty() && trimmed(chunk.substr(0, 1)).empty()) {
      if (chunk[0] == '\n') ++line_;
      chunk.remove_prefix(1);
    }
    if (chunk.empty()) return;
    begun_ = line_;
    form_ = chunk[0] == '[' ? form::array : form::lines;
    if (form_ == form::array) chunk.remove_prefix(1);
  }

  void emit() {
    auto text = trimmed(std::string_view{row_});
    if (!text.empty()) done_ = !take_({text, begun_, ++number_});
    row_.clear();
  }

  expected<size_t> part_of_line(std::string_view chunk) {
    auto end = chunk.find('\n');
    row_.append(chunk.substr(0, end));
    if (end == chunk.npos) return chunk.size();
    emit();
    begun_ = ++line_;
    return end + 1;
  }

  /// Up to the end of an object, or of the chunk. Whether the object is JSON is asked later: here
  /// brackets count, and quotes, which hide them.
  expected<size_t> part_of_array(std::string_view chunk) {
    size_t i = 0;
    if (depth_ == 0) {
      for (; i < chunk.size() && chunk[i] != '{'; ++i) {
        if (chunk[i] == '\n') ++line_;
        if (chunk[i] == ']') {
          done_ = true;
          return chunk.size();
        }
        if (chunk[i] != ',' && !trimmed(chunk.substr(i, 1)).empty())
          return bad_rows(path_, line_, "the array holds something that is no object");
      }
      if (i == chunk.size()) return i;
      begun_ = line_;
    }
    const auto first = i;
    for (; i < chunk.size(); ++i) {
      char c = chunk[i];
      if (c == '\n') ++line_;
      if (quoted_) {
        if (escaped_)
          escaped_ = false;
        else if (c == '\\')
          escaped_ = true;
        else if (c == '"')
          quoted_ = false;
      } else if (c == '"') {
        quoted_ = true;
      } else if (c == '{' || c == '[') {
        ++depth_;
      } else if ((c == '}' || c == ']') && --depth_ == 0) {
        row_.append(chunk.substr(first, i + 1 - first));
        emit();
        return i + 1;
      }
    }
    row_.append(chunk.substr(first));
    return i;
  }

  const std::string& path_;
  const std::function<bool(const file_row&)>& take_;
  form form_ = form::unknown;
  std::string row_;
  uint64_t line_ = 1, begun_ = 1, number_ = 0;
  size_t depth_ = 0;
  bool quoted_ = false, escaped_ = false, done_ = false;
};

} // namespace

expected<void> each_row(const std::string& path, const std::function<bool(const file_row&)>& take) {
  std::error_code ignored;
  errno = 0;
  std::ifstream in{path, std::ios::binary};
  if (!in || std::filesystem::is_directory(path, ignored))
    return configuration_error(
        "missing_file",
        fmt::format("failed to read {}: {}", path, in ? "it is a folder" : std::strerror(errno)),
        "name a file of rows: JSON lines, or one JSON array");
  row_scanner scanner{path, take};
  std::vector<char> buffer(chunk_bytes);
  bool first = true;
  while (in && !scanner.done()) {
    in.read(buffer.data(), static_cast<std::streamsize>(buffer.size()));
    std::string_view chunk{buffer.data(), static_cast<size_t>(in.gcount())};
    if (first) KM_TRY(check_start(path, chunk));
    first = false;
    KM_TRY(scanner.scan(chunk));
  }
  if (in.bad()) return bad_rows(path, 0, "the disk failed", "copy the file again");
  return scanner.end();
}

} // namespace kernelmill
