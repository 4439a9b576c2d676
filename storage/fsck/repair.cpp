#include "storage/fsck/repair.hpp"

#include <atomic>
#include <cerrno>
#include <ctime>
#include <filesystem>
#include <fstream>

#include <unistd.h>

#include "messages/base/digest.hpp"
#include "messages/base/json_value.hpp"
#include "messages/contents.hpp"
#include "storage/files.hpp"
#include "storage/lineage/store.hpp"

namespace kernelmill::fsck {

namespace fs = std::filesystem;

// -- quarantine ---------------------------------------------------------------------------------

namespace {

std::string folder_name() {
  auto now = std::time(nullptr);
  std::tm utc{};
  ::gmtime_r(&now, &utc);
  char text[32];
  auto size = std::strftime(text, sizeof text, "%Y%m%dT%H%M%SZ", &utc);
  static std::atomic<unsigned> number{0}; // two repairs within a second
  return std::string(text, size) + "-" + std::to_string(::getpid()) + "." +
         std::to_string(number++);
}

} // namespace

// Beside the store, where a rename reaches: a shared store may lie on another disk than the run.
quarantine::quarantine(const run_directory& run)
    : root_(run.store == run.path + "/lineage" ? run.path : run.store),
      folder_(root_ + "/quarantine/" + folder_name()) {
  // nop
}

expected<std::string> quarantine::place_for(const std::string& path) {
  auto name = fs::path{path}.lexically_relative(root_);
  if (name.empty() || *name.begin() == "..") name = fs::path{path}.filename();
  auto result = fs::path{folder_} / name;
  KM_TRY(make_directories(result.parent_path()));
  made_ = folder_;
  return result.string();
}

expected<void> quarantine::take(const std::string& path) {
  KM_TRY(keep(path));
  if (::unlink(path.c_str()) != 0) return tl::unexpected<error>{file_error(errno, "remove", path)};
  return sync_directory(fs::path{path}.parent_path());
}

expected<void> quarantine::keep(const std::string& path) {
  auto place = place_for(path);
  KM_TRY(place);
  std::error_code status;
  if (::link(path.c_str(), place->c_str()) != 0)
    fs::copy_file(path, *place, status); // another disk, or one without links
  if (status) return tl::unexpected<error>{file_error(status.value(), "copy", path)};
  return sync_directory(fs::path{*place}.parent_path());
}

// -- the store ----------------------------------------------------------------------------------

namespace {

expected<void> write_records(const std::string& directory, const contents& in) {
  constexpr size_t most = 256;
  auto made = store::open({.directory = directory});
  KM_TRY(made);
  std::vector<Message<wire::Record>> batch;
  auto flush = [&]() -> expected<void> {
    KM_TRY(made->commit(batch));
    batch.clear();
    return {};
  };
  for (const auto& [key, value] : in.records) {
    auto record = read_record(key, value);
    KM_TRY(record);
    batch.push_back(std::move(*record));
    if (batch.size() >= most) KM_TRY(flush());
  }
  return flush();
}

} // namespace

expected<void> rebuild_store(const run_directory& run, const contents& in, quarantine& aside) {
  auto fresh = run.store + "/fsck." + std::to_string(::getpid());
  std::error_code ignored;
  fs::remove_all(fresh, ignored);
  auto written = write_records(fresh, in);
  if (written) written = aside.keep(run.store + "/data.mdb");
  if (written && ::rename((fresh + "/data.mdb").c_str(), (run.store + "/data.mdb").c_str()) != 0)
    written = tl::unexpected<error>{file_error(errno, "replace", run.store + "/data.mdb")};
  fs::remove_all(fresh, ignored);
  KM_TRY(written);
  fs::remove(run.store + "/lock.mdb", ignored); // readers of the file that was
  return sync_directory(run.store);
}

// -- artifacts ----------------------------------------------------------------------------------

std::map<std::string, std::string> named_artifacts(const contents& in) {
  std::map<std::string, std::string> result;
  for (const auto& [key, value] : in.records) {
    auto record = read_record(key, value);
    if (!record) continue;
    auto view = record->open();
    if (!view->isTurn()) continue;
    auto turn = view->getTurn();
    auto note = [&, name = name_of(key)](wire::Content::Reader x, const char* what) {
      if (x.isArtifact())
        result.emplace(x.getArtifact().getSha256().cStr(), std::string{what} + " of " + name);
    };
    for_each_content(turn, note);
  }
  return result;
}

namespace {

void visit_texts(const nlohmann::json& x, const std::function<void(const std::string&)>& visit) {
  if (x.is_string()) visit(x.get_ref<const std::string&>());
  if (x.is_structured())
    for (const auto& part : x) visit_texts(part, visit);
}

} // namespace

std::set<std::string> restore_from_traces(const run_directory& run,
                                          const std::set<std::string>& wanted,
                                          artifact_store& artifacts) {
  std::set<std::string> result;
  std::ifstream in{run.traces_file(), std::ios::binary};
  for (std::string line; result.size() < wanted.size() && std::getline(in, line);)
    visit_texts(nlohmann::json::parse(line, nullptr, false), [&](const std::string& text) {
      if (text.size() <= inline_content_bytes) return;
      auto sha256 = sha256_hex(text);
      if (wanted.contains(sha256) && artifacts.put(sha256, text)) result.insert(sha256);
    });
  return result;
}

} // namespace kernelmill::fsck
