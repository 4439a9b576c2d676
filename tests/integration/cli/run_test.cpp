#include <algorithm>
#include <filesystem>
#include <fstream>

#include <signal.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "launch/machine/slots.hpp"
#include "storage/lineage/store.hpp"
#include "tests/integration/cli/program.hpp"

namespace kernelmill::test {

namespace run_test {

using testing::AllOf;
using testing::AnyOf;
using testing::HasSubstr;
using testing::Not;

/// Two episodes of two turns of one task, timed briefly.
std::vector<std::string> small_run(const std::string& directory,
                                   std::vector<std::string> more = {}) {
  std::vector<std::string> result{"run",
                                  source_file("configs/quickstart.json"),
                                  "tasks.ids=[\"native/row_sum\"]",
                                  "tasks.group_size=2",
                                  "tasks.max_turns=2",
                                  "evaluation.timing.half_width=0.1",
                                  "profile.enabled=false",
                                  "run.dir=" + directory};
  result.insert(result.end(), more.begin(), more.end());
  return result;
}

// The store has a kernel as a part of its completion; commands and files have its text.
void expect_kernels_stored_once(const std::string& directory) {
  auto records = store::open({.directory = directory + "/lineage", .read_only = true});
  ASSERT_TRUE(records) << render(records.error());
  uint32_t kernels = 0;
  ASSERT_TRUE(records->scan_run("one", [&](wire::Record::Reader x) {
    if (!x.isTurn() || !x.getTurn().getFacts().getParsed().getOk()) return true;
    ++kernels;
    EXPECT_TRUE(x.getTurn().getCandidate().isOfCompletion());
    return true;
  }));
  EXPECT_GT(kernels, 0u);
  std::ifstream traces{directory + "/traces.jsonl"};
  for (std::string line; std::getline(traces, line);) {
    auto x = nlohmann::json::parse(line);
    if (x["kind"] != "turn" || !x["response"]["format_ok"]) continue;
    EXPECT_THAT(x["response"]["kernel"].get<std::string>(), HasSubstr("solve"));
    auto shown = kernelmill(
        {"show",
         "one/" + x["episode"].get<std::string>() + ".t" + std::to_string(x["turn"].get<int>()),
         "--json"});
    EXPECT_EQ(shown.document()["candidate"], x["response"]["kernel"]);
  }
}

TEST(run_command, ends_with_a_summary_whose_totals_add_up) {
  auto x = kernelmill(small_run("one", {"--json"}));
  ASSERT_EQ(x.code, 0) << x.err;
  auto d = x.document();
  EXPECT_EQ(d["schema_version"], 1);
  EXPECT_EQ(d["outcome"], "finished");
  auto t = d["totals"];
  EXPECT_EQ(t["groups"], 1);
  EXPECT_EQ(t["episodes"], 2);
  EXPECT_EQ(t["accepted"].get<int>() + t["rejected"].get<int>() + t["infrastructure"].get<int>(),
            2);
  EXPECT_GT(d["stages"].size(), 3u);
  // Where the time went that its evaluations held a slot.
  for (const auto* part : {"slot.task", "slot.process", "slot.load", "slot.correctness"})
    EXPECT_TRUE(d["stages"].contains(part)) << part << " in " << d["stages"];
  EXPECT_GT(d["stages"]["slot.correctness"], 0);
  EXPECT_EQ(d["directory"], scratch() + "/one");
  EXPECT_EQ(x.err, "") << "with --json stderr is for one document";

  auto shown = kernelmill({"show", "one", "--json"}).document();
  EXPECT_EQ(shown["episodes"].size(), 2u);
  EXPECT_EQ(kernelmill({"show", "one/g0.e0.t0", "--json"}).code, 0);
  expect_kernels_stored_once(scratch() + "/one");

  // What a run saves reproduces it.
  EXPECT_EQ(kernelmill({"config", "validate", "one/config.json"}).code, 0);

  auto again = kernelmill(small_run("one", {"--json"}));
  EXPECT_EQ(again.code, 4) << again.err;

  auto resumed = kernelmill({"resume", "one", "--json"});
  ASSERT_EQ(resumed.code, 0) << resumed.err;
  EXPECT_EQ(resumed.document()["totals"], t);
  auto sentence = kernelmill({"resume", "one"});
  EXPECT_EQ(sentence.out,
            "one finished before: 1 group, 2 episodes, 4 turns; nothing was left to do\n");
  EXPECT_EQ(sentence.err, "");
}

TEST(run_command, an_index_of_its_kernels_serves_the_next_run) {
  // Of a task that is not held out: kernels of those are never shown.
  ASSERT_EQ(kernelmill(small_run("source", {"tasks.ids=[\"native/softmax\"]"})).code, 0);
  auto kernels = kernelmill({"show", "source", "--json"}).document()["tasks"];
  auto built = kernelmill({"index", "build", "kernels", "--from", "run=source", "--json"});
  ASSERT_EQ(built.code, 0) << built.err;
  EXPECT_GE(built.document()["kernels"], 1) << kernels;
  auto x =
      kernelmill(small_run("indexed", {"retrieval.index=" + scratch() + "/kernels", "--json"}));
  EXPECT_EQ(x.code, 0) << x.err;
  // Another length is refused with the steps that help.
  auto other = kernelmill(small_run("other", {"retrieval.index=" + scratch() + "/kernels",
                                              "retrieval.embedder.dimension=512", "--json"}));
  EXPECT_EQ(other.code, 4);
  EXPECT_THAT(other.err, AllOf(HasSubstr("index_mismatch"), HasSubstr("embedder.dimension out"),
                               HasSubstr("/kernels --dimension 512`")));
}

TEST(run_command, a_language_that_nothing_judges_is_2_and_names_those_there_are) {
  auto x = kernelmill(small_run("hip", {"evaluation.language=hip", "--json"}));
  EXPECT_EQ(x.code, 2);
  EXPECT_THAT(x.err, AllOf(HasSubstr("evaluation.language"), HasSubstr("triton")));
}

// No interval is that narrow: whatever is not slower for certain is not timed.
TEST(run_command, tells_of_turns_that_are_right_and_not_timed) {
  auto x = kernelmill(small_run("vague", {"tasks.max_turns=4", "evaluation.timing.widest=1e-9"}));
  ASSERT_EQ(x.code, 0) << x.err;
  EXPECT_THAT(x.out, HasSubstr("right and not timed"));
  auto shown = kernelmill({"show", "vague", "--json"}).document();
  auto task = shown["tasks"][0];
  EXPECT_GT(task["not_timed"].get<int>(), 0);
  std::string where;
  for (const auto& e : shown["episodes"])
    for (size_t turn = 0; turn < e["categories"].size(); ++turn)
      if (e["categories"][turn] == "not_timed")
        where = "vague/" + e["id"].get<std::string>() + ".t" + std::to_string(turn);
  EXPECT_THAT(kernelmill({"show", "vague"}).out, HasSubstr("right and not timed"));
  auto turn = kernelmill({"show", where});
  // A busy machine may have less to say than an interval.
  EXPECT_THAT(turn.out,
              AllOf(HasSubstr("\nnot timed, for which the "), HasSubstr("accepted, not_timed"),
                    AnyOf(HasSubstr("says nothing"), HasSubstr("the machine is too busy"),
                          HasSubstr("time of the evaluation was spent"))));
  auto report = kernelmill({"report", "vague", "--by", "turn", "--json"});
  EXPECT_EQ(report.document()["all"]["not_timed"], task["not_timed"]) << report.out;
  EXPECT_EQ(kernelmill({"resume", "vague", "--json"}).document()["totals"]["not_timed"],
            task["not_timed"]);
}

TEST(run_command, tells_people_where_the_time_of_its_slots_went) {
  auto x = kernelmill(small_run("slots"));
  ASSERT_EQ(x.code, 0) << x.err;
  auto at = x.out.find("summed over all evaluations, in their slots: ");
  ASSERT_NE(at, std::string::npos) << x.out;
  auto line = x.out.substr(at, x.out.find('\n', at) - at);
  EXPECT_THAT(line, AllOf(HasSubstr("correctness "), HasSubstr("loading kernels "),
                          Not(HasSubstr("slot."))));
  at = x.out.find("work on all turns, side by side: ");
  ASSERT_NE(at, std::string::npos) << x.out;
  line = x.out.substr(at, x.out.find('\n', at) - at);
  EXPECT_THAT(line, AllOf(HasSubstr("evaluate "), Not(HasSubstr("slot"))));
}

TEST(run_command, device_code_on_the_cpu_is_refused_before_anything_starts) {
  auto x = kernelmill(
      small_run("contract", {"evaluation.contract=device", "evaluation.backend=cpu", "--json"}));
  EXPECT_EQ(x.code, 2) << x.err;
  EXPECT_EQ(x.out, "");
  EXPECT_EQ(x.fault()["category"], "unsupported_contract") << x.err;
  EXPECT_THAT(x.err, HasSubstr("the backend is cpu"));
  EXPECT_FALSE(std::filesystem::exists(scratch() + "/contract"));
}

TEST(run_command, a_contract_that_there_is_not_is_2) {
  auto x = kernelmill(small_run("contract", {"evaluation.contract=triton"}));
  EXPECT_EQ(x.code, 2) << x.err;
  EXPECT_THAT(x.err, AllOf(HasSubstr("triton"), HasSubstr("native"), HasSubstr("device")));
}

TEST(run_command, a_first_prompt_that_does_not_fit_is_the_configurations_fault_and_told) {
  auto script = write_file("short.json", R"({"model": "m", "replies": [{"text": "no kernel"}],
    "faults": [{"status": 400,
                "message": "This model's maximum context length is 4096 tokens"}]})");
  auto x = kernelmill(small_run("short", {"policy.script=" + script}));
  EXPECT_NE(x.code, 0);
  EXPECT_THAT(x.err, AllOf(HasSubstr("first prompt of native/row_sum"), HasSubstr("4096 tokens"),
                           HasSubstr("lower policy.sampling.max_tokens")));
  auto told = kernelmill(small_run("short_again", {"policy.script=" + script, "--json"}));
  EXPECT_THAT(told.out + told.err, HasSubstr("context_overflow"));
}

TEST(run_command, shows_what_the_profile_of_a_correct_turn_found) {
  ASSERT_EQ(kernelmill(small_run("profiled", {"profile.enabled=true"})).code, 0);
  auto shown =
      kernelmill({"show", "profiled/g0.e0"}).out + kernelmill({"show", "profiled/g0.e1"}).out;
  EXPECT_THAT(shown, HasSubstr("--- profile ---"));
  EXPECT_THAT(shown, Not(HasSubstr("patched")));
}

/// The objects of a log in JSON.
std::vector<nlohmann::json> log_of(const std::string& run) {
  std::vector<nlohmann::json> result;
  std::ifstream in{scratch() + "/" + run + "/logs/run.jsonl"};
  for (std::string line; std::getline(in, line);)
    result.push_back(nlohmann::json::parse(line, nullptr, false));
  return result;
}

TEST(run_command, logs_its_opening_its_turns_and_its_end) {
  auto x = kernelmill(small_run("logged", {"log.level=debug", "log.format=json"}));
  ASSERT_EQ(x.code, 0) << x.err;
  auto lines = log_of("logged");
  ASSERT_GE(lines.size(), 6u);
  for (const auto& line : lines) {
    ASSERT_TRUE(line.is_object());
    for (const auto* key : {"time", "level", "actor", "message"})
      EXPECT_TRUE(line.contains(key)) << line;
  }
  // What is missing of the sandbox here comes before the run.
  auto opened = std::find_if(lines.begin(), lines.end(),
                             [](const auto& line) { return line.contains("run"); });
  ASSERT_NE(opened, lines.end());
  EXPECT_EQ((*opened)["run"], "logged");
  EXPECT_EQ((*opened)["message"], "opened: 2 episodes in 1 group");
  EXPECT_THAT(lines.back()["message"].get<std::string>(), HasSubstr("finished: 2 of 2 episodes"));
  auto turns = std::count_if(lines.begin(), lines.end(), [](const auto& line) {
    return line["actor"] == "episode" && line["episode"] == "g0.e1" && line.contains("turn");
  });
  EXPECT_EQ(turns, 2);
  // A run that has finished has nothing to log, unless that is asked for.
  ASSERT_EQ(kernelmill({"resume", "logged"}).code, 0);
  EXPECT_EQ(log_of("logged").size(), lines.size());
  ASSERT_EQ(kernelmill({"resume", "logged", "log.level=info"}).code, 0);
  auto more = log_of("logged");
  EXPECT_TRUE(std::any_of(
      more.begin() + static_cast<std::ptrdiff_t>(lines.size()), more.end(), [](const auto& line) {
        return line["message"].template get<std::string>().find("opened again") !=
               std::string::npos;
      }));
}

TEST(run_command, retries_reach_the_terminal_and_the_log_without_key_and_control_characters) {
  auto script = write_file("faulty.json", R"({"model": "m", "require_key_env": "SOME_KEY",
      "faults": [{"status": 500, "every": 1, "times": 2, "message": "\u001b[2Jno TOPSECRET"}],
      "replies": [{"text": "no kernel"}]})");
  program_options options;
  options.environment = {"SOME_KEY=TOPSECRET"};
  running_program server{{"policy", "scripted", "--script", script}, options};
  auto url = server.first_line();
  url.erase(url.find_last_not_of('\n') + 1);
  auto words = [&](const std::string& name) {
    return small_run(name, {"policy.kind=openai", "policy.base_url=" + url, "policy.model=m",
                            "policy.api_key_env=SOME_KEY", "log.format=json"});
  };
  auto x = kernelmill(words("retried"), options);
  ASSERT_EQ(x.code, 0) << x.err;
  EXPECT_THAT(x.err, AllOf(HasSubstr("warn  actor=policy-client run=retried episode=g0.e"),
                           HasSubstr("attempt 1 failed"), HasSubstr("2Jno [key]"),
                           Not(HasSubstr("TOPSECRET")), Not(HasSubstr("\x1b[2J"))));
  auto retries = 0;
  for (const auto& line : log_of("retried")) {
    EXPECT_THAT(line.dump(), Not(HasSubstr("TOPSECRET")));
    auto text = line["message"].get<std::string>();
    if (line["level"] == "warn" && text.find("failed, the next in") != text.npos) ++retries;
  }
  EXPECT_EQ(retries, 2);
}

TEST(run_command, a_signal_keeps_what_is_committed_and_resume_goes_on) {
  // No answers: the run is in its first turns when the signal comes, however late that is.
  const std::string replies = R"({"model": "m", "replies": [{"text": "no kernel"}])";
  auto script = write_file("silent.json", replies + R"(, "faults": [{"kind": "stall"}]})");
  running_program started{small_run("two", {"policy.script=" + script})};
  // The first line on stderr says that signals are heard; then episodes live.
  started.wait_for_error("run two");
  nlohmann::json episodes;
  while (episodes.empty() && started.running()) {
    auto asked = kernelmill({"ps", "two", "--json"});
    if (asked.code == 0) episodes = asked.document()["episodes"];
  }
  EXPECT_EQ(episodes.size(), 2u);
  for (const auto& e : episodes) EXPECT_NE(e["state"], "");
  auto x = started.stop(SIGTERM);
  EXPECT_EQ(x.code, 143) << x.err;
  EXPECT_THAT(x.out, HasSubstr("cancelled: "));
  EXPECT_THAT(x.err, HasSubstr("kernelmill resume two"));
  EXPECT_THAT(kernelmill({"show", "two"}).out, HasSubstr("\ncancelled\n"));
  write_file("silent.json", replies + "}"); // it speaks again
  auto resumed = kernelmill({"resume", "two", "--json"});
  ASSERT_EQ(resumed.code, 0) << resumed.err;
  EXPECT_EQ(resumed.document()["totals"]["episodes"], 2);
}

TEST(run_command, resume_refuses_to_change_what_is_measured) {
  ASSERT_EQ(kernelmill(small_run("three")).code, 0);
  auto x = kernelmill({"resume", "three", "tasks.group_size=3"});
  EXPECT_EQ(x.code, 2);
  EXPECT_THAT(x.err, HasSubstr("tasks.group_size"));
  EXPECT_EQ(kernelmill({"resume", "three", "log.level=warn"}).code, 0);
}

TEST(run_command, a_policy_server_that_is_down_is_69_and_nothing_is_lost) {
  auto x =
      kernelmill(small_run("four", {"policy.kind=openai", "policy.base_url=http://127.0.0.1:9/v1",
                                    "policy.model=m", "policy.first_contact_ms=500", "--json"}));
  EXPECT_EQ(x.code, 69) << x.err;
  EXPECT_EQ(x.fault()["class"], "configuration") << x.err;
  EXPECT_THAT(x.err, HasSubstr("127.0.0.1:9"));

  auto shown = kernelmill({"show", "four"});
  EXPECT_EQ(shown.code, 0) << shown.err;
  EXPECT_THAT(shown.out, AllOf(HasSubstr("failed: failed to reach the policy server"),
                               HasSubstr("next: start the server"),
                               HasSubstr("no turn is committed"), Not(HasSubstr("EPISODE"))));
  auto d = kernelmill({"show", "four", "--json"}).document();
  EXPECT_EQ(d["state"], "failed");
  EXPECT_EQ(d["openings"], 1);
  EXPECT_EQ(d["fault"]["category"], "policy_unreachable");

  // The latest opening is the one that counts.
  auto script = write_file("up.json", R"({"model": "m", "replies": [{"text": "no kernel"}]})");
  running_program server{{"policy", "scripted", "--script", script}};
  auto url = server.first_line();
  url.erase(url.find_last_not_of('\n') + 1);
  ASSERT_EQ(kernelmill({"resume", "four", "policy.base_url=" + url}).code, 0);
  d = kernelmill({"show", "four", "--json"}).document();
  EXPECT_EQ(d["state"], "finished");
  EXPECT_EQ(d["openings"], 2);
  EXPECT_TRUE(d["fault"].is_null()) << d["fault"];
}

TEST(run_command, a_failed_run_prints_no_empty_table) {
  auto x =
      kernelmill(small_run("empty", {"policy.kind=openai", "policy.base_url=http://127.0.0.1:9/v1",
                                     "policy.model=m", "policy.first_contact_ms=500"}));
  EXPECT_EQ(x.code, 69) << x.err;
  EXPECT_THAT(x.out, AllOf(HasSubstr("failed: 1 group"), Not(HasSubstr("TASK"))));
  EXPECT_THAT(x.out, Not(HasSubstr(" 0.0 us")));
  auto reported = kernelmill({"report", "empty"});
  EXPECT_EQ(reported.code, 0) << reported.err;
  EXPECT_THAT(reported.out, AllOf(HasSubstr("kernelmill show empty"), Not(HasSubstr("LEVEL"))));
}

TEST(run_command, a_run_that_is_there_already_is_not_said_to_begin) {
  ASSERT_EQ(kernelmill(small_run("there")).code, 0);
  auto x = kernelmill(small_run("there"));
  EXPECT_EQ(x.code, 4);
  EXPECT_THAT(x.err, testing::StartsWith("kernelmill: error: "));
}

TEST(run_command, a_task_that_does_not_exist_is_3_and_names_the_closest) {
  auto x = kernelmill(small_run("five", {"tasks.ids=[\"native/rowsum\"]"}));
  EXPECT_EQ(x.code, 3) << x.err;
  EXPECT_THAT(x.err, HasSubstr("native/row_sum"));
}

TEST(run_command, of_a_split_takes_its_tasks_alone) {
  auto x = kernelmill({"run", source_file("configs/quickstart.json"), "--split", "dev",
                       "tasks.ids=[\"native/row_sum\", \"native/gelu\"]", "tasks.groups=1",
                       "tasks.group_size=1", "tasks.max_turns=1", "evaluation.timing.enabled=false",
                       "profile.enabled=false", "retrieval.enabled=false", "run.dir=held_out",
                       "--json"});
  ASSERT_EQ(x.code, 0) << x.err;
  auto tasks = x.document()["tasks"];
  ASSERT_EQ(tasks.size(), 1u) << x.out; // by the hash of its id
  EXPECT_EQ(tasks[0]["task"], "native/row_sum");
  auto none = kernelmill({"run", source_file("configs/quickstart.json"), "--split", "dev",
                          "tasks.ids=[\"native/gelu\"]", "run.dir=none_held_out"});
  EXPECT_EQ(none.code, 3) << none.err;
  EXPECT_THAT(none.err, HasSubstr("of the split dev"));
}

TEST(run_command, keeps_reports_of_tools_of_its_share_of_accepted_turns) {
  ASSERT_EQ(kernelmill(small_run("share", {"profile.enabled=true", "profile.share=1",
                                           "evaluation.sanitize=on_accept"}))
                .code,
            0);
  auto accepted = kernelmill({"query", "accepted", "share", "--json"}).out;
  auto line = nlohmann::json::parse(accepted.substr(0, accepted.find('\n')));
  auto name = line["name"].get<std::string>();
  auto turn = kernelmill({"show", name, "--json"}).document();
  std::vector<std::string> names;
  for (const auto& x : turn["reports"]) {
    names.push_back(x["tool"].get<std::string>() + " " + x["name"].get<std::string>());
    EXPECT_NE(x["text"], "");
  }
  EXPECT_THAT(names, testing::IsSupersetOf({"sanitizer memcheck.txt", "profiler counters.csv"}));
  EXPECT_THAT(kernelmill({"show", name}).out, HasSubstr("counters.csv of the profiler"));
  EXPECT_EQ(kernelmill({"fsck", "share"}).code, 0);
  ASSERT_EQ(kernelmill(small_run("no_share", {"evaluation.sanitize=on_accept"})).code, 0);
  EXPECT_EQ(kernelmill({"show", "no_share/g0.e0.t0", "--json"}).document()["reports"].size(), 0u);
}

TEST(run_command, a_missing_key_is_2_and_its_value_is_nowhere) {
  program_options options;
  options.environment = {"SOME_KEY=TOPSECRET\nX"};
  for (const auto* name : {"SOME_KEY", "NO_SUCH_KEY"}) {
    auto x =
        kernelmill(small_run("six", {"policy.kind=openai", "policy.base_url=http://127.0.0.1:9/v1",
                                     "policy.model=m", std::string{"policy.api_key_env="} + name}),
                   options);
    EXPECT_EQ(x.code, 2) << x.err;
    EXPECT_THAT(x.err, Not(HasSubstr("TOPSECRET")));
  }
}

TEST(required_layers, that_are_weaker_or_missing_are_refused_with_the_remedy) {
  const std::vector<sandbox_layer> layers = {
      {"seccomp", layer_state::active, "", "", ""},
      {"cgroup_memory", layer_state::weaker, "no cgroup", "run as root", "memory bombs"},
      {"landlock", layer_state::missing, "", "", "one lock fewer"}};
  EXPECT_TRUE(check_layers(layers, {"seccomp"}));
  for (const std::string name : {"cgroup_memory", "landlock"}) {
    auto refused = check_layers(layers, {"seccomp", name});
    ASSERT_FALSE(refused) << name;
    EXPECT_EQ(refused.error().category, "sandbox_layer_missing");
    EXPECT_THAT(refused.error().message, HasSubstr(name));
  }
  EXPECT_EQ(check_layers(layers, {"cgroup_memory"}).error().hint, "run as root");
  EXPECT_EQ(check_layers(layers, {"walls"}).error().category, "unknown_layer");
  auto fell = layers_that_fell(layers);
  EXPECT_THAT(fell, HasSubstr("cgroup_memory is weaker here (memory bombs)"));
  EXPECT_THAT(fell, HasSubstr("landlock is missing here (one lock fewer)"));
  EXPECT_THAT(fell, Not(HasSubstr("\n")));
}

TEST(required_layers, may_be_any_that_doctor_lists) {
  auto x = kernelmill({"doctor", "--json"}).document();
  std::string all;
  for (auto& check : x["findings"])
    if (std::string name = check["name"]; name.starts_with("sandbox: "))
      all += (all.empty() ? "\"" : ",\"") + name.substr(9) + "\"";
  ASSERT_THAT(all, HasSubstr("landlock"));
  auto shown = kernelmill({"config", "validate", source_file("configs/quickstart.json"),
                           "evaluation.required_layers=[" + all + "]"});
  EXPECT_EQ(shown.code, 0) << shown.err;
}

TEST(run_command, a_required_layer_that_is_no_layer_is_2) {
  EXPECT_EQ(kernelmill(small_run("seven", {"evaluation.required_layers=[\"walls\"]"})).code, 2);
}

} // namespace run_test

} // namespace kernelmill::test
