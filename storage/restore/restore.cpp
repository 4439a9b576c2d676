#include "storage/restore/restore.hpp"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <set>
#include <stdexcept>
#include <tuple>

#include <fcntl.h>
#include <unistd.h>

#include "messages/base/clock.hpp"
#include "messages/base/descriptor.hpp"
#include "messages/base/json_depth.hpp"
#include "messages/base/json_fields.hpp"
#include "messages/base/json_value.hpp"
#include "storage/files.hpp"
#include "storage/journal/projections.hpp"
#include "storage/lineage/store.hpp"
#include "storage/restore/trace_record.hpp"

namespace kernelmill {

namespace fs = std::filesystem;

namespace {

using json = nlohmann::ordered_json;

constexpr size_t batch_records = 256;
constexpr size_t copied_bytes = size_t{1} << 20;

bool same_bytes(const std::string& a, const std::string& b) {
  std::error_code status;
  auto size = fs::file_size(a, status);
  if (status || fs::file_size(b, status) != size) return false; // neither has a folder one
  std::ifstream x{a, std::ios::binary}, y{b, std::ios::binary};
  using bytes = std::istreambuf_iterator<char>;
  return std::equal(bytes{x}, bytes{}, bytes{y}, bytes{});
}

// PATH.before, and PATH.before2 where an earlier restoration kept other rows.
expected<std::string> keep_copy(const std::string& path) {
  std::error_code status;
  auto copy = path + ".before";
  for (int n = 2; fs::exists(copy, status); ++n) {
    if (same_bytes(path, copy)) return copy;
    copy = path + ".before" + std::to_string(n);
  }
  descriptor in{::open(path.c_str(), O_RDONLY | O_CLOEXEC)};
  if (!in) return tl::unexpected<error>{file_error(errno, "read", path)};
  auto out = atomic_file::create(copy);
  KM_TRY(out);
  std::string piece(copied_bytes, '\0');
  for (ssize_t n; (n = read_retrying(in.get(), piece.data(), piece.size())) != 0;) {
    if (n < 0) return tl::unexpected<error>{file_error(errno, "read", path)};
    KM_TRY(out->append({piece.data(), static_cast<size_t>(n)}));
  }
  KM_TRY(out->commit());
  return copy;
}

// Restored turns have one finding more than their rows, so the process that opens the run writes
// the rows anew. The old rows go last: as long as they are there, has_old_rows() reports them.
expected<void> begin_journals(const run_directory& run) {
  for (const auto& path : {run.metrics_file(), run.traces_file()})
    if (::unlink(path.c_str()) != 0 && errno != ENOENT)
      return tl::unexpected<error>{file_error(errno, "remove", path)};
  return sync_directory(run.path);
}

/// Whether the rows are those that the latest restoration copied: it was killed at its end.
expected<bool> has_old_rows(const run_directory& run) {
  auto manifest = read_json(run.manifest_file());
  KM_TRY(manifest);
  auto all = manifest->find("restored");
  if (all == manifest->end() || !all->is_array() || all->empty()) return false;
  auto from = text_in(all->back(), "from");
  return from.starts_with("traces.jsonl.before") &&
         same_bytes(run.traces_file(), run.path + "/" + from);
}

/// An episode of which not every row was read yet.
struct open_episode {
  std::map<uint32_t, Message<wire::Record>> turns;
  std::optional<Message<wire::Record>> end;
  long_texts texts;

  bool is_whole() const {
    if (!end) return false;
    auto count = end->open()->getEpisode().getTurns();
    return turns.size() == count && (count == 0 || turns.rbegin()->first == count - 1);
  }

  // Where one of the two rows was edited it is unknown which is right.
  void check_rewards() const {
    auto view = end->open();
    auto rewards = view->getEpisode().getRewards();
    for (const auto& [number, record] : turns) {
      auto said = record.open()->getTurn().getVerdict().getReward();
      bool neither = std::isnan(said) && std::isnan(rewards[number]);
      if (said != rewards[number] && !neither)
        throw std::invalid_argument{"'rewards' of the episode's end are not those of its turns"};
    }
  }
};

class restorer {
public:
  restorer(const run_directory& run, const restore_options& options, store& to)
      : run_(run), options_(options), to_(to), artifacts_(run.artifacts) {
    // nop
  }

  expected<restored_run> run() {
    auto manifest = read_json(run_.manifest_file());
    KM_TRY(manifest);
    for (const auto& x : manifest->value("tasks", json::array()))
      tasks_.push_back(text_in(x, "id"));
    if (tasks_.empty())
      return tl::unexpected<error>{
          run_incomplete(run_, "the list of tasks in its manifest.json is")};
    options_.retrieves |= manifest->contains("fork"); // the run whose turns it shares may have
    auto kept = keep_copy(run_.traces_file());
    KM_TRY(kept);
    result_.kept = *kept;
    if (std::error_code status; fs::exists(run_.metrics_file(), status))
      KM_TRY(keep_copy(run_.metrics_file()));
    KM_TRY(make_directories(run_.artifacts)); // without it the run lacks a part
    KM_TRY(read_rows());
    KM_TRY(flush());
    result_.again = open_.size();
    KM_TRY(note(*manifest));
    KM_TRY(commit_openings(*manifest));
    KM_TRY(begin_journals(run_));
    return std::move(result_);
  }

private:
  // Of the copy: what is not in it goes with traces.jsonl.
  expected<void> read_rows() {
    std::ifstream in{result_.kept, std::ios::binary};
    size_t number = 1;
    for (std::string row; std::getline(in, row); ++number) {
      try {
        if (in.eof()) throw std::invalid_argument{"the row is cut off"};
        take(parse(row));
      } catch (const std::exception& why) { // of the JSON library, too
        result_.broken.push_back(run_.traces_file() + ":" + std::to_string(number) + ": " +
                                 why.what());
      }
      if (batch_.size() >= batch_records) KM_TRY(flush());
    }
    if (!in.eof()) return tl::unexpected<error>{file_error(EIO, "read", result_.kept)};
    return {};
  }

  json parse(const std::string& row) const {
    auto line = nests_deeper(row) ? json{} : json::parse(row, nullptr, false);
    if (!line.is_object()) throw std::invalid_argument{"the row is no JSON object"};
    if (line.at("schema_version") != line_schema_version)
      throw std::invalid_argument{"'schema_version' is another than " +
                                  std::to_string(line_schema_version)};
    if (line.at("run") != run_.name) throw std::invalid_argument{"'run' is another"};
    return line;
  }

  // A repeated row counts once.
  void take(const json& line) {
    auto name = line.at("episode").get<std::string>();
    if (restored_.contains(name)) return;
    auto kind = line.at("kind").get<std::string>();
    if (kind == "turn") {
      long_texts texts;
      auto record = restored_turn(line, texts);
      auto view = record.open();
      auto turn = view->getTurn();
      check_place(turn.getEpisode());
      if (options_.retrieves && turn.getTurn() == 0) std::ignore = line.at("examples");
      auto& x = open_[name];
      if (x.turns.emplace(turn.getTurn(), record).second) x.texts.take(std::move(texts));
    } else if (kind == "episode") {
      auto record = restored_episode(line);
      check_place(record.open()->getEpisode().getEpisode());
      auto& x = open_[name];
      if (!x.end) x.end = record;
    } else {
      throw std::invalid_argument{"'kind' is neither turn nor episode"};
    }
    if (auto& x = open_[name]; x.is_whole()) {
      x.check_rewards();
      add(name, x);
    }
  }

  // Another run may have had this name.
  void check_place(wire::EpisodeRef::Reader x) const {
    auto task = x.getGroup() / options_.groups;
    if (task >= tasks_.size() || x.getMember() >= options_.group_size)
      throw std::invalid_argument{"the run has no such episode"};
    if (x.getTask() != tasks_[task].c_str())
      throw std::invalid_argument{"'task' is not that of its group"};
  }

  void add(const std::string& name, open_episode& x) {
    ++result_.episodes;
    result_.turns += x.turns.size();
    for (auto& [unused, turn] : x.turns) batch_.push_back(std::move(turn));
    batch_.push_back(std::move(*x.end));
    texts_.take(std::move(x.texts));
    restored_.insert(name);
    open_.erase(name);
  }

  expected<void> flush() {
    KM_TRY(texts_.store(artifacts_));
    KM_TRY(to_.commit(batch_));
    batch_.clear();
    return {};
  }

  expected<void> note(json manifest) const {
    auto& all = manifest["restored"];
    if (!all.is_array()) all = json::array();
    auto from = fs::path{result_.kept}.filename().string();
    if (!all.empty() && text_in(all.back(), "from") == from) all.erase(all.size() - 1);
    all.push_back({{"at", seconds_since_1970()},
                   {"from", from},
                   {"episodes", result_.episodes},
                   {"turns", result_.turns},
                   {"done_again", result_.again},
                   {"broken_rows", result_.broken.size()},
                   {"without", not_in_traces}});
    return write_json(run_.manifest_file(), manifest);
  }

  // The manifest has a fingerprint of each.
  expected<void> commit_openings(const json& manifest) {
    const auto fingerprints = manifest.value("fingerprints", json::array());
    auto count = fingerprints.is_array() ? fingerprints.size() : 0;
    for (uint32_t opening = 0; opening < std::max<size_t>(count, 1); ++opening)
      batch_.push_back(build<wire::Record>([&](wire::Record::Builder record) {
        auto x = record.initRun();
        x.setRun(run_.name);
        x.setConfigDigest(text_in(manifest, "config_digest"));
        x.setState("running");
        x.setOpening(opening);
        if (opening < count) x.setAt(number_in(fingerprints[opening], "at"));
      }));
    return flush();
  }

  const run_directory& run_;
  restore_options options_;
  std::vector<std::string> tasks_; ///< in the order of their groups
  store& to_;
  artifact_store artifacts_;
  restored_run result_;
  std::map<std::string, open_episode> open_;
  std::set<std::string> restored_; ///< names of episodes
  std::vector<Message<wire::Record>> batch_;
  long_texts texts_;
};

} // namespace

expected<std::optional<restored_run>> restore_run(const run_directory& run,
                                                  const restore_options& options) {
  std::error_code status;
  if (!has_journal(run)) return std::nullopt;
  auto to = store::open({.directory = run.store});
  KM_TRY(to);
  bool there = false;
  KM_TRY(to->scan_openings(run.name, [&](auto) { return !(there = true); }));
  if (there) {
    auto old = has_old_rows(run);
    KM_TRY(old);
    if (*old) KM_TRY(begin_journals(run));
    return std::nullopt;
  }
  if (auto bytes = fs::file_size(run.traces_file(), status); status || bytes == 0)
    return tl::unexpected<error>{run_incomplete(run, "its store and its traces.jsonl are")};
  auto result = restorer{run, options, *to}.run();
  KM_TRY(result);
  return std::optional{std::move(*result)};
}

} // namespace kernelmill
