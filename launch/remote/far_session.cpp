#include "launch/remote/far_session.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <set>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "launch/remote/frames.hpp"
#include "messages/base/digest.hpp"
#include "messages/base/files.hpp"
#include "messages/base/json_fields.hpp"
#include "storage/files.hpp"

namespace kernelmill::remote {

namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

constexpr auto unstarted_kept = 1h;
constexpr auto kept = 24h * 7;
constexpr size_t most_shown = 200;

tl::unexpected<error> system_error(const char* verb, const std::string& path,
                                   const std::error_code& code) {
  return tl::unexpected<error>{file_error(code.value(), verb, path)};
}

bool exists(const std::string& path) {
  std::error_code code;
  return fs::exists(path, code);
}

std::chrono::seconds age_of(const fs::path& path) {
  std::error_code code;
  auto changed = fs::last_write_time(path, code);
  if (code) return 0s;
  return std::chrono::duration_cast<std::chrono::seconds>(fs::file_time_type::clock::now() -
                                                          changed);
}

// Sent again, a blob is as good as new.
void touch(const std::string& path) {
  ::utimensat(AT_FDCWD, path.c_str(), nullptr, 0);
}

std::vector<fs::path> entries_of(const std::string& folder) {
  std::vector<fs::path> result;
  std::error_code code;
  for (auto i = fs::directory_iterator{folder, code}; !code && i != fs::directory_iterator{};
       i.increment(code))
    result.push_back(i->path());
  return result;
}

void remove_old(const std::string& folder, std::chrono::seconds after) {
  std::error_code ignored;
  for (const auto& path : entries_of(folder))
    if (age_of(path) > after) fs::remove_all(path, ignored);
}

} // namespace

std::string_view to_string(session_state x) {
  switch (x) {
    case session_state::opened: return "opened";
    case session_state::running: return "running";
    case session_state::ended: return "ended";
    case session_state::lost: return "lost";
  }
  return "lost";
}

descriptor lock_session(const std::string& folder) {
  descriptor lock{::open((folder + "/lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600)};
  if (lock && ::flock(lock.get(), LOCK_EX | LOCK_NB) != 0) lock.reset();
  return lock;
}

expected<far_session> far_session::open(const std::string& root, const std::string& id,
                                        const std::string& order_text) {
  if (!is_session_id(id)) return broken_rules("a session has no id");
  auto what = read_order(order_text);
  KM_TRY(what);
  auto folder = root + "/sessions/" + id;
  if (auto before = read_whole(folder + "/order.json")) {
    if (*before != order_text) return broken_rules("a session was opened with another order");
  } else {
    KM_TRY(make_directories(folder));
    if (auto stored = write_file(folder + "/order.json", order_text); !stored) {
      std::error_code ignored;
      fs::remove_all(folder, ignored);
      return tl::unexpected<error>{stored.error()};
    }
  }
  return far_session{root, std::move(folder), std::move(*what)};
}

expected<far_session> far_session::find(const std::string& root, const std::string& id) {
  auto folder = root + "/sessions/" + id;
  auto text = is_session_id(id) ? read_whole(folder + "/order.json") : std::nullopt;
  if (!text)
    return configuration_error("not_found", "failed to find the session " + id,
                               "`kernelmill remote ls HOST` shows those that are there");
  auto what = read_order(*text);
  KM_TRY(what);
  return far_session{root, std::move(folder), std::move(*what)};
}

std::string far_session::part(const std::string& sha256) const {
  return folder_ + "/" + sha256 + ".part";
}

std::vector<missing_blob> far_session::missing() const {
  std::vector<missing_blob> result;
  std::set<std::string> seen;
  if (exists(work())) return result;
  for (const auto& x : order_.inputs) {
    if (!seen.insert(x.sha256).second) continue;
    if (exists(blob(x.sha256))) {
      touch(blob(x.sha256));
      continue;
    }
    std::error_code none;
    auto have = fs::file_size(part(x.sha256), none);
    result.push_back({x.sha256, x.size, none || have > x.size ? 0 : have});
  }
  return result;
}

expected<void> far_session::add(const missing_blob& x, std::string_view piece, bool last) {
  bool wanted = std::any_of(order_.inputs.begin(), order_.inputs.end(), [&](const auto& input) {
    return input.sha256 == x.sha256 && x.have + piece.size() <= input.size;
  });
  if (!wanted) return broken_rules("bytes came that no file of the order has");
  auto path = part(x.sha256);
  descriptor out{::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600)};
  if (!out || ::ftruncate(out.get(), static_cast<off_t>(x.have)) != 0 ||
      ::lseek(out.get(), 0, SEEK_END) < 0)
    return tl::unexpected<error>{file_error(errno, "write", path)};
  KM_TRY(write_all(out.get(), piece, path));
  if (!last) return {};
  auto stored = describe_file(path, "part");
  KM_TRY(stored);
  std::error_code code;
  if (stored->sha256 != x.sha256) {
    fs::remove(path, code);
    return broken_rules("a file did not arrive as it was sent");
  }
  fs::rename(path, blob(x.sha256), code);
  if (code) return system_error("store", blob(x.sha256), code);
  return {};
}

// Copies, not links: the command may write to its files, and the blobs serve other sessions.
expected<void> far_session::lay_out() {
  if (exists(work())) return {};
  auto fresh = folder_ + "/work.new";
  std::error_code code;
  fs::remove_all(fresh, code);
  KM_TRY(make_directories(fresh));
  for (const auto& x : order_.inputs) {
    auto target = fs::path{fresh} / x.path;
    fs::create_directories(target.parent_path(), code);
    if (!code) fs::copy_file(blob(x.sha256), target, code);
    if (!code && x.executable)
      fs::permissions(target, fs::perms::owner_all, fs::perm_options::replace, code);
    if (code) return system_error("write", target.string(), code);
  }
  fs::rename(fresh, work(), code);
  if (code) return system_error("make", work(), code);
  return {};
}

session_state far_session::state() const {
  if (exists(folder_ + "/exit")) return session_state::ended;
  if (!exists(folder_ + "/started")) return session_state::opened;
  if (!lock_session(folder_)) return session_state::running;
  return exists(folder_ + "/exit") ? session_state::ended : session_state::lost;
}

expected<session_exit> far_session::exit() const {
  auto text = read_whole(folder_ + "/exit");
  auto x = nlohmann::json::parse(text.value_or(""), nullptr, false);
  if (!x.is_object())
    return infrastructure_error(
        "remote_lost",
        "failed to learn how the command ended: its process on that host is "
        "gone",
        "was that host restarted, or its memory full? start the command "
        "again");
  return session_exit{static_cast<int>(number_in(x, "code")),
                      static_cast<int>(number_in(x, "signal"))};
}

int far_session::process() const {
  if (state() != session_state::running) return 0;
  auto text = read_whole(folder_ + "/started").value_or("");
  auto process = std::strtol(text.c_str(), nullptr, 10);
  return process > 1 ? static_cast<int>(process) : 0;
}

expected<folder_files> far_session::outputs() const {
  folder_files result;
  std::error_code code;
  for (const auto& path : order_.outputs) {
    auto here = work() + "/" + path;
    if (fs::is_directory(here, code)) {
      auto below = list_folder(here, path);
      KM_TRY(below);
      result.left_out += below->left_out;
      std::move(below->files.begin(), below->files.end(), std::back_inserter(result.files));
      std::move(below->sources.begin(), below->sources.end(), std::back_inserter(result.sources));
    } else if (fs::is_regular_file(fs::symlink_status(here, code))) {
      auto entry = describe_file(here, path);
      KM_TRY(entry);
      result.files.push_back(std::move(*entry));
      result.sources.push_back(here);
    }
  }
  return result;
}

expected<void> far_session::remove() {
  std::error_code code;
  fs::remove_all(folder_, code);
  if (code) return system_error("remove", folder_, code);
  return {};
}

nlohmann::json describe_sessions(const std::string& root) {
  auto result = nlohmann::json::array();
  for (const auto& path : entries_of(root + "/sessions")) {
    auto session = far_session::find(root, path.filename().string());
    if (!session) continue;
    std::string words;
    for (const auto& word : session->what().words) words += (words.empty() ? "" : " ") + word;
    result.push_back({{"session", path.filename().string()},
                      {"state", std::string{to_string(session->state())}},
                      {"command", words.substr(0, most_shown)},
                      {"age_s", age_of(path / "order.json").count()}});
  }
  return result;
}

expected<void> prepare_root(const std::string& root) {
  for (const char* part : {"/blobs", "/programs", "/sessions"})
    KM_TRY(make_directories(root + part));
  ::chmod(root.c_str(), 0700);
  for (const auto& path : entries_of(root + "/sessions")) {
    auto session = far_session::find(root, path.filename().string());
    auto state = session ? session->state() : session_state::opened;
    if (state == session_state::running) continue;
    std::chrono::seconds limit = state == session_state::opened ? unstarted_kept : kept;
    std::error_code ignored;
    if (age_of(path) > limit) fs::remove_all(path, ignored);
  }
  remove_old(root + "/blobs", kept);
  for (const auto& path : entries_of(root + "/programs")) {
    bool unfinished = !is_sha256(path.filename().string());
    std::error_code ignored;
    if (age_of(path) >
        (unfinished ? std::chrono::seconds{unstarted_kept} : std::chrono::seconds{kept}))
      fs::remove_all(path, ignored);
  }
  return {};
}

} // namespace kernelmill::remote
