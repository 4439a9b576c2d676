// Lines of a run's log, a part at a time.

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "launch/analysis/watch/query.hpp"
#include "launch/analysis/watch/views.hpp"
#include "messages/base/json_value.hpp"

namespace kernelmill::watch {

namespace {

namespace fs = std::filesystem;

constexpr uint64_t most_bytes = uint64_t{1} << 20; // of one answer
constexpr uint64_t longest_tail = uint64_t{4} << 20;

// Whichever format was written last: a resumed run may have another one.
std::string log_file(const run_directory& run) {
  std::string best;
  fs::file_time_type latest{};
  for (const auto* name : {"/run.log", "/run.jsonl"}) {
    std::error_code code;
    auto path = run.logs() + name;
    auto time = fs::last_write_time(path, code);
    if (!code && (best.empty() || time > latest)) {
      best = path;
      latest = time;
    }
  }
  return best;
}

// Where the last `lines` lines of a file begin.
uint64_t tail_offset(std::ifstream& in, uint64_t size, uint64_t lines) {
  auto from = size > longest_tail ? size - longest_tail : 0;
  std::string text(size - from, '\0');
  in.seekg(static_cast<std::streamoff>(from));
  in.read(text.data(), static_cast<std::streamsize>(text.size()));
  auto at = text.size();
  if (at > 0 && text[at - 1] == '\n') --at;
  for (uint64_t n = 0; n < lines; ++n) {
    auto newline = at == 0 ? std::string::npos : text.rfind('\n', at - 1);
    if (newline == std::string::npos) return from;
    at = newline;
  }
  return from + at + 1;
}

} // namespace

expected<json> logs_view(const world& in, const json& query) {
  KM_TRY(check_query(query, {"run", "offset", "tail", "file"}));
  auto run = find_run(text_in(query, "run"), in.root);
  KM_TRY(run);
  bool live = is_worked_on(*run); // before its last lines are read
  auto path = log_file(*run);
  if (path.empty())
    return configuration_error("not_found", "failed to find a log of the run '" + run->name + "'",
                               "its logs are in " + run->logs());
  std::ifstream file{path, std::ios::binary};
  file.seekg(0, std::ios::end);
  if (!file)
    return infrastructure_error("io_error", "failed to read " + path, "check its permissions");
  auto size = static_cast<uint64_t>(file.tellg());
  auto name = path.substr(path.rfind('/') + 1);
  auto offset = count_in(query, "offset", 0);
  // A file that was begun anew, or another one, is read from its start.
  if (offset > size || (query.contains("file") && text_in(query, "file") != name)) offset = 0;
  if (!query.contains("offset")) offset = tail_offset(file, size, count_in(query, "tail", 100));
  std::string text(std::min(size - offset, most_bytes), '\0');
  file.clear();
  file.seekg(static_cast<std::streamoff>(offset));
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<size_t>(std::max<std::streamsize>(file.gcount(), 0)));
  auto whole = text.rfind('\n'); // a line that is being written comes next time
  if (whole == std::string::npos && text.size() < most_bytes)
    text.clear();
  else if (whole != std::string::npos)
    text.resize(whole + 1);
  json result = {{"run", run->name}, {"file", name}};
  result["next"] = offset + text.size();
  result["live"] = live;
  result["more"] = offset + text.size() < size;
  result["text"] = std::move(text);
  return result;
}

} // namespace kernelmill::watch
