// Runs against scripted servers of the kinds that take token ids, as a user would start them.

#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string_view>

#include <signal.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/integration/cli/program.hpp"
#include "tests/integration/policy_client/raw_server.hpp"

namespace kernelmill::test {

namespace policy_run_test {

using nlohmann::json;
using testing::HasSubstr;
using testing::Not;

/// Answers without a kernel, so that nothing is built; the tokens drift and thoughts are dropped.
std::string script_of(const std::string& name, const std::string& more) {
  return write_file(name, R"({"model": "m", "replies": [
    {"text": "<think>\nhm\n</think>\nno kernel at all, first"},
    {"turn": 1, "text": "<think>\nstill\n</think>\nno kernel, second"}],
    "drift": true, "strip_thoughts": true, "versions": [{"version": "step-1"}])" +
                              more + "}");
}

std::vector<std::string> run_of(const std::string& directory, std::vector<std::string> more) {
  std::vector<std::string> result{"run",
                                  source_file("configs/quickstart.json"),
                                  "tasks.ids=[\"native/row_sum\"]",
                                  "tasks.group_size=2",
                                  "tasks.max_turns=3",
                                  "policy.model=m",
                                  "run.dir=" + directory};
  result.insert(result.end(), more.begin(), more.end());
  return result;
}

/// The turns of each episode that has ended, each of them once and in order.
std::vector<json> traces_of(const std::string& directory) {
  std::ifstream in{scratch() + "/" + directory + "/traces.jsonl"};
  std::map<std::string, json> turns;
  std::vector<json> result;
  for (std::string line; std::getline(in, line);) {
    auto x = json::parse(line);
    EXPECT_GT(x["timestamp"], 1e9);
    auto& list = turns[x["episode"]];
    if (x["kind"] == "episode") {
      EXPECT_EQ(x["state"]["turn_idx"], list.size());
      result.push_back({{"turns", list}});
      continue;
    }
    EXPECT_EQ(x["turn"], list.size());
    list.push_back(x);
  }
  return result;
}

/// Every turn's prompt begins with the prompt and the completion of the turn before.
void expect_threads(const std::vector<json>& traces, size_t turns) {
  ASSERT_EQ(traces.size(), 2u);
  for (const auto& episode : traces) {
    std::vector<int32_t> kept;
    ASSERT_EQ(episode["turns"].size(), turns);
    for (const auto& turn : episode["turns"]) {
      const auto& tokens = turn["tokens"];
      EXPECT_EQ(tokens["audit"], "exact") << turn["turn"];
      EXPECT_EQ(tokens["kept"], kept.size());
      EXPECT_EQ(tokens["route"], "tokens");
      auto prompt = tokens["prompt_token_ids"].get<std::vector<int32_t>>();
      ASSERT_GT(prompt.size(), kept.size());
      EXPECT_TRUE(std::equal(kept.begin(), kept.end(), prompt.begin()));
      auto sampled = tokens["token_ids"].get<std::vector<int32_t>>();
      EXPECT_EQ(tokens["logprobs"].size(), sampled.size());
      for (const auto& x : tokens["logprobs"])
        EXPECT_EQ(x.get<double>(), static_cast<double>(x.get<float>())) << "a float, bit by bit";
      EXPECT_EQ(turn["weight_versions"], json::parse(R"([{"version":"step-1","start":0,"end":)" +
                                                     std::to_string(sampled.size()) + "}]"));
      kept = prompt;
      kept.insert(kept.end(), sampled.begin(), sampled.end());
    }
  }
}

class policy_run : public testing::TestWithParam<const char*> {};

INSTANTIATE_TEST_SUITE_P(kinds, policy_run, testing::Values("vllm", "sglang"),
                         [](const auto& x) { return std::string{x.param}; });

TEST_P(policy_run, exact_tokens_are_in_the_traces_over_all_turns) {
  auto script = script_of("exact.json", "");
  running_program server{{"policy", "scripted", "--script", script, "--kind", GetParam()}};
  auto directory = std::string{"exact_"} + GetParam();
  auto x = kernelmill(
      run_of(directory, {"policy.kind=" + std::string{GetParam()},
                         "policy.base_url=" + server.first_line(), "policy.tokens=exact"}));
  EXPECT_EQ(x.code, 0) << x.err;
  expect_threads(traces_of(directory), 3);
  EXPECT_EQ(server.stop(SIGTERM).code, 0);
}

TEST_P(policy_run, by_chat_the_branches_are_marked_with_their_position) {
  auto script = script_of("chat.json", "");
  running_program server{{"policy", "scripted", "--script", script, "--kind", GetParam()}};
  auto directory = std::string{"chat_"} + GetParam();
  auto x = kernelmill(run_of(directory, {"policy.kind=" + std::string{GetParam()},
                                         "policy.base_url=" + server.first_line()}));
  EXPECT_EQ(x.code, 0) << x.err;
  for (const auto& episode : traces_of(directory)) {
    EXPECT_EQ(episode["turns"][0]["tokens"]["audit"], "exact");
    for (size_t i : {1, 2}) {
      const auto& tokens = episode["turns"][i]["tokens"];
      EXPECT_EQ(tokens["audit"], "branch");
      EXPECT_LT(tokens["position"], tokens["kept"]);
      EXPECT_GT(tokens["position"], 0);
    }
  }
}

std::string http(const std::string& status, const std::string& body) {
  return "HTTP/1.1 " + status + "\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" +
         body;
}

std::string completion(const std::string& message) {
  return http("200 OK", R"({"choices":[{"message":{)" + message + R"(},"finish_reason":"stop"}]})");
}

/// What each member of a group is answered at its first turn, and what its feedback says of that.
struct spoiled_answer {
  std::string bytes, told;
};

const std::vector<spoiled_answer>& spoiled_answers() {
  static const std::vector<spoiled_answer> all{
      {completion(R"("content":null,"tool_calls":[{"function":{"name":"f","arguments":"{}"}}])"),
       "a call of a tool"},
      {completion(R"("content":"half a pair: \ud800")"), "no Unicode text"},
      {completion("\"content\":\"no UTF-8: \xff\""), "no Unicode text"},
      {completion(R"("content":")" + std::string(100'000, 'x') + '"'), "longer than is taken"},
      {completion(R"("reasoning_content":")" + std::string(100'000, 'x') + '"'),
       "longer than is taken"},
      {"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{", "was not complete within"},
      {completion(R"("content":null)"), "The answer is empty"},
      {completion(R"("content":"NaN"}, "logprobs":{"content":[{"logprob":NaN}]}, "x":{"y":1)"),
       "There is no kernel"},
      {http("200 OK", R"({"choices":[{"message":{"content":"hm"},"finish_reason":"length"}]})"),
       "The answer reached max_tokens = "},
      {completion(R"("content":"the server fails at my next turn")"), "There is no kernel"}};
  return all;
}

// The second turn of all does not fit into the context, but for the last member, whose server
// fails.
TEST(policy_answers, whatever_a_policy_says_is_a_turn_and_its_group_is_complete) {
  raw_server server{[](const std::string& request, int) {
    auto at = request.find("/g0.e");
    if (at == std::string::npos) return http("200 OK", R"({"data":[{"id":"m"}]})");
    auto member = static_cast<size_t>(request[at + 5] - '0');
    if (request.find(".t0.") != std::string::npos) return spoiled_answers()[member].bytes;
    if (member + 1 == spoiled_answers().size()) return http("500 Oh", "no");
    return http("400 Bad Request", R"({"error":{"message":"maximum context length is 9 tokens"}})");
  }};
  auto x =
      kernelmill(run_of("spoiled", {"policy.kind=openai", "policy.base_url=" + server.url("/v1"),
                                    "tasks.group_size=10", "policy.timeout_ms=3000",
                                    "policy.max_response_bytes=65536"}));
  EXPECT_EQ(x.code, 0) << x.err;
  std::ifstream log{scratch() + "/spoiled/logs/run.log"};
  EXPECT_THAT((std::ostringstream{} << log.rdbuf()).str(), HasSubstr("dropped: "));
  std::ifstream in{scratch() + "/spoiled/traces.jsonl"};
  size_t turns = 0, episodes = 0;
  for (std::string line; std::getline(in, line);) {
    auto trace = json::parse(line);
    auto episode = trace["episode"].get<std::string>();
    auto member = static_cast<size_t>(episode.back() - '0');
    auto last = member + 1 == spoiled_answers().size();
    if (trace["kind"] == "episode") {
      ++episodes;
      EXPECT_EQ(trace["stop_condition"], last ? "infrastructure" : "context_overflow") << line;
      continue;
    }
    ++turns;
    EXPECT_EQ(trace["turn"], 0);
    EXPECT_EQ(trace["reward"], 0.0) << line;
    EXPECT_THAT(trace.dump(), HasSubstr(spoiled_answers()[member].told));
  }
  EXPECT_EQ(turns, spoiled_answers().size());
  EXPECT_EQ(episodes, spoiled_answers().size());
}

TEST(policy_run_resumed, goes_on_from_the_committed_ids_after_kill_9) {
  // In this process, so that kill -9 takes the server away too: nothing but the store remembers.
  // It says nothing in the last turn: no episode is done before the kill, however late that comes.
  auto script =
      script_of("silent.json", R"(, "kind": "vllm", "faults": [{"kind": "stall", "turn": 2}])");
  auto arguments =
      run_of("killed", {"policy.kind=scripted", "policy.script=" + script, "policy.tokens=exact"});
  running_program started{arguments};
  started.wait_for_error("run killed");
  // Until each of the two episodes has two committed turns.
  auto committed = [] {
    auto asked = kernelmill({"ps", "killed", "--json"});
    if (asked.code != 0) return 0;
    auto runs = asked.document()["runs"];
    return runs.empty() ? 0 : runs[0]["turns"].get<int>();
  };
  while (committed() < 4 && started.running()) {
    // nop
  }
  EXPECT_EQ(started.stop(SIGKILL).code, 128 + SIGKILL);
  // What was committed had its line at once, though no episode has ended.
  for (const char* file : {"/killed/traces.jsonl", "/killed/metrics.jsonl"}) {
    std::ifstream in{scratch() + file};
    std::string line;
    ASSERT_TRUE(std::getline(in, line)) << file;
    EXPECT_EQ(json::parse(line)["kind"], "turn") << file;
  }
  script_of("silent.json", R"(, "kind": "vllm")"); // it speaks again
  auto resumed = kernelmill({"resume", "killed"});
  EXPECT_EQ(resumed.code, 0) << resumed.err;
  expect_threads(traces_of("killed"), 3);
}

/// What a run comes to, and the reward and the text of each turn.
struct outcome {
  json totals;
  std::map<std::string, json> turns;
  bool operator==(const outcome&) const = default;
};

outcome outcome_of(const std::string& directory, const program_result& x) {
  outcome result{x.document()["totals"], {}};
  for (const auto& episode : traces_of(directory))
    for (const auto& turn : episode["turns"])
      result.turns[turn["turn_id"]] = {turn["reward"], turn["response"]};
  return result;
}

/// An episode that was restored, or that was done again: g0.e1.
std::string an_episode(const std::string& directory, bool restored) {
  for (const auto& episode : traces_of(directory)) {
    const auto& turn = episode["turns"][0];
    auto marked = false;
    for (const auto& x : turn["eval_result"]["findings"]) marked |= x["rule"] == "restored";
    if (marked == restored) return "g" + turn["group"].dump() + ".e" + turn["member"].dump();
  }
  ADD_FAILURE() << directory << " has no such episode";
  return {};
}

TEST(policy_run_restored, from_traces_it_comes_to_what_it_came_to) {
  auto script = script_of("whole.json", R"(, "kind": "vllm")");
  auto first = kernelmill(run_of("whole", {"policy.kind=scripted", "policy.script=" + script,
                                           "policy.tokens=exact", "tasks.groups=2", "--json"}));
  ASSERT_EQ(first.code, 0) << first.err;
  auto before = outcome_of("whole", first);
  ASSERT_EQ(before.turns.size(), 12u);
  // The store goes, and with it the row of an episode's end and a row in the midst of another's.
  std::vector<std::string> rows;
  {
    std::ifstream in{scratch() + "/whole/traces.jsonl"};
    for (std::string row; std::getline(in, row);) rows.push_back(row);
  }
  auto last = json::parse(rows.back())["episode"];
  std::string left;
  size_t broken = 0;
  for (size_t i = 0; i + 1 < rows.size(); ++i) {
    if (broken == 0 && json::parse(rows[i])["episode"] != last) broken = i + 1;
    left += (broken == i + 1 ? rows[i].substr(0, 100) : rows[i]) + "\n";
  }
  std::filesystem::remove_all(scratch() + "/whole/lineage");
  write_file("whole/traces.jsonl", left);
  auto refused = kernelmill({"resume", "whole", "--json"});
  EXPECT_EQ(refused.code, 4) << refused.err;
  EXPECT_THAT(refused.fault()["hint"], HasSubstr("kernelmill resume whole --from-traces"));
  auto resumed = kernelmill({"resume", "whole", "--from-traces"});
  ASSERT_EQ(resumed.code, 0) << resumed.err;
  EXPECT_THAT(resumed.err, HasSubstr("whole/traces.jsonl:" + std::to_string(broken) +
                                     ": the row is no JSON object"));
  EXPECT_THAT(resumed.err, HasSubstr("restored 2 episodes with 6 turns from "
                                     "whole/traces.jsonl.before; 2 of which rows are missing are "
                                     "done again"));
  auto again = kernelmill({"resume", "whole", "--from-traces", "--json"});
  ASSERT_EQ(again.code, 0) << again.err;
  EXPECT_EQ(outcome_of("whole", again), before) << again.out;
  EXPECT_EQ(kernelmill({"fsck", "whole"}).code, 0);
  EXPECT_THAT(kernelmill({"show", "whole"}).out,
              HasSubstr("restored from traces.jsonl.before: 2 episodes with 6 turns"));
  auto judged = kernelmill({"rescore", "whole", "--json"});
  EXPECT_THAT(judged.fault()["message"], HasSubstr("restored from traces.jsonl"));
  // A fork has copies of what was restored, and its own manifest says nothing of that.
  for (bool restored : {true, false}) {
    auto name = std::string{restored ? "of_restored" : "of_again"};
    auto forked = kernelmill({"fork", "whole/" + an_episode("whole", restored) + ".t1",
                              "run.name=" + name, "run.dir=" + name, "--json"});
    ASSERT_EQ(forked.code, 0) << forked.err;
    auto x = kernelmill({"rescore", name, "--json"});
    EXPECT_EQ(x.code, restored ? 2 : 0) << x.err;
    if (restored) {
      EXPECT_THAT(x.fault()["message"],
                  HasSubstr("turns that it shares with the run that it was forked from were "
                            "restored from traces.jsonl"));
      EXPECT_THAT(x.fault()["hint"], HasSubstr("kernelmill replay of_restored"));
    }
  }
}

// Nonsense may be a proxy that has a bad minute: it is tried again, and everybody can see that.
TEST(policy_run_retried, what_the_server_answers_is_in_ps_in_the_progress_and_in_the_log) {
  auto script = script_of("nonsense.json", R"(, "faults": [{"kind": "garbage"}])");
  running_program server{{"policy", "scripted", "--script", script}};
  running_program started{
      run_of("nonsense", {"policy.kind=openai", "policy.base_url=" + server.first_line()})};
  // Until both episodes have been answered: the first line may come between the two.
  started.wait_for_error("policy: 2 tried again, attempt ");
  auto table = kernelmill({"ps", "nonsense"});
  EXPECT_THAT(table.out, HasSubstr("last error: failed to read the policy server's answer"));
  auto seen = kernelmill({"ps", "nonsense", "--json"}).document();
  ASSERT_EQ(seen["episodes"].size(), 2u) << seen;
  for (const auto& x : seen["episodes"]) {
    EXPECT_GE(x["policy"]["attempts"], 1) << x;
    EXPECT_THAT(x["policy"]["last_error"].get<std::string>(), HasSubstr("is not JSON"));
  }
  auto end = started.stop(SIGTERM);
  EXPECT_THAT(end.err, HasSubstr("0/6 turns; 0/2 episodes ended: 0 accepted, 0 rejected; policy: 2 "
                                 "tried again, attempt "));
  std::ifstream log{scratch() + "/nonsense/logs/run.log"};
  std::string text{std::istreambuf_iterator<char>{log}, {}};
  EXPECT_THAT(text, HasSubstr("attempt 1 failed"));
  auto shown = kernelmill({"show", "nonsense"});
  EXPECT_THAT(shown.out, HasSubstr("no turn is committed"));
  EXPECT_THAT(shown.out, Not(HasSubstr("TASK")));
}

TEST(policy_run_refused, exact_tokens_of_a_server_of_chats_alone_before_it_is_asked_to_complete) {
  auto script = script_of("plain.json", "");
  for (const char* kind : {"vllm", "sglang", "llamacpp"}) {
    running_program server{{"policy", "scripted", "--script", script, "--kind", "openai"}};
    auto url = server.first_line();
    auto x = kernelmill(run_of(std::string{"plain_"} + kind,
                               {std::string{"policy.kind="} + kind, "policy.tokens=exact",
                                "policy.base_url=" + url, "--json"}));
    EXPECT_EQ(x.code, 2) << kind << x.err;
    EXPECT_EQ(x.fault()["category"], "policy_no_tokens") << x.err;
    EXPECT_THAT(x.fault()["message"], HasSubstr("policy.tokens is exact, but the server has no /"));
    EXPECT_THAT(x.fault()["hint"], HasSubstr("kernelmill policy probe " + url));
    EXPECT_THAT(x.fault()["hint"], HasSubstr("policy.tokens=chat"));
    EXPECT_THAT(server.stop(SIGTERM).err, HasSubstr("answered 0 requests")) << kind;
  }
}

TEST(policy_run_refused, exact_tokens_need_a_server_that_takes_them) {
  auto x = kernelmill(run_of("refused", {"policy.kind=openai", "policy.tokens=exact",
                                         "policy.base_url=http://127.0.0.1:9/v1"}));
  EXPECT_EQ(x.code, 2) << x.err;
  EXPECT_THAT(x.err, HasSubstr("policy.tokens"));
}

TEST(policy_run_refused, a_wrong_key_is_told_once) {
  auto script = write_file("locked.json", R"({"model": "m", "require_key_env": "RIGHT_KEY",
                                              "replies": [{"text": "hello"}]})");
  program_options options;
  options.environment = {"RIGHT_KEY=right", "WRONG_KEY=wrong"};
  running_program server{{"policy", "scripted", "--script", script}, options};
  auto x = kernelmill(
      run_of("locked", {"policy.kind=openai", "tasks.group_size=8", "policy.max_in_flight=2",
                        "policy.api_key_env=WRONG_KEY", "policy.base_url=" + server.first_line()}),
      options);
  EXPECT_EQ(x.code, 2) << x.err;
  auto told = [&](std::string_view what) {
    int times = 0;
    for (auto at = x.err.find(what); at != std::string::npos; at = x.err.find(what, at + 1))
      ++times;
    return times;
  };
  int late = told(" more request"); // one line at the end, if any came after it was told
  EXPECT_LE(late, 1) << x.err;
  EXPECT_EQ(told("actor=policy-client"), 1 + late) << x.err;
  EXPECT_EQ(told(" | left open: "), 1) << x.err;
}

TEST(policy_probe, lists_what_each_kind_has_and_what_is_lost_without) {
  for (const char* kind : {"openai", "vllm", "sglang", "llamacpp"}) {
    SCOPED_TRACE(kind);
    auto script = script_of("probe.json", "");
    running_program server{{"policy", "scripted", "--script", script, "--kind", kind}};
    auto url = server.first_line();
    auto x = kernelmill({"policy", "probe", url, "--json"});
    ASSERT_EQ(x.code, 0) << x.err;
    auto d = x.document();
    EXPECT_EQ(d["kind"], kind);
    EXPECT_EQ(d["model"], "m");
    std::map<std::string, json> has;
    for (const auto& c : d["capabilities"]) has[c["name"]] = c["has"];
    auto engine = std::string_view{kind} == "vllm" || std::string_view{kind} == "sglang";
    for (const char* name : {"models", "health", "content", "logprobs", "streaming", "seed_repeat",
                             "metrics", "weight_version"})
      EXPECT_EQ(has[name], true) << name;
    EXPECT_EQ(has["prompt_ids"], engine);
    for (const char* name : {"token_route", "token_ids", "render"})
      EXPECT_EQ(has[name], std::string_view{kind} != "openai") << name;
    EXPECT_EQ(has["abort"], std::string_view{kind} == "sglang");
    EXPECT_EQ(has["tools"], json(nullptr)) << "this model calls none";
    auto text = kernelmill({"policy", "probe", url, "--kind", kind, "--model", "m"});
    EXPECT_EQ(text.code, 0) << text.err;
    EXPECT_THAT(text.out, HasSubstr("CAPABILITY"));
    EXPECT_THAT(text.out, HasSubstr("What is lost"));
  }
}

TEST(policy_probe, says_what_is_wrong_by_its_exit_code) {
  EXPECT_EQ(kernelmill({"policy", "probe", "http://127.0.0.1:9/v1"}).code, 69);
  EXPECT_EQ(kernelmill({"policy", "probe", "127.0.0.1:9"}).code, 2);
  EXPECT_EQ(kernelmill({"policy", "probe", "http://127.0.0.1:9/v1", "--kind", "other"}).code, 2);
  auto script = write_file("keyed.json", R"({"model": "m", "require_key_env": "SOME_KEY",
                                             "replies": [{"text": "hello"}]})");
  program_options options;
  options.environment = {"SOME_KEY=TOPSECRET", "OTHER_KEY=WRONGSECRET"};
  running_program server{{"policy", "scripted", "--script", script}, options};
  auto url = server.first_line();
  auto good = kernelmill({"policy", "probe", url, "--api-key-env", "SOME_KEY"}, options);
  EXPECT_EQ(good.code, 0) << good.err;
  auto wrong = kernelmill({"policy", "probe", url, "--api-key-env", "OTHER_KEY"}, options);
  EXPECT_EQ(wrong.code, 2) << wrong.err;
  EXPECT_THAT(wrong.err, HasSubstr("$OTHER_KEY"));
  EXPECT_THAT(wrong.err + good.out + good.err, Not(HasSubstr("SECRET")));
}

} // namespace policy_run_test
} // namespace kernelmill::test
