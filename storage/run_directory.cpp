#include "storage/run_directory.hpp"

#include <algorithm>
#include <array>
#include <ctime>
#include <filesystem>

#include "messages/base/clock.hpp"
#include "messages/base/json_fields.hpp"
#include "messages/base/json_value.hpp"
#include "storage/files.hpp"

namespace kernelmill {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

namespace {

std::string without_slash(std::string path) {
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  return path;
}

bool exists(const std::string& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

// A folder may hold what create_run itself leaves when it is killed, and nothing else.
expected<void> check_vacant(const run_directory& run) {
  if (exists(run.manifest_file()))
    return configuration_error(
        "run_exists", "failed to create the run " + run.path + ": there is a run already",
        "continue it: kernelmill resume " + run.path + "; or choose another run.name or run.dir");
  std::error_code status;
  for (fs::directory_iterator i{run.path, status}, end; !status && i != end; i.increment(status)) {
    auto name = i->path().filename().string();
    constexpr std::array<std::string_view, 3> own{"config.json", "artifacts", "logs"};
    bool ours = std::find(own.begin(), own.end(), name) != own.end() || name.ends_with(".tmp");
    if (!ours)
      return configuration_error("directory_not_empty",
                                 "failed to create the run " + run.path + ": it holds " + name,
                                 "choose a folder that is empty or does not exist");
  }
  return {};
}

void remove_temporary_files(const std::string& directory) {
  std::error_code status;
  for (fs::directory_iterator i{directory, status}, end; !status && i != end; i.increment(status)) {
    std::error_code ignored;
    if (i->path().extension() == ".tmp") fs::remove(i->path(), ignored);
  }
}

void locate(run_directory& run, const std::string& shared_store) {
  run.store = shared_store.empty() ? run.path + "/lineage" : shared_store;
  // Records of a shared store name artifacts by hash alone, so these are shared with it.
  run.artifacts = shared_store.empty() ? run.path + "/artifacts" : shared_store + "/artifacts";
}

// Neither a manifest nor what a killed create_run leaves.
error no_manifest(const run_directory& run) {
  if (exists(run.path + "/lineage") || exists(run.traces_file()) || exists(run.metrics_file()))
    return run_incomplete(run, "its manifest.json is");
  if (exists(run.config_file()))
    return {fault_class::configuration, "run_torn",
            "failed to open the run " + run.path +
                ": it was cut off before it began, so nothing was recorded",
            "start it again: kernelmill run with the same configuration"};
  return {fault_class::configuration, "not_a_run",
          "failed to open the run " + run.path + ": it holds no manifest.json",
          "name the folder of a run, such as runs/NAME"};
}

// The store is made before the journal's files are, so these tell that it was there.
expected<void> check_parts(const run_directory& run) {
  bool began = exists(run.traces_file()) || exists(run.metrics_file());
  auto data = run.store + "/data.mdb";
  if (began && !has_store(run))
    return tl::unexpected<error>{run_incomplete(
        run, exists(data) ? data + " has 0 bytes, so its records are" : "its store " + data + " is",
        true)};
  return {};
}

} // namespace

bool is_run_name(const std::string& name) {
  constexpr size_t longest_name = 128;
  constexpr char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
  return !name.empty() && name.size() <= longest_name && name.front() != '.' &&
         name.front() != '-' && name.find_first_not_of(allowed) == name.npos;
}

bool is_imported(const run_directory& run) {
  auto manifest = read_json(run.manifest_file());
  return manifest && manifest->is_object() && manifest->contains("imported");
}

std::string command_for_lost_records(const run_directory& run) {
  if (!is_imported(run)) return "kernelmill resume " + run.path + " --from-traces";
  auto manifest = read_json(run.manifest_file());
  bool bundle = manifest && text_in((*manifest)["imported"], "system") == "gpu_rl";
  return "kernelmill import " + std::string{bundle ? "gpu-rl-bundle" : "kernel-rl-traces"} +
         " PATH --out runs/NAME";
}

error run_incomplete(const run_directory& run, const std::string& what, bool records) {
  auto text = "failed to open the run " + run.path + ": " + what + " gone";
  if (has_journal(run)) text += "; traces.jsonl may be the last copy of what it did";
  std::error_code status;
  auto bytes = fs::file_size(run.traces_file(), status);
  std::string hint = "restore it from a copy, ";
  if (is_imported(run)) {
    hint += "or import it again: " + command_for_lost_records(run) +
            "; its manifest.json names the file";
  } else {
    if (records && !status && bytes > 0)
      hint += "go on from what its traces say: " + command_for_lost_records(run) + ", ";
    hint += "or start anew under another name: kernelmill run " +
            (exists(run.config_file()) ? run.config_file() : std::string{"CONFIG"}) +
            " run.name=NAME run.dir=runs/NAME";
  }
  return {fault_class::configuration, "run_incomplete", std::move(text), std::move(hint)};
}

bool has_store(const run_directory& run) {
  std::error_code status;
  auto data = run.store + "/data.mdb";
  if (!fs::exists(data, status)) return static_cast<bool>(status);
  return fs::file_size(data, status) > 0;
}

bool has_journal(const run_directory& run) {
  std::error_code status;
  for (const auto& path : {run.traces_file(), run.metrics_file()})
    if (auto size = fs::file_size(path, status); !status && size > 0) return true;
  return false;
}

expected<run_directory> create_run(const new_run& what, const ordered_json& config,
                                   const ordered_json& manifest) {
  run_directory run;
  run.path = without_slash(what.path);
  run.name = what.name.empty() ? fs::path{run.path}.filename().string() : what.name;
  if (!is_run_name(run.name))
    return configuration_error("invalid_run_name",
                               "failed to create a run named \"" + run.name +
                                   "\": a name has up to 128 letters, digits, '.', '_' and '-', "
                                   "and begins with neither '.' nor '-'",
                               "set run.name");
  auto shared = what.shared_store.empty()
                    ? std::string{}
                    : fs::absolute(without_slash(what.shared_store)).lexically_normal().string();
  locate(run, shared);
  KM_TRY(check_vacant(run));
  remove_temporary_files(run.path);
  for (const auto& folder : {run.path, run.logs(), run.artifacts}) KM_TRY(make_directories(folder));
  KM_TRY(write_json(run.config_file(), config));
  ordered_json full = {{"schema_version", run_schema_version}, {"run", run.name}};
  full["created_at"] = utc_text(std::time(nullptr));
  full["store"] = shared.empty() ? ordered_json("lineage") : ordered_json(shared);
  if (manifest.is_object()) full.update(manifest);
  KM_TRY(write_json(run.manifest_file(), full));
  return run;
}

expected<run_directory> open_run(const std::string& path, bool without_store) {
  run_directory run;
  run.path = without_slash(path);
  if (!exists(run.path))
    return configuration_error("not_found",
                               "failed to open the run " + run.path + ": there is no such folder");
  if (!exists(run.manifest_file())) return tl::unexpected<error>{no_manifest(run)};
  if (!exists(run.config_file()))
    return tl::unexpected<error>{run_incomplete(run, "its config.json is")};
  auto manifest = read_json(run.manifest_file());
  KM_TRY(manifest);
  KM_TRY(read_json(run.config_file()));
  auto text = [&](const char* key) {
    auto found = manifest->is_object() ? manifest->find(key) : manifest->end();
    return found != manifest->end() && found->is_string() ? found->get<std::string>() : "";
  };
  auto version = manifest->is_object() ? manifest->find("schema_version") : manifest->end();
  run.name = text("run");
  auto store = text("store");
  if (run.name.empty() || store.empty() || version == manifest->end() ||
      !version->is_number_integer())
    return configuration_error("not_a_run",
                               "failed to open the run " + run.path +
                                   ": its manifest.json lacks schema_version, run or store",
                               "restore the file from a copy");
  if (version->get<int64_t>() > run_schema_version)
    return configuration_error("store_newer",
                               "failed to open the run " + run.path +
                                   ": its manifest.json has schema version " +
                                   std::to_string(version->get<int64_t>()) +
                                   ", this program knows " + std::to_string(run_schema_version),
                               "use the newer kernelmill that wrote it");
  locate(run, store == "lineage" ? "" : store);
  if (!without_store) KM_TRY(check_parts(run));
  return run;
}

std::vector<std::string> list_runs(const std::string& root) {
  std::vector<std::string> result;
  std::error_code status;
  for (fs::directory_iterator i{root, status}, end; !status && i != end; i.increment(status))
    if (exists(i->path().string() + "/manifest.json"))
      result.push_back(i->path().filename().string());
  std::sort(result.begin(), result.end());
  return result;
}

expected<run_directory> find_run(const std::string& name_or_path, const std::string& root,
                                 bool without_store) {
  auto named = root + "/" + name_or_path;
  bool is_name = name_or_path.find('/') == name_or_path.npos && is_run_name(name_or_path);
  if (is_name && exists(named)) return open_run(named, without_store);
  auto run = open_run(name_or_path, without_store);
  if (run || run.error().category != "not_found") return run;
  auto why = run.error();
  if (is_name)
    why.message = "failed to find the run " + name_or_path + ": neither " + named + " nor " +
                  name_or_path + " is there";
  auto known = list_runs(root);
  constexpr size_t most = 5;
  for (size_t i = 0; i < std::min(known.size(), most); ++i)
    why.hint += (i == 0 ? "runs that are there: " : ", ") + known[i];
  if (known.size() > most) why.hint += ", ...";
  if (known.empty())
    why.hint = "no run is below " + root +
               ": name another folder with --root, or start one: kernelmill run CONFIG";
  return tl::unexpected<error>{std::move(why)};
}

// -- JSON files ---------------------------------------------------------------------------------

expected<ordered_json> read_json(const std::string& path) {
  auto text = read_file(path);
  KM_TRY(text);
  try {
    return ordered_json::parse(*text);
  } catch (const ordered_json::parse_error& e) {
    // The library counts the byte that it could not take from 1.
    auto end = text->begin() + static_cast<ptrdiff_t>(std::min(e.byte, text->size()));
    auto line = std::count(text->begin(), end, '\n') + 1;
    auto begin = std::find(std::make_reverse_iterator(end), text->rend(), '\n');
    auto column = std::distance(begin.base(), end);
    return configuration_error("invalid_json",
                               "failed to read " + path + ": line " + std::to_string(line) +
                                   ", column " + std::to_string(column) + " is not JSON",
                               "restore the file from a copy");
  } catch (const ordered_json::out_of_range&) {
    return configuration_error("invalid_json",
                               "failed to read " + path + ": it holds a number that is too large",
                               "restore the file from a copy");
  }
}

expected<void> write_json(const std::string& path, const ordered_json& value) {
  return write_file(path, value.dump(2, ' ', false, ordered_json::error_handler_t::replace) + "\n");
}

std::string json_line(const ordered_json& value) {
  return value.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
}

} // namespace kernelmill
