#include "retrieval/search/live_kernels.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>
#include <string_view>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "messages/base/clock.hpp"
#include "messages/base/digest.hpp"
#include "messages/base/files.hpp"
#include "messages/base/json_depth.hpp"
#include "messages/base/json_fields.hpp"
#include "messages/base/json_value.hpp"
#include "retrieval/search/index_files.hpp"
#include "retrieval/search/mapped_file.hpp"

namespace kernelmill {

namespace {

using line_json = nlohmann::ordered_json;

tl::unexpected<error> not_appended(const std::string& path, const char* cause) {
  return infrastructure_error("index_not_written",
                              fmt::format("failed to write {}: {}", path, cause),
                              "check that the folder is writable and its disk is not full; without "
                              "retrieval.live a run writes nothing there");
}

line_json to_json(const live_kernel& x) {
  const auto& k = x.example;
  return {{"kind", "kernel"},     {"id", k.id},
          {"task", k.task},       {"operator_family", k.operator_family},
          {"backend", k.backend}, {"language", k.language},
          {"speedup", k.speedup}, {"device", k.device},
          {"date", k.date},       {"origin", k.origin},
          {"split", k.split},     {"rights_source", k.rights_source},
          {"hidden", k.hidden},   {"run", x.run},
          {"at", x.at},           {"reference", k.reference},
          {"source", k.source}};
}

live_kernel kernel_of(const line_json& x) {
  live_kernel result;
  auto& k = result.example;
  k.id = text_in(x, "id");
  k.task = text_in(x, "task");
  k.operator_family = text_in(x, "operator_family");
  k.backend = text_in(x, "backend");
  k.language = text_in(x, "language");
  k.speedup = number_in(x, "speedup");
  k.device = text_in(x, "device");
  k.date = text_in(x, "date");
  k.origin = text_in(x, "origin");
  k.split = text_in(x, "split");
  k.rights_source = text_in(x, "rights_source");
  k.hidden = flag_in(x, "hidden", true); // a line that does not say so lacks a decision
  k.reference = text_in(x, "reference");
  k.source = text_in(x, "source");
  result.run = text_in(x, "run");
  result.at = number_in(x, "at");
  return result;
}

/// Answers false for what is no line of this program's.
bool take_line(live_lines& to, std::string_view text) {
  if (nests_deeper(text)) return false;
  auto x = line_json::parse(text.data(), text.data() + text.size(), nullptr, false);
  if (!x.is_object()) return false;
  auto kind = text_in(x, "kind");
  if (kind == "kernel") {
    auto kernel = kernel_of(x);
    if (kernel.example.id.empty() || kernel.example.source.empty()) return false;
    to.kernels.push_back(std::move(kernel));
    return true;
  }
  auto named = x.find("kernels");
  if (kind != "retraction" || named == x.end() || !named->is_array()) return false;
  for (const auto& one : *named)
    if (one.is_object()) to.retracted.emplace(text_in(one, "id"), text_in(one, "sha256"));
  return true;
}

std::string line_of(const line_json& x) {
  return x.dump(-1, ' ', false, line_json::error_handler_t::replace) + "\n";
}

descriptor open_to_append(const std::string& path) {
  return descriptor{::open(path.c_str(), O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC, 0644)};
}

class file_lock {
public:
  file_lock(int fd, int how) : fd_(fd) {
    int done = -1;
    do done = ::flock(fd_, how);
    while (done != 0 && errno == EINTR);
    held_ = done == 0;
  }
  ~file_lock() {
    if (held_) ::flock(fd_, LOCK_UN);
  }
  file_lock(const file_lock&) = delete;
  file_lock& operator=(const file_lock&) = delete;
  bool held() const { return held_; }

private:
  int fd_;
  bool held_ = false;
};

expected<void> append_line(int fd, const std::string& path, std::string line) {
  file_lock lock{fd, LOCK_EX};
  struct stat facts {};
  if (!lock.held() || ::fstat(fd, &facts) != 0) return not_appended(path, std::strerror(errno));
  // A writer that lost its power may have left a part of a line.
  char last = '\n';
  if (facts.st_size > 0 && ::pread(fd, &last, 1, facts.st_size - 1) != 1)
    return not_appended(path, std::strerror(errno));
  if (last != '\n') line.insert(line.begin(), '\n');
  auto done = write_retrying(fd, line.data(), line.size());
  if (done == static_cast<ssize_t>(line.size())) return {};
  auto cause = done < 0 ? errno : ENOSPC;
  if (done > 0 && ::ftruncate(fd, facts.st_size) != 0) cause = errno;
  return not_appended(path, std::strerror(cause));
}

std::string known_as(const kernel_example& x) {
  return fmt::format("{}\n{}\n{}\n{}\n{}", x.task, x.device, x.language, x.hidden,
                     sha256_hex(x.source));
}

} // namespace

bool is_retracted(const retracted_kernels& all, const std::string& id, std::string_view source) {
  auto i = all.lower_bound({id, {}});
  if (i == all.end() || i->first != id) return false;
  return all.contains({id, sha256_hex(source)});
}

std::string live_file_of(const std::string& index_directory) {
  return index_directory + "/live.jsonl";
}

std::string warning_of(const live_lines& x, const std::string& index_directory) {
  if (x.unreadable == 0) return {};
  return fmt::format(
      "{}: {} left out, which a write that was cut off or a newer program left there",
      live_file_of(index_directory),
      x.unreadable == 1 ? "1 line is" : fmt::format("{} lines are", x.unreadable));
}

expected<live_lines> read_live_kernels(const std::string& index_directory) {
  live_lines result;
  auto path = live_file_of(index_directory);
  descriptor file{::open(path.c_str(), O_RDONLY | O_CLOEXEC)};
  if (!file && errno == ENOENT) return result;
  std::optional<std::string> text;
  if (file) {
    file_lock lock{file.get(), LOCK_SH}; // no half of a line that a run is appending
    text = read_whole(file.get());
  }
  if (!text) return damaged_index_file(path, std::strerror(errno));
  std::string_view rest{*text};
  while (!rest.empty()) {
    auto end = std::min(rest.find('\n'), rest.size());
    auto line = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (!line.empty() && !take_line(result, line)) ++result.unreadable;
  }
  return result;
}

expected<void> add_live_kernels(loaded_index& index, std::vector<kernel_example> kernels) {
  std::stable_sort(kernels.begin(), kernels.end(),
                   [](const auto& x, const auto& y) { return x.speedup > y.speedup; });
  expected<void> result;
  for (const auto& x : kernels)
    if (auto added = index.add_kernel(x); !added && result)
      result = tl::unexpected<error>{added.error()};
  return result;
}

expected<void> take_up_live_kernels(loaded_index& index, const live_lines& lines) {
  if (!lines.retracted.empty())
    for (size_t i = 0; i < index.size(); ++i)
      if (const auto& x = index.entry(i);
          x.kind == "kernel" && is_retracted(lines.retracted, x.source, x.text))
        index.hide(i);
  std::vector<kernel_example> kernels;
  for (const auto& x : lines.kernels) {
    kernels.push_back(x.example);
    if (is_retracted(lines.retracted, x.example.id, x.example.source)) kernels.back().hidden = true;
  }
  return add_live_kernels(index, std::move(kernels));
}

expected<live_kernel_writer> live_kernel_writer::open(const std::string& index_directory,
                                                      const live_lines& known) {
  auto path = live_file_of(index_directory);
  auto file = open_to_append(path);
  if (!file) return not_appended(path, std::strerror(errno));
  live_kernel_writer result{std::move(file), std::move(path)};
  for (const auto& x : known.kernels) {
    auto [i, fresh] = result.fastest_.try_emplace(known_as(x.example), x.example.speedup);
    if (!fresh) i->second = std::max(i->second, x.example.speedup);
  }
  return result;
}

expected<bool> live_kernel_writer::append(const live_kernel& x) {
  auto key = known_as(x.example);
  if (auto i = fastest_.find(key); i != fastest_.end() && i->second >= x.example.speedup)
    return false;
  KM_TRY(append_line(file_.get(), path_, line_of(to_json(x))));
  fastest_[std::move(key)] = x.example.speedup;
  return true;
}

expected<void> live_kernel_writer::sync() {
  if (::fdatasync(file_.get()) != 0) return not_appended(path_, std::strerror(errno));
  return {};
}

expected<retraction_result> retract_kernels(const std::string& index_directory,
                                            const retraction& what) {
  auto files = read_index_files(index_directory);
  KM_TRY(files);
  auto lines = read_live_kernels(index_directory);
  KM_TRY(lines);
  retraction_result result;
  retracted_kernels fresh;
  auto consider = [&](const std::string& id, bool of_run, std::string_view source) {
    if (!of_run && !what.ids.contains(id)) return;
    std::pair<std::string, std::string> kernel{id, sha256_hex(source)};
    bool is_first = result.found.insert(id).second;
    if (!lines->retracted.contains(kernel))
      result.retracted += fresh.insert(std::move(kernel)).second;
    else
      result.already += is_first;
  };
  auto origin = "run " + what.run;
  for (const auto& x : files->entries)
    if (x.kind == "kernel") consider(x.source, !what.run.empty() && x.origin == origin, x.text);
  for (const auto& x : lines->kernels)
    consider(x.example.id, !what.run.empty() && x.run == what.run, x.example.source);
  if (fresh.empty()) return result;
  line_json line = {{"kind", "retraction"}, {"kernels", line_json::array()}};
  for (const auto& [id, sha256] : fresh)
    line["kernels"].push_back({{"id", id}, {"sha256", sha256}});
  line["reason"] = what.reason;
  line["at"] = seconds_since_1970();
  auto path = live_file_of(index_directory);
  auto file = open_to_append(path);
  if (!file) return not_appended(path, std::strerror(errno));
  KM_TRY(append_line(file.get(), path, line_of(line)));
  if (::fsync(file.get()) != 0) return not_appended(path, std::strerror(errno));
  return result;
}

} // namespace kernelmill
