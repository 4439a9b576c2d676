// `kernelmill runs rm`, `runs rename` and `runs tag`: what people do to whole runs.

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <iostream>

#include <fmt/format.h>

#include "launch/analysis/watch/world.hpp"
#include "launch/cli/exit_code.hpp"
#include "launch/cli/terminal.hpp"
#include "launch/commands/commands.hpp"
#include "launch/commands/options.hpp"
#include "messages/base/json_value.hpp"
#include "messages/base/text.hpp"
#include "storage/files.hpp"
#include "storage/head_mark.hpp"
#include "storage/lineage/store.hpp"
#include "storage/run_tags.hpp"

namespace kernelmill::commands {

namespace {

using json = nlohmann::ordered_json;
namespace fs = std::filesystem;

tl::unexpected<error> in_use(const std::string& verb, const run_directory& run,
                             const std::string& why, const std::string& hint) {
  return configuration_error("store_locked", "failed to " + verb + " " + run.path + ": " + why,
                             hint);
}

/// Of a run that nothing works on. A run of a shared store is asked by its socket alone.
expected<void> check_at_rest(const std::string& verb, const run_directory& run) {
  if (watch::is_worked_on(run))
    return in_use(verb, run, "a process runs it", "`kernelmill cancel " + run.path + "` ends it");
  if (is_of_head(run))
    return in_use(verb, run, "a head has it and would go on with it",
                  "`kernelmill cancel " + run.name + " --head ADDR:PORT` ends it");
  if (run.store != run.path + "/lineage" || !has_store(run)) return {};
  auto alone = store::open({.directory = run.store});
  if (!alone && alone.error().category == "store_locked")
    return tl::unexpected<error>{alone.error()};
  return {};
}

/// What is left of a run that was cut off or has lost a part can be removed too.
expected<run_directory> removable_run(const std::string& what, const std::string& root) {
  auto run = find_run(what, root, true);
  if (run || (run.error().category != "run_incomplete" && run.error().category != "run_torn"))
    return run;
  std::error_code code;
  auto named = root + "/" + what;
  run_directory result;
  result.path = what.find('/') == what.npos && fs::exists(named, code) ? named : what;
  while (result.path.size() > 1 && result.path.ends_with('/')) result.path.pop_back();
  result.name = fs::path{result.path}.filename().string();
  result.store = result.path + "/lineage";
  return result;
}

double bytes_below(const std::string& folder) {
  double sum = 0;
  std::error_code code;
  for (fs::recursive_directory_iterator i{folder, code}, end; !code && i != end;
       i.increment(code)) {
    std::error_code gone;
    if (i->is_regular_file(gone)) sum += static_cast<double>(i->file_size(gone));
  }
  return sum;
}

bool is_confirmed(const std::string& question) {
  cli::talk(question + " [y/N]");
  std::string answer;
  std::getline(std::cin, answer);
  return answer == "y" || answer == "Y" || answer == "yes";
}

/// The manifest goes first: without it the folder is no run, however far the rest gets.
expected<void> remove_folder(const run_directory& run) {
  std::error_code code;
  fs::remove(run.manifest_file(), code);
  if (!code) fs::remove_all(run.path, code);
  if (code) return tl::unexpected<error>{file_error(code.value(), "remove", run.path)};
  return {};
}

expected<int> runs_rm(const invocation& in) {
  bool asks = !in.has("--yes");
  if (asks && (in.json || ::isatty(0) != 1))
    return configuration_error("usage",
                               "failed to remove runs: nothing can be asked, since stdin is no "
                               "terminal or --json was given",
                               "add --yes");
  std::vector<run_directory> all;
  for (const auto& word : in.list("RUN")) {
    auto run = removable_run(word, in.value("--root"));
    KM_TRY(run);
    KM_TRY(check_at_rest("remove", *run));
    all.push_back(std::move(*run));
  }
  auto removed = json::array();
  for (const auto& run : all) {
    auto size = cli::format_bytes(bytes_below(run.path));
    if (asks && !is_confirmed(fmt::format("remove {} for ever, {}?", run.path, size))) {
      cli::talk("kept " + run.path);
      continue;
    }
    KM_TRY(check_at_rest("remove", run)); // it may have been resumed since
    KM_TRY(remove_folder(run));
    removed.push_back(run.path);
    cli::talk(fmt::format("removed {}, {}", run.path, size));
    if (run.store != run.path + "/lineage")
      cli::talk("its records stay in the shared store " + run.store);
  }
  if (in.json) cli::print_json({{"removed", std::move(removed)}});
  return cli::exit_ok;
}

/// Forks say where their origin lies.
expected<void> tell_forks(const std::string& root, const std::string& before,
                          const std::string& after) {
  for (const auto& name : list_runs(root)) {
    auto file = root + "/" + name + "/manifest.json";
    auto manifest = read_json(file);
    if (!manifest || !manifest->is_object()) continue;
    auto fork = manifest->find("fork");
    if (fork == manifest->end() || !fork->is_object()) continue;
    auto place = fork->value("directory", json());
    std::error_code code;
    if (!place.is_string() || fs::path{place.get<std::string>()}.lexically_normal() !=
                                  fs::absolute(before, code).lexically_normal())
      continue;
    (*fork)["directory"] = fs::absolute(after, code).lexically_normal().string();
    KM_TRY(write_json(file, *manifest));
  }
  return {};
}

expected<int> runs_rename(const invocation& in) {
  auto run = find_run(in.value("RUN"), in.value("--root"), true);
  KM_TRY(run);
  const auto& name = in.value("NAME");
  if (!is_run_name(name))
    return configuration_error("invalid_run_name",
                               "failed to rename " + run->path + " to \"" + name +
                                   "\": a name has up to 128 letters, digits, '.', '_' and '-', "
                                   "and begins with neither '.' nor '-'",
                               "choose another name");
  KM_TRY(check_at_rest("rename", *run));
  auto parent = fs::path{run->path}.parent_path().string();
  auto target = (parent.empty() ? std::string{} : parent + "/") + name;
  std::error_code code;
  if (fs::exists(target, code))
    return configuration_error("run_exists",
                               "failed to rename " + run->path + ": " + target + " is there",
                               "choose another name");
  // Before the folder: a fork whose origin cannot be found says so; it does not take another's.
  KM_TRY(tell_forks(parent.empty() ? "." : parent, run->path, target));
  fs::rename(run->path, target, code);
  if (code) return tl::unexpected<error>{file_error(code.value(), "rename", run->path)};
  if (in.json)
    cli::print_json({{"run", run->name}, {"directory", target}, {"before", run->path}});
  else
    cli::talk("renamed " + run->path + " to " + target);
  return cli::exit_ok;
}

expected<int> runs_tag(const invocation& in) {
  auto run = find_run(in.value("RUN"), in.value("--root"), true);
  KM_TRY(run);
  const auto& words = in.list("TAG");
  bool removes = in.has("--remove");
  if (removes && words.empty())
    return configuration_error("usage", "failed to tag the run: --remove names no tag",
                               "name those that are to go");
  auto before = tags_of(*run);
  auto tags = words.empty() ? expected<std::vector<std::string>>{tags_of(*run)}
              : removes     ? change_tags(*run, {}, words)
                            : change_tags(*run, words, {});
  KM_TRY(tags);
  for (const auto& word : words)
    if (removes && std::find(before.begin(), before.end(), word) == before.end())
      cli::talk(run->path + " had no tag '" + cli::clean(word) + "'");
  if (in.json)
    cli::print_json({{"run", run->name}, {"directory", run->path}, {"tags", *tags}});
  else if (tags->empty())
    cli::talk(run->path + " has no tag");
  else
    cli::print(joined(*tags, "\n") + "\n");
  return cli::exit_ok;
}

cli::argument_spec one_run(bool repeat = false) {
  return {"RUN",
          repeat ? "Names of runs, or their directories." : "Name of a run, or its directory.",
          true,
          repeat,
          completes::run,
          {}};
}

} // namespace

cli::command runs_rm_row() {
  return without_tables(
      {"runs rm",
       "Removes runs with all that is stored of them.",
       "kernelmill runs rm first\nkernelmill runs rm first second --yes",
       "Asks before each. A run in progress is refused. Records in a store that other runs share "
       "stay there.",
       {one_run(true)},
       {{"--yes", "", "Removes without asking.", "", false, {}, nothing, "-y"}, runs_root()},
       runs_rm});
}

cli::command runs_rename_row() {
  return without_tables(
      {"runs rename",
       "Gives a run's folder another name, by which every command then finds it.",
       "kernelmill runs rename quickstart-20261130-101500 first",
       "Forks of the run learn where it is. Its records keep the name that it began with; `runs` "
       "shows both where they differ.",
       {one_run(), {"NAME", "The new name.", true, false, nothing, {}}},
       {runs_root()},
       runs_rename});
}

cli::command runs_tag_row() {
  return without_tables(
      {"runs tag",
       "Puts tags on a run, takes them away, or prints them.",
       "kernelmill runs tag first paper baseline\nkernelmill runs tag first --remove paper\n"
       "kernelmill runs --where 'tags=paper'",
       "Tags may be changed while a run is in progress. `runs` shows and filters them.",
       {one_run(), {"TAG", "Words. Default: prints those of the run.", false, true, nothing, {}}},
       {flag("--remove", "Takes the tags away."), runs_root()},
       runs_tag});
}

} // namespace kernelmill::commands
