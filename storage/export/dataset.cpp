#include "storage/export/dataset.hpp"

#include <filesystem>
#include <optional>

#include "storage/export/split.hpp"
#include "storage/files.hpp"
#include "storage/run_directory.hpp"
#include "storage/verdicts.hpp"

namespace kernelmill::exports {

namespace {

namespace fs = std::filesystem;

constexpr const char* provenance_name = "PROVENANCE.json";
constexpr const char* card_name = "README.md";

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
  for (const auto* name : {provenance_name, card_name, "data/train.jsonl", "data/dev.jsonl",
                           "data/train.jsonl.zst", "data/dev.jsonl.zst"}) {
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

expected<void> describe(const std::vector<source>& from, const request& what, const report& done) {
  if (auto ok = write_file(what.directory + "/" + card_name, data_card(from, what, done)); !ok)
    return ok;
  return write_json(what.directory + "/" + provenance_name, provenance(from, what, done));
}

// -- reading ------------------------------------------------------------------------------------

class exporter {
public:
  exporter(const request& what, report& done) : what_(what), done_(done), files_(what) {}

  expected<void> read(const source& from) {
    return for_each_group(*from.lineage, from.run,
                          [&](const stored_group& stored) { return judged(from, stored); });
  }

  expected<void> read_one(const source& from, uint32_t group) {
    auto stored = read_group(*from.lineage, from.run, group);
    return stored ? judged(from, *stored) : unexpected(stored.error());
  }

  expected<void> finish() {
    auto files = files_.finish();
    if (!files) return unexpected(files.error());
    done_.files = std::move(*files);
    return {};
  }

private:
  expected<void> judged(const source& from, const stored_group& stored) {
    if (!from.verdicts) return take(from, stored);
    auto verdicts = read_group(*from.verdicts, from.run, stored.group);
    if (!verdicts) return unexpected(verdicts.error());
    auto merged = with_verdicts(stored, *verdicts);
    return merged ? take(from, *merged) : unexpected(merged.error());
  }

  expected<void> take(const source& from, const stored_group& stored) {
    auto material = read_material(stored, *from.artifacts, from.run);
    if (!material) return unexpected(material.error());
    if (material->task.empty()) return {}; // no turn was committed
    auto own = from.splits.find(material->task);
    material->split = split_of(material->task, own == from.splits.end() ? "" : own->second);
    material->temperature = from.temperature;
    share_first(*material, from.shared_turns);
    if (!takes(what_.wanted, *material)) {
      ++done_.without["groups_of_other_tasks"];
      return {};
    }
    auto& task = done_.tasks[material->task];
    task.split = material->split;
    task.own_split = own != from.splits.end();
    count(*material);
    row_context in{what_.wanted, done_.groups++, &done_.without,
                   what_.made_by.value("version", std::string{})};
    return make_rows(what_.as, *material, in, [&](row x) {
      ++done_.rows;
      ++task.rows;
      return files_.append(material->split, x);
    });
  }

  void count(const group& x) {
    for (const auto& e : x.episodes) {
      done_.turns += e.turns.size() - first_own(e);
      for (const auto& t : e.turns)
        if (!t.model.empty()) done_.models.insert(t.model);
    }
  }

  const request& what_;
  report& done_;
  split_files files_;
};

} // namespace

expected<report> write_dataset(const std::vector<source>& from, const request& what) {
  bool folder = !what.directory.empty();
  if (folder)
    if (auto ok = prepare(what); !ok) return unexpected(ok.error());
  report result;
  exporter all{what, result};
  for (const auto& x : from)
    if (auto ok = all.read(x); !ok) return unexpected(ok.error());
  if (auto ok = all.finish(); !ok) return unexpected(ok.error());
  if (folder)
    if (auto ok = describe(from, what, result); !ok) return unexpected(ok.error());
  return result;
}

expected<void> write_group(const source& from, uint32_t group, const request& what, report& done) {
  exporter one{what, done};
  if (auto ok = one.read_one(from, group); !ok) return ok;
  return one.finish();
}

} // namespace kernelmill::exports
