#include "storage/journal/run_journal.hpp"

#include <algorithm>
#include <cerrno>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <utility>

#include <fcntl.h>
#include <kj/exception.h>
#include <unistd.h>

#include "messages/base/clock.hpp"
#include "messages/base/json_value.hpp"
#include "storage/files.hpp"
#include "storage/journal/event_file.hpp"
#include "storage/journal/event_tags.hpp"

namespace kernelmill {

namespace fs = std::filesystem;

run_journal::run_journal(run_journal&& other) noexcept {
  *this = std::move(other);
}

run_journal& run_journal::operator=(run_journal&& other) noexcept {
  std::swap(traces_, other.traces_);
  std::swap(metrics_, other.metrics_);
  std::swap(events_, other.events_);
  std::swap(next_step_, other.next_step_);
  std::swap(groups_, other.groups_);
  return *this;
}

run_journal::~run_journal() {
  [[maybe_unused]] auto ok = flush();
  for (auto* x : files()) ::close(x->fd);
}

std::vector<run_journal::file*> run_journal::files() {
  std::vector<file*> result;
  for (auto* x : {&traces_, &metrics_, &events_})
    if (x->fd >= 0) result.push_back(x);
  return result;
}

expected<run_journal::file> run_journal::open_file(const std::string& path) {
  int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (fd < 0) return tl::unexpected<error>{file_error(errno, "open", path)};
  return file{path, fd, {}, {}, 0};
}

expected<run_journal> run_journal::open(const run_directory& run, const journal_options& options) {
  run_journal result;
  result.groups_ = options.groups;
  auto open_into = [](file& to, const std::string& path) -> expected<void> {
    auto opened = open_file(path);
    KM_TRY(opened);
    to = std::move(*opened);
    return {};
  };
  KM_TRY(open_into(result.traces_, run.traces_file()));
  KM_TRY(open_into(result.metrics_, run.metrics_file()));
  if (options.events) KM_TRY(result.open_events(run));
  return result;
}

// A trainer may write files of its own beside ours. TensorBoard and W&B read time and host.
constexpr std::string_view own_events = ".kernelmill";

expected<void> run_journal::open_events(const run_directory& run) {
  KM_TRY(make_directories(run.tensorboard()));
  std::string path;
  std::error_code status;
  for (fs::directory_iterator i{run.tensorboard(), status}, end; !status && i != end;
       i.increment(status))
    if (auto name = i->path().string(); name.ends_with(own_events)) path = std::max(path, name);
  if (path.empty()) {
    char host[256] = "localhost";
    [[maybe_unused]] auto named = ::gethostname(host, sizeof host - 1);
    path = run.tensorboard() + "/events.out.tfevents." + std::to_string(std::time(nullptr)) + "." +
           host + std::string{own_events};
  }
  auto opened = open_file(path);
  KM_TRY(opened);
  events_ = std::move(*opened);
  KM_TRY(keep_whole_events());
  events_.there.clear();
  return {};
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
      auto line = group_metrics(*group);
      add(metrics_, line);
      if (events_.fd >= 0) events_.pending += next_event(line, *group);
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
  for (auto* x : files()) {
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
  return group.end ? add_missing_group(group) : expected<void>{};
}

expected<void> run_journal::add_missing_group(const stored_group& group) {
  auto name = std::to_string(group.group);
  auto is_missing = [&](file& x) {
    bool there = x.fd < 0 || x.there.contains(name);
    x.found += there ? 1 : 0;
    return !there;
  };
  bool no_line = is_missing(metrics_), no_event = is_missing(events_);
  if (!no_line && !no_event) return {};
  auto line = group_metrics(group);
  if (no_line) KM_TRY(append(metrics_, json_line(line) + "\n"));
  if (no_event) KM_TRY(append(events_, next_event(line, group)));
  return {};
}

expected<void> run_journal::catch_up(const store& from, const artifact_store& artifacts,
                                     const std::string& run) {
  for (auto* x : {&traces_, &metrics_})
    if (auto ok = keep_whole_lines(*x); !ok) return ok;
  if (events_.fd >= 0) KM_TRY(keep_whole_events());
  auto add = [&] {
    return for_each_group(from, run,
                          [&](const stored_group& group) { return add_missing(group, artifacts); });
  };
  if (auto ok = add(); !ok) return ok;
  // A line of a commit that was lost with the power, where storage.durable is off.
  bool whole = true;
  for (auto* x : files()) {
    whole &= x->found == x->there.size();
    x->there.clear();
    x->found = 0;
  }
  if (whole) return {};
  for (auto* x : {&traces_, &metrics_})
    if (auto ok = cut(*x, 0); !ok) return ok;
  if (events_.fd >= 0) KM_TRY(begin_events());
  return add();
}

// -- events -------------------------------------------------------------------------------------

// Up to the first record that is torn, or of a group that is there already. Begins a file that has
// not even its first record.
expected<void> run_journal::keep_whole_events() {
  events_.there.clear();
  events_.found = 0;
  next_step_ = 0;
  auto bytes = read_file(events_.path);
  KM_TRY(bytes);
  auto prefix = read_events(*bytes);
  if (prefix.events.empty()) return begin_events();
  size_t good = prefix.ends[0];
  for (size_t i = 1; i < prefix.events.size(); good = prefix.ends[i++]) {
    const auto& event = prefix.events[i];
    auto named = std::find_if(event.scalars.begin(), event.scalars.end(),
                              [](const auto& x) { return x.first == group_tag; });
    if (named == event.scalars.end() || event.step != next_step_) break;
    if (!events_.there.insert(std::to_string(static_cast<uint64_t>(named->second))).second) break;
    ++next_step_;
  }
  return good < bytes->size() ? cut(events_, good) : expected<void>{};
}

expected<void> run_journal::begin_events() {
  KM_TRY(cut(events_, 0));
  next_step_ = 0;
  return append(events_, event_record(first_event(seconds_since_1970())));
}

std::string run_journal::next_event(const nlohmann::ordered_json& line, const stored_group& group) {
  return event_record(encode_event(group_event(line, values_of(group), next_step_++, groups_)));
}

} // namespace kernelmill
