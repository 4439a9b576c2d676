// What a licence forbids: a run over tasks that are for evaluation alone, and every way in which
// its turns could become data for training.

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <set>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/integration/cli/program.hpp"

namespace kernelmill::test {

namespace licence_command_test {

using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
namespace fs = std::filesystem;

const std::vector<std::string> forms = {"sft",       "trajectories", "preference",   "rl",
                                        "trl",       "verl",         "prime-rl",     "skyrl",
                                        "tinker",    "nemo-gym",     "megatron",     "harbor",
                                        "kernel-rl", "sol",          "harbor-tasks", "kernelbench"};

json read_file_json(const std::string& name) {
  std::ifstream in{scratch() + "/" + name};
  return json::parse(in, nullptr, false);
}

/// A copy of a task under another id; `source` may be empty.
std::string add_task(const std::string& id, const std::string& source,
                     const std::string& split = "train", const std::string& from = "row_sum") {
  auto folder = scratch() + "/tasks/" + id;
  fs::create_directories(folder);
  fs::copy(source_file("configs/tasks/native/" + from), folder,
           fs::copy_options::overwrite_existing | fs::copy_options::recursive);
  std::ifstream in{folder + "/task.json"};
  auto document = json::parse(in, nullptr, true, true);
  document["id"] = id;
  document["split"] = split;
  if (!source.empty()) document["source"] = source;
  write_file("tasks/" + id + "/task.json", document.dump());
  return id;
}

/// A run over one task: at first wrong, then right.
std::string run_over(const std::string& name, const std::string& task,
                     std::vector<std::string> more = {}, std::string* said = nullptr) {
  auto kernels = source_file("configs/policies/quickstart/row_sum");
  json script = {{"model", "m"}, {"replies", json::array()}};
  for (const auto* kernel : {"broken.cpp", "fast.cpp", "wrong_tail.cpp", "fast.cpp"})
    script["replies"].push_back({{"task", task},
                                 {"turn", script["replies"].size() % 2},
                                 {"member", script["replies"].size() / 2},
                                 {"kernel", kernels + "/" + kernel}});
  auto path = write_file(name + "-script.json", script.dump());
  std::vector<std::string> words{"run",
                                 source_file("configs/quickstart.json"),
                                 "tasks.root=" + scratch() + "/tasks",
                                 "tasks.ids=[\"" + task + "\"]",
                                 "tasks.group_size=2",
                                 "tasks.max_turns=2",
                                 "policy.script=" + path,
                                 "evaluation.timing.enabled=false",
                                 "profile.enabled=false",
                                 "run.dir=runs/" + name};
  words.insert(words.end(), more.begin(), more.end());
  auto ran = kernelmill(words);
  EXPECT_EQ(ran.code, 0) << ran.err;
  if (said != nullptr) *said = ran.err;
  return "runs/" + name;
}

/// What its start said on stderr.
std::string bound_run_says;

const std::string& bound_run() {
  static const auto name =
      run_over("bound", add_task("sol-execbench/softmax", ""), {}, &bound_run_says);
  return name;
}

void expect_refused(const std::vector<std::string>& words, const char* said = "must not") {
  auto all = words;
  bool stream = words.back() == "-"; // which leaves no place for a document
  if (!stream) all.emplace_back("--json");
  auto x = kernelmill(all);
  std::replace(x.err.begin(), x.err.end(), '\n', ' '); // lines of a terminal
  std::string text;
  for (const auto& w : words) text += w + " ";
  EXPECT_NE(x.code, 0) << text;
  EXPECT_THAT(x.err, AllOf(HasSubstr(stream ? "error:" : "licence_forbids"), HasSubstr(said)))
      << text;
  EXPECT_EQ(x.out, "") << text;
}

/// To a folder; every form packed and to a stream is tested in tests/unit/export/dataset_test.cpp.
void expect_no_export(const std::string& run, const std::vector<std::string>& which,
                      const std::vector<std::string>& more = {}) {
  for (const auto& form : which) {
    std::vector<std::string> words{"export", run, "--form", form, "--out", "never", "--force"};
    words.insert(words.end(), more.begin(), more.end());
    expect_refused(words);
    EXPECT_FALSE(fs::exists(scratch() + "/never")) << form;
  }
}

bool has_rows(const std::string& form) {
  return form != "kernelbench" && form != "sol" && form != "harbor-tasks";
}

/// One of each kind of them, which take seconds. A report in KernelBench's form holds figures
/// alone, and asks for the tasks.
std::vector<std::vector<std::string>> ways_out(const std::string& run, bool figures) {
  std::vector<std::vector<std::string>> result;
  for (const auto* form : {"rl", "kernel-rl", "sol", "harbor-tasks", "kernelbench"})
    if (figures || std::string{form} != "kernelbench")
      result.push_back({"export", run, "--form", form, "--force", "--out", "never"});
  result.push_back({"export", run, "--form", "sft", "--split", "train", "--out", "-"});
  result.push_back({"export", run, "--form", "trajectories", "--follow", "--out", "-"});
  for (const auto* part : {"", "/g0.e0.t0"})
    result.push_back({"bundle", "make", run + part, "--form", "proof", "--key", "sign.pem", "--out",
                      "never.tar.zst"});
  result.push_back({"index", "build", "never-index", "--from", "run=" + run});
  return result;
}

/// Every command by which something of a run could become data.
std::vector<std::vector<std::string>> every_way_out(const std::string& run) {
  std::vector<std::vector<std::string>> result;
  auto add = [&](std::vector<std::string> words) { result.push_back(std::move(words)); };
  for (const auto& form : forms) {
    add({"export", run, "--form", form, "--force", "--out", "never"});
    if (!has_rows(form)) continue;
    add({"export", run, "--form", form, "--zstd", "--out", "never"});
    add({"export", run, "--form", form, "--split", "train", "--out", "-"});
    add({"export", run, "--form", form, "--split", "train", "--follow", "--out", "-"});
  }
  add({"export", run, "--form", "kernelbench", "--out", "-"});
  for (const auto* part : {"", "/g0", "/g0.e0", "/g0.e0.t0"})
    for (const auto* form : {"run", "proof"})
      add({"bundle", "make", run + part, "--form", form, "--key", "sign.pem", "--out",
           "never.tar.zst"});
  add({"index", "build", "never-index", "--from", "run=" + run});
  return result;
}

void expect_no_way_out(const std::string& run, bool figures = true, const char* said = "must not") {
  static const auto key = kernelmill({"bundle", "keygen", "--out", "sign.pem"});
  ASSERT_EQ(key.code, 0) << key.err;
  for (const auto& words :
       figures&& run == bound_run() ? every_way_out(run) : ways_out(run, figures)) {
    expect_refused(words, said);
    for (const auto* left : {"never/data", "never/PROVENANCE.json", "never.tar.zst", "never-index"})
      EXPECT_FALSE(fs::exists(scratch() + "/" + left)) << words[3] << " " << left;
    fs::remove_all(scratch() + "/never"); // an empty folder
  }
}

TEST(licence_command, a_bound_run_has_no_way_out) {
  expect_no_way_out(bound_run());
}

TEST(licence_command, a_bound_run_says_so_before_it_starts_and_is_exported_in_no_form) {
  auto manifest = read_file_json(bound_run() + "/manifest.json");
  EXPECT_EQ(manifest["tasks"][0]["source"], "sol-execbench");
  EXPECT_EQ(manifest["tasks"][0]["licence"], "LicenseRef-NVIDIA-Evaluation");
  auto again = kernelmill({"resume", bound_run(), "--json"});
  ASSERT_EQ(again.code, 0) << again.err;
  EXPECT_EQ(again.document()["licences"][0]["train"], false);
  EXPECT_EQ(again.document()["licences"][0]["evaluate"], true);
  EXPECT_THAT(bound_run_says, HasSubstr("exports for training will be refused"));
  expect_no_export(bound_run(), {"sft", "kernelbench"},
                   {"--accept-terms", "researcher-reciprocity-1.0,kernelbook-rows"});
}

TEST(licence_command, new_verdicts_forks_and_indexes_lift_nothing) {
  ASSERT_EQ(kernelmill({"rescore", bound_run(), "--reward", "sparse", "--name", "other"}).code, 0);
  expect_no_export(bound_run(), {"rl", "sft"}, {"--verdict", "other"});
  auto fork = kernelmill(
      {"fork", bound_run() + "/g0.e0.t1", "run.dir=runs/branch", "policy.licence=own", "--json"});
  ASSERT_EQ(fork.code, 0) << fork.err;
  expect_no_export("runs/branch", {"rl", "trajectories"});
  expect_refused({"index", "build", "never-index", "--from", "run=" + bound_run()});
  EXPECT_FALSE(fs::exists(scratch() + "/never-index"));
}

TEST(licence_command, a_run_of_an_older_program_is_decided_by_the_ids_of_its_tasks) {
  fs::copy(scratch() + "/" + bound_run(), scratch() + "/runs/older", fs::copy_options::recursive);
  auto manifest = read_file_json("runs/older/manifest.json");
  for (const auto* key : {"retrieval", "accepted_terms"}) manifest.erase(key);
  for (auto& task : manifest["tasks"]) {
    task.erase("source");
    task.erase("licence");
  }
  write_file("runs/older/manifest.json", manifest.dump());
  expect_no_export("runs/older", {"rl", "kernelbench"});
  manifest["tasks"][0]["id"] = "another/softmax"; // the records still have the other id
  write_file("runs/older/manifest.json", manifest.dump());
  expect_refused({"export", "runs/older", "--form", "rl", "--out", "never"},
                 "nothing says whether");
}

TEST(licence_command, a_source_stays_with_a_task_of_another_name) {
  auto run = run_over("renamed", add_task("mine/softmax", "compute-eval"));
  expect_no_export(run, {"rl", "harbor"});
}

// Under the ids that `task import` gives them, whatever their task.json says.
TEST(licence_command, problems_of_evaluation_suites_are_exported_for_no_training) {
  for (const std::string id :
       {"compute-eval/2026-1/CUDA_31", "sol-execbench/L1/softmax", "gpu-mode/pmpp/vectoradd"}) {
    auto run = run_over("suite-" + id.substr(0, id.find('/')), add_task(id, ""));
    expect_refused({"export", run, "--form", "rl", "--out", "never"}, id.c_str());
    expect_refused({"index", "build", "never-index", "--from", "run=" + run}, "must not");
  }
}

TEST(licence_command, an_unknown_source_is_refused_and_the_key_is_named) {
  auto run = run_over("unnamed", add_task("mine/unknown", ""));
  expect_refused({"export", run, "--form", "sft", "--out", "never"}, "`source` in task.json");
  auto own = run_over("own", add_task("mine/own", "own"));
  auto x = kernelmill({"export", own, "--form", "sft", "--out", "own-rows", "--json"});
  EXPECT_EQ(x.code, 0) << x.err;
  EXPECT_GT(x.document()["rows"], 0);
}

TEST(licence_command, terms_are_accepted_by_name_and_written_down) {
  auto run = run_over("asks", add_task("reference-kernels/softmax", ""),
                      {"--accept-terms", "researcher-reciprocity-1.0"});
  EXPECT_EQ(read_file_json(run + "/manifest.json")["accepted_terms"],
            json({"researcher-reciprocity-1.0"}));
  expect_refused({"export", run, "--form", "rl", "--out", "never"},
                 "--accept-terms researcher-reciprocity-1.0");
  auto x = kernelmill({"export", run, "--form", "rl", "--out", "asked", "--accept-terms",
                       "researcher-reciprocity-1.0", "--json"});
  ASSERT_EQ(x.code, 0) << x.err;
  auto provenance = read_file_json("asked/PROVENANCE.json")["licences"];
  EXPECT_EQ(provenance["accepted_terms"], json({"researcher-reciprocity-1.0"}));
  for (const auto& source : provenance["sources"])
    EXPECT_EQ(source["terms"], source["source"] == "reference-kernels"
                                   ? json("researcher-reciprocity-1.0")
                                   : json());
  EXPECT_EQ(provenance["sources"].size(), 2u) << "the tasks, and the cards";
  EXPECT_TRUE(fs::exists(scratch() + "/asked/LICENSES"));
  auto wrong = kernelmill(
      {"export", run, "--form", "rl", "--out", "never", "--accept-terms", "everything", "--json"});
  EXPECT_EQ(wrong.fault()["category"], "unknown_terms");
}

/// Says in a run's manifest that its cards, or one model's answers, are of another source, as a
/// foreign index or a server would.
void rewrite_manifest(const std::string& run, const std::function<void(json&)>& change) {
  auto manifest = read_file_json(run + "/manifest.json");
  change(manifest);
  write_file(run + "/manifest.json", manifest.dump());
}

/// The task is free, and something in each of its groups is not.
void expect_nothing_leaves(const std::string& run, const std::string& what) {
  auto x = kernelmill({"export", run, "--form", "rl", "--out", "never", "--json"});
  EXPECT_EQ(x.code, 2) << "as where every task is refused";
  EXPECT_THAT(x.fault()["message"].get<std::string>(),
              AllOf(HasSubstr("licences keep all of 1 group in"), HasSubstr(what)));
  expect_no_way_out(run, false);
}

TEST(licence_command, a_bound_example_in_a_prompt_keeps_its_group_from_every_way_out) {
  auto run = run_over("shown", add_task("mine/shown", "own"), {"tasks.group_size=1"});
  EXPECT_EQ(kernelmill({"bundle", "make", run, "--out", "shown.tar.zst"}).code, 0);
  rewrite_manifest(run, [](json& x) { x["retrieval"]["cards"] = "compute-eval"; });
  expect_nothing_leaves(run, "the example card:");
}

TEST(licence_command, answers_of_a_bound_model_leave_nowhere_until_its_terms_are_accepted) {
  auto run = run_over("answered", add_task("mine/answered", "own"),
                      {"tasks.group_size=1", "policy.licence=reference-kernels"});
  EXPECT_THAT(kernelmill({"resume", run, "--json"}).document()["licences"].dump(),
              HasSubstr("reference-kernels"));
  expect_refused({"export", run, "--form", "sft", "--out", "never"},
                 "--accept-terms researcher-reciprocity-1.0");
  auto x = kernelmill({"export", run, "--form", "sft", "--out", "answers", "--accept-terms",
                       "researcher-reciprocity-1.0", "--json"});
  ASSERT_EQ(x.code, 0) << x.err;
  EXPECT_GT(x.document()["rows"], 0);
  rewrite_manifest(run, [](json& manifest) { manifest["policy"]["licence"] = "sol-execbench"; });
  expect_nothing_leaves(run, "answers of the model m");
}

TEST(licence_command, an_unconfirmed_source_is_for_evaluation_alone) {
  auto run = run_over("hearsay", add_task("mine/hearsay", "own"),
                      {"tasks.group_size=1", "policy.licence=openai-answers"});
  expect_no_export(run, {"sft", "rl"}, {"--accept-terms", "openai-answers"});
  expect_refused({"export", run, "--form", "sft", "--out", "never"}, "is unconfirmed");
  std::ifstream in{source_file("configs/licences/openai-answers.json")};
  auto file = json::parse(in);
  file["confirmed"] = "2026-12-01"; // by the operator, after reading the terms
  fs::create_directories(scratch() + "/data/kernelmill/licences");
  write_file("data/kernelmill/licences/openai-answers.json", file.dump());
  program_options own;
  own.environment = {"XDG_DATA_HOME=" + scratch() + "/data"};
  auto asked = kernelmill({"export", run, "--form", "sft", "--out", "never"}, own);
  EXPECT_THAT(asked.err, HasSubstr("--accept-terms openai-answers"));
  auto x = kernelmill({"export", run, "--form", "sft", "--out", "read", "--accept-terms",
                       "openai-answers", "--json"},
                      own);
  ASSERT_EQ(x.code, 0) << x.err;
  EXPECT_GT(x.document()["rows"], 0);
}

TEST(licence_command, a_fork_asks_for_its_own_model_and_for_that_of_its_origin) {
  auto task = add_task("mine/forked", "own");
  auto bound = run_over("origin-bound", task, {"policy.licence=sol-execbench"});
  auto free = run_over("origin-free", task);
  auto fork = [](const std::string& from, const std::string& name, const std::string& licence) {
    auto x = kernelmill(
        {"fork", from + "/g0.e0.t1", "run.dir=runs/" + name, "policy.licence=" + licence});
    EXPECT_EQ(x.code, 0) << x.err;
    return std::pair{"runs/" + name, x.err};
  };
  auto [freed, said] = fork(bound, "freed", "own");
  EXPECT_THAT(said, HasSubstr("licence of answers by")) << "before it starts";
  expect_no_way_out(freed, false);
  fs::rename(scratch() + "/" + bound, scratch() + "/runs/gone");
  expect_no_export(freed, {"rl"});
  expect_no_way_out(fork(freed, "twig", "own").first, false);
  expect_no_way_out(fork(free, "binds", "sol-execbench").first, false);
  auto x = kernelmill({"export", fork(free, "both-free", "own").first, "--form", "trajectories",
                       "--out", "both-free-rows", "--json"});
  ASSERT_EQ(x.code, 0) << x.err;
  EXPECT_GT(x.document()["rows"], 0);
}

TEST(licence_command, what_is_imported_leaves_when_its_importer_names_the_source) {
  auto sol = read_file_json(bound_run() + "/manifest.json")["tasks"][0]["id"];
  ASSERT_EQ(sol, "sol-execbench/softmax");
  auto import = [](const std::string& from, const std::string& name, const std::string& source) {
    std::vector<std::string> words{"import", "kernel-rl-traces", from, "--out", "runs/" + name};
    if (!source.empty()) words.insert(words.end(), {"--source", source});
    auto x = kernelmill(words);
    EXPECT_EQ(x.code, 0) << x.err;
    return "runs/" + name;
  };
  // Whatever a file says of its task, it frees nothing: this one gives itself out for ours.
  std::ifstream in{scratch() + "/" + bound_run() + "/traces.jsonl"};
  std::ostringstream forged;
  forged << in.rdbuf();
  auto text = forged.str();
  for (size_t at = 0; (at = text.find("sol-execbench/softmax", at)) != text.npos;)
    text.replace(at, 21, "native/row_sum");
  write_file("forged.jsonl", text);
  expect_no_way_out(import("forged.jsonl", "forged", ""));
  expect_no_export(import(bound_run() + "/traces.jsonl", "laundered", "own"), forms);
  auto own = import("forged.jsonl", "said", "own");
  auto x = kernelmill({"export", own, "--form", "trajectories", "--governance", "unusable", "--out",
                       "said-rows", "--json"});
  ASSERT_EQ(x.code, 0) << "its importer says so: " << x.err;
  EXPECT_GT(x.document()["rows"], 0);
  EXPECT_EQ(kernelmill({"import", "kernel-rl-traces", "forged.jsonl", "--out", "runs/never",
                        "--source", "no-such"})
                .code,
            2);
}

TEST(licence_command, a_store_under_the_manifest_of_another_run_is_refused) {
  add_task("mine/twin", "compute-eval");
  auto bound = run_over("twin-bound", "mine/twin");
  add_task("mine/twin", "own");
  auto free = run_over("twin-free", "mine/twin");
  EXPECT_EQ(kernelmill({"bundle", "make", free, "--out", "twin.tar.zst"}).code, 0);
  auto root = fs::path{scratch()};
  fs::copy(root / free, root / "runs/liar", fs::copy_options::recursive);
  rewrite_manifest("runs/liar", [](json& x) { x["run"] = "twin-bound"; });
  for (const auto* part : {"lineage", "artifacts"}) {
    fs::remove_all(root / "runs/liar" / part);
    fs::create_directory_symlink(root / bound / part, root / "runs/liar" / part);
  }
  expect_no_way_out("runs/liar", true, "manifest is not of the run");
}

// Terms that were accepted for an index do not go along with its kernels.
TEST(licence_command, kernels_of_a_bound_model_bind_the_runs_that_show_them) {
  auto run =
      run_over("writes", add_task("mine/writes", "own"), {"policy.licence=reference-kernels"});
  expect_refused({"index", "build", "bound-index", "--from", "run=" + run}, "--accept-terms");
  auto built = kernelmill({"index", "build", "bound-index", "--from", "run=" + run,
                           "--accept-terms", "researcher-reciprocity-1.0", "--json"});
  ASSERT_EQ(built.code, 0) << built.err;
  ASSERT_GT(built.document()["kernels"], 0);
  auto shows = run_over("shows", add_task("mine/shows", "own"),
                        {"retrieval.enabled=true", "retrieval.index=bound-index"});
  auto examples = read_file_json(shows + "/manifest.json")["retrieval"]["examples"];
  ASSERT_FALSE(examples.empty());
  EXPECT_EQ(examples[0]["source"], "reference-kernels");
}

// A record of an episode has ids alone: what they begin with names the source.
TEST(licence_command, rows_of_a_corpus_bind_the_runs_that_show_them) {
  std::string rows;
  for (const auto& [source, code] :
       {std::pair{"reference-kernels", "float first(float x) { return x + 1; }"},
        {"sakana-archive", "int second(int* y, int n) { while (n--) *y += n; return *y; }"}})
    rows += json{{"kernel", code}, {"language", "cpp"}, {"source", source}}.dump() + "\n";
  write_file("corpus.ndjson", rows);
  auto built = kernelmill({"index", "build", "corpus-index", "--from", "ndjson=corpus.ndjson",
                           "--accept-terms", "researcher-reciprocity-1.0", "--json"});
  ASSERT_EQ(built.code, 0) << built.err;
  ASSERT_EQ(built.document()["kernels"], 2);
  auto run = run_over("shows-rows", add_task("mine/shows-rows", "own"),
                      {"retrieval.enabled=true", "retrieval.index=corpus-index"});
  auto retrieval = read_file_json(run + "/manifest.json")["retrieval"];
  EXPECT_EQ(retrieval["cards"], json());
  ASSERT_EQ(retrieval["examples"].size(), 2U) << retrieval;
  EXPECT_EQ(retrieval["examples"][0]["id"], "kernel:reference-kernels/*");
  expect_refused({"export", run, "--form", "sft", "--out", "never"},
                 "--accept-terms researcher-reciprocity-1.0");
  auto x = kernelmill({"export", run, "--form", "sft", "--out", "rows-shown", "--accept-terms",
                       "researcher-reciprocity-1.0", "--json"});
  ASSERT_EQ(x.code, 0) << x.err;
  std::set<std::string> named;
  const auto provenance = read_file_json("rows-shown/PROVENANCE.json");
  for (const auto& source : provenance["licences"]["sources"]) named.insert(source["source"]);
  EXPECT_THAT(named, testing::IsSupersetOf({"reference-kernels", "sakana-archive"}));
}

/// Prompts of a run as one text.
std::string prompts_of(const std::string& run) {
  auto x = kernelmill({"export", run, "--form", "kernel-rl", "--out", "-"});
  EXPECT_EQ(x.code, 0) << x.err;
  std::string result;
  std::istringstream lines{x.out};
  for (std::string line; std::getline(lines, line);)
    result += json::parse(line)["prompt_messages"].dump();
  return result;
}

TEST(licence_command, what_is_held_out_is_never_an_example) {
  auto shows = [](const std::string& name, const std::string& index) {
    // Another problem: a task never sees what solves it.
    return prompts_of(run_over(name, add_task("mine/" + name, "own", "train", "softmax"),
                               {"tasks.group_size=1", "retrieval.enabled=true",
                                "retrieval.count=32", "retrieval.index=" + index}));
  };
  auto trained = run_over("trained", add_task("mine/trained", "own"));
  auto held = run_over("held", add_task("mine/held", "own", "dev"));
  for (const auto& [run, index] : {std::pair{trained, "index-trained"}, {held, "index-held"}}) {
    auto built =
        kernelmill({"index", "build", index, "--from", "cards", "--from", "run=" + run, "--json"});
    ASSERT_EQ(built.code, 0) << built.err;
    EXPECT_EQ(built.document()["kernels"] > 0, run == trained) << built.out;
  }
  auto x =
      kernelmill({"index", "build", "again", "--from", "cards", "--from", "run=" + held, "--json"});
  auto left = x.document()["sources"][0]["left_out"];
  ASSERT_EQ(left.size(), 1U) << x.out;
  EXPECT_EQ(left[0]["reason"], "mine/held: its task is held out (dev)");
  EXPECT_GT(left[0]["rows"], 0);
  EXPECT_THAT(shows("asks-trained", "index-trained"), HasSubstr("mine/trained"));
  EXPECT_THAT(shows("asks-held", "index-held"), Not(HasSubstr("mine/held")));
}

TEST(licence_command, of_two_runs_the_free_one_is_exported_and_the_other_is_named) {
  auto own = run_over("free", add_task("mine/free", "own"));
  auto x =
      kernelmill({"export", own, bound_run(), "--form", "trajectories", "--out", "both", "--json"});
  ASSERT_EQ(x.code, 0) << x.err;
  EXPECT_EQ(x.document()["rows"], 2);
  EXPECT_EQ(x.document()["refused"][0]["what"], "the task sol-execbench/softmax");
  EXPECT_THAT(x.document()["refused"][0]["reason"].get<std::string>(),
              HasSubstr("sol-execbench/softmax is of SOL-ExecBench"));
}

} // namespace licence_command_test

} // namespace kernelmill::test
