#include <gtest/gtest.h>

#include "actors/policy_client/retry_policy.hpp"

namespace kernelmill {
namespace retry_policy_test {

using std::chrono::milliseconds;

attempt_decision of_status(long status, server_error server = {}, attempt_history history = {}) {
  attempt_signal x;
  x.status = status;
  x.server = std::move(server);
  return classify(x, history, 1000);
}

attempt_decision of_transport(transport_fault fault, attempt_history history = {}) {
  attempt_signal x;
  x.transport = fault;
  x.detail = "why";
  return classify(x, history, 1000);
}

void expect_stop(const attempt_decision& x, fault_class cls, const char* category) {
  EXPECT_EQ(x.action, attempt_action::stop);
  EXPECT_EQ(x.fault.cls, cls);
  EXPECT_EQ(x.fault.category, category);
  EXPECT_EQ(x.stops_admission, cls == fault_class::configuration);
}

void expect_retry(const attempt_decision& x, const char* category) {
  EXPECT_EQ(x.action, attempt_action::retry);
  EXPECT_EQ(x.fault.cls, fault_class::infrastructure);
  EXPECT_EQ(x.fault.category, category);
}

TEST(classify, server_trouble_is_retried_as_infrastructure) {
  for (auto status : {500, 502, 503, 504, 520, 529}) {
    SCOPED_TRACE(status);
    expect_retry(of_status(status), "policy_unavailable");
    EXPECT_TRUE(of_status(status).sick);
  }
  for (auto status : {408, 409, 425}) {
    SCOPED_TRACE(status);
    expect_retry(of_status(status), "policy_unavailable");
    EXPECT_FALSE(of_status(status).sick);
  }
  expect_retry(of_status(429), "policy_rate_limited");
  EXPECT_FALSE(of_status(429).sick);
}

TEST(classify, transport_trouble_is_retried_as_infrastructure) {
  using t = transport_fault;
  for (auto fault : {t::unresolved, t::refused, t::connect_timeout})
    expect_retry(of_transport(fault), "policy_unreachable");
  for (auto fault : {t::reset, t::tls, t::other})
    expect_retry(of_transport(fault), "policy_connection_lost");
  for (auto fault : {t::truncated, t::malformed})
    expect_retry(of_transport(fault), "policy_bad_response");
  for (auto fault : {t::timeout, t::stalled}) expect_retry(of_transport(fault), "policy_timeout");
}

TEST(classify, a_body_that_broke_off_is_retried_whatever_its_status) {
  attempt_signal x;
  x.transport = transport_fault::truncated;
  x.status = 200;
  expect_retry(classify(x, {}, 0), "policy_bad_response");
}

TEST(classify, keys_and_money_are_the_configurations_fault_at_once) {
  expect_stop(of_status(401), fault_class::configuration, "policy_auth");
  expect_stop(of_status(403), fault_class::configuration, "policy_auth");
  expect_stop(of_status(402), fault_class::configuration, "policy_billing");
  expect_stop(of_status(429, {"no money", "insufficient_quota", ""}), fault_class::configuration,
              "policy_billing");
  expect_stop(of_transport(transport_fault::untrusted), fault_class::configuration,
              "policy_untrusted");
}

TEST(classify, a_wrong_request_is_the_configurations_fault) {
  for (auto status : {400, 405, 406, 422, 501})
    expect_stop(of_status(status), fault_class::configuration, "policy_bad_request");
  expect_stop(of_status(301), fault_class::configuration, "policy_redirected");
  expect_stop(of_status(413), fault_class::configuration, "policy_bad_request");
}

TEST(classify, a_context_overflow_is_the_policys_and_never_retried) {
  server_error server{"maximum context length is 4096 tokens", "", ""};
  for (auto status : {400, 413, 422})
    expect_stop(of_status(status, server), fault_class::policy, "context_overflow");
}

TEST(classify, a_request_that_asks_for_too_many_tokens_is_asked_again_for_fewer) {
  attempt_signal x;
  x.status = 400;
  x.asked_tokens = 2000;
  x.server.message = "This model's maximum context length is 4096 tokens. However, you requested "
                     "5000 tokens (3000 in the messages, 2000 in the completion).";
  auto decision = classify(x, {}, 0);
  EXPECT_EQ(decision.action, attempt_action::retry);
  EXPECT_EQ(decision.max_tokens, 1096u);
  // What is left holds no kernel.
  x.asked_tokens = 8000;
  x.server.message = "This model's maximum context length is 4096 tokens. However, you requested "
                     "11900 tokens (3900 in the messages, 8000 in the completion).";
  expect_stop(classify(x, {}, 0), fault_class::policy, "context_overflow");
}

// The one table of whose doing an end of an attempt is. What a model's words can cause is the
// policy's, at once; what no words can cause is another's.
TEST(classify, says_whose_doing_an_answer_is) {
  using signal = attempt_signal;
  struct row {
    const char* what;
    void (*set)(signal&);
    attempt_action action;
    fault_class cls;
    const char* category;
  };
  constexpr auto retry = attempt_action::retry, stop = attempt_action::stop;
  constexpr auto policy = fault_class::policy, ours = fault_class::infrastructure;
  const row rows[] = {
      {"a call of a tool alone", [](signal& x) { x.only_tool_calls = true; }, stop, policy,
       "policy_tool_calls"},
      {"a body above the limit", [](signal& x) { x.transport = transport_fault::too_large; }, stop,
       policy, "policy_response_too_large"},
      {"words that are no text", [](signal& x) { x.broken_text = true; }, stop, policy,
       "answer_not_text"},
      {"JSON that broke within a completion",
       [](signal& x) { x.unreadable = x.of_completion = true; }, stop, policy, "answer_unreadable"},
      {"a time that is over, at a server that is well",
       [](signal& x) { x.overdue = x.server_works = true; }, stop, policy, "answer_overdue"},
      {"a time that is over, at a silent server", [](signal& x) { x.overdue = true; }, stop, ours,
       "policy_timeout"},
      {"a page instead of a completion", [](signal& x) { x.unreadable = true; }, retry, ours,
       "policy_bad_response"},
      {"a long page of an error",
       [](signal& x) {
         x.status = 502;
         x.transport = transport_fault::too_large;
       },
       retry, ours, "policy_unavailable"},
      {"a header above the limit", [](signal& x) { x.transport = transport_fault::malformed; },
       retry, ours, "policy_bad_response"},
      {"an error within a 200", [](signal& x) { x.error_within = true; }, retry, ours,
       "policy_aborted"},
      {"an abort", [](signal& x) { x.finish_reason = "abort"; }, retry, ours, "policy_aborted"},
      {"an abort with half a character",
       [](signal& x) {
         x.finish_reason = "abort";
         x.broken_text = true;
       },
       retry, ours, "policy_aborted"},
      {"an error of the server", [](signal& x) { x.status = 500; }, retry, ours,
       "policy_unavailable"},
      {"a connection that broke", [](signal& x) { x.transport = transport_fault::truncated; },
       retry, ours, "policy_bad_response"},
      {"a refusal of what was taken before", [](signal& x) { x.status = 400; }, retry, ours,
       "policy_bad_request"},
  };
  for (const auto& x : rows) {
    SCOPED_TRACE(x.what);
    signal of;
    of.status = 200;
    x.set(of);
    attempt_history known;
    known.model_known = true;
    auto decision = classify(of, known, 0);
    EXPECT_EQ(decision.action, x.action);
    EXPECT_EQ(decision.fault.cls, x.cls);
    EXPECT_EQ(decision.fault.category, x.category);
    EXPECT_FALSE(decision.stops_admission);
    EXPECT_FALSE(decision.sick && x.cls == policy) << "a model's words are no illness of a server";
  }
}

TEST(classify, a_refusal_of_one_conversation_ends_as_the_servers) {
  attempt_history known{true, 2};
  expect_stop(of_status(400, {}, known), fault_class::infrastructure, "policy_bad_request");
}

TEST(classify, a_missing_model_is_retried_a_few_times_when_it_was_there_before) {
  expect_stop(of_status(404), fault_class::configuration, "policy_not_found");
  attempt_history known{true, 0};
  expect_retry(of_status(404, {}, known), "policy_not_found");
  EXPECT_TRUE(of_status(404, {}, known).doubtful);
  known.doubtful = 4;
  expect_stop(of_status(404, {}, known), fault_class::configuration, "policy_not_found");
}

TEST(classify, a_415_for_json_gets_one_more_attempt) {
  expect_retry(of_status(415), "policy_unavailable");
  expect_stop(of_status(415, {}, {false, 1}), fault_class::configuration, "policy_bad_request");
}

TEST(classify, a_200_is_judged_by_what_it_holds) {
  attempt_signal x;
  x.status = 200;
  for (const auto* finish : {"stop", "length", "content_filter", "tool_calls", ""}) {
    x.finish_reason = finish;
    EXPECT_EQ(classify(x, {}, 0).action, attempt_action::answer);
  }
  for (const auto* finish : {"abort", "error"}) {
    x.finish_reason = finish;
    expect_retry(classify(x, {}, 0), "policy_aborted");
  }
  x.finish_reason = "";
  x.unreadable = true;
  expect_retry(classify(x, {}, 0), "policy_bad_response");
}

TEST(classify, an_error_within_a_200_counts_as_the_status_it_names) {
  attempt_signal x;
  x.status = 200;
  x.error_within = true;
  x.server = {"slow down", "", "429"};
  expect_retry(classify(x, {}, 0), "policy_rate_limited");
  x.server = {"maximum context length", "", "400"};
  expect_stop(classify(x, {}, 0), fault_class::policy, "context_overflow");
  x.server = {"maximum context length", "", ""};
  expect_stop(classify(x, {}, 0), fault_class::policy, "context_overflow");
  x.server = {"worker died", "", "internal"};
  expect_retry(classify(x, {}, 0), "policy_aborted");
}

TEST(retry_after, is_read_as_seconds_or_date) {
  EXPECT_EQ(parse_retry_after("3", "", 0), milliseconds{3000});
  EXPECT_EQ(parse_retry_after("0", "", 0), milliseconds{0});
  EXPECT_EQ(parse_retry_after("1.5", "", 0), milliseconds{2000});
  EXPECT_EQ(parse_retry_after("-3", "", 0), milliseconds{0});
  // 1994-11-06 08:49:37 UTC is 784111777.
  EXPECT_EQ(parse_retry_after("Sun, 06 Nov 1994 08:49:37 GMT", "", 784111770), milliseconds{7000});
  EXPECT_EQ(parse_retry_after("Sun, 06 Nov 1994 08:49:37 GMT", "Sun, 06 Nov 1994 08:49:32 GMT", 1),
            milliseconds{5000});
  EXPECT_EQ(parse_retry_after("Sun, 06 Nov 1994 08:49:37 GMT", "", 900000000), milliseconds{0});
  EXPECT_EQ(parse_retry_after("99999999999999999999", "", 0), milliseconds{86400000});
  for (const auto* text : {"", "soon", "3x", "\x01"}) EXPECT_FALSE(parse_retry_after(text, "", 0));
}

TEST(backoff, is_full_jitter_up_to_the_cap) {
  for (uint64_t random : {uint64_t{0}, uint64_t{499}, uint64_t{500}, ~uint64_t{0}}) {
    EXPECT_LE(backoff(1, random), milliseconds{500});
    EXPECT_LE(backoff(2, random), milliseconds{1000});
    EXPECT_LE(backoff(7, random), milliseconds{30000});
    EXPECT_LE(backoff(4000000000u, random), milliseconds{30000});
  }
  EXPECT_EQ(backoff(1, 500), milliseconds{500});
  EXPECT_EQ(backoff(1, 501), milliseconds{0});
}

TEST(next_wait, keeps_to_what_the_server_asked_and_to_the_deadline) {
  attempt_decision asked;
  asked.retry_after = milliseconds{2000};
  for (uint64_t random = 0; random < 2000; random += 7) {
    auto wait = next_wait(asked, 1, milliseconds{60000}, random);
    ASSERT_TRUE(wait);
    EXPECT_GE(*wait, milliseconds{2000});
    EXPECT_LE(*wait, milliseconds{2500});
    auto tight = next_wait(asked, 1, milliseconds{2200}, random);
    ASSERT_TRUE(tight);
    EXPECT_LE(*tight, milliseconds{2100});
  }
  EXPECT_FALSE(next_wait(asked, 1, milliseconds{2050}, 0));
}

TEST(next_wait, leaves_time_for_a_last_attempt) {
  attempt_decision own;
  for (uint64_t random = 0; random < 100000; random += 997)
    EXPECT_LE(next_wait(own, 20, milliseconds{1000}, random), milliseconds{500});
  EXPECT_FALSE(next_wait(own, 1, milliseconds{99}, 0));
  EXPECT_FALSE(next_wait(own, 1, milliseconds{-5}, 0));
}

} // namespace retry_policy_test
} // namespace kernelmill
