#include "launch/server/page/journal.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "messages/base/descriptor.hpp"
#include "messages/base/json_value.hpp"

namespace kernelmill::page {

namespace {

/// A line as run_journal writes it, without reading what stands behind its first fields: at
/// thousands of turns a second, that would take a good part of a core.
std::string_view kind_of(std::string_view line) {
  constexpr std::string_view begin = R"({"schema_version":)", kind = R"(,"kind":")";
  auto at = line.substr(0, begin.size() + 8 + kind.size()).find(kind);
  if (!line.starts_with(begin) || at == std::string_view::npos) return {};
  at += kind.size();
  return line.substr(at, line.find('"', at) - at);
}

bool read_quickly(event& to, const std::string& line) {
  if (!line.ends_with('}')) return false;
  to.name = kind_of(line);
  if (to.name != "turn" && to.name != "group") return false;
  // By the folder's name, as in every other answer. Names hold no character that JSON escapes.
  constexpr std::string_view named = R"(,"run":")";
  to.data = line;
  if (auto name = line.find(named); name != std::string::npos) {
    name += named.size();
    to.data.replace(name, line.find('"', name) - name, to.run);
  } else {
    to.data.insert(to.data.size() - 1, std::string{named} + to.run + '"');
  }
  return true;
}

bool read_slowly(event& to, const std::string& line) {
  auto document = nlohmann::ordered_json::parse(line, nullptr, false);
  if (!document.is_object()) return false;
  document["run"] = to.run;
  to.name = document.value("kind", std::string{"turn"});
  to.data = document.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  return to.name == "turn" || to.name == "group";
}

} // namespace

journal_part read_journal(const std::string& path, const std::string& run, uint64_t from,
                          size_t most, size_t newest) {
  journal_part result{{}, from};
  descriptor file{::open(path.c_str(), O_RDONLY | O_CLOEXEC)};
  if (!file) return result;
  std::string text(most, '\0');
  auto n = ::pread(file.get(), text.data(), text.size(), static_cast<off_t>(from));
  if (n <= 0) return result;
  text.resize(static_cast<size_t>(n));
  auto lines = std::count(text.begin(), text.end(), '\n'); // left
  auto few = static_cast<ptrdiff_t>(std::min<size_t>(newest, PTRDIFF_MAX));
  for (size_t at = 0;;) {
    auto end = text.find('\n', at);
    if (end == std::string::npos) {
      // A line that is longer than all of it cannot be shown.
      if (at == 0 && text.size() == most) result.next += most;
      return result;
    }
    std::string_view seen{text.data() + at, end - at};
    at = end + 1;
    result.next = from + at;
    if (lines-- > few && kind_of(seen) == "turn") {
      ++result.left_out;
      continue;
    }
    std::string line{seen};
    event x{"", run, result.next, {}};
    if (read_quickly(x, line) || read_slowly(x, line))
      result.events.push_back(std::make_shared<const event>(std::move(x)));
  }
}

uint64_t end_of_lines(const std::string& path, uint64_t place) {
  descriptor file{::open(path.c_str(), O_RDONLY | O_CLOEXEC)};
  std::array<char, 64 << 10> part;
  for (auto end = place; file && end > 0;) {
    auto size = std::min<uint64_t>(part.size(), end);
    auto n = ::pread(file.get(), part.data(), size, static_cast<off_t>(end - size));
    if (n != static_cast<ssize_t>(size))
      return place; // it has become shorter: its reader sees that
    auto last = std::string_view{part.data(), size}.rfind('\n');
    end -= size;
    if (last != std::string_view::npos) return end + last + 1;
  }
  return file ? 0 : place;
}

uint64_t journal_size(const std::string& path) {
  struct stat about {};
  return ::stat(path.c_str(), &about) == 0 ? static_cast<uint64_t>(about.st_size) : 0;
}

} // namespace kernelmill::page
