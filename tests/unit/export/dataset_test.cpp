#include "messages/base/json_value.hpp"
#include "storage/export/dataset.hpp"

#include <filesystem>
#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zstd.h>

#include "material.hpp"
#include "messages/base/digest.hpp"
#include "storage/export/split.hpp"
#include "tests/unit/storage/fixtures.hpp"

namespace kernelmill::exports {
namespace dataset_test {

using kernelmill::fixtures::temporary_folder;
using kernelmill::fixtures::turn_options;
using row_fixtures::text_of_file;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
namespace fs = std::filesystem;

constexpr double nan = std::numeric_limits<double>::quiet_NaN();

/// A run with one group of a task of each split.
class written_dataset : public ::testing::Test {
protected:
  written_dataset()
      : lineage_(*store::open({.directory = folder_ / "lineage", .durable = false})),
        artifacts_(folder_ / "artifacts") {
    add_group(0, {.task = "native/first"});
    add_group(1, {.task = "native/second"});
    from_.run = "demo";
    from_.lineage = &lineage_;
    from_.artifacts = &artifacts_;
    from_.splits = {{"native/first", "train"}, {"native/second", "dev"}};
    from_.facts = {{"state", "finished"}};
    from_.may = everything();
    what_.directory = folder_ / "out";
    what_.made_by = {{"program", "test"}};
  }

  static permits everything() {
    permits x;
    permit open;
    open.allowed = true;
    open.source = "kernelmill";
    open.licence = "Apache-2.0";
    for (const auto* task : {"native/first", "native/second", "native/third"}) x.tasks[task] = open;
    x.cards = x.kernels = open;
    return x;
  }

  /// Two members that are compared, and one whose last turn was lost.
  void add_group(uint32_t number, turn_options with) {
    using namespace kernelmill::fixtures;
    auto good = with, bad = with, gone = with;
    good.reward = 1.5;
    good.terminal = true;
    bad.outcome = wire::Outcome::REJECTED;
    bad.reward = 0;
    bad.text = "<KERNEL>wrong</KERNEL>";
    gone.outcome = wire::Outcome::INFRASTRUCTURE;
    ASSERT_TRUE(
        lineage_.commit({make_turn(number, 0, 0, bad), make_turn(number, 0, 1, good),
                         make_episode(number, 0, {0, 1.5}, with), make_turn(number, 1, 0, good),
                         make_episode(number, 1, {1.5}, with), make_turn(number, 2, 0, gone),
                         make_episode(number, 2, {0}, gone, wire::EpisodeKind::UNUSABLE),
                         make_group(number, {-0.5, 0.5, nan}, with)}));
  }

  report write() {
    auto done = write_dataset({from_}, what_);
    if (!done) throw std::runtime_error(render(done.error()));
    return *done;
  }

  void expect_nothing_leaves(const std::string& said) {
    auto done = write_dataset({from_}, what_);
    ASSERT_FALSE(done);
    EXPECT_EQ(done.error().category, "licence_forbids");
    EXPECT_THAT(done.error().message, HasSubstr(said));
  }

  std::string read(const std::string& name) { return text_of_file(what_.directory + "/" + name); }
  nlohmann::json provenance_file() { return nlohmann::json::parse(read("PROVENANCE.json")); }

  temporary_folder folder_;
  store lineage_;
  artifact_store artifacts_;
  source from_;
  request what_;
};

TEST_F(written_dataset, has_a_file_a_split_a_card_and_its_provenance) {
  auto done = write();
  EXPECT_EQ(done.rows, 4u);
  ASSERT_EQ(done.files.size(), 2u);
  EXPECT_EQ(done.files[0].path, "data/train.jsonl");
  EXPECT_EQ(done.files[0].sha256, sha256_hex(read("data/train.jsonl")));
  auto row =
      nlohmann::json::parse(read("data/dev.jsonl").substr(0, read("data/dev.jsonl").find('\n')));
  EXPECT_EQ(row["task"], "native/second");
  EXPECT_THAT(read("README.md"), HasSubstr("  - split: dev\n    path: data/dev.jsonl\n"));
  auto x = provenance_file();
  EXPECT_EQ(x["form"], "sft");
  EXPECT_EQ(x["row_schema"], "urn:kernelmill:schema:export-sft:1");
  EXPECT_EQ(x["rows"], 4);
  EXPECT_EQ(x["tasks"][1]["split_by"], "task");
  EXPECT_EQ(x["files"][0]["sha256"], done.files[0].sha256);
  EXPECT_EQ(x["left_out"]["episodes_of_other_governance"], 2);
  EXPECT_EQ(x["models"], nlohmann::json({"scripted"}));
}

TEST_F(written_dataset, has_calls_of_tools_and_counts_their_kinds) {
  using namespace kernelmill::fixtures;
  turn_options good{.task = "native/first", .reward = 1.5, .terminal = true};
  auto looked =
      make_tool_turn(2, 0, 0, "c1", "c0", "int z;", {.task = "native/first", .text = "I look."});
  ASSERT_TRUE(lineage_.commit({looked, make_turn(2, 0, 1, good), make_episode(2, 0, {0, 1.5}, good),
                               make_group(2, {0.5}, good)}));
  write();
  auto rows = read("data/train.jsonl");
  auto last = rows.substr(rows.rfind('\n', rows.size() - 2) + 1);
  auto messages = nlohmann::json::parse(last)["messages"];
  ASSERT_EQ(messages.size(), 6u) << messages; // each turn of the fixtures has a prompt
  EXPECT_EQ(messages[1]["tool_calls"][1]["function"]["name"], "patch_candidate");
  EXPECT_EQ(messages[3]["tool_call_id"], "call-2");
  EXPECT_EQ(messages[3]["content"], "c1 is active\nnext: build");
  auto x = provenance_file();
  EXPECT_EQ(x["transitions"]["patch_applied"], 1);
  EXPECT_EQ(x["transitions"]["inspect_only"], 1);
  EXPECT_EQ(x["patch_kinds"], nlohmann::json({{"perf_transform", 1}}));
  EXPECT_THAT(read("README.md"), HasSubstr("| `perf_transform` | 1 |"));
  what_.force = true;
  what_.wanted.patch_bearing = true;
  what_.wanted.governance = {"usable_positive_sft"};
  EXPECT_EQ(write().rows, 1u) << "the turn that patched";
}

TEST_F(written_dataset, says_which_runs_were_restored_or_imported) {
  write();
  EXPECT_THAT(read("README.md"), Not(HasSubstr("restored")));
  from_.facts["restored"] = {{{"episodes", 2u}, {"turns", 4u}}, {{"episodes", 1u}, {"turns", 3u}}};
  what_.force = true;
  write();
  EXPECT_THAT(read("README.md"),
              HasSubstr("3 episodes with 7 turns of `demo` were restored from its traces.jsonl"));
  EXPECT_EQ(provenance_file()["runs"][0]["restored"].size(), 2u);
  from_.facts["imported"] = {{"system", "gpu_rl"}};
  write();
  EXPECT_THAT(read("README.md"), HasSubstr("The rewards of `demo` were not measured here: the run "
                                           "was imported from gpu_rl."));
}

TEST_F(written_dataset, is_the_same_bytes_each_time) {
  write();
  auto first = read("data/train.jsonl") + read("README.md") + read("PROVENANCE.json");
  what_.force = true;
  write();
  EXPECT_EQ(first, read("data/train.jsonl") + read("README.md") + read("PROVENANCE.json"));
}

TEST_F(written_dataset, overwrites_nothing_without_force) {
  write();
  auto again = write_dataset({from_}, what_);
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().category, "directory_not_empty");
  EXPECT_THAT(again.error().hint, HasSubstr("--force"));
}

TEST_F(written_dataset, with_force_leaves_no_file_of_an_earlier_export_and_touches_no_other) {
  write();
  std::ofstream{what_.directory + "/notes.txt"} << "mine";
  what_.force = what_.zstd = true;
  what_.wanted.splits = {"train"};
  write();
  EXPECT_FALSE(fs::exists(what_.directory + "/data/train.jsonl"));
  EXPECT_FALSE(fs::exists(what_.directory + "/data/dev.jsonl"));
  EXPECT_TRUE(fs::exists(what_.directory + "/data/train.jsonl.zst"));
  EXPECT_EQ(read("notes.txt"), "mine");
}

TEST_F(written_dataset, packs_the_same_lines) {
  write();
  auto plain = read("data/train.jsonl");
  what_.directory = folder_ / "packed";
  what_.zstd = true;
  auto done = write();
  auto packed = read("data/train.jsonl.zst");
  EXPECT_EQ(done.files[0].sha256, sha256_hex(packed));
  std::string unpacked(plain.size() + 100, '\0');
  auto size = ZSTD_decompress(unpacked.data(), unpacked.size(), packed.data(), packed.size());
  ASSERT_FALSE(ZSTD_isError(size)) << ZSTD_getErrorName(size);
  EXPECT_EQ(unpacked.substr(0, size), plain);
}

TEST_F(written_dataset, that_fails_leaves_nothing) {
  auto lost = turn_options{.task = "native/third"};
  auto record = build<wire::Record>([&](wire::Record::Builder x) {
    auto made = kernelmill::fixtures::make_turn(2, 0, 0, lost);
    auto view = made.open();
    x.setTurn(view->getTurn());
    auto ref = x.getTurn().getCandidate().initArtifact();
    ref.setSha256(std::string(64, 'a'));
  });
  ASSERT_TRUE(lineage_.commit({record, kernelmill::fixtures::make_episode(2, 0, {1}, lost)}));
  auto done = write_dataset({from_}, what_);
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().category, "not_found");
  EXPECT_FALSE(fs::exists(what_.directory)) << "no temporary file either";
}

TEST_F(written_dataset, streams_all_splits_when_there_is_no_folder) {
  std::string text;
  what_.directory.clear();
  what_.stream = [&](std::string_view bytes) -> expected<void> {
    text += bytes;
    return {};
  };
  auto done = write();
  EXPECT_EQ(done.rows, 4u);
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 4);
  EXPECT_TRUE(done.files.at(0).path.empty());
}

TEST_F(written_dataset, ends_when_its_reader_has_gone) {
  what_.directory.clear();
  what_.stream = [](std::string_view) { return infrastructure_error("io_error", "gone"); };
  auto done = write_dataset({from_}, what_);
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().category, "io_error");
}

TEST_F(written_dataset, has_returns_only_where_no_reward_is_missing) {
  what_.as = form::rl;
  write();
  auto x = nlohmann::json::parse(read("data/train.jsonl"));
  EXPECT_EQ(x["episodes"][0]["turns"][0]["return"], 0.0);
  EXPECT_EQ(x["episodes"][0]["advantage"], -0.5);
  EXPECT_TRUE(x["episodes"][2]["turns"][0]["return"].is_null()) << "the record says 0";
  EXPECT_TRUE(x["episodes"][2]["advantage"].is_null());
}

TEST_F(written_dataset, of_a_task_without_a_split_goes_by_its_id) {
  from_.splits.clear();
  write();
  EXPECT_EQ(provenance_file()["tasks"][0]["split_by"], "hash");
  EXPECT_EQ(provenance_file()["tasks"][0]["split"], split_of("native/first", ""));
}

// -- splits over several runs -------------------------------------------------------------------

TEST_F(written_dataset, keeps_a_task_in_dev_when_one_of_its_runs_says_so) {
  auto later = from_;
  later.run = "other"; // the same store has no such run: only what is said of it counts
  later.splits["native/first"] = "dev";
  auto done = *write_dataset({from_, later}, what_);
  ASSERT_EQ(done.files.size(), 1u);
  EXPECT_EQ(done.files[0].split, "dev");
  EXPECT_EQ(done.tasks["native/first"].split, "dev");
  auto conflict = provenance_file()["split_conflicts"][0];
  EXPECT_EQ(conflict["task"], "native/first");
  EXPECT_EQ(conflict["taken"], "dev");
  EXPECT_EQ(conflict["by_run"], nlohmann::json({{"demo", "train"}, {"other", "dev"}}));
  EXPECT_THAT(read("README.md"), HasSubstr("differ on the split of `native/first`"));
}

TEST_F(written_dataset, takes_the_hash_for_what_a_run_without_a_split_says) {
  std::string task = "native/second";
  for (int n = 0; split_of(task, "") != "dev"; ++n) task = "native/x" + std::to_string(n);
  auto older = from_;
  older.run = "older";
  older.splits.clear();
  older.may.tasks[task] = older.may.tasks["native/first"];
  from_.splits = {{task, "train"}, {"native/first", "train"}, {"native/second", "train"}};
  from_.may.tasks[task] = older.may.tasks[task];
  auto done = *write_dataset({from_, older}, what_);
  EXPECT_EQ(done.split_conflicts.at(task).taken, "dev");
}

// -- licences -----------------------------------------------------------------------------------

permit forbidden(const std::string& source) {
  permit x;
  x.source = source;
  x.licence = "Evaluation";
  x.reason = "its task is of " + source + ", which must not be trained on";
  x.hint = "leave its tasks out";
  return x;
}

/// Every way to ask for rows: all forms, packed or not, to a folder or a stream.
template <class Visit>
void for_each_way(request what, std::string& streamed, const Visit& visit) {
  auto folder = what.directory;
  for (auto as : all_forms)
    for (bool zstd : {false, true})
      for (bool stream : {false, true}) {
        what.as = as;
        what.zstd = zstd;
        what.directory =
            stream ? std::string{} : folder + "/" + std::string{to_string(as)} + (zstd ? "z" : "");
        streamed.clear();
        what.stream = [&](std::string_view bytes) -> expected<void> {
          streamed += bytes;
          return {};
        };
        visit(what);
      }
}

TEST_F(written_dataset, of_forbidden_tasks_is_refused_in_every_form) {
  for (auto& [task, may] : from_.may.tasks) may = forbidden("bound");
  std::string streamed;
  for_each_way(what_, streamed, [&](const request& what) {
    auto done = write_dataset({from_}, what);
    ASSERT_FALSE(done) << to_string(what.as);
    EXPECT_EQ(done.error().category, "licence_forbids");
    EXPECT_THAT(done.error().message, HasSubstr("must not be trained on"));
    EXPECT_TRUE(streamed.empty());
    EXPECT_FALSE(fs::exists(what.directory)) << "nothing is left behind";
  });
}

TEST_F(written_dataset, leaves_a_forbidden_task_out_in_every_form_and_says_why) {
  from_.may.tasks["native/second"] = forbidden("bound");
  std::string streamed;
  for_each_way(what_, streamed, [&](const request& what) {
    auto done = write_dataset({from_}, what);
    ASSERT_TRUE(done) << render(done.error());
    EXPECT_EQ(done->without["groups_forbidden_by_licence"], 1u);
    EXPECT_EQ(done->refused["native/second"].groups, 1u);
    EXPECT_FALSE(done->tasks.contains("native/second"));
    if (what.directory.empty() || what.zstd) return;
    EXPECT_FALSE(fs::exists(what.directory + "/data/dev.jsonl"));
    auto said = text_of_file(what.directory + "/README.md");
    EXPECT_THAT(said, HasSubstr("must not be trained on"));
    auto x = nlohmann::json::parse(text_of_file(what.directory + "/PROVENANCE.json"));
    EXPECT_EQ(x["licences"]["refused"][0]["source"], "bound");
  });
}

TEST_F(written_dataset, refuses_a_task_without_a_decision) {
  from_.may.tasks.erase("native/second");
  auto done = write();
  EXPECT_EQ(done.without["groups_forbidden_by_licence"], 1u);
  from_.may.tasks = {{"native/third", forbidden("bound")}};
  EXPECT_FALSE(write_dataset({from_}, what_));
}

TEST_F(written_dataset, knows_a_forbidden_task_under_another_name_by_its_digest) {
  auto other = from_;
  other.run = "other";
  other.may.tasks = {{"bound/original", forbidden("bound")}};
  other.may.tasks["bound/original"].digest = "d1";
  from_.may.tasks["native/first"].digest = "d1";
  auto done = *write_dataset({from_, other}, what_);
  EXPECT_FALSE(done.tasks.contains("native/first"));
  EXPECT_EQ(done.refused["native/first"].may.source, "bound");
  EXPECT_TRUE(done.tasks.contains("native/second"));
}

TEST_F(written_dataset, leaves_out_groups_whose_prompts_show_a_forbidden_example) {
  add_group(2, {.task = "native/third", .examples = {"card:sums", "kernel:bad"}});
  from_.may.examples["kernel:bad"] = forbidden("bound");
  auto done = write();
  EXPECT_EQ(done.without["groups_with_forbidden_examples"], 1u);
  EXPECT_EQ(done.refused["kernel:bad"].what, "the example kernel:bad");
  EXPECT_FALSE(done.tasks.contains("native/third"));
  from_.may.examples.clear();
  what_.force = true;
  EXPECT_TRUE(write().tasks.contains("native/third"));
}

TEST_F(written_dataset, leaves_a_group_with_a_forbidden_example_out_in_every_form) {
  add_group(2, {.task = "native/third", .examples = {"card:sums", "kernel:bad"}});
  from_.may.examples["kernel:bad"] = forbidden("bound");
  from_.splits["native/third"] = "train";
  std::string streamed;
  for_each_way(what_, streamed, [&](const request& what) {
    auto done = write_dataset({from_}, what);
    ASSERT_TRUE(done) << render(done.error());
    EXPECT_EQ(done->without["groups_with_forbidden_examples"], 1u) << to_string(what.as);
    EXPECT_EQ(done->refused["kernel:bad"].groups, 1u);
    EXPECT_FALSE(done->tasks.contains("native/third"));
    EXPECT_TRUE(done->tasks.contains("native/first"));
    EXPECT_EQ(streamed.find("native/third"), std::string::npos);
  });
}

TEST_F(written_dataset, leaves_out_answers_of_a_forbidden_model) {
  from_.may.models = {{"other-*", forbidden("bound")}};
  EXPECT_EQ(write().rows, 4u);
  what_.force = true;
  from_.may.models = {{"SCRIPT*", forbidden("bound")}};
  expect_nothing_leaves("answers of the model scripted");
  from_.may.models.clear();
  from_.may.answers = forbidden("bound"); // policy.licence names a source
  expect_nothing_leaves("answers of the model scripted");
}

// A fork's first turns are answers of another policy than the rest.
TEST_F(written_dataset, of_a_fork_asks_for_both_policies) {
  from_.shared_turns = from_.may.shared_turns = 1;
  EXPECT_GT(write().rows, 0u);
  what_.force = true;
  from_.may.shared_answers = forbidden("of the origin");
  expect_nothing_leaves("of the origin");
  from_.may.shared_answers.reset();
  from_.may.answers = forbidden("of the fork");
  expect_nothing_leaves("of the fork");
  from_.may.shared_turns = 2; // of which no turn is its own
  EXPECT_GT(write().groups, 0u);
}

TEST_F(written_dataset, of_which_licences_keep_everything_in_is_no_dataset) {
  from_.may.models = {{"scripted", forbidden("bound")}};
  std::string streamed;
  for_each_way(what_, streamed, [&](const request& what) {
    auto done = write_dataset({from_}, what);
    ASSERT_FALSE(done) << to_string(what.as);
    EXPECT_EQ(done.error().category, "licence_forbids");
    EXPECT_THAT(done.error().message, HasSubstr("keep all of 2 groups in"));
    EXPECT_TRUE(streamed.empty());
    EXPECT_FALSE(fs::exists(what.directory)) << "nothing is left behind";
  });
}

TEST_F(written_dataset, names_the_model_s_source_where_one_speaks_of_it) {
  from_.may.answers = everything().cards;
  from_.may.answers->source = "their-model";
  from_.may.answers->confirmed = false;
  write();
  EXPECT_THAT(read("LICENSES"), HasSubstr("their-model\n  licence: Apache-2.0\n  not confirmed"));
}

TEST_F(written_dataset, names_licences_in_its_card_and_in_a_file) {
  from_.facts["model_licence"] = "Llama 3";
  what_.accepted_terms = {"asks-1.0"};
  write();
  EXPECT_THAT(read("README.md"), HasSubstr("license: other\nlicense_name: see-licenses\n"));
  auto said = read("LICENSES");
  for (const auto* part :
       {"kernelmill\n  licence: Apache-2.0\n", "tasks: native/first, native/second",
        "of demo says: Llama 3", "accepted for this export: asks-1.0"})
    EXPECT_THAT(said, HasSubstr(part));
  auto x = provenance_file()["licences"];
  EXPECT_EQ(x["sources"][0]["licence"], "Apache-2.0");
  EXPECT_EQ(x["accepted_terms"], nlohmann::json({"asks-1.0"}));
  from_.facts.erase("model_licence");
  what_.force = true;
  write();
  EXPECT_THAT(read("README.md"), HasSubstr("license: apache-2.0\n"));
}

// -- contamination ------------------------------------------------------------------------------

/// Codes are alike when they are equal but for spaces.
class plain_memory final : public code_memory {
public:
  void remember(const std::string& code, const std::string& name) override {
    known_.emplace(without_spaces(code), name);
  }
  std::optional<std::string> find(const std::string& code) override {
    auto i = known_.find(without_spaces(code));
    return i == known_.end() ? std::nullopt : std::optional{i->second};
  }
  bool similar(const std::string& a, const std::string& b) override {
    return without_spaces(a) == without_spaces(b);
  }
  uint64_t remembered() const override { return known_.size(); }
  uint64_t dropped() const override { return 0; }

private:
  static std::string without_spaces(std::string x) {
    std::erase_if(x, [](char c) { return c == ' ' || c == '\n'; });
    return x;
  }
  std::map<std::string, std::string> known_;
};

TEST_F(written_dataset, reports_code_of_train_that_stands_in_dev) {
  what_.contamination.memory = std::make_shared<plain_memory>();
  auto done = write();
  EXPECT_EQ(done.rows, 4u) << "it is reported, not dropped";
  EXPECT_EQ(done.contamination.train_like_dev, 4u) << "all turns of the fixture have one code";
  auto x = provenance_file()["contamination"];
  EXPECT_EQ(x["then"], "report");
  EXPECT_EQ(x["dev_codes"], 1);
  EXPECT_EQ(x["first"][0]["code"], "demo/g0.e0.t0");
  EXPECT_EQ(x["first"][0]["like"], "demo/g1.e0.t1") << "the first accepted one of dev";
  EXPECT_THAT(read("README.md"), HasSubstr("4 nearly repeat one"));
}

TEST_F(written_dataset, drops_what_is_contaminated_and_keeps_what_is_held_out) {
  what_.contamination = {std::make_shared<plain_memory>(), on_contamination::drop};
  auto done = write();
  ASSERT_EQ(done.files.size(), 1u);
  EXPECT_EQ(done.files[0].split, "dev");
  EXPECT_EQ(done.without["contaminated_groups"], 1u);
}

TEST_F(written_dataset, refuses_contamination_before_anything_is_written) {
  what_.contamination = {std::make_shared<plain_memory>(), on_contamination::refuse};
  auto done = write_dataset({from_}, what_);
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().category, "contaminated");
  EXPECT_THAT(done.error().message, HasSubstr("demo/g0.e0.t0, like demo/g1.e0.t1"));
  EXPECT_FALSE(fs::exists(what_.directory));
}

TEST_F(written_dataset, finds_answers_that_repeat_a_kernel_of_their_prompt) {
  turn_options with{.task = "native/third", .examples = {"kernel:abc"}};
  with.prompt = "Do it.\n\n### Verified kernel for native/x\n```cpp\nint  x;\n```\n";
  add_group(2, with);
  from_.splits["native/third"] = "train";
  from_.splits["native/second"] = "train"; // nothing is held out
  what_.contamination.memory = std::make_shared<plain_memory>();
  auto done = write();
  EXPECT_EQ(done.contamination.train_like_dev, 0u);
  EXPECT_EQ(done.contamination.answers_like_example, 4u);
}

TEST(example_kernels, are_the_blocks_behind_their_titles) {
  auto found = example_kernels("```cpp\nstarter\n```\n### Verified kernel for a\n````cpp\nint a;\n"
                               "```\nint b;\n````\n### A card\n```\nadvice\n```\n"
                               "### Verified kernel for b\n```\nint c;\n```\n");
  EXPECT_THAT(found, ElementsAre("int a;\n```\nint b;", "int c;"));
}

TEST(example_kernels, stand_behind_what_they_compute) {
  auto found = example_kernels(
      "### Row sums\nSpeedup: not measured here. Origin: a run.\nWhat is computed:\n"
      "```python\n### Of\nclass Model: pass\n```\n(The rest is left out.)\nThe kernel:\n"
      "````python\n### Its own\n```\n````\n### Sums\nSpeedup: 2.00 or more. Origin: a run.\n"
      "```cpp\nint a;\n```\n## Notes\n### A card\n```\nadvice\n```\n");
  EXPECT_THAT(found, ElementsAre("### Its own\n```", "int a;"));
}

} // namespace dataset_test
} // namespace kernelmill::exports
