#include <unistd.h>

#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "launch/commands/program/doctor.hpp"
#include "tests/integration/cli/program.hpp"

namespace kernelmill::test {

namespace doctor_test {

using testing::HasSubstr;

TEST(doctor, every_finding_that_is_not_ok_says_what_it_costs_and_what_helps) {
  auto x = kernelmill({"doctor", "--json"});
  auto document = x.document();
  ASSERT_TRUE(document.is_object()) << x.err;
  EXPECT_EQ(document["schema_version"], 1);
  EXPECT_EQ(x.code, document["ok"] == true ? 0 : 1);
  std::string names;
  for (const auto& f : document["findings"]) {
    names += f["name"].get<std::string>() + "\n";
    if (f["state"] == "ok") continue;
    EXPECT_NE(f["cost"], "") << f;
    EXPECT_NE(f["detail"], "") << f;
  }
  for (const auto* name :
       {"cores", "loopback", "compiler", "bwrap", "sandbox: namespaces", "sandbox: seccomp",
        "perf events", "runs directory", "disk space", "gpu", "cuda driver", "nvcc", "nvrtc", "ncu",
        "hip runtime", "hipcc", "python3", "builds: C++"})
    EXPECT_THAT(names, HasSubstr(name));
}

TEST(doctor, a_runs_directory_that_does_not_exist_yet_is_judged_by_the_one_above) {
  auto x = kernelmill({"doctor", "--json", "--dir", "not/yet/there"});
  auto document = x.document();
  for (const auto& f : document["findings"])
    if (f["name"] == "runs directory") {
      EXPECT_EQ(f["state"], "ok");
    }
}

TEST(doctor, runs_on_proc_are_refused) {
  commands::findings all;
  commands::examine_disk(all, "/proc/x");
  auto at = std::find_if(all.begin(), all.end(),
                         [](const auto& f) { return f.name == "runs directory"; });
  ASSERT_NE(at, all.end());
  EXPECT_EQ(at->state, commands::finding_state::fail) << at->detail;
  EXPECT_THAT(at->detail, HasSubstr("no folder can be made"));
}

TEST(doctor, a_wrong_column_is_refused_before_the_checks) {
  auto x = kernelmill({"doctor", "--columns", "nix"});
  EXPECT_EQ(x.code, 2);
  EXPECT_THAT(x.err, HasSubstr("state, check, detail, cost, remedy"));
}

TEST(doctor, fails_where_the_loopback_interface_is_down) {
  // A new network namespace has it so.
  auto x =
      run_program({"/usr/bin/unshare", "--map-root-user", "--net", binary(), "doctor", "--json"});
  auto document = x.document();
  if (!document.is_object()) GTEST_SKIP() << x.err;
  EXPECT_EQ(x.code, 1);
  std::string state, remedy;
  for (const auto& f : document["findings"])
    if (f["name"] == "loopback") {
      state = f["state"];
      remedy = f["remedy"];
    }
  EXPECT_EQ(state, "fail") << x.out;
  EXPECT_THAT(remedy, HasSubstr("ip link set lo up"));
}

TEST(doctor, tells_a_user_that_cannot_go_ahead_of_other_programs) {
  std::vector<std::string> words{binary(), "doctor", "--json"};
  if (::geteuid() == 0)
    words.insert(words.begin(),
                 {"/usr/bin/setpriv", "--bounding-set=-sys_nice", "--inh-caps=-sys_nice"});
  auto x = run_program(words);
  auto document = x.document();
  ASSERT_TRUE(document.is_object()) << x.err;
  nlohmann::json found;
  for (const auto& f : document["findings"])
    if (f["name"] == "priority") found = f;
  EXPECT_EQ(found["state"], "warn") << x.out;
  EXPECT_THAT(found["remedy"].get<std::string>(), HasSubstr("CAP_SYS_NICE"));
}

TEST(doctor, lists_the_gpus_for_programs_too) {
  auto document = kernelmill({"doctor", "--json"}).document();
  ASSERT_TRUE(document["gpus"].is_array()) << document;
  size_t lines = 0;
  for (const auto& f : document["findings"])
    if (f["name"].get<std::string>().starts_with("gpu ")) ++lines;
  EXPECT_EQ(document["gpus"].size(), lines);
}

TEST(doctor, says_of_every_part_that_was_looked_for_where_it_is_or_what_it_costs) {
  auto text = kernelmill({"doctor"}).out;
  for (const auto* name : {"cuda driver", "nvcc", "nvrtc", "ncu", "hip runtime", "hipcc"})
    EXPECT_THAT(text, HasSubstr(std::string{" "} + name + " ")) << name;
}

commands::finding one_of(const commands::findings& all, const std::string& name) {
  for (const auto& x : all)
    if (x.name == name) return x;
  ADD_FAILURE() << "no finding " << name;
  return {};
}

TEST(doctor, names_counters_that_only_administrators_may_read) {
  commands::accelerator_facts facts;
  facts.counters_restricted = true;
  commands::findings without;
  commands::examine_accelerators(without, facts);
  for (const auto& x : without) EXPECT_NE(x.name, "gpu counters") << "no GPU, no counters";
  facts.gpus.push_back({0, "NVIDIA H200", "GPU-1", "sm_90", "/dev/null", 0});
  commands::findings all;
  commands::examine_accelerators(all, facts);
  auto x = one_of(all, "gpu counters");
  EXPECT_EQ(x.state, commands::finding_state::warn);
  EXPECT_THAT(x.detail, HasSubstr("ERR_NVGPUCTRPERM"));
  EXPECT_THAT(x.remedy, HasSubstr("NVreg_RestrictProfilingToAdminUsers=0"));
}

TEST(doctor, finds_a_machine_without_a_gpu_healthy_and_says_what_each_part_would_bring) {
  commands::findings all;
  commands::accelerator_facts nothing;
  nothing.no_gpu = "failed to ask for GPUs: no such library";
  commands::examine_accelerators(all, nothing);
  EXPECT_EQ(all.size(), 8u);
  for (const auto& x : all) {
    EXPECT_EQ(x.state, commands::finding_state::none) << x.name; // what is not there is not "ok"
    EXPECT_NE(x.cost, "") << x.name;
    EXPECT_THAT(x.remedy, HasSubstr("install")) << x.name;
  }
  EXPECT_THAT(one_of(all, "gpu").detail, HasSubstr("not found: failed to ask for GPUs"));
  EXPECT_THAT(one_of(all, "gpu").cost, HasSubstr("the CPU backend needs no GPU"));
  EXPECT_EQ(one_of(all, "nvcc").detail, "not found");
  EXPECT_THAT(one_of(all, "nvcc").remedy, HasSubstr("CUDA_HOME"));
  EXPECT_THAT(one_of(all, "hip runtime").cost, HasSubstr("AMD"));
}

TEST(doctor, says_which_gpus_hip_is_judged_on) {
  auto found = [](const commands::accelerator_facts& facts) {
    commands::findings all;
    commands::examine_accelerators(all, facts);
    return one_of(all, "hip backend");
  };
  commands::accelerator_facts facts;
  facts.gpus = {{0, "NVIDIA H200", "GPU-1", "sm_90", "/dev/null", 0}};
  facts.nvcc = "/opt/nvcc";
  EXPECT_EQ(found(facts).state, commands::finding_state::none);
  EXPECT_THAT(found(facts).remedy, HasSubstr("libamdhip64-dev"));
  facts.hip_headers = "5.2, /usr/include";
  EXPECT_THAT(found(facts).detail, HasSubstr("nvidia, by nvcc and the headers of HIP 5.2"));
  facts.amd_gpus = {{0, "AMD Instinct", "GPU-2", "gfx942", "/dev/null", 0}};
  facts.hip_library = "libamdhip64.so.7";
  EXPECT_THAT(found(facts).detail, HasSubstr("amd, by libamdhip64.so.7"));
}

// The node of the pretended GPU can be opened: it is not a GPU's.
TEST(doctor, warns_of_what_keeps_a_gpu_from_being_used) {
  commands::findings all;
  commands::accelerator_facts facts;
  facts.gpus = {{0, "NVIDIA H200", "GPU-1", "sm_90", "/dev/null", uint64_t{140} << 30}};
  facts.driver_version = "570.1";
  facts.hidden_gpus = 1;
  facts.nvcc = "/opt/nvcc";
  facts.nvcc_version = "release 13.0";
  commands::examine_accelerators(all, facts);
  auto gpu = one_of(all, "gpu 0");
  EXPECT_EQ(gpu.state, commands::finding_state::ok) << gpu.detail;
  for (const auto* word : {"NVIDIA H200", "GiB", "sm_90", "driver 570.1"})
    EXPECT_THAT(gpu.detail, HasSubstr(word));
  EXPECT_EQ(one_of(all, "hidden gpus").detail, "1, by CUDA_VISIBLE_DEVICES");
  EXPECT_EQ(one_of(all, "nvcc").detail, "/opt/nvcc, release 13.0");
  EXPECT_EQ(one_of(all, "nvcc").cost, "");
  for (const auto* name : {"cuda driver", "nvrtc"})
    EXPECT_EQ(one_of(all, name).state, commands::finding_state::warn) << name;
  for (const auto* name : {"ncu", "hip runtime", "hipcc"})
    EXPECT_EQ(one_of(all, name).state, commands::finding_state::none) << name;
}

TEST(doctor, warns_of_gpus_that_differ_and_of_one_that_cannot_be_opened) {
  commands::findings all;
  commands::accelerator_facts facts;
  facts.gpus = {{0, "one", "GPU-1", "sm_90", "/dev/null", 0},
                {1, "other", "GPU-2", "sm_80", "/nonexistent/nvidia1", 0}};
  commands::examine_accelerators(all, facts);
  EXPECT_THAT(one_of(all, "gpu 0").detail, HasSubstr("memory unknown"));
  EXPECT_EQ(one_of(all, "gpu 1").state, commands::finding_state::warn);
  EXPECT_THAT(one_of(all, "gpu 1").remedy, HasSubstr("/nonexistent/nvidia1"));
  EXPECT_THAT(one_of(all, "gpus").cost, HasSubstr("mixed_gpus"));
}

TEST(adapter, list_has_what_there_is_and_what_each_gives) {
  auto x = kernelmill({"adapter", "list", "--json"});
  ASSERT_EQ(x.code, 0) << x.err;
  auto document = x.document();
  std::string names;
  for (const auto& one : document["adapters"]) {
    names += one["kind"].get<std::string>() + " " + one["name"].get<std::string>() + "\n";
    EXPECT_NE(one["gives"], "") << one;
    if (one["state"] == "ok") continue;
    EXPECT_NE(one["detail"], "") << one; // as `doctor` has it
    EXPECT_NE(one["cost"], "") << one;
  }
  for (const auto* name :
       {"suite native", "suite torch", "backend cpu", "backend cuda", "backend hip", "language C++",
        "language Triton", "tool ncu", "tool nsys", "tool compute-sanitizer", "tool rocprofv3"})
    EXPECT_THAT(names, HasSubstr(std::string{name} + "\n"));
}

TEST(adapter, summary_of_a_suite_counts_its_tasks) {
  auto suite = kernelmill({"adapter", "summary", "native", "--json"}).document();
  for (const auto* by : {"verb", "family", "difficulty", "split"}) {
    uint64_t sum = 0;
    for (const auto& count : suite["by"][by]) sum += count.get<uint64_t>();
    EXPECT_EQ(sum, suite["tasks"].get<uint64_t>()) << by;
  }
  EXPECT_THAT(kernelmill({"adapter", "summary", "cpu"}).out, HasSubstr("cpu, backend: ok"));
  auto unknown = kernelmill({"adapter", "summary", "nativ"});
  EXPECT_EQ(unknown.code, 3);
  EXPECT_THAT(unknown.err, HasSubstr("did you mean 'native'?"));
}

} // namespace doctor_test

} // namespace kernelmill::test
