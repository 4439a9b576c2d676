#include "storage/export/dataset.hpp"

#include <filesystem>
#include <optional>

#include "messages/identity.hpp"
#include "storage/export/gates.hpp"
#include "storage/files.hpp"
#include "storage/lineage/verdicts.hpp"
#include "storage/run_directory.hpp"

namespace kernelmill::exports {

namespace {

namespace fs = std::filesystem;

constexpr const char* provenance_name = "PROVENANCE.json";
constexpr const char* card_name = "README.md";
constexpr const char* licences_name = "LICENSES";
constexpr size_t shown_pairs = 20; // of contamination, in PROVENANCE.json

tl::unexpected<error> unexpected(error x) {
  return tl::unexpected<error>{std::move(x)};
}

// -- where rows go ------------------------------------------------------------------------------

class split_files {
public:
  explicit split_files(const request& what) : what_(what) {}

  expected<void> append(const std::string& split, const row& x) {
    // One stream takes all splits; a folder has a file for each.
    auto key = what_.directory.empty() ? std::string{} : split;
    auto found = files_.find(key);
    if (found == files_.end()) {
      auto file = open(key);
      if (!file) return unexpected(file.error());
      found = files_.emplace(key, std::move(*file)).first;
    }
    return found->second.append(x);
  }

  expected<std::vector<written_file>> finish() {
    std::vector<written_file> result;
    for (const auto* split : {"train", "dev", ""}) {
      auto found = files_.find(split);
      if (found == files_.end()) continue;
      auto facts = found->second.finish();
      if (!facts) return unexpected(facts.error());
      if (*split) facts->path = path_of(split);
      facts->split = split;
      result.push_back(std::move(*facts));
    }
    return result;
  }

private:
  std::string path_of(const std::string& split) const {
    return "data/" + split + (what_.zstd ? ".jsonl.zst" : ".jsonl");
  }

  expected<row_file> open(const std::string& split) {
    if (what_.directory.empty()) return row_file::stream(what_.stream, what_.zstd);
    return row_file::create(what_.directory + "/" + path_of(split), what_.zstd);
  }

  const request& what_;
  std::map<std::string, row_file> files_;
};

// -- the folder ---------------------------------------------------------------------------------

expected<void> remove_earlier(const std::string& directory) {
  // PROVENANCE.json goes first: a folder without it is not taken for a whole export.
  for (const auto* name : {provenance_name, card_name, licences_name, "data/train.jsonl",
                           "data/dev.jsonl", "data/train.jsonl.zst", "data/dev.jsonl.zst"}) {
    std::error_code code;
    fs::remove(fs::path{directory} / name, code);
    if (code) return unexpected(file_error(code.value(), "replace", directory + "/" + name));
  }
  return {};
}

expected<void> prepare(const request& what) {
  std::error_code code;
  bool used = fs::exists(what.directory, code) && !fs::is_empty(what.directory, code);
  if (used && !what.force)
    return configuration_error("directory_not_empty",
                               "failed to export to " + what.directory +
                                   ": there is something already",
                               "name another folder, or add --force to replace an export");
  if (used && fs::is_directory(what.directory, code))
    if (auto ok = remove_earlier(what.directory); !ok) return ok;
  return make_directories(what.directory + "/data");
}

/// The folders that `prepare` made, where nothing is in them.
void remove_empty(const std::string& directory) {
  std::error_code ignored;
  for (const auto& x : {fs::path{directory} / "data", fs::path{directory}}) fs::remove(x, ignored);
}

expected<void> describe(const std::vector<source>& from, const request& what, const report& done) {
  if (auto ok = write_file(what.directory + "/" + card_name, data_card(from, what, done)); !ok)
    return ok;
  if (auto ok = write_file(what.directory + "/" + licences_name, licences_text(what, done)); !ok)
    return ok;
  return write_json(what.directory + "/" + provenance_name, provenance(from, what, done));
}

// -- reading ------------------------------------------------------------------------------------

/// What is done with a group besides its rows.
enum class pass : unsigned char { held_out, look, write };

class exporter {
public:
  exporter(const request& what, report& done, const split_table& splits, const licence_gate& gate)
      : what_(what), done_(done), splits_(splits), gate_(gate), files_(what) {}

  expected<void> read(const source& from, pass why) {
    return for_each_group(*from.lineage, from.run,
                          [&](const stored_group& stored) { return judged(from, stored, why); });
  }

  expected<void> read_one(const source& from, uint32_t group) {
    auto stored = read_group(*from.lineage, from.run, group);
    return stored ? judged(from, *stored, pass::write) : unexpected(stored.error());
  }

  expected<void> finish() {
    auto files = files_.finish();
    if (!files) return unexpected(files.error());
    done_.files = std::move(*files);
    return {};
  }

private:
  expected<void> judged(const source& from, const stored_group& stored, pass why) {
    if (!from.verdicts) return take(from, stored, why);
    auto verdicts = read_group(*from.verdicts, from.run, stored.group);
    if (!verdicts) return unexpected(verdicts.error());
    auto merged = with_verdicts(stored, *verdicts);
    return merged ? take(from, *merged, why) : unexpected(merged.error());
  }

  // Every form comes through here; without the gate there is no material to make rows of.
  expected<void> take(const source& from, const stored_group& stored, pass why) {
    auto [task, verb] = task_of(stored);
    if (task.empty()) return {}; // no turn was committed
    auto split = splits_(task);
    if (why == pass::held_out)
      return split.split == "dev" ? remember(from, stored) : expected<void>{};
    if (!takes(what_.wanted, split.split, verb)) {
      if (why == pass::write) ++done_.without["groups_of_other_tasks"];
      return {};
    }
    auto admitted = gate_.admit(from.may, stored);
    if (!admitted) {
      if (why == pass::write) refuse(admitted.error());
      return {};
    }
    auto material = read_material(*admitted, *from.artifacts, from.run);
    if (!material) return unexpected(material.error());
    material->split = split.split;
    material->temperature = from.temperature;
    share_first(*material, from.shared_turns);
    bool clean = is_clean(*material, why == pass::write);
    if (why == pass::look) return {};
    if (!clean && what_.contamination.then == on_contamination::drop) {
      ++done_.without["contaminated_groups"];
      return {};
    }
    return write(from, *material, split);
  }

  expected<void> write(const source& from, const group& material, const chosen_split& split) {
    auto& task = done_.tasks[material.task];
    task.split = split.split;
    task.own_split = split.own;
    task.may = gate_.of_task(from.may, material.task);
    note_sources(from, material, task.may);
    count(material);
    row_context in{what_.wanted, done_.groups++, &done_.without,
                   what_.made_by.value("version", std::string{})};
    return make_rows(what_.as, material, in, [&](row x) {
      ++done_.rows;
      ++task.rows;
      return files_.append(material.split, x);
    });
  }

  // -- licences

  void refuse(const denial& why) {
    ++done_.without[why.counted];
    note(done_.refused, why);
  }

  void note_sources(const source& from, const group& x, const permit& may) {
    done_.sources.emplace(may.source, may);
    if (auto model = from.facts.value("model_licence", std::string{}); !model.empty())
      done_.model_licences.emplace(from.run, std::move(model));
    for (const auto& e : x.episodes)
      for (const auto& t : e.turns) {
        for (const auto& id : t.examples) {
          const auto& of = from.may.of_example(id);
          done_.sources.emplace(of.source, of);
        }
        if (const auto* of = from.may.of_model(t.model, t.shared))
          done_.sources.emplace(of->source, *of);
      }
  }

  // -- contamination

  static std::pair<std::string, std::string> task_of(const stored_group& stored) {
    for (const auto& e : stored.episodes)
      for (const auto& record : e.turns) {
        auto view = record.open();
        auto turn = view->getTurn();
        return {turn.getEpisode().getTask().cStr(), turn.getFacts().getVerb().cStr()};
      }
    return {};
  }

  // Held-out code is compared and not exported, so its licence does not matter.
  expected<void> remember(const source& from, const stored_group& stored) {
    for (const auto& e : stored.episodes)
      for (const auto& record : e.turns) {
        auto view = record.open();
        auto turn = view->getTurn();
        if (turn.getVerdict().getOutcome() != wire::Outcome::ACCEPTED) continue;
        auto code = from.artifacts->candidate(turn);
        KM_TRY(code);
        if (code->empty()) continue;
        what_.contamination.memory->remember(
            *code, from.run + "/" + short_name({{}, {}, stored.group, e.member}, turn.getTurn()));
      }
    return {};
  }

  bool is_clean(const group& x, bool say) {
    if (!what_.contamination.memory) return true;
    bool result = true;
    for (const auto& e : x.episodes) {
      std::vector<std::string> shown;
      for (const auto& t : e.turns) {
        for (const auto& m : t.added)
          if (!t.examples.empty())
            for (auto& code : example_kernels(m.content)) shown.push_back(std::move(code));
        if (t.code.empty() || t.shared) continue;
        result = compare(x, e, t, shown, say) && result;
      }
    }
    return result;
  }

  bool compare(const group& x, const episode& e, const turn& t,
               const std::vector<std::string>& shown, bool say) {
    auto& memory = *what_.contamination.memory;
    auto& into = done_.contamination;
    bool result = true;
    if (x.split == "train") {
      if (say) ++into.compared;
      if (auto like = memory.find(t.code)) {
        ++into.train_like_dev;
        note_pair(name_of(x, e, t), *like);
        result = false;
      }
    }
    for (const auto& example : shown)
      if (memory.similar(t.code, example)) {
        ++into.answers_like_example;
        note_pair(name_of(x, e, t), "an example of its prompt");
        return false;
      }
    return result;
  }

  void note_pair(std::string what, std::string like) {
    auto& pairs = done_.contamination.examples;
    if (pairs.size() < shown_pairs) pairs.push_back({std::move(what), std::move(like)});
  }

  void count_kinds(const turn& x) {
    auto note = [](std::map<std::string, uint64_t>& to, const std::string& word) {
      if (!word.empty()) ++to[word];
    };
    if (x.calls.empty()) note(done_.transitions, x.transition); // else it is that of a call
    for (const auto& call : x.calls) note(done_.transitions, call.transition);
    for (const auto& made : x.candidates)
      if (made.origin == "patch") note(done_.patch_kinds, made.patch_kind);
  }

  void count(const group& x) {
    for (const auto& e : x.episodes) {
      done_.turns += e.turns.size() - first_own(e);
      for (const auto& t : e.turns) {
        if (!t.model.empty()) done_.models.insert(t.model);
        if (!t.shared) count_kinds(t);
      }
    }
  }

  const request& what_;
  report& done_;
  const split_table& splits_;
  const licence_gate& gate_;
  split_files files_;
};

/// Learns the held-out code; looks everything through when one that is found ends the export.
expected<void> look_before(exporter& all, const std::vector<source>& from, const request& what,
                           bool has_dev, report& done) {
  const auto& check = what.contamination;
  if (!check.memory) return {};
  if (has_dev)
    for (const auto& x : from)
      if (auto ok = all.read(x, pass::held_out); !ok) return ok;
  auto& found = done.contamination;
  found.looked = true;
  found.held_out = check.memory->remembered();
  found.not_compared = check.memory->dropped();
  if (check.then != on_contamination::refuse) return {};
  for (const auto& x : from)
    if (auto ok = all.read(x, pass::look); !ok) return ok;
  if (found.not_compared > 0)
    return configuration_error(
        "contaminated",
        "failed to export: " + std::to_string(found.not_compared) +
            " codes of dev do not fit into memory, so train cannot be compared with them",
        "export fewer runs at once, or give --on-contamination report");
  if (found.examples.empty()) return {};
  const auto& first = found.examples.front();
  return configuration_error(
      "contaminated",
      "failed to export: " + std::to_string(found.train_like_dev) +
          " train kernels near-duplicate a dev kernel, and " +
          std::to_string(found.answers_like_example) +
          " answers a retrieved example; the first is " + first.what + ", like " + first.like,
      "--on-contamination drop leaves their groups out, report exports them and says so");
}

} // namespace

expected<report> write_dataset(const std::vector<source>& from, const request& what) {
  report result;
  split_table splits{from, result};
  auto gate = gate_of(from);
  KM_TRY(gate.check());
  std::optional<exporter> writing;
  auto& all = writing.emplace(what, result, splits, gate);
  KM_TRY(look_before(all, from, what, splits.has_dev(), result));
  bool folder = !what.directory.empty();
  if (folder)
    if (auto ok = prepare(what); !ok) return unexpected(ok.error());
  auto filled = [&]() -> expected<void> {
    for (const auto& x : from) KM_TRY(all.read(x, pass::write));
    KM_TRY(all.finish());
    bool any_left = result.groups > 0 || result.without.contains("contaminated_groups");
    KM_TRY(check_any_left(result.refused, any_left));
    return folder ? describe(from, what, result) : expected<void>{};
  }();
  if (filled) return result;
  writing.reset(); // its files go, which have no name yet
  if (folder && remove_earlier(what.directory)) remove_empty(what.directory);
  return unexpected(filled.error());
}

expected<void> write_group(const source& from, uint32_t group, const request& what, report& done) {
  const std::vector<source> all{from};
  split_table splits{all, done};
  auto gate = gate_of(all);
  KM_TRY(gate.check());
  exporter one{what, done, splits, gate};
  if (auto ok = one.read_one(from, group); !ok) return ok;
  return one.finish();
}

} // namespace kernelmill::exports
