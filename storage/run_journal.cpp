#include "storage/run_journal.hpp"

#include <cerrno>
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
  if (traces_.fd >= 0) ::close(traces_.fd);
  if (metrics_.fd >= 0) ::close(metrics_.fd);
}

expected<run_journal::file> run_journal::open_file(const std::string& path) {
  int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (fd < 0) return tl::unexpected<error>{file_error(errno, "open", path)};
  return file{path, fd};
}

expected<run_journal> run_journal::open(const run_directory& run) {
  auto traces = open_file(run.traces_file());
  if (!traces) return tl::unexpected<error>{traces.error()};
  auto metrics = open_file(run.metrics_file());
  if (!metrics) {
    ::close(traces->fd);
    return tl::unexpected<error>{metrics.error()};
  }
  return run_journal{std::move(*traces), std::move(*metrics)};
}

// A line that does not fit is taken back, so that the next one begins on a line of its own.
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

expected<void> run_journal::follow(const store& from, const artifact_store& artifacts,
                                   wire::Record::Reader committed) {
  try {
    if (committed.isEpisode()) {
      auto where = committed.getEpisode().getEpisode();
      auto episode = read_episode(from, where.getRun().cStr(), where.getGroup(), where.getMember());
      if (!episode) return tl::unexpected<error>{episode.error()};
      auto line = episode_trace(*episode, artifacts);
      if (!line) return tl::unexpected<error>{line.error()};
      return append(traces_, json_line(*line) + "\n");
    }
    if (committed.isGroup()) {
      auto where = committed.getGroup();
      auto group = read_group(from, where.getRun().cStr(), where.getGroup());
      if (!group) return tl::unexpected<error>{group.error()};
      return append(metrics_, json_line(group_metrics(*group)) + "\n");
    }
    return {};
  } catch (const kj::Exception& e) {
    return infrastructure_error("store_damaged", std::string{"failed to read a record: "} +
                                                     e.getDescription().cStr());
  }
}

} // namespace kernelmill
