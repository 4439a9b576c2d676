#include "storage/run_journal.hpp"

#include <cerrno>
#include <fstream>
#include <utility>

#include <fcntl.h>
#include <kj/exception.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "storage/files.hpp"

namespace kernelmill {

run_journal::run_journal(file traces, file metrics)
    : traces_(std::move(traces)), metrics_(std::move(metrics)) {
  // nop
}

run_journal::run_journal(run_journal&& other) noexcept
    : traces_(std::exchange(other.traces_, {})), metrics_(std::exchange(other.metrics_, {})) {
  // nop
}

run_journal& run_journal::operator=(run_journal&& other) noexcept {
  std::swap(traces_, other.traces_);
  std::swap(metrics_, other.metrics_);
  return *this;
}

run_journal::~run_journal() {
  [[maybe_unused]] auto ok = flush();
  if (traces_.fd >= 0) ::close(traces_.fd);
  if (metrics_.fd >= 0) ::close(metrics_.fd);
}

expected<run_journal::file> run_journal::open_file(const std::string& path) {
  int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (fd < 0) return tl::unexpected<error>{file_error(errno, "open", path)};
  return file{path, fd, {}, {}, 0};
}

expected<run_journal> run_journal::open(const run_directory& run) {
  auto traces = open_file(run.traces_file());
  KM_TRY(traces);
  auto metrics = open_file(run.metrics_file());
  if (!metrics) {
    ::close(traces->fd);
    return tl::unexpected<error>{metrics.error()};
  }
  return run_journal{std::move(*traces), std::move(*metrics)};
}

// Lines that do not fit are taken back, so that the next one begins on a line of its own.
expected<void> run_journal::append(const file& to, const std::string& line) {
  auto before = ::lseek(to.fd, 0, SEEK_END);
  for (size_t done = 0; done < line.size();) {
    auto count = ::write(to.fd, line.data() + done, line.size() - done);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) {
      int code = errno;
      if (before >= 0) [[maybe_unused]]
        auto status = ::ftruncate(to.fd, before);
      return tl::unexpected<error>{file_error(code, "write", to.path)};
    }
    done += static_cast<size_t>(count);
  }
  return {};
}

namespace {

// The name of the record that a line is of; empty when it is none of ours.
std::string name_of_line(const std::string& text) {
  auto line = nlohmann::json::parse(text, nullptr, false);
  if (!line.is_object() || line.value("schema_version", 0) != line_schema_version) return {};
  auto kind = line.value("kind", "");
  if (kind == "turn") return line.value("turn_id", "");
  if (kind == "episode") return line.value("episode", "");
  return kind == "group" ? std::to_string(line.value("step", 0u)) : std::string{};
}

} // namespace

expected<void> run_journal::follow(const store& from, const artifact_store& artifacts,
                                   wire::Record::Reader committed) {
  auto ok = collect(from, artifacts, committed);
  auto written = flush();
  return ok ? written : ok;
}

expected<void> run_journal::collect(const store& from, const artifact_store& artifacts,
                                    wire::Record::Reader committed) {
  auto add = [](file& to, const nlohmann::ordered_json& line) {
    to.pending += json_line(line);
    to.pending += '\n';
  };
  try {
    if (committed.isTurn()) {
      auto line = turn_trace(committed.getTurn(), artifacts);
      KM_TRY(line);
      add(traces_, *line);
      add(metrics_, turn_metrics(committed.getTurn()));
    }
    if (committed.isEpisode()) add(traces_, episode_trace(committed.getEpisode()));
    if (committed.isGroup()) {
      auto where = committed.getGroup();
      auto group = read_group(from, where.getRun().cStr(), where.getGroup());
      KM_TRY(group);
      add(metrics_, group_metrics(*group));
    }
  } catch (const kj::Exception& e) {
    return infrastructure_error("store_damaged", std::string{"failed to read a record: "} +
                                                     e.getDescription().cStr());
  }
  bool full = traces_.pending.size() > most_pending || metrics_.pending.size() > most_pending;
  return full ? flush() : expected<void>{};
}

// What cannot be written is forgotten: catching up finds it in the store.
expected<void> run_journal::flush() {
  expected<void> result;
  for (auto* x : {&traces_, &metrics_}) {
    if (x->pending.empty()) continue;
    if (auto ok = append(*x, x->pending); !ok && result) result = ok;
    x->pending.clear();
  }
  return result;
}

// -- catching up ----------------------------------------------------------------------------------

expected<void> run_journal::cut(file& x, size_t bytes) {
  if (::ftruncate(x.fd, static_cast<off_t>(bytes)) != 0)
    return tl::unexpected<error>{file_error(errno, "shorten", x.path)};
  return {};
}

// Up to the first line that is torn, of another version, or there already.
expected<void> run_journal::keep_whole_lines(file& x) {
  x.there.clear();
  x.found = 0;
  std::ifstream in{x.path, std::ios::binary};
  size_t good = 0;
  for (std::string line; std::getline(in, line) && !in.eof(); good += line.size() + 1) {
    auto name = name_of_line(line);
    if (name.empty() || !x.there.insert(std::move(name)).second) break;
  }
  return cut(x, good);
}

expected<void> run_journal::add_missing(const stored_group& group,
                                        const artifact_store& artifacts) {
  auto is_missing = [](file& x, const std::string& name) {
    bool there = x.there.contains(name);
    x.found += there ? 1 : 0;
    return !there;
  };
  auto add = [](file& x, const nlohmann::ordered_json& line) {
    return append(x, json_line(line) + "\n");
  };
  for (const auto& episode : group.episodes) {
    for (const auto& record : episode.turns) {
      auto view = record.open();
      auto turn = view->getTurn();
      std::string id = turn.getTurnId();
      if (is_missing(traces_, id)) {
        auto line = turn_trace(turn, artifacts);
        KM_TRY(line);
        if (auto ok = add(traces_, *line); !ok) return ok;
      }
      if (is_missing(metrics_, id))
        if (auto ok = add(metrics_, turn_metrics(turn)); !ok) return ok;
    }
    if (!episode.end) continue;
    auto line = episode_trace(episode.end->open()->getEpisode());
    if (is_missing(traces_, line["episode"].get<std::string>()))
      if (auto ok = add(traces_, line); !ok) return ok;
  }
  if (!group.end || !is_missing(metrics_, std::to_string(group.group))) return {};
  return add(metrics_, group_metrics(group));
}

expected<void> run_journal::catch_up(const store& from, const artifact_store& artifacts,
                                     const std::string& run) {
  for (auto* x : {&traces_, &metrics_})
    if (auto ok = keep_whole_lines(*x); !ok) return ok;
  auto add = [&] {
    return for_each_group(from, run,
                          [&](const stored_group& group) { return add_missing(group, artifacts); });
  };
  if (auto ok = add(); !ok) return ok;
  // A line of a commit that was lost with the power, where storage.durable is off.
  bool whole = true;
  for (auto* x : {&traces_, &metrics_}) {
    whole &= x->found == x->there.size();
    x->there.clear();
    x->found = 0;
  }
  if (whole) return {};
  for (auto* x : {&traces_, &metrics_})
    if (auto ok = cut(*x, 0); !ok) return ok;
  return add();
}

} // namespace kernelmill
