#include <cmath>
#include <map>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "launch/server/trackers/otlp_settings.hpp"
#include "launch/server/trackers/otlp_spans.hpp"
#include "messages/identity.hpp"
#include "messages/message.hpp"
#include "messages/trace_ids.hpp"

namespace kernelmill::trackers {
namespace otlp_test {

using ::testing::ElementsAre;
using ::testing::Pair;

// -- settings -----------------------------------------------------------------------------------

variable_reader from(std::map<std::string, std::string> values) {
  return [values = std::move(values)](const std::string& name) -> std::optional<std::string> {
    auto found = values.find(name);
    return found == values.end() ? std::nullopt : std::optional{found->second};
  };
}

std::string url_of(const otlp_section& keys, std::map<std::string, std::string> values) {
  auto result = resolve_otlp(keys, from(std::move(values)));
  return result ? result->url : render(result.error());
}

TEST(resolve_otlp, sends_nothing_unless_a_collector_is_named) {
  EXPECT_EQ(url_of({}, {}), "");
  EXPECT_EQ(url_of({}, {{"OTEL_SERVICE_NAME", "x"}}), "");
}

TEST(resolve_otlp, takes_the_address_of_the_key_and_else_that_of_the_variables) {
  otlp_section keys;
  EXPECT_EQ(url_of({}, {{"OTEL_EXPORTER_OTLP_ENDPOINT", "http://c:4318/"}}),
            "http://c:4318/v1/traces");
  EXPECT_EQ(url_of({}, {{"OTEL_EXPORTER_OTLP_ENDPOINT", "http://c:4318"},
                        {"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "https://t/otlp"}}),
            "https://t/otlp");
  keys.endpoint = "https://mine/api";
  EXPECT_EQ(url_of(keys, {{"OTEL_EXPORTER_OTLP_ENDPOINT", "http://c:4318"}}),
            "https://mine/api/v1/traces");
  keys.endpoint = "https://mine/api/v1/traces";
  EXPECT_EQ(url_of(keys, {}), "https://mine/api/v1/traces");
}

TEST(resolve_otlp, is_off_where_the_variables_say_so) {
  std::pair<std::string, std::string> there{"OTEL_EXPORTER_OTLP_ENDPOINT", "http://c:4318"};
  EXPECT_EQ(url_of({}, {there, {"OTEL_SDK_DISABLED", "TRUE"}}), "");
  EXPECT_EQ(url_of({}, {there, {"OTEL_TRACES_EXPORTER", "none"}}), "");
  EXPECT_NE(url_of({}, {there, {"OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf"}}), "");
}

TEST(resolve_otlp, says_why_it_does_not_do_what_a_variable_wants) {
  for (auto values :
       {std::map<std::string, std::string>{{"OTEL_EXPORTER_OTLP_ENDPOINT", "http://c:4317"},
                                           {"OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"}},
        {{"OTEL_EXPORTER_OTLP_ENDPOINT", "collector:4318"}},
        {{"OTEL_EXPORTER_OTLP_ENDPOINT", "http://c"},
         {"OTEL_EXPORTER_OTLP_HEADERS", "nonsense"}}}) {
    auto result = resolve_otlp({}, from(values));
    ASSERT_TRUE(result);
    EXPECT_EQ(result->url, "");
    EXPECT_NE(result->why_nothing, "");
    EXPECT_EQ(result->why_nothing.find("nonsense"), std::string::npos); // it may be a key
  }
}

TEST(resolve_otlp, refuses_headers_that_the_configuration_names_wrongly) {
  otlp_section keys;
  keys.headers_env = "H";
  EXPECT_FALSE(resolve_otlp(keys, from({})));
  auto bad = resolve_otlp(keys, from({{"H", "sk-secret"}}));
  ASSERT_FALSE(bad);
  EXPECT_EQ(render(bad.error()).find("sk-secret"), std::string::npos);
  auto good =
      resolve_otlp(keys, from({{"H", "a=b%20c, d = e"}, {"OTEL_EXPORTER_OTLP_HEADERS", "x=y"}}));
  ASSERT_TRUE(good);
  EXPECT_THAT(good->headers, ElementsAre(Pair("a", "b c"), Pair("d", "e")));
}

TEST(resolve_otlp, names_the_service) {
  otlp_section keys;
  auto resource = [&](std::map<std::string, std::string> values) {
    return resolve_otlp(keys, from(std::move(values)))->resource;
  };
  EXPECT_THAT(resource({}), ElementsAre(Pair("service.name", "kernelmill")));
  EXPECT_THAT(resource({{"OTEL_RESOURCE_ATTRIBUTES", "a=1,service.name=r"}}),
              ElementsAre(Pair("service.name", "r"), Pair("a", "1")));
  EXPECT_THAT(
      resource({{"OTEL_RESOURCE_ATTRIBUTES", "service.name=r"}, {"OTEL_SERVICE_NAME", "s"}}),
      ElementsAre(Pair("service.name", "s")));
  keys.service = "k";
  EXPECT_THAT(resource({{"OTEL_SERVICE_NAME", "s"}}), ElementsAre(Pair("service.name", "k")));
}

TEST(parse_name_values, takes_lists_and_refuses_what_no_header_may_hold) {
  EXPECT_THAT(*parse_name_values(" a = 1 ,b=x%2Cy%3D,, c="),
              ElementsAre(Pair("a", "1"), Pair("b", "x,y="), Pair("c", "")));
  for (const auto* text : {"a", "=b", "a b=c", "a=%", "a=%2", "a=%zz", "a=%0d%0aX: y", "a=\x01"})
    EXPECT_FALSE(parse_name_values(text)) << text;
}

// -- spans --------------------------------------------------------------------------------------

Message<wire::Record> a_turn(bool failed = false) {
  return build<wire::Record>([&](wire::Record::Builder record) {
    auto turn = record.initTurn();
    auto where = turn.initEpisode();
    where.setRun("r");
    where.setTask("native/row_sum");
    where.setGroup(2);
    where.setMember(1);
    turn.setTurn(3);
    turn.setTurnId("0123");
    turn.setStartedAt(100);
    turn.setCommittedAt(110);
    auto seconds = turn.initSeconds();
    seconds.setPolicy(4);
    auto verdict = turn.initVerdict();
    if (failed) {
      auto fault = turn.initFacts().initFault();
      fault.setClass(wire::FaultClass::INFRASTRUCTURE);
      fault.setCategory("policy_unreachable");
      fault.setMessage("no server answers");
      verdict.setOutcome(wire::Outcome::INFRASTRUCTURE);
      verdict.setCategory("policy_unreachable");
      verdict.setReward(std::nan(""));
      return;
    }
    seconds.setBuild(2);
    seconds.setEvaluate(1);
    auto completion = turn.initCompletion();
    completion.setRequestId("r/g2.e1.t3.a2");
    completion.setModel("answered");
    completion.setFinishReason("stop");
    completion.setPromptTokens(10);
    completion.setCompletionTokens(20);
    completion.initText().setInline("the answer");
    turn.initPrompt(1)[0].setRole("user");
    turn.getPrompt()[0].initContent().setInline("the question");
    turn.initCandidate().setInline("int x;");
    auto facts = turn.initFacts();
    facts.initBuild().setCompiled(true);
    facts.getBuild().setLog("a warning");
    verdict.setReward(0.5);
    verdict.setCategory("success");
    auto gates = verdict.initGates(2);
    gates[0].setName("build");
    gates[0].setStatus(wire::GateStatus::FAIL);
    gates[0].setReason("no function solve2");
    auto quoted = verdict.initFault();
    quoted.setClass(wire::FaultClass::CANDIDATE);
    quoted.setMessage("no function solve2");
    gates[1].setName("performance");
    gates[1].setStatus(wire::GateStatus::NOT_RUN);
    auto finding = verdict.initFindings(1)[0];
    finding.setRule("late_write");
    finding.setEvidence("3 bytes");
  });
}

traced_run a_run() {
  traced_run run;
  run.name = "r";
  run.group_size = 4;
  run.provider = "vllm";
  run.sampling.seed = 7;
  return run;
}

json attribute(const json& span, const std::string& key) {
  for (const auto& x : span["attributes"])
    if (x["key"] == key) return x["value"];
  return nullptr;
}

TEST(turn_spans, are_one_below_the_other_and_one_after_the_other) {
  auto record = a_turn();
  auto view = record.open();
  auto spans = turn_spans(view->getTurn(), a_run());
  ASSERT_TRUE(spans) << render(spans.error());
  std::vector<std::string> names;
  for (const auto& x : *spans) names.push_back(x["name"]);
  EXPECT_THAT(names, ElementsAre("chat answered", "execute_tool build", "execute_tool evaluate",
                                 "turn t3"));
  auto turn = spans->back();
  for (size_t i = 0; i + 1 < spans->size(); ++i) {
    EXPECT_EQ((*spans)[i]["parentSpanId"], turn["spanId"]);
    EXPECT_EQ((*spans)[i]["traceId"], turn["traceId"]);
  }
  EXPECT_EQ((*spans)[0]["startTimeUnixNano"], "100000000000");
  EXPECT_EQ((*spans)[0]["endTimeUnixNano"], "104000000000");
  EXPECT_EQ((*spans)[1]["startTimeUnixNano"], "104000000000");
  EXPECT_EQ((*spans)[2]["endTimeUnixNano"], "107000000000");
  EXPECT_EQ(turn["endTimeUnixNano"], "110000000000");
  EXPECT_EQ(attribute((*spans)[0], "gen_ai.request.seed")["intValue"],
            std::to_string(request_seed(0, 7, {"r", "native/row_sum", 2, 1}, 3)));
}

// What the policy client sends in `traceparent` for the same request.
TEST(turn_spans, have_the_ids_of_the_request) {
  auto record = a_turn();
  auto view = record.open();
  auto spans = turn_spans(view->getTurn(), a_run());
  ASSERT_TRUE(spans);
  auto trace = trace_of_episode(run_number("r"), 2 * 4 + 1);
  char text[64];
  std::snprintf(text, sizeof text, "%016lx%016lx", trace.high, trace.low);
  EXPECT_EQ((*spans)[0]["traceId"], text);
  std::snprintf(text, sizeof text, "%016lx", span_of(trace, "r/g2.e1.t3.a2"));
  EXPECT_EQ((*spans)[0]["spanId"], text);
}

TEST(turn_spans, say_verdicts_as_events_and_keep_texts_to_themselves) {
  auto record = a_turn();
  auto view = record.open();
  auto spans = turn_spans(view->getTurn(), a_run());
  ASSERT_TRUE(spans);
  std::vector<std::string> events;
  for (const auto& x : spans->back()["events"]) {
    auto name = x["attributes"][0]["value"]["stringValue"].get<std::string>();
    events.push_back(x["name"].get<std::string>() + " " + name);
  }
  EXPECT_THAT(events,
              ElementsAre("gen_ai.evaluation.result gate.build", "gen_ai.evaluation.result reward",
                          "kernelmill.finding late_write"));
  auto text = json(*spans).dump();
  for (const auto* secret :
       {"the answer", "the question", "int x;", "a warning", "3 bytes", "solve2"})
    EXPECT_EQ(text.find(secret), text.npos) << secret;
  artifact_store texts{"/nonexistent"};
  auto run = a_run();
  run.texts = &texts;
  auto all = turn_spans(view->getTurn(), run);
  ASSERT_TRUE(all) << render(all.error());
  text = json(*all).dump();
  for (const auto* told :
       {"the answer", "the question", "int x;", "a warning", "3 bytes", "solve2"})
    EXPECT_NE(text.find(told), text.npos) << told;
}

TEST(turn_spans, of_a_turn_without_an_answer_say_the_fault) {
  auto record = a_turn(true);
  auto view = record.open();
  auto spans = turn_spans(view->getTurn(), a_run());
  ASSERT_TRUE(spans);
  ASSERT_EQ(spans->size(), 2u);
  for (const auto& x : *spans) {
    EXPECT_EQ(attribute(x, "error.type")["stringValue"], "policy_unreachable");
    EXPECT_EQ(x["status"]["code"], 2);
  }
  EXPECT_EQ(attribute((*spans)[1], "kernelmill.reward"), nullptr);
}

TEST(episode_span, is_the_root_and_spans_its_turns) {
  auto end = build<wire::Record>([](wire::Record::Builder record) {
    auto x = record.initEpisode();
    auto where = x.initEpisode();
    where.setRun("r");
    where.setGroup(2);
    where.setMember(1);
    x.setSeconds(5);
    x.setCommittedAt(120);
  });
  stored_episode turns;
  turns.turns.push_back(a_turn());
  auto view = end.open();
  auto span = episode_span(view->getEpisode(), turns, a_run());
  auto record = a_turn();
  auto turn_view = record.open();
  auto turn = turn_spans(turn_view->getTurn(), a_run())->back();
  EXPECT_EQ(turn["parentSpanId"], span["spanId"]);
  EXPECT_EQ(turn["traceId"], span["traceId"]);
  EXPECT_FALSE(span.contains("parentSpanId"));
  EXPECT_EQ(span["startTimeUnixNano"], "100000000000"); // of the turn: the episode was resumed
  EXPECT_EQ(attribute(span, "gen_ai.usage.output_tokens")["intValue"], "20");
}

TEST(is_traced, is_the_same_for_all_of_an_episode_and_near_the_share_of_all) {
  auto run = a_run();
  uint32_t traced = 0;
  for (uint32_t group = 0; group < 500; ++group)
    for (uint32_t member = 0; member < 4; ++member) {
      auto record = build<wire::EpisodeRef>([&](wire::EpisodeRef::Builder x) {
        x.setGroup(group);
        x.setMember(member);
      });
      auto view = record.open();
      traced += is_traced(run, *view, 0.25);
      EXPECT_TRUE(is_traced(run, *view, 1));
      EXPECT_FALSE(is_traced(run, *view, 0));
    }
  EXPECT_NEAR(traced, 500, 80);
}

} // namespace otlp_test
} // namespace kernelmill::trackers
