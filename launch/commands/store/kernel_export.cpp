// `kernelmill kernel export`: a verified kernel as files that users build into their own programs.

#include <algorithm>
#include <filesystem>
#include <set>

#include <fmt/format.h>

#include "launch/analysis/library/kernel_library.hpp"
#include "launch/analysis/watch/stored.hpp"
#include "launch/cli/terminal.hpp"
#include "launch/cluster/build_id.hpp"
#include "launch/commands/kernel_export.hpp"
#include "launch/commands/options.hpp"
#include "launch/commands/place.hpp"
#include "launch/commands/run_view.hpp"
#include "launch/commands/store/export_folders.hpp"
#include "launch/commands/store/export_permits.hpp"
#include "launch/config/paths.hpp"
#include "launch/import/model.hpp"
#include "launch/kernel_forms/exported_kernel.hpp"
#include "launch/node/run_permits.hpp"
#include "messages/base/counted.hpp"
#include "messages/base/json_value.hpp"
#include "messages/folder_file.hpp"
#include "messages/json.hpp"
#include "storage/artifacts.hpp"
#include "storage/export/licences/licence_gate.hpp"
#include "storage/files.hpp"
#include "storage/lineage/group_reader.hpp"
#include "storage/search_end.hpp"

namespace kernelmill::commands {

namespace {

namespace kf = kernel_forms;
using kernel_json = nlohmann::ordered_json;

/// Of a search that has ended the kernel that stood when it was measured again.
expected<void> take_winner(place& at) {
  auto config = read_json(at.run.config_file());
  if (!config || !asks_for_search(*config)) return {};
  auto stored = watch::summarize(watch::local_world({}), at.run);
  KM_TRY(stored);
  auto name = winner_of(at.run, stored->turns);
  if (!name) return {};
  at.name = *name;
  at.whole_run = false;
  return {};
}

/// "RUN/best" is the whole run, of which the best is taken.
expected<place> place_of(const cli::invocation& in) {
  auto what = in.value("WHAT");
  if (what.ends_with("/best")) what.resize(what.size() - 5);
  auto at = locate(what, in.value("--root"));
  KM_TRY(at);
  if (at->whole_run) KM_TRY(take_winner(*at));
  if (!at->whole_run && !at->name.member)
    return configuration_error("usage",
                               "failed to read '" + in.value("WHAT") + "': a group is no kernel",
                               "name RUN/best, an episode as RUN/g3.e1 or a turn as RUN/g3.e1.t2");
  return at;
}

bool is_within(const place& at, wire::TurnRecord::Reader turn) {
  if (at.whole_run) return true;
  auto where = turn.getEpisode();
  return where.getGroup() == at.name.group && where.getMember() == *at.name.member &&
         (!at.name.turn || turn.getTurn() == *at.name.turn);
}

tl::unexpected<error> not_verified(const cli::invocation& in, const place& at) {
  return configuration_error(
      "not_verified",
      "failed to export " + in.value("WHAT") +
          ": there is no kernel that was accepted and timed, and that this program judged",
      at.whole_run ? "`kernelmill kernels` lists the verified ones of all runs"
                   : "`kernelmill show " + in.value("WHAT") +
                         "` says why; `kernelmill kernels` lists the verified ones");
}

/// The kernel that WHAT names: the one with the highest lower bound where there are several.
expected<library::kernel> choose(const cli::invocation& in, const place& at, const store& from) {
  library::kernels found{
      {in.value("--task"), {}, in.value("--gpu"), [&](wire::TurnRecord::Reader turn) {
         return is_within(at, turn);
       }}};
  KM_TRY(found.add(at.run, from));
  auto all = found.best();
  if (all.empty()) return not_verified(in, at);
  std::set<std::string> tasks;
  for (const auto& x : all) tasks.insert(x.task);
  if (tasks.size() > 1) {
    std::string list;
    for (const auto& x : tasks) list += (list.empty() ? "" : ", ") + x;
    return configuration_error("ambiguous",
                               "failed to export " + in.value("WHAT") +
                                   ": the run has verified kernels of several tasks",
                               "name one with --task: " + list);
  }
  return *std::max_element(all.begin(), all.end(), [](const auto& x, const auto& y) {
    return x.speedup.low < y.speedup.low;
  });
}

expected<task_ptr> task_of(const run_directory& run, const library::kernel& x) {
  auto config = read_json(run.config_file());
  KM_TRY(config);
  auto root = config->value(kernel_json::json_pointer{"/tasks/root"}, std::string{});
  auto loaded = load_task(root.empty() ? default_tasks_roots() : task_roots{root}, x.task);
  KM_TRY(loaded);
  if (!x.task_digest.empty() && (*loaded)->digest != x.task_digest)
    return configuration_error("task_changed",
                               "failed to export a kernel of " + x.task +
                                   ": its files have changed since the run",
                               "restore them, or export from a newer run");
  judging_terms terms;
  terms.backend = x.backend;
  return on_terms(**loaded, terms);
}

/// What leaves the store: the turn's record, and what its licence says.
struct leaving {
  kf::exported_kernel kernel;
  exports::permit task;
  kernel_json verdict, provenance;
};

kernel_json verdict_of(const library::kernel& k, wire::TurnRecord::Reader turn) {
  auto evaluation = turn.getFacts().getEvaluation();
  auto judged = kernelmill::to_json(capnp::DynamicStruct::Reader{turn.getVerdict()});
  auto facts = kernelmill::to_json(capnp::DynamicStruct::Reader{evaluation});
  return {{"schema_version", 1},
          {"task", k.task},
          {"outcome", judged["outcome"]},
          {"category", judged["category"]},
          {"gates", judged["gates"]},
          {"findings", judged["findings"]},
          {"speedup",
           {{"low", k.speedup.low}, {"estimate", k.speedup.estimate}, {"high", k.speedup.high}}},
          {"interval", 0.95},
          {"samples", k.samples},
          {"baseline", k.baseline},
          {"clock", k.clock},
          {"shape", k.shape},
          {"candidate_ms", k.candidate_ms},
          {"reference_ms", k.reference_ms},
          {"conditions",
           {{"device", k.device},
            {"device_uuid", facts["device_uuid"]},
            {"driver", k.driver.empty() ? kernel_json(nullptr) : kernel_json(k.driver)},
            {"toolchain", k.toolchain},
            {"versions", k.versions},
            {"measured", facts["conditions"]}}},
          {"judged_by", k.program},
          {"committed_at", k.committed_at}};
}

kernel_json provenance_of(const library::kernel& k, const exports::permit& may,
                          const kernel_json& manifest) {
  return {
      {"schema_version", 1},
      {"run", k.run},
      {"turn", k.turn},
      {"turn_id", k.turn_id},
      {"policy",
       {{"model", k.model},
        {"licence", manifest.value(kernel_json::json_pointer{"/policy/licence"}, std::string{})}}},
      {"candidate_sha256", k.candidate_sha256},
      {"task", {{"id", k.task}, {"digest", k.task_digest}}},
      {"licence",
       {{"source", may.source}, {"licence", may.licence}, {"url", may.url}, {"terms", may.terms}}},
      {"exported_by", {{"program", "kernelmill"}, {"version", build_id()}}}};
}

/// Asks the gate, then reads the texts. Errors: "licence_forbids" and those of the store.
expected<leaving> let_out(const cli::invocation& in, const place& at, const store& from,
                          const library::kernel& k) {
  auto licences = installed_licences();
  KM_TRY(licences);
  auto accepted = accepted_terms(in, *licences);
  KM_TRY(accepted);
  KM_TRY(check_store_of(at.run, from));
  auto may = permits_of(at.run, *licences, purpose::share, *accepted);
  KM_TRY(may);
  auto name = parse_name(k.turn);
  auto group = read_group(from, at.run.name, name->group);
  KM_TRY(group);
  exports::licence_gate gate{{&*may}};
  auto admitted = gate.admit(*may, *group);
  if (!admitted)
    return tl::unexpected<error>{
        exports::to_error(admitted.error(), "failed to export the kernel")};
  leaving result;
  result.task = gate.of_task(*may, k.task);
  auto what = task_of(at.run, k);
  KM_TRY(what);
  auto manifest = read_json(at.run.manifest_file());
  KM_TRY(manifest);
  auto reference = (*what)->contract == contract_kind::torch
                       ? expected<std::string>{(*what)->torch.code}
                       : read_file((*what)->directory + "/reference.cpp");
  for (const auto& episode : (*admitted)->episodes)
    for (const auto& record : episode.turns) {
      auto view = record.open();
      auto turn = view->getTurn();
      if (turn.getTurnId() != k.turn_id.c_str()) continue;
      auto source = artifact_store{at.run.artifacts}.candidate(turn);
      KM_TRY(source);
      result.kernel = {k,
                       std::move(*source),
                       *what,
                       reference.value_or(""),
                       result.task.licence,
                       result.task.terms,
                       result.task.url};
      result.verdict = verdict_of(k, turn);
    }
  result.provenance = provenance_of(k, result.task, *manifest);
  return result;
}

/// The form `patch`: the user's model with the kernel in it, as `task apply` makes it.
expected<kf::out_files> patch_of(const cli::invocation& in, const leaving& x) {
  const auto& model = in.value("--model");
  if (x.kernel.what->contract != contract_kind::torch)
    return configuration_error("bad_problem",
                               "failed to make a patch of a kernel of " + x.kernel.what->id +
                                   ": its task was not made of a model",
                               "`--form module` exports it as a library");
  if (model.empty())
    return configuration_error("usage", "failed to make a patch: the model's file is not named",
                               "add --model FILE.py: the file that the task was imported from");
  auto kernel = in.value("--out") + "/kernel.py";
  KM_TRY(write_file(kernel, x.kernel.source));
  auto made =
      patch_model(kernel, x.kernel.what->directory + "/problem.py", model, in.value("--python"));
  KM_TRY(made);
  auto file = std::filesystem::path{model}.filename().string();
  auto readme = fmt::format(
      "# {0} with a kernel in it\n`{0}` is your file with the kernel of `{1}` in place of the "
      "submodules that the task\nis of. `kernelmill eval --task {2} {0}` judges the whole.\n\n",
      file, x.kernel.what->id, made->whole);
  return kf::out_files{{file, made->text}, {"README.md", readme + kf::measured_text(x.kernel)}};
}

expected<kf::out_files> files_of(const cli::invocation& in, const leaving& x) {
  const auto& form = in.value("--form");
  if (form == "patch") return patch_of(in, x);
  if (form == "package") return kf::hub_package(x.kernel);
  return x.kernel.what->contract == contract_kind::torch ? kf::torch_module(x.kernel)
                                                         : kf::native_module(x.kernel);
}

std::string licence_text(const leaving& x) {
  const auto& may = x.task;
  return fmt::format(
      "The task {} is of the source {} under {}.\n{}{}"
      "The kernel was written by the model {}; its answers belong to the owner of the "
      "run,\nas far as the model's own licence says nothing else.\n",
      x.kernel.what->id, may.source, may.licence,
      may.url.empty() ? "" : "Its text: " + may.url + "\n",
      may.terms.empty() ? "" : "Terms that were accepted: " + may.terms + "\n",
      x.kernel.about.model);
}

expected<int> export_kernel(const cli::invocation& in) {
  auto at = place_of(in);
  KM_TRY(at);
  auto from = open_for_reading(at->run);
  KM_TRY(from);
  auto chosen = choose(in, *at, *from);
  KM_TRY(chosen);
  auto out = let_out(in, *at, *from, *chosen);
  KM_TRY(out);
  KM_TRY(prepare_folder(in));
  auto files = files_of(in, *out);
  KM_TRY(files);
  files->push_back({"verdict.json", out->verdict.dump(2) + "\n"});
  files->push_back({"provenance.json", out->provenance.dump(2) + "\n"});
  files->push_back({"LICENCE.txt", licence_text(*out)});
  const auto& directory = in.value("--out");
  kernel_json written = kernel_json::array();
  for (const auto& file : *files) {
    auto path = std::filesystem::path{directory + "/" + file.path};
    KM_TRY(make_directories(path.parent_path().string()));
    KM_TRY(write_file(path.string(), file.bytes));
    written.push_back(file.path);
  }
  if (in.json) {
    cli::print_json({{"form", in.value("--form")},
                     {"directory", directory},
                     {"kernel", library::to_json(*chosen)},
                     {"files", std::move(written)}});
    return 0;
  }
  cli::print(fmt::format("wrote {}: {} of {}, {:.2f} times as fast as {} at least\n"
                         "next:\n  {}/README.md says how to build and test it\n",
                         directory, counted(files->size(), "file"), chosen->place(),
                         chosen->speedup.low, chosen->baseline, directory));
  return 0;
}

} // namespace

cli::command kernel_export_row() {
  return without_tables(
      {"kernel export",
       "Writes a verified kernel as a drop-in: a module, a package or a patch, each with its test.",
       "kernelmill kernel export runs/first/best --form module --out softmax --task "
       "native/softmax\n"
       "kernelmill kernel export runs/mine/g0.e1.t2 --form patch --model net.py --out patched",
       "module: of a task in Python a package with an nn.Module, of one in C++ or CUDA a library "
       "with a "
       "C header and a\nCMakeLists.txt. package: a folder of Hugging Face's `kernels`. patch: the "
       "file "
       "that `task import model` read, with the\nkernel put in. Each has verdict.json, "
       "provenance.json and the licence. What was not verified, and what its licence\nkeeps for "
       "evaluation, is refused.",
       {{"WHAT", "RUN/best, RUN/g3.e1 or RUN/g3.e1.t2.", true, false, completes::run, {}}},
       {{"--form",
         "NAME",
         "What is written.",
         "module",
         false,
         {"module", "package", "patch"},
         nothing},
        {"--out", "DIR", "Folder to write to; new or empty.", "", true, {}, completes::directory},
        {"--task", "T", "The task, of a run of several.", "", false, {}, completes::task},
        {"--gpu", "NAME", "Only devices whose name holds this.", "", false, {}, nothing},
        {"--model", "FILE", "Of a patch: the model's file.", "", false, {}, completes::file},
        flag("--force", "Replaces files that are there."),
        accept_terms_option(),
        python_path(),
        runs_root()},
       export_kernel});
}

} // namespace kernelmill::commands
