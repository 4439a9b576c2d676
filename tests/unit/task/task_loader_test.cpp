#include <filesystem>
#include <fstream>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gpu/task/task.hpp"
#include "messages/base/json_value.hpp"

using namespace kernelmill;
using nlohmann::json;
using testing::HasSubstr;

namespace task_loader_test {

json row_sum() {
  return json::parse(R"({
    "schema_version": 1, "id": "native/row_sum", "title": "Sum of each row", "verb": "optimize",
    "operator_family": "reduction",
    "arguments": [
      {"name": "x", "role": "input", "type": "f32", "shape": ["rows", "cols"]},
      {"name": "y", "role": "output", "type": "f32", "shape": ["rows"]},
      {"name": "rows", "role": "scalar", "type": "i32"},
      {"name": "cols", "role": "scalar", "type": "i32"}],
    "cases": [{"name": "small", "scalars": {"rows": 4, "cols": 8}},
              {"name": "odd", "hidden": true, "scalars": {"rows": 3, "cols": 7}, "fills": {"x": "sparse"}}],
    "timed": {"scalars": {"rows": 64, "cols": 256}},
    "bytes": "4*rows*cols + 4*rows", "flops": "rows*cols"})");
}

// The same for a CPU and for a GPU.
json row_sum_on_both() {
  auto document = row_sum();
  document["backends"] = json::array({"cpu", "cuda"});
  document["timed_gpu"] = {{"scalars", {{"rows", 1024}, {"cols", 2048}}},
                           {"fills", {{"x", "uniform"}}}};
  return document;
}

class task_loader : public testing::Test {
protected:
  void SetUp() override {
    std::string name = testing::TempDir() + "kernelmill-task-XXXXXX";
    root_ = ::mkdtemp(name.data());
    write("task.json", row_sum().dump());
    write("prompt.md", "Sum each row.\n");
    write("reference.cpp", "// reference\n");
    write("baseline.cpp", "// baseline\n");
    write("reference.cu", "// reference\n"); // which tasks for the CPU alone may have too
    write("baseline.cu", "// baseline\n");
  }
  void TearDown() override { std::filesystem::remove_all(root_); }

  void write(const std::string& name, const std::string& text) {
    std::filesystem::create_directories(root_ + "/native/row_sum");
    std::ofstream{root_ + "/native/row_sum/" + name} << text;
  }
  void remove(const std::string& name) {
    std::filesystem::remove(root_ + "/native/row_sum/" + name);
  }
  expected<task> load(const json& document) {
    write("task.json", document.dump());
    auto x = load_task(root_, "native/row_sum");
    KM_TRY(x);
    return **x;
  }
  // The same task for a backend, and for a contract there.
  static expected<task_ptr> on(const task& x, const std::string& backend,
                               contract_kind contract = contract_kind::native) {
    judging_terms terms;
    terms.backend = backend;
    terms.contract = contract;
    return on_terms(x, terms);
  }
  error problem(const json& document) {
    auto loaded = load(document);
    return loaded ? error{} : loaded.error();
  }

  std::string root_;
};

TEST_F(task_loader, reads_every_key) {
  auto x = load(row_sum());
  ASSERT_TRUE(x) << render(x.error());
  EXPECT_EQ(x->id, "native/row_sum");
  EXPECT_EQ(x->arguments.size(), 4u);
  EXPECT_EQ(x->arguments[0].fill, "normal");
  EXPECT_EQ(x->cases[1].fills.at("x"), "sparse");
  EXPECT_TRUE(x->cases[1].hidden);
  EXPECT_EQ(x->bytes.evaluate(x->timed.scalars).value(), 4 * 64 * 256 + 4 * 64);
  EXPECT_EQ(x->prompt, "Sum each row.\n");
  EXPECT_EQ(x->digest.size(), 64u);
  EXPECT_EQ(x->declaration(),
            "extern \"C\" void solve(const float* x, float* y, int rows, int cols)");
  EXPECT_EQ(shape_text(*x, x->timed.scalars), "rows=64 cols=256");
}

TEST_F(task_loader, a_changed_reference_changes_the_digest) {
  auto before = load(row_sum())->digest;
  write("reference.cpp", "// another\n");
  EXPECT_NE(load(row_sum())->digest, before);
}

TEST_F(task_loader, comments_are_allowed) {
  write("task.json", "// a comment\n" + row_sum().dump());
  EXPECT_TRUE(load_task(root_, "native/row_sum"));
}

TEST_F(task_loader, broken_json_names_line_and_column) {
  write("task.json", "{\n  \"id\": \"a\",,\n}");
  auto x = load_task(root_, "native/row_sum");
  ASSERT_FALSE(x);
  EXPECT_EQ(x.error().cls, fault_class::configuration);
  EXPECT_THAT(x.error().message, HasSubstr("line 2, column 13"));
}

TEST_F(task_loader, an_unknown_key_gets_a_suggestion) {
  auto document = row_sum();
  document["tolerence"] = 4;
  auto e = problem(document);
  EXPECT_THAT(e.message, HasSubstr("unknown key \"tolerence\""));
  EXPECT_THAT(e.hint, HasSubstr("did you mean \"tolerance\"?"));
}

TEST_F(task_loader, an_unknown_distribution_names_its_place) {
  auto document = row_sum();
  document["cases"][1]["fills"]["x"] = "spars";
  auto e = problem(document);
  EXPECT_THAT(e.message, HasSubstr("cases[1].fills.x"));
  EXPECT_THAT(e.hint, HasSubstr("\"sparse\""));
}

TEST_F(task_loader, refuses_what_makes_no_sense) {
  auto expect = [&](auto change, const char* text) {
    auto document = row_sum();
    change(document);
    EXPECT_THAT(problem(document).message, HasSubstr(text)) << document.dump();
  };
  expect([](json& d) { d["schema_version"] = 2; }, "schema_version");
  expect([](json& d) { d["id"] = "native/other"; }, "the folder says");
  expect([](json& d) { d.erase("timed"); }, "timed is missing");
  expect([](json& d) { d.erase("title"); }, "title is missing");
  expect([](json& d) { d["tolerance"] = 0; }, "above 0");
  expect([](json& d) { d["cases"][0]["hidden"] = true; }, "visible");
  expect([](json& d) { d["cases"][0]["scalars"]["rows"] = 0; }, "dimension \"rows\" is 0");
  expect([](json& d) { d["cases"][0]["scalars"]["rows"] = 1 << 30; }, "256 MiB");
  expect([](json& d) { d["cases"][0]["scalars"].erase("rows"); }, "scalars.rows is missing");
  expect([](json& d) { d["cases"][0]["scalars"]["depth"] = 1; }, "names no scalar");
  expect([](json& d) { d["cases"][1]["name"] = "small"; }, "used twice");
  expect([](json& d) { d["arguments"][0]["shape"][0] = "row"; }, "no scalar is named 'row'");
  expect([](json& d) { d["arguments"][1]["name"] = "2x"; }, "C identifier");
  expect([](json& d) { d["arguments"][1]["name"] = "x"; }, "named twice");
  expect([](json& d) { d["arguments"][1]["role"] = "input"; }, "output or inout");
  expect([](json& d) { d["arguments"][2]["type"] = "f32"; }, "\"i32\" for a scalar");
  expect([](json& d) { d["arguments"][1]["fill"] = "normal"; }, "inputs only");
  expect([](json& d) { d["bytes"] = "4*rows*"; }, "ends too early");
  expect([](json& d) { d["bytes"] = "0-rows"; }, "negative");
  expect([](json& d) { d["verb"] = "debug"; }, "starter.cpp");
  // Nothing is done with these: no task is made of nothing, none is moved from another backend.
  expect([](json& d) { d["verb"] = "translate"; }, "verb");
  expect([](json& d) { d["verb"] = "port"; }, "verb");
  expect([](json& d) { d["arguments"] = json::array(); }, "1 to 16");
  expect([](json& d) { d["arguments"] = 3; }, "1 to 16");
  expect([](json& d) { d = json::array(); }, "must be an object");
}

TEST_F(task_loader, an_i32_input_needs_a_range) {
  auto document = row_sum();
  document["cases"][1].erase("fills");
  document["arguments"][0]["type"] = "i32";
  EXPECT_THAT(problem(document).message, HasSubstr("fill_range"));
  document["arguments"][0]["fill_range"] = json::array({"5", "rows"});
  EXPECT_THAT(problem(document).message, HasSubstr("fill_range [5, 4) is empty"));
  document["arguments"][0]["fill_range"] = json::array({"0", "rows"});
  EXPECT_EQ(problem(document).message, "");
}

TEST_F(task_loader, a_diagnosis_must_be_one_of_the_labels) {
  auto document = row_sum();
  document["verb"] = "diagnose";
  document["diagnoses"] = json::array({"race", "overflow"});
  document["diagnosis"] = "overflo";
  auto e = problem(document);
  EXPECT_THAT(e.message, HasSubstr("not one of diagnoses"));
  EXPECT_THAT(e.hint, HasSubstr("\"overflow\""));
}

TEST_F(task_loader, evidence_and_strategy_name_counters_and_how_they_change) {
  auto document = row_sum();
  document["verb"] = "diagnose";
  document["diagnoses"] = json::array({"race", "overflow"});
  document["diagnosis"] = "race";
  document["evidence"] = json::parse(R"([
    {"counter": "dram_bytes", "change": "falls", "by": 2.5},
    {"counter": "time", "change": "rises", "hidden": true}])");
  write("starter.cpp", "// starter\n");
  auto x = load(document);
  ASSERT_TRUE(x) << render(x.error());
  ASSERT_EQ(x->evidence.size(), 2u);
  EXPECT_EQ(x->evidence[0].text(), "dram_bytes falls");
  EXPECT_EQ(x->evidence[0].by, 2.5);
  EXPECT_FALSE(x->evidence[0].hidden);
  EXPECT_TRUE(x->evidence[1].rises && x->evidence[1].hidden);
  auto refuse = [&](const char* changes, const char* text) {
    document["evidence"] = json::parse(changes);
    EXPECT_THAT(problem(document).message, HasSubstr(text)) << changes;
  };
  refuse("[]", "evidence must be a list of 1 to 8");
  refuse(R"([{"change": "falls"}])", "evidence[0].counter is \"\"");
  refuse(R"([{"counter": "dram_byte", "change": "falls"}])", "evidence[0].counter");
  refuse(R"([{"counter": "time", "change": "changes"}])", "evidence[0].change");
  refuse(R"([{"counter": "time", "change": "falls", "by": 0.5}])", "evidence[0].by");
  refuse(R"([{"counter": "time", "change": "falls", "hiden": 1}])", "evidence[0].hiden");
  refuse(R"([{"counter": "dram_bytes", "change": "falls", "hidden": true}])",
         "which no evaluation measures");
  refuse(R"([{"counter": "time", "change": "falls"}, {"counter": "time", "change": "rises"}])",
         "evidence[1].counter is used twice");
  document["evidence"] = json::parse(R"([{"counter": "time", "change": "falls"}])");
  document["strategy"] = document["evidence"];
  EXPECT_THAT(problem(document).message, HasSubstr("strategy belongs to the verb"));
  document.erase("evidence");
  document.erase("diagnoses");
  document.erase("diagnosis");
  document["verb"] = "reformulate";
  EXPECT_EQ(problem(document).message, "");
  document["strategy"][0]["hidden"] = true;
  EXPECT_THAT(problem(document).message, HasSubstr("unknown key \"strategy[0].hidden\""));
}

TEST_F(task_loader, nothing_is_shown_with_a_task_that_is_solved_from_words) {
  auto document = row_sum();
  document["verb"] = "synthesize";
  EXPECT_EQ(problem(document).message, "");
  write("starter.cpp", "// starter\n");
  EXPECT_THAT(problem(document).message, HasSubstr("verb \"synthesize\" takes no starter"));
}

TEST_F(task_loader, a_port_shows_the_starter_in_the_language_that_it_leaves) {
  auto document = row_sum_on_both();
  document["verb"] = "port";
  EXPECT_THAT(problem(document).message, HasSubstr("port is missing"));
  document["port"] = {{"from", "cuda"}, {"to", "hip"}};
  EXPECT_THAT(problem(document).message, HasSubstr("backends must be [\"hip\"]"));
  document["backends"] = {"hip"};
  EXPECT_THAT(problem(document).message,
              HasSubstr("needs a starter.cu, because port.from is cuda"));
  write("starter.cu", "// in CUDA\n");
  write("starter.hip", "// in HIP\n");
  auto x = load(document);
  ASSERT_TRUE(x) << render(x.error());
  EXPECT_EQ(x->terms.backend, "hip");
  EXPECT_EQ(x->starter, "// in CUDA\n");
  document["port"] = {{"from", "cuda"}, {"to", "cpp"}};
  document["backends"] = {"cpu"};
  EXPECT_EQ(load(document)->starter, "// in CUDA\n");
  document["port"]["to"] = "triton";
  EXPECT_THAT(problem(document).message, HasSubstr("port.to is \"triton\""));
  document["verb"] = "optimize";
  EXPECT_THAT(problem(document).message, HasSubstr("port belongs to the verb"));
}

TEST_F(task_loader, a_task_for_both_backends_has_a_timed_shape_for_each) {
  auto x = load(row_sum_on_both());
  ASSERT_TRUE(x) << render(x.error());
  EXPECT_THAT(x->backends, testing::ElementsAre("cpu", "cuda"));
  EXPECT_EQ(x->terms.backend, "cpu");
  EXPECT_EQ(shape_text(*x, x->timed.scalars), "rows=64 cols=256");
  EXPECT_EQ(shape_text(*x, x->timed_gpu.scalars), "rows=1024 cols=2048");
  EXPECT_EQ(x->timed_gpu.fills.at("x"), "uniform");
  EXPECT_TRUE(x->timed.fills.empty());
}

TEST_F(task_loader, a_task_names_the_cpu_alone_unless_it_says_more) {
  auto x = load(row_sum());
  ASSERT_TRUE(x) << render(x.error());
  EXPECT_THAT(x->backends, testing::ElementsAre("cpu"));
  EXPECT_TRUE(x->timed_gpu.scalars.empty());
}

TEST_F(task_loader, backends_that_make_no_sense_are_refused) {
  auto expect = [&](auto change, const char* text) {
    auto document = row_sum_on_both();
    change(document);
    auto e = problem(document);
    EXPECT_EQ(e.cls, fault_class::configuration) << document.dump();
    EXPECT_EQ(e.category, "bad_task") << document.dump();
    EXPECT_THAT(e.message, HasSubstr(text)) << document.dump();
  };
  expect([](json& d) { d.erase("timed_gpu"); }, "timed_gpu is missing, and backends names cuda");
  expect([](json& d) { d["backends"] = json::array({"cuda"}), d.erase("timed_gpu"); },
         "timed_gpu is missing");
  expect([](json& d) { d["backends"] = json::array(); }, "backends must name one");
  expect(
      [](json& d) {
        d["backends"] = json::array({"cpu", "hip"}), d.erase("timed_gpu");
      },
      "timed_gpu is missing, and backends names hip");
  expect([](json& d) { d["backends"] = "cuda"; }, "backends must be a list of strings");
  expect([](json& d) { d["backends"] = json::array({"cpu", 3}); }, "backends must be a list");
  expect([](json& d) { d["timed_gpu"]["scalars"].erase("rows"); },
         "timed_gpu.scalars.rows is missing");
  expect([](json& d) { d["timed_gpu"]["scalars"]["rows"] = 1 << 20; }, "256 MiB");
  expect([](json& d) { d["timed_gpu"]["fills"]["x"] = "unifrm"; }, "timed_gpu.fills.x");
  expect([](json& d) { d["timed_gpu"]["name"] = "large"; }, "timed_gpu.name");
}

TEST_F(task_loader, an_unknown_backend_gets_the_list_of_those_there_are) {
  auto document = row_sum_on_both();
  document["backends"] = json::array({"cpu", "rocm"});
  auto e = problem(document);
  EXPECT_EQ(e.cls, fault_class::configuration);
  EXPECT_THAT(e.message, HasSubstr("backends names \"rocm\""));
  EXPECT_THAT(e.hint, HasSubstr("cpu, cuda, hip"));
}

TEST_F(task_loader, a_chosen_backend_brings_its_timed_shape_and_its_starter) {
  write("starter.cpp", "// for a CPU\n");
  write("starter.cu", "// for a GPU\n");
  auto x = load(row_sum_on_both());
  ASSERT_TRUE(x) << render(x.error());
  EXPECT_EQ(x->starter, "// for a CPU\n");
  auto gpu = on(*x, "cuda").value();
  EXPECT_EQ(gpu->terms.backend, "cuda");
  EXPECT_EQ(gpu->starter, "// for a GPU\n");
  EXPECT_EQ(shape_text(*gpu, gpu->timed.scalars), "rows=1024 cols=2048");
  EXPECT_EQ(gpu->timed.fills.at("x"), "uniform");
  auto again = on(*gpu, "cuda").value(); // nothing changes
  EXPECT_EQ(shape_text(*again, again->timed.scalars), "rows=1024 cols=2048");
  EXPECT_EQ(gpu->digest, x->digest) << "terms are no part of the task";
  EXPECT_EQ(x->terms.backend, "cpu") << "as it was loaded";
}

TEST_F(task_loader, hip_shares_the_starter_of_cuda_unless_it_has_its_own) {
  auto document = row_sum_on_both();
  document["backends"] = json::array({"cpu", "cuda", "hip"});
  write("starter.cpp", "// for a CPU\n");
  write("starter.cu", "// for a GPU\n");
  auto shared = load(document);
  ASSERT_TRUE(shared) << render(shared.error());
  auto of_cuda = on(*shared, "hip").value();
  EXPECT_EQ(of_cuda->terms.backend, "hip");
  EXPECT_EQ(of_cuda->starter, "// for a GPU\n");
  EXPECT_EQ(shape_text(*of_cuda, of_cuda->timed.scalars), "rows=1024 cols=2048");
  write("starter.hip", "// for AMD's\n");
  auto own = load(document);
  ASSERT_TRUE(own);
  EXPECT_EQ(on(*own, "hip").value()->starter, "// for AMD's\n");
  EXPECT_EQ(on(*own, "cuda").value()->starter, "// for a GPU\n");
}

TEST_F(task_loader, choosing_the_cpu_again_brings_its_timed_shape_and_starter_back) {
  write("starter.cpp", "// for a CPU\n");
  write("starter.cu", "// for a GPU\n");
  auto x = load(row_sum_on_both());
  ASSERT_TRUE(x) << render(x.error());
  auto cpu = on(*on(*x, "cuda").value(), "cpu").value();
  EXPECT_EQ(cpu->terms.backend, "cpu");
  EXPECT_EQ(shape_text(*cpu, cpu->timed.scalars), "rows=64 cols=256");
  EXPECT_TRUE(cpu->timed.fills.empty());
  EXPECT_EQ(cpu->starter, "// for a CPU\n");
}

TEST_F(task_loader, a_task_for_a_gpu_alone_is_ready_for_it_and_needs_its_starter_only) {
  auto document = row_sum_on_both();
  document["backends"] = json::array({"cuda"});
  document["verb"] = "debug";
  write("starter.cu", "// for a GPU\n");
  auto x = load(document);
  ASSERT_TRUE(x) << render(x.error());
  EXPECT_EQ(x->terms.backend, "cuda");
  EXPECT_EQ(x->starter, "// for a GPU\n");
  EXPECT_EQ(shape_text(*x, x->timed.scalars), "rows=1024 cols=2048");
  EXPECT_FALSE(on(*x, "cpu"));
}

TEST_F(task_loader, device_code_needs_cuda) {
  auto document = row_sum_on_both();
  document["backends"] = json::array({"cpu", "cuda", "hip"});
  auto x = load(document);
  ASSERT_TRUE(x) << render(x.error());
  EXPECT_EQ(x->contract, contract_kind::native);
  for (auto* backend : {"cpu"}) {
    auto refused = on(*x, backend, contract_kind::device);
    ASSERT_FALSE(refused) << backend;
    EXPECT_EQ(refused.error().cls, fault_class::configuration);
    EXPECT_EQ(refused.error().category, "unsupported_contract");
    EXPECT_THAT(refused.error().message, HasSubstr("the backend is " + std::string{backend}));
    EXPECT_THAT(refused.error().hint, HasSubstr("--contract native"));
    EXPECT_TRUE(on(*x, backend, contract_kind::native)) << backend;
  }
  EXPECT_TRUE(on(*x, "hip", contract_kind::device));
  auto device = on(*x, "cuda", contract_kind::device).value();
  EXPECT_EQ(device->contract, contract_kind::device);
  EXPECT_EQ(on(*device, "cuda").value()->contract, contract_kind::native);
}

TEST(contract_of, knows_its_four_names_alone) {
  for (auto x :
       {contract_kind::native, contract_kind::device, contract_kind::torch, contract_kind::program})
    EXPECT_EQ(contract_of(to_string(x)), x);
  for (auto* none : {"", "auto", "Device", "triton", "Program"}) {
    auto refused = contract_of(none);
    ASSERT_FALSE(refused) << none;
    EXPECT_EQ(refused.error().category, "unsupported_contract") << none;
    EXPECT_THAT(refused.error().hint, HasSubstr("native, device, torch and program")) << none;
  }
}

TEST_F(task_loader, a_starter_is_needed_for_every_backend_that_is_named) {
  for (auto* verb : {"debug", "reformulate", "diagnose"}) {
    auto document = row_sum_on_both();
    document["verb"] = verb;
    if (verb == std::string{"diagnose"}) {
      document["diagnoses"] = json::array({"race", "overflow"});
      document["diagnosis"] = "race";
    }
    remove("starter.cu");
    write("starter.cpp", "// for a CPU\n");
    auto e = problem(document);
    EXPECT_EQ(e.category, "bad_task") << verb;
    EXPECT_THAT(e.message, HasSubstr("task.json: verb \"" + std::string{verb} + "\"")) << verb;
    EXPECT_THAT(e.message, HasSubstr("needs a starter.cu, because backends names cuda")) << verb;
    remove("starter.cpp");
    write("starter.cu", "// for a GPU\n");
    EXPECT_THAT(problem(document).message, HasSubstr("starter.cpp, because backends names cpu"));
    write("starter.cpp", "// for a CPU\n");
    EXPECT_EQ(problem(document).message, "") << verb;
  }
}

TEST_F(task_loader, a_task_for_a_gpu_has_a_reference_and_a_baseline_for_it) {
  for (auto* name : {"reference.cu", "baseline.cu"}) {
    remove(name);
    EXPECT_EQ(problem(row_sum()).message, "") << name;
    auto e = problem(row_sum_on_both());
    EXPECT_EQ(e.category, "bad_task") << name;
    EXPECT_THAT(e.message, HasSubstr("task.json: backends names cuda")) << name;
    EXPECT_THAT(e.message, HasSubstr(name));
    EXPECT_NE(e.hint, "") << name;
    write(name, "// back\n");
  }
}

TEST_F(task_loader, fills_that_a_gpu_cannot_make_are_refused_at_its_timed_shape_only) {
  auto document = row_sum_on_both();
  document["cases"][1]["fills"]["x"] = "sparse";
  document["timed"]["fills"]["x"] = "masked";
  EXPECT_EQ(problem(document).message, "");
  document["timed_gpu"]["fills"]["x"] = "masked";
  auto e = problem(document);
  EXPECT_EQ(e.category, "bad_task");
  EXPECT_THAT(e.message, HasSubstr("task.json: timed_gpu.fills.x is \"masked\""));
  EXPECT_THAT(e.hint, HasSubstr("normal"));
  document["timed_gpu"].erase("fills");
  document["arguments"][0]["fill"] = "distinct";
  EXPECT_THAT(problem(document).message,
              HasSubstr("timed_gpu.fills.x is missing, and arguments[0].fill is \"distinct\""));
  document["timed_gpu"]["fills"]["x"] = "tiny";
  EXPECT_EQ(problem(document).message, "");
}

TEST_F(task_loader, an_i32_input_has_fills_of_its_own_on_a_gpu) {
  auto document = row_sum_on_both();
  document["timed_gpu"].erase("fills");
  document["cases"][1].erase("fills");
  document["arguments"][0]["type"] = "i32";
  document["arguments"][0]["fill_range"] = json::array({"0", "rows"});
  EXPECT_EQ(problem(document).message, "");
  document["timed_gpu"]["fills"]["x"] = "permutation";
  auto e = problem(document);
  EXPECT_THAT(e.message, HasSubstr("timed_gpu.fills.x is \"permutation\""));
  EXPECT_EQ(e.hint, "a GPU makes: index, constant, skewed, sorted, zeros");
}

TEST_F(task_loader, an_inout_is_refused_for_a_gpu) {
  auto document = row_sum();
  document["arguments"][1]["role"] = "inout";
  EXPECT_EQ(problem(document).message, "");
  document = row_sum_on_both();
  document["arguments"][1]["role"] = "inout";
  auto e = problem(document);
  EXPECT_EQ(e.category, "bad_task");
  EXPECT_THAT(e.message, HasSubstr("task.json: arguments[1].role is \"inout\""));
  EXPECT_THAT(e.hint, HasSubstr("leave cuda out of backends"));
}

TEST_F(task_loader, a_task_without_scalars_may_be_for_a_gpu) {
  auto document = row_sum_on_both();
  document["arguments"] = json::parse(R"([
      {"name": "x", "role": "input", "type": "f32", "shape": ["64"]},
      {"name": "y", "role": "output", "type": "f32", "shape": ["64"]}])");
  for (auto& x : document["cases"]) x["scalars"] = json::object();
  document["timed"]["scalars"] = document["timed_gpu"]["scalars"] = json::object();
  document["bytes"] = document["flops"] = "64";
  auto x = load(document);
  ASSERT_TRUE(x) << render(x.error());
  EXPECT_EQ(on(*x, "cuda").value()->timed.fills.at("x"), "uniform");
}

TEST_F(task_loader, a_backend_that_the_task_does_not_name_cannot_be_chosen) {
  auto x = load(row_sum());
  ASSERT_TRUE(x) << render(x.error());
  for (auto* name : {"cuda", "rocm", ""}) {
    auto chosen = on(*x, name);
    ASSERT_FALSE(chosen) << name;
    EXPECT_EQ(chosen.error().cls, fault_class::configuration);
    EXPECT_EQ(chosen.error().category, "unsupported_backend");
    EXPECT_THAT(chosen.error().message, HasSubstr("native/row_sum"));
    EXPECT_THAT(chosen.error().hint, HasSubstr("kernelmill task show native/row_sum"));
  }
  EXPECT_EQ(x->terms.backend, "cpu");
  EXPECT_EQ(shape_text(*x, x->timed.scalars), "rows=64 cols=256");
}

TEST_F(task_loader, every_file_for_a_gpu_is_part_of_the_digest) {
  std::set<std::string> seen{load(row_sum_on_both())->digest};
  for (auto* name : {"reference.cu", "baseline.cu", "starter.cu", "reference.hip", "baseline.hip",
                     "starter.hip"}) {
    write(name, "// one\n");
    EXPECT_TRUE(seen.insert(load(row_sum_on_both())->digest).second) << name << " is another";
    write(name, "// two\n");
    EXPECT_TRUE(seen.insert(load(row_sum_on_both())->digest).second) << name << " changed";
  }
}

TEST_F(task_loader, a_missing_file_is_named) {
  std::filesystem::remove(root_ + "/native/row_sum/reference.cpp");
  auto x = load_task(root_, "native/row_sum");
  ASSERT_FALSE(x);
  EXPECT_THAT(x.error().message, HasSubstr("reference.cpp"));
}

TEST_F(task_loader, no_file_may_be_a_link_out_of_the_folder) {
  for (const char* name : {"prompt.md", "task.json", "reference.cpp", "baseline.cpp", "starter.cpp",
                           "reference.cu", "baseline.hip"}) {
    auto path = root_ + "/native/row_sum/" + name;
    auto kept = root_ + "/kept";
    bool had = std::filesystem::exists(path);
    if (had) std::filesystem::copy_file(path, kept);
    remove(name);
    std::filesystem::create_symlink(had ? kept : "/etc/passwd", path);
    auto x = load_task(root_, "native/row_sum");
    ASSERT_FALSE(x) << name;
    EXPECT_EQ(x.error().cls, fault_class::configuration);
    EXPECT_THAT(x.error().message, testing::AllOf(HasSubstr(path), HasSubstr("leads out")));
    remove(name);
    if (had) std::filesystem::rename(kept, path);
  }
  EXPECT_TRUE(load_task(root_, "native/row_sum"));
}

TEST_F(task_loader, ids_that_leave_the_root_are_refused) {
  for (auto id : {"", "../native/row_sum", "/etc", "native/../../x"})
    EXPECT_FALSE(load_task(root_, id)) << id;
}

TEST_F(task_loader, lists_ids_sorted) {
  std::filesystem::create_directories(root_ + "/native/a");
  std::ofstream{root_ + "/native/a/task.json"} << "{}";
  EXPECT_THAT(list_tasks(root_).value(), testing::ElementsAre("native/a", "native/row_sum"));
  EXPECT_FALSE(list_tasks(root_ + "/none"));
}

TEST_F(task_loader, a_folder_is_loaded_when_its_path_ends_with_the_id) {
  EXPECT_TRUE(load_task_folder(root_ + "/native/row_sum/"));
  std::filesystem::rename(root_ + "/native/row_sum", root_ + "/native/other");
  EXPECT_FALSE(load_task_folder(root_ + "/native/other"));
}

} // namespace task_loader_test
