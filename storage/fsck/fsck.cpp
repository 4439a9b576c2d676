#include "storage/fsck/fsck.hpp"

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <unordered_map>

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include "messages/base/descriptor.hpp"
#include "messages/base/digest.hpp"
#include "messages/base/json_value.hpp"
#include "storage/files.hpp"
#include "storage/fsck/repair.hpp"
#include "storage/journal/run_journal.hpp"
#include "storage/lineage/keys.hpp"

namespace kernelmill {

namespace fs = std::filesystem;
using namespace fsck;

const char* to_string(finding_state x) noexcept {
  switch (x) {
    case finding_state::note: return "note";
    case finding_state::damage: return "damage";
    case finding_state::repaired: return "repaired";
    case finding_state::lost: break;
  }
  return "lost";
}

bool fsck_report::has(finding_state x) const {
  return std::any_of(findings.begin(), findings.end(), [&](auto& f) { return f.state == x; });
}

namespace {

// The same lock that a writer holds; a folder that cannot be written has no writer.
expected<descriptor> lock_store(const run_directory& run) {
  auto path = run.store + "/writer.lock";
  descriptor result{::open(path.c_str(), O_RDONLY | O_CLOEXEC)};
  if (!result && errno == ENOENT)
    result = descriptor{::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666)};
  if (result && ::flock(result.get(), LOCK_EX | LOCK_NB) != 0)
    return configuration_error("store_locked",
                               "failed to check the store " + run.store + ": a process writes it",
                               "wait for it or end it; `kernelmill ps` lists runs in progress");
  return result;
}

class checker {
public:
  checker(const run_directory& run, bool repair) : run_(run), repair_(repair), aside_(run) {
    // nop
  }

  expected<fsck_report> run() {
    auto lock = lock_store(run_);
    KM_TRY(lock);
    if (!has_store(run_)) {
      tell_of_no_store();
      return std::move(report_);
    }
    auto pages = data_pages::open(run_.store + "/data.mdb");
    KM_TRY(pages);
    auto in = read_contents(*pages, report_);
    if (in.newer)
      return configuration_error("store_newer",
                                 "failed to check the store " + run_.store +
                                     ": it holds records of a newer schema version",
                                 "use the newer kernelmill that wrote it");
    check_sequences(in, run_.name, report_);
    if (repair_ && in.rebuild) {
      KM_TRY(rebuild_store(run_, in, aside_));
      mend({"page", "record", "salvaged", "run_name", "index"});
    }
    KM_TRY(check_artifacts(in));
    check_journals(in);
    lock->reset(); // the journal opens the store by itself
    if (repair_) KM_TRY(repair_journals());
    report_.quarantine = aside_.folder();
    return std::move(report_);
  }

private:
  void mend(std::initializer_list<std::string_view> kinds) {
    for (auto& x : report_.findings)
      if (x.state == finding_state::damage && std::count(kinds.begin(), kinds.end(), x.kind) > 0)
        x.state = finding_state::repaired;
  }

  // A run that was killed in its first moments has no store. A run with journals had one.
  void tell_of_no_store() {
    for (const auto& path : {run_.traces_file(), run_.metrics_file()}) {
      std::error_code status;
      auto bytes = fs::file_size(path, status);
      if (status || bytes == 0) continue;
      add(report_, finding_state::lost, "store_gone",
          run_.store + "/data.mdb is not there or has 0 bytes; " + path +
              " may be the last copy of the run: `" + command_for_lost_records(run_) + "`");
    }
    if (report_.findings.empty())
      add(report_, finding_state::note, "not_begun",
          "the run was ended before it had a store: `kernelmill resume` begins it");
  }

  // -- artifacts --------------------------------------------------------------------------------

  expected<void> check_artifacts(const contents& in) {
    artifact_store artifacts{run_.artifacts};
    auto named = named_artifacts(in);
    std::set<std::string> absent;
    for (const auto& [sha256, whose] : named) {
      auto bytes = artifacts.get(sha256);
      if (bytes) {
        ++report_.artifacts;
        continue;
      }
      absent.insert(sha256);
      if (bytes.error().category == "not_found") continue;
      KM_TRY(put_aside(sha256, bytes.error().message));
    }
    std::set<std::string> back;
    artifact_store anew{run_.artifacts};
    if (repair_) back = restore_from_traces(run_, absent, anew);
    for (const auto& sha256 : absent) {
      bool again = back.contains(sha256);
      add(report_, again ? finding_state::repaired : finding_state::lost, "artifact_missing",
          named[sha256] + " was artifact " + sha256 +
              (again ? ", and traces.jsonl had its text" : ", which is not there or not whole"));
      whole_ = whole_ && again;
    }
    check_strays(named);
    return {};
  }

  expected<void> put_aside(const std::string& sha256, const std::string& why) {
    add(report_, repair_ ? finding_state::repaired : finding_state::damage, "artifact_damaged",
        why);
    if (!repair_) return {};
    return aside_.take(run_.artifacts + "/" + sha256.substr(0, 2) + "/" + sha256.substr(2) +
                       ".zst");
  }

  // An artifact is written before the record that names it, so a process that was killed leaves
  // some.
  void check_strays(const std::map<std::string, std::string>& named) {
    uint64_t count = 0, bytes = 0, leftovers = 0;
    std::error_code status;
    for (fs::recursive_directory_iterator i{run_.artifacts, status}, end; !status && i != end;
         i.increment(status)) {
      std::error_code ignored;
      if (!i->is_regular_file(ignored)) continue;
      auto path = i->path();
      leftovers += path.extension() == ".tmp";
      if (path.extension() != ".zst" ||
          named.contains(path.parent_path().filename().string() + path.stem().string()))
        continue;
      ++count;
      bytes += i->file_size(ignored);
    }
    if (count > 0)
      add(report_, finding_state::note, "artifact_orphaned",
          std::to_string(count) + " artifacts of " + std::to_string(bytes) +
              " bytes are named by no record");
    if (leftovers == 0) return;
    if (repair_) artifact_store{run_.artifacts}.remove_leftovers();
    add(report_, repair_ ? finding_state::repaired : finding_state::note, "leftover",
        std::to_string(leftovers) + " temporary files of writers that were killed");
  }

  // -- journals ---------------------------------------------------------------------------------

  using lines = std::unordered_map<std::string, std::string>; ///< hash of a line, by its record

  static std::string name_of_line(const nlohmann::json& line) {
    if (!line.is_object()) return {};
    try {
      auto kind = line.value("kind", "");
      if (kind == "turn") return line.value("turn_id", "");
      if (kind == "episode") return line.value("episode", "");
      if (kind == "group") return "g" + std::to_string(line.value("step", uint64_t{0}));
    } catch (const nlohmann::json::exception&) {
      // a field of another type
    }
    return {};
  }

  // What the journals must hold; nothing of a group whose texts are not there.
  void expect_lines(const contents& in, lines& traces, lines& metrics) {
    artifact_store artifacts{run_.artifacts};
    auto note = [](lines& to, const nlohmann::ordered_json& line) {
      to[name_of_line(line)] = sha256_hex(json_line(line));
    };
    for (const auto& group : groups_of(in, run_.name)) {
      for (const auto& episode : group.episodes) {
        for (const auto& record : episode.turns) {
          auto view = record.open();
          auto line = turn_trace(view->getTurn(), artifacts);
          if (line) note(traces, *line);
          note(metrics, turn_metrics(view->getTurn()));
        }
        if (episode.end) note(traces, episode_trace(episode.end->open()->getEpisode()));
      }
      if (group.end) note(metrics, group_metrics(group));
    }
  }

  void check_journals(const contents& in) {
    auto own = in.records.lower_bound(make_key(run_hash(run_.name), key_section::opening, 0, 0, 0));
    begun_ = own != in.records.end() &&
             own->first < make_key(run_hash(run_.name), key_section::episodes, 0, 0, 0);
    lines traces, metrics;
    expect_lines(in, traces, metrics);
    check_journal(run_.traces_file(), traces);
    check_journal(run_.metrics_file(), metrics);
    if (!begun_ && has_journal(run_))
      add(report_, finding_state::lost, "store_gone",
          "the store has no opening of the run, whose journals stay as they are: `" +
              command_for_lost_records(run_) + "`");
  }

  void check_journal(const std::string& path, const lines& wanted) {
    uint64_t torn = 0, strange = 0, other = 0, doubled = 0;
    std::unordered_set<std::string> seen;
    std::ifstream in{path, std::ios::binary};
    for (std::string line; std::getline(in, line);) {
      auto name =
          in.eof() ? std::string{} : name_of_line(nlohmann::json::parse(line, nullptr, false));
      auto found = wanted.find(name);
      ++report_.lines;
      if (name.empty())
        ++torn;
      else if (!seen.insert(name).second)
        ++doubled;
      else if (found == wanted.end())
        ++strange;
      else if (found->second != sha256_hex(line))
        ++other;
    }
    uint64_t missing = 0;
    for (const auto& [name, hash] : wanted) missing += !seen.contains(name);
    auto file = fs::path{path}.filename().string();
    auto tell = [&](uint64_t count, const char* what) {
      if (count == 0) return;
      add(report_, finding_state::damage, "journal", file + ": " + std::to_string(count) + what);
      anew_ = anew_ || count != missing;
      behind_ = true;
    };
    tell(torn, " lines are torn or none of ours");
    tell(doubled, " lines are there twice");
    tell(other, " lines say something else than the store");
    tell(missing, " lines are missing");
    if (strange == 0) return;
    add(report_, finding_state::lost, "journal",
        file + ": " + std::to_string(strange) +
            " lines are of records that the store does not have; they may be the last copy");
    strange_ = true;
  }

  // Where lines are only missing, the others keep their places: a reader that goes on from an
  // offset misses nothing.
  expected<void> repair_journals() {
    if (!behind_ && !strange_) return {};
    if (!whole_) {
      add(report_, finding_state::note, "journal",
          "the journals stay as they are: texts of the store are lost that they may hold");
      return {};
    }
    if (!begun_) return {};
    if (anew_ || strange_)
      for (const auto& path : {run_.traces_file(), run_.metrics_file()})
        if (::access(path.c_str(), F_OK) == 0) KM_TRY(aside_.take(path));
    auto records = store::open({.directory = run_.store});
    KM_TRY(records);
    std::error_code ignored;
    auto journal =
        run_journal::open(run_, {.events = fs::is_directory(run_.tensorboard(), ignored)});
    KM_TRY(journal);
    KM_TRY(journal->catch_up(*records, artifact_store{run_.artifacts}, run_.name));
    mend({"journal"});
    return {};
  }

  const run_directory& run_;
  bool repair_;
  quarantine aside_;
  fsck_report report_;
  bool whole_ = true;                                    // no text is lost
  bool begun_ = false;                                   // the run's first record is there
  bool behind_ = false, anew_ = false, strange_ = false; // the journals
};

} // namespace

expected<fsck_report> check_run(const run_directory& run, bool repair) {
  return checker{run, repair}.run();
}

} // namespace kernelmill
