// Problems and solutions of ComputeEval's form, written here, become tasks and candidates.

#include <filesystem>
#include <fstream>
#include <functional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "launch/import/compute_eval.hpp"
#include "launch/import/suite_solutions.hpp"
#include "launch/import/task_writer.hpp"
#include "messages/base/json_value.hpp"

namespace kernelmill {
namespace compute_eval_test {

namespace fs = std::filesystem;
using json = nlohmann::ordered_json;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

json file(const std::string& path, const std::string& content) {
  return {{"path", path}, {"content", content}};
}

json problem(const std::string& id = "CUDA/7") {
  return {
      {"type", "cuda_cpp"},
      {"schema_version", 2},
      {"task_id", id},
      {"date", "2026-01-02"},
      {"prompt", "Add two vectors.\n\nWrite `add` in `solution.cu`.\n"},
      {"metadata",
       {{"difficulty", "moderate"},
        {"tags", {"add"}},
        {"releases", {"2026-1"}},
        {"do_not_release", false}}},
      {"group", "cuda-kernels"},
      {"context_files", {file("include/add.h", "void add();\n")}},
      {"test_files", {file("test/b.cu", "int b;\n"), file("test/a.cu", "int main() {}\n")}},
      {"source_references", {{"any", nullptr}, {"all", {"cudaMalloc"}}}},
      {"build_command", "nvcc -I include -o test.out solution.cu test/*.cu"},
      {"test_command", "./test.out"},
      {"benchmark_command", "./test.out --perf"},
      {"timing_mode",
       {{"type", "region"}, {"include", {"bench"}}, {"exclude", nullptr}, {"time_type", "kernel"}}},
      {"min_cuda_toolkit", "12.8"},
      {"compute_capability", nullptr},
      {"requires_datacenter_gpu", false},
      {"timeout_seconds", 30.0},
      {"baseline_solution",
       {{"schema_version", 1},
        {"type", "file"},
        {"task_id", id},
        {"files", {file("solution.cu", "void add() {}\n")}}}}};
}

class compute_eval : public testing::Test {
protected:
  void SetUp() override {
    std::string name = testing::TempDir() + "kernelmill-compute-eval-XXXXXX";
    root_ = ::mkdtemp(name.data());
  }
  void TearDown() override { fs::remove_all(root_); }

  std::string write(const std::string& name, const std::string& text) {
    auto path = root_ + "/" + name;
    fs::create_directories(fs::path{path}.parent_path());
    std::ofstream{path} << text;
    return path;
  }
  std::string list(const json& x) { return write("list.jsonl", x.dump() + "\n"); }
  error trouble(const std::string& text) {
    auto x = read_compute_eval_suite(write("bad.jsonl", text));
    return x ? error{fault_class::none, {}, {}, {}} : x.error();
  }
  /// The reason for which a changed problem is left out.
  std::string reason(const std::function<void(json&)>& change) {
    auto x = problem();
    change(x);
    auto all = read_compute_eval_suite(list(x));
    if (!all) return "failed: " + all.error().message;
    return all->refused.empty() ? "" : all->refused.front().reason;
  }
  json document(const suite_task& x) { return json::parse(text(x, "task.json")); }
  static std::string text(const suite_task& x, const std::string& name) {
    for (const auto& one : x.files)
      if (one.name == name) return one.text;
    return "absent";
  }

  std::string root_;
};

TEST_F(compute_eval, a_problem_becomes_a_task_of_the_contract_program) {
  auto all = read_compute_eval_suite(list(problem()), {{"--release", "2026-1"}});
  ASSERT_TRUE(all) << render(all.error());
  ASSERT_EQ(all->tasks.size(), 1u);
  const auto& task = all->tasks.front();
  EXPECT_EQ(task.id, "compute-eval/2026-1/CUDA_7");
  auto x = document(task);
  EXPECT_EQ(x["contract"], "program");
  EXPECT_EQ(x["source"], "compute-eval");
  EXPECT_EQ(x["difficulty"], "medium");
  EXPECT_EQ(x["backends"], json::array({"cuda"}));
  EXPECT_EQ(x["title"], "CUDA/7: Add two vectors.");
  EXPECT_EQ(x["program"], json::parse(R"({"suite_id": "CUDA/7", "group": "cuda-kernels",
                            "build": "nvcc -I include -o test.out solution.cu test/*.cu",
                            "test": "./test.out", "benchmark": "./test.out --perf",
                            "timing": {"mode": "region", "include": ["bench"], "clock": "kernel"},
                            "timeout_s": 30.0, "needs": {"toolkit": "12.8"},
                            "references": {"all": ["cudaMalloc"]}, "answer_file": "solution.cu"})"));
  EXPECT_EQ(text(task, "prompt.md"), problem()["prompt"]);
  EXPECT_EQ(text(task, "context/include/add.h"), "void add();\n");
  EXPECT_EQ(text(task, "tests/test/a.cu"), "int main() {}\n");
  EXPECT_EQ(text(task, "baseline/solution.cu"), "void add() {}\n");
}

TEST_F(compute_eval, the_suites_own_record_comes_back_from_a_task) {
  auto all = read_compute_eval_suite(list(problem()));
  ASSERT_TRUE(all) << render(all.error());
  auto writer = task_writer::open(root_ + "/tasks");
  ASSERT_TRUE(writer);
  ASSERT_TRUE(writer->write(all->tasks[0].id, all->tasks[0].files, false));
  auto record = compute_eval_record(root_ + "/tasks/compute-eval/internal/CUDA_7");
  ASSERT_TRUE(record) << render(record.error());
  // As objects whose keys have no order; the files keep theirs.
  EXPECT_EQ(nlohmann::json::parse(record->dump()), nlohmann::json::parse(problem().dump()));
}

TEST_F(compute_eval, forms_that_the_suite_takes_are_taken) {
  auto program = [&](const std::function<void(json&)>& change) {
    auto x = problem();
    change(x);
    auto all = read_compute_eval_suite(list(x));
    EXPECT_TRUE(all && all->tasks.size() == 1) << x.dump();
    return document(all->tasks.front())["program"];
  };
  EXPECT_EQ(program([](json& x) { x["source_references"] = "f"; })["references"]["all"][0], "f");
  EXPECT_EQ(program([](json& x) {
              x["source_references"] = {"f", "g"};
            })["references"]["all"][1],
            "g");
  EXPECT_EQ(program([](json& x) { x.erase("compute_capability"); })["needs"]["compute_capability"],
            "8.0");
  auto bare = program([](json& x) {
    for (const char* key : {"benchmark_command", "timing_mode", "timeout_seconds",
                            "source_references", "min_cuda_toolkit"})
      x.erase(key);
  });
  EXPECT_FALSE(bare.contains("benchmark") || bare.contains("timing") || bare.contains("needs") ||
               bare.contains("references"));
  EXPECT_EQ(bare["timeout_s"], 60.0);
  EXPECT_EQ(
      program([](json& x) { x["timing_mode"]["time_type"] = "wall_clock"; })["timing"]["clock"],
      "wall");
}

TEST_F(compute_eval, filters_choose) {
  auto other = problem("CUDA/8");
  other["group"] = "cccl";
  other["metadata"]["difficulty"] = "hard";
  auto path = write("two.jsonl", problem().dump() + "\r\n\n" + other.dump() + "\n");
  auto ids = [&](const suite_options& options) {
    std::string result;
    auto all = read_compute_eval_suite(path, options);
    if (all)
      for (const auto& x : all->tasks) result += x.id.substr(x.id.rfind('/') + 1) + " ";
    return result;
  };
  EXPECT_EQ(ids({}), "CUDA_7 CUDA_8 ");
  EXPECT_EQ(ids({{"--group", "cccl"}}), "CUDA_8 ");
  EXPECT_EQ(ids({{"--difficulty", "hard"}}), "CUDA_8 ");
  EXPECT_EQ(ids({{"--problem", "CUDA/7"}}), "CUDA_7 ");
  EXPECT_EQ(ids({{"--problem", "CUDA_7"}}), "CUDA_7 ");
}

TEST_F(compute_eval, a_pack_is_held_to_its_own_metadata) {
  auto line = problem().dump();
  write("pack/problems.jsonl", line + "\n");
  // md5 of another line
  json facts{{"release", "2026-1"},
             {"total_count", 1},
             {"task_id_hashes", {{"CUDA/7", "d41d8cd98f00b204e9800998ecf8427e"}}}};
  write("pack/metadata.json", facts.dump());
  EXPECT_THAT(read_compute_eval_suite(root_ + "/pack").error().message,
              HasSubstr("problems.jsonl, line 1: it differs from its hash"));
  facts["task_id_hashes"] = json::object();
  facts["total_count"] = 2;
  write("pack/metadata.json", facts.dump());
  EXPECT_THAT(read_compute_eval_suite(root_ + "/pack").error().message,
              HasSubstr("holds 1 problems, and its metadata.json says 2"));
  facts["total_count"] = 1;
  write("pack/metadata.json", facts.dump());
  auto all = read_compute_eval_suite(root_ + "/pack");
  ASSERT_TRUE(all) << render(all.error());
  EXPECT_EQ(all->tasks.front().id, "compute-eval/2026-1/CUDA_7");
}

TEST_F(compute_eval, a_folder_with_a_specification_gives_the_same) {
  write("p/problem-spec.yaml",
        "task_id: \"CUDA/7\"\ndate: \"2026-01-02\"\nproblem_type: cuda_cpp\ngroup: cuda-kernels\n"
        "prompt: |\n  Add two vectors.\n\n  Write `add` in `solution.cu`.\n"
        "build_command: \"nvcc -I include -o test.out solution.cu test/*.cu\"\n"
        "test_command: \"./test.out\"\nbenchmark_command: \"./test.out --perf\"\n"
        "timing_mode: {type: region, include: [bench], time_type: kernel}\n"
        "min_cuda_toolkit: 12.8\ntimeout_seconds: 30.0\ncompute_capability: null\n"
        "source_references: {all: [cudaMalloc]}\nmetadata: {difficulty: moderate}\n");
  write("p/context/include/add.h", "void add();\n");
  write("p/test/test/a.cu", "int main() {}\n");
  write("p/test/test/b.cu", "int b;\n");
  write("p/solution/solution.cu", "void add() {}\n");
  auto all = read_compute_eval_suite(root_ + "/p");
  ASSERT_TRUE(all) << render(all.error());
  ASSERT_EQ(all->tasks.size(), 1u) << all->refused.front().reason;
  auto lines = read_compute_eval_suite(list(problem()));
  EXPECT_EQ(text(all->tasks[0], "task.json"), text(lines->tasks[0], "task.json"));
  EXPECT_EQ(text(all->tasks[0], "tests/test/b.cu"), "int b;\n");
  EXPECT_EQ(text(all->tasks[0], "baseline/solution.cu"), "void add() {}\n");
}

TEST_F(compute_eval, what_is_damaged_names_its_line) {
  auto good = problem().dump() + "\n";
  EXPECT_THAT(trouble(good + "{\"type\": \"cuda").message,
              AllOf(HasSubstr("bad.jsonl, line 2"), HasSubstr("no JSON")));
  EXPECT_THAT(trouble("[]\n").message, HasSubstr("line 1: it is no object"));
  EXPECT_THAT(trouble(good + good).message, HasSubstr("line 2: it is the second problem"));
  EXPECT_THAT(trouble("{\"task_id\": \"\xff\"}\n").message, HasSubstr("not UTF-8"));
  EXPECT_THAT(trouble("{\"task_id\": \"../../etc\"}\n").message,
              HasSubstr("no folder may have it"));
  EXPECT_THAT(trouble("{\"task_id\": 7}\n").message, HasSubstr("task_id"));
  EXPECT_THAT(trouble(std::string(100'000, '[') + "\n").message, HasSubstr("nests too deep"));
  EXPECT_THAT(trouble("\n").message, HasSubstr("holds no problem"));
  EXPECT_THAT(read_compute_eval_suite(write("a.tar.gz", "no archive")).error().message,
              HasSubstr("not compressed"));
  EXPECT_EQ(read_compute_eval_suite(root_ + "/nowhere").error().category, "missing_file");
}

TEST_F(compute_eval, what_no_task_can_be_made_of_is_left_out_with_a_reason) {
  EXPECT_EQ(reason([](json& x) { x["type"] = "opencl"; }), "its type is not known");
  EXPECT_EQ(reason([](json& x) { x["schema_version"] = 3; }), "its schema version is not known");
  EXPECT_EQ(reason([](json& x) { x["hooks"] = "rm"; }), "it has a key that is not known");
  EXPECT_EQ(reason([](json& x) { x.erase("test_command"); }), "a key is missing");
  EXPECT_EQ(reason([](json& x) { x["prompt"] = 1e308; }), "a key has the wrong type");
  EXPECT_EQ(reason([](json& x) { x["timeout_seconds"] = 1e308; }), "its timeout is not allowed");
  EXPECT_EQ(reason([](json& x) {
              x["timing_mode"] = {{"type", "stopwatch"}};
            }),
            "its timing mode is not known");
  for (const char* path :
       {"../../.bashrc", "/etc/passwd", "a//b", "a/./b", "", "a\nb", "task.json"})
    EXPECT_EQ(reason([&](json& x) { x["test_files"] = {file(path, "x")}; }),
              "a path is not allowed")
        << path;
  EXPECT_EQ(reason([](json& x) {
              x["test_files"] = {file("a", ""), file("a/b", "")};
            }),
            "a path comes twice");
  EXPECT_EQ(reason([](json& x) { x["context_files"] = {file("test/a.cu", "")}; }),
            "a path comes twice");
  EXPECT_EQ(reason([](json& x) { x["test_files"][0]["content"] = std::string(2 << 20, 'x'); }),
            "it is too large");
  EXPECT_EQ(reason([](json& x) { x["baseline_solution"] = nullptr; }),
            "it has no solution of its own");
  EXPECT_EQ(reason([](json& x) { x["baseline_solution"]["type"] = "patch"; }),
            "its own solution is no list of files");
  EXPECT_EQ(reason([](json& x) {
              x["source_references"] = {{"all", {1, 2}}};
            }),
            "a key has the wrong type");
  EXPECT_EQ(reason([](json& x) { x["build_command"] = std::string(9000, 'x'); }),
            "a command is too long");
  EXPECT_EQ(reason([](json&) {}), "");
}

// -- solutions
// --------------------------------------------------------------------------------------

json solution(const std::string& id = "CUDA/7") {
  return {{"schema_version", 1},
          {"type", "file"},
          {"task_id", id},
          {"files", {file("solution.cu", "void add() {}")}}};
}

TEST_F(compute_eval, solutions_become_candidates) {
  json patch{{"type", "patch"}, {"task_id", "CUDA/7"}, {"patch", "--- a/x\n"}, {"model", "m"}};
  auto path = write("s.jsonl", solution().dump() + "\n" + patch.dump() + "\n");
  auto all = read_compute_eval_solutions(path, {{}, "2026-1"});
  ASSERT_TRUE(all) << render(all.error());
  ASSERT_EQ(all->size(), 2u);
  EXPECT_EQ((*all)[0].task, "compute-eval/2026-1/CUDA_7");
  EXPECT_EQ((*all)[0].source, "// file: solution.cu\nvoid add() {}\n");
  EXPECT_EQ((*all)[0].name, "CUDA/7");
  EXPECT_EQ((*all)[1].name, "CUDA/7#2");
  EXPECT_EQ((*all)[1].source, "--- a/x\n");
  EXPECT_EQ(json::parse((*all)[1].record), patch);
}

TEST_F(compute_eval, solutions_without_a_release_are_for_the_newest_that_is_imported) {
  for (const char* release : {"2025-3", "2026-1", "internal"})
    write("tasks/compute-eval/" + std::string{release} + "/CUDA_7/task.json", "{}");
  write("tasks/compute-eval/internal/CUDA_8/task.json", "{}");
  auto read = [&](const json& x) {
    auto all = read_compute_eval_solutions(write("s.jsonl", x.dump()), {{root_ + "/tasks"}, {}});
    return all ? all->front().task : all.error().message;
  };
  EXPECT_EQ(read(solution()), "compute-eval/2026-1/CUDA_7");
  EXPECT_EQ(read(solution("CUDA/8")), "compute-eval/internal/CUDA_8");
  EXPECT_THAT(read(solution("CUDA/9")), AllOf(HasSubstr("line 1"), HasSubstr("no imported task")));
}

TEST_F(compute_eval, bad_solutions_name_their_line_and_odd_ones_are_refused_alone) {
  auto cause = [&](const std::string& text) {
    auto all = read_compute_eval_solutions(write("s.jsonl", text + "\n"), {{}, "r"});
    return all ? all->front().refused : all.error().message;
  };
  for (const char* text :
       {"{", "[]", "{}", R"({"task_id": "CUDA/7"})", R"({"task_id": "CUDA/7", "type": "file"})",
        R"({"task_id": "CUDA/7", "type": "file", "files": [1]})",
        R"({"task_id": "../7", "type": "file", "files": []})",
        R"({"task_id": "CUDA/7", "type": "patch", "patch": 1})",
        R"({"task_id": "CUDA/7", "type": "file", "files": [], "schema_version": 2})", "\xff"})
    EXPECT_THAT(cause(text), HasSubstr("s.jsonl, line 1")) << text;
  auto odd = solution();
  odd["files"][0]["content"] = "a\n// file: other.cu\nb\n";
  EXPECT_THAT(cause(odd.dump()), HasSubstr("begins a file"));
  EXPECT_EQ(cause(solution().dump()), "");
}

TEST_F(compute_eval, graded_solutions_have_the_keys_of_the_suite) {
  auto task = read_compute_eval_suite(list(problem()));
  auto writer = task_writer::open(root_ + "/tasks");
  ASSERT_TRUE(writer && writer->write(task->tasks[0].id, task->tasks[0].files, false));
  auto all = read_compute_eval_solutions(write("s.jsonl", solution().dump()), {{}, "internal"});
  json verdict{{"correct", true},
               {"outcome", "accepted"},
               {"integrity", {{"clean", true}}},
               {"timing",
                {{"measured", true},
                 {"candidate_ms", 0.5},
                 {"reference_ms", 1.0},
                 {"speedup", {{"estimate", 2.0}}}}},
               {"output", "4 passed"}};
  auto folder = root_ + "/tasks/compute-eval/internal/CUDA_7";
  auto grade = [&](const json* x) {
    std::vector<graded_candidate> graded{{&all->front(), folder, x, "built"}};
    return json::parse(compute_eval_results({}, graded).value_or("null"));
  };
  auto line = grade(&verdict);
  EXPECT_EQ(line["task_id"], "CUDA/7");
  EXPECT_EQ(line["passed"], true);
  EXPECT_EQ(line["skipped"], false);
  EXPECT_EQ(line["speedup"], 2.0);
  EXPECT_EQ(line["solution"], solution());
  EXPECT_EQ(line["problem"]["test_files"], problem()["test_files"]);
  EXPECT_EQ(line["build_output"], "built");
  EXPECT_EQ(line["test_output"], "4 passed");
  verdict["integrity"]["clean"] = false;
  EXPECT_EQ(grade(&verdict)["passed"], false);
  EXPECT_EQ(grade(nullptr)["passed"], false);
  json unmet{{"correct", false}, {"error", {{"category", "needs_unmet"}, {"message", "CUDA 99"}}}};
  line = grade(&unmet);
  EXPECT_EQ(line["skipped"], true);
  EXPECT_EQ(line["passed"], false);
  EXPECT_EQ(line["test_output"], "CUDA 99");
}

} // namespace compute_eval_test
} // namespace kernelmill
