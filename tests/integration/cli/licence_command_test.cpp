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

namespace {

using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
namespace fs = std::filesystem;

const std::vector<std::string> forms = {
    "sft",    "trajectories", "preference", "rl",     "trl",         "verl", "prime-rl",    "skyrl",
    "tinker", "nemo-gym",     "megatron",   "harbor", "kernelbench", "sol",  "harbor-tasks"};

json read_file_json(const std::string& name) {
  std::ifstream in{scratch() + "/" + name};
  return json::parse(in, nullptr, false);
}

/// A copy of a task under another id; `source` may be empty.
std::string add_task(const std::string& id, const std::string& source) {
  auto folder = scratch() + "/tasks/" + id;
  fs::create_directories(folder);
  fs::copy(source_file("configs/tasks/native/row_sum"), folder,
           fs::copy_options::overwrite_existing | fs::copy_options::recursive);
  std::ifstream in{folder + "/task.json"};
  auto document = json::parse(in, nullptr, true, true);
  document["id"] = id;
  document["split"] = "train";
  if (!source.empty()) document["source"] = source;
  write_file("tasks/" + id + "/task.json", document.dump());
  return id;
}

/// A run over one task: at first wrong, then right.
std::string run_over(const std::string& name, const std::string& task,
                     std::vector<std::string> more = {}) {
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
                                 "run.dir=runs/" + name,
                                 "--json"};
  words.insert(words.end(), more.begin(), more.end());
  auto ran = kernelmill(words);
  EXPECT_EQ(ran.code, 0) << ran.err;
  return "runs/" + name;
}

const std::string& bound_run() {
  static const auto name = run_over("bound", add_task("sol-execbench/softmax", ""));
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

TEST(licence_command, a_bound_run_says_so_before_it_starts_and_is_exported_in_no_form) {
  auto manifest = read_file_json(bound_run() + "/manifest.json");
  EXPECT_EQ(manifest["tasks"][0]["source"], "sol-execbench");
  EXPECT_EQ(manifest["tasks"][0]["licence"], "LicenseRef-NVIDIA-Evaluation");
  auto again = kernelmill({"resume", bound_run(), "--json"});
  ASSERT_EQ(again.code, 0) << again.err;
  EXPECT_EQ(again.document()["licences"][0]["train"], false);
  EXPECT_EQ(again.document()["licences"][0]["evaluate"], true);
  EXPECT_THAT(kernelmill({"resume", bound_run()}).err,
              HasSubstr("exports for training will be refused"));
  expect_no_export(bound_run(), forms);
  expect_no_export(bound_run(), {"sft", "kernelbench"},
                   {"--accept-terms", "researcher-reciprocity-1.0,kernelbook-rows"});
  expect_no_export(bound_run(), {"trl"}, {"--zstd"});
  expect_refused({"export", bound_run(), "--form", "verl", "--split", "train", "--out", "-"});
  expect_refused({"export", bound_run(), "--form", "trajectories", "--follow", "--out", "-"});
  expect_refused({"bundle", "make", bound_run(), "--out", "never.tar.zst"});
  EXPECT_FALSE(fs::exists(scratch() + "/never.tar.zst"));
}

TEST(licence_command, new_verdicts_forks_and_indexes_lift_nothing) {
  ASSERT_EQ(kernelmill({"rescore", bound_run(), "--reward", "sparse", "--name", "other"}).code, 0);
  expect_no_export(bound_run(), {"rl", "sft"}, {"--verdict", "other"});
  auto fork = kernelmill({"fork", bound_run() + "/g0.e0.t1", "run.dir=runs/branch", "--json"});
  ASSERT_EQ(fork.code, 0) << fork.err;
  expect_no_export("runs/branch", {"rl", "trajectories"});
  expect_refused({"index", "build", "never-index", "--kernels", bound_run()});
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
  manifest["tasks"][0]["id"] = "somebody/softmax"; // the records still have the other id
  write_file("runs/older/manifest.json", manifest.dump());
  expect_refused({"export", "runs/older", "--form", "rl", "--out", "never"},
                 "nothing says whether");
}

TEST(licence_command, a_source_stays_with_a_task_of_another_name) {
  auto run = run_over("renamed", add_task("mine/softmax", "compute-eval"));
  expect_no_export(run, {"rl", "harbor"});
}

TEST(licence_command, an_unknown_source_is_refused_and_the_key_is_named) {
  auto run = run_over("nobody", add_task("mine/unknown", ""));
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
  for (const auto& x : provenance["sources"])
    EXPECT_EQ(x["terms"],
              x["source"] == "reference-kernels" ? json("researcher-reciprocity-1.0") : json());
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
  for (const auto& form : forms) {
    if (form == "kernelbench") continue; // figures without a text
    fs::remove_all(scratch() + "/empty");
    auto x = kernelmill({"export", run, "--form", form, "--out", "empty", "--json"});
    ASSERT_EQ(x.code, 0) << form << x.err;
    auto refused = x.document()["refused"];
    ASSERT_EQ(refused.size(), 1u) << form << x.out;
    EXPECT_THAT(refused[0]["what"].get<std::string>(), HasSubstr(what)) << form;
    EXPECT_THAT(refused[0]["reason"].get<std::string>(), HasSubstr("must not")) << form;
    for (const auto& file : fs::recursive_directory_iterator{scratch() + "/empty"})
      EXPECT_TRUE(file.is_directory() || file.path().extension() == ".md" ||
                  file.path().filename() == "LICENSES" ||
                  file.path().filename() == "PROVENANCE.json")
          << form << " wrote " << file.path();
  }
  auto rows = kernelmill({"export", run, "--form", "trajectories", "--follow", "--out", "-"});
  EXPECT_EQ(rows.out, "") << rows.err;
  expect_refused({"bundle", "make", run, "--out", "never.tar.zst"});
  expect_refused({"bundle", "make", run + "/g0.e0.t0", "--out", "never.tar.zst"});
  EXPECT_FALSE(fs::exists(scratch() + "/never.tar.zst"));
  expect_refused({"index", "build", "never-index", "--kernels", run});
}

TEST(licence_command, a_bound_example_in_a_prompt_keeps_its_group_from_every_way_out) {
  auto run = run_over("shown", add_task("mine/shown", "own"), {"tasks.group_size=1"});
  EXPECT_EQ(kernelmill({"bundle", "make", run, "--out", "shown.tar.zst"}).code, 0);
  rewrite_manifest(run, [](json& x) { x["retrieval"]["cards"] = "compute-eval"; });
  expect_nothing_leaves(run, "the example card:");
}

TEST(licence_command, answers_of_a_bound_model_leave_nowhere_until_its_terms_are_accepted) {
  auto run = run_over("answered", add_task("mine/answered", "own"),
                      {"tasks.group_size=1", "policy.licence=openai-answers"});
  EXPECT_THAT(kernelmill({"resume", run}).err, HasSubstr("licence of answers by"));
  auto asked = kernelmill({"export", run, "--form", "sft", "--out", "no-answers"});
  EXPECT_THAT(asked.err, AllOf(HasSubstr("left out 1 groups with answers of the model m"),
                               HasSubstr("--accept-terms")));
  auto x = kernelmill({"export", run, "--form", "sft", "--out", "answers", "--accept-terms",
                       "openai-answers", "--json"});
  ASSERT_EQ(x.code, 0) << x.err;
  EXPECT_GT(x.document()["rows"], 0);
  rewrite_manifest(run, [](json& x) { x["policy"]["licence"] = "sol-execbench"; });
  expect_nothing_leaves(run, "answers of the model m");
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

} // namespace

} // namespace kernelmill::test
