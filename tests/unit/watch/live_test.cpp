// What a monitor says, read into rows and explained.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "actors/snapshots.hpp"
#include "launch/analysis/watch/explain.hpp"
#include "launch/analysis/watch/policy_health.hpp"
#include "messages/base/clock.hpp"
#include "messages/base/json_value.hpp"
#include "messages/identity.hpp"

namespace kernelmill::watch {
namespace live_test {

using testing::HasSubstr;

void put(wire::Snapshot::Builder x, std::vector<std::pair<const char*, double>> numbers) {
  auto list = x.initNumbers(static_cast<unsigned>(numbers.size()));
  for (unsigned i = 0; i < list.size(); ++i) {
    list[i].setName(numbers[i].first);
    list[i].setValue(numbers[i].second);
  }
}

void put_episode(wire::Snapshot::Builder x, const char* id, const char* state, double ordinal) {
  x.setActor("episode");
  x.setId(id);
  x.setState(state);
  x.setSince(seconds_since_1970() - 5);
  x.setDetail("native/row_sum, turn 1 of 4");
  put(x, {{"ordinal", ordinal}, {"turn", 0}, {"max_turns", 4}, {"deadline_seconds", 30}});
}

/// A run "first" of four episodes: one at cpu0, two in the line for it behind another run's job,
/// one at the policy, which answered nonsense. `places` are those of the evaluation queue.
live_run tree(double places) {
  std::string line;
  uint64_t run = 0;
  append_waiting(line, run, {.run = run_number("other"), .episode = 2});
  append_waiting(line, run, {.run = run_number("first"), .episode = 1});
  append_waiting(line, run, {.run = run_number("first"), .episode = 2});
  std::string leased;
  append_waiting(leased, run = 0, {.run = run_number("first"), .episode = 0});
  live_run result;
  result.run.name = "first";
  result.run.path = "runs/first";
  result.says = build<wire::Snapshot>([&](wire::Snapshot::Builder x) {
    x.setActor("monitor");
    auto parts = x.initChildren(4);
    parts[0].setActor("run");
    parts[0].setId("first");
    parts[0].setState("running");
    put(parts[0], {{"planned", 8}, {"live", 4}, {"ended", 1}, {"turns", 3}});
    auto episodes = parts[0].initChildren(4);
    put_episode(episodes[0], "g0.e0", "evaluating", 0);
    put_episode(episodes[1], "g0.e1", "evaluating", 1);
    put_episode(episodes[2], "g0.e2", "evaluating", 2);
    put_episode(episodes[3], "g0.e3", "thinking", 3);
    parts[1].setActor("cluster");
    auto queues = parts[1].initChildren(1);
    queues[0].setActor("queue");
    queues[0].setId("evaluate");
    queues[0].setState(places > 0 ? "working" : "starved");
    queues[0].setDetail(line);
    put(queues[0], {{"credits", places},
                    {"waiting", 3},
                    {"leased", 1},
                    {"done", 9},
                    {"mean_seconds", 4},
                    {"oldest_wait_seconds", 7}});
    auto leases = queues[0].initChildren(1);
    leases[0].setActor("lease");
    leases[0].setId(leased);
    leases[0].setState("evaluate");
    put(leases[0], {{"worker", 77}, {"attempt", 2}, {"attempts_allowed", 3}});
    leases[0].setDetail("the worker is gone");
    parts[2].setActor("gpu_runner");
    parts[2].setId("cpu0");
    parts[2].setState("evaluating");
    put(parts[2], {{"actor", 77}, {"mailbox", 2}, {"done", 5}});
    parts[3].setActor("policy_client");
    parts[3].setState("closed");
    parts[3].setDetail("m at http://127.0.0.1:1/v1");
    auto tried = parts[3].initChildren(2);
    tried[1].setActor("policy_stream");
    tried[1].setId("first/g0.e2");
    tried[1].setDetail("\xa4 the end\x1b[2J");
    put(tried[1], {{"bytes", 1234}});
    tried[0].setActor("policy_request");
    tried[0].setId("first/g0.e3");
    tried[0].setState("backing_off");
    tried[0].setDetail("failed to read the policy server's answer: it is not JSON");
    put(tried[0], {{"attempts", 3}, {"due_seconds", 2}});
    auto why = tried[0].initChildren(1);
    why[0].setActor("error");
    why[0].setId("policy_bad_response");
    why[0].setDetail("check policy.base_url");
  });
  return result;
}

TEST(live_view, an_episode_that_waits_for_its_turn_is_queued_with_its_place) {
  auto view = read_live(tree(2));
  ASSERT_EQ(view.episodes.size(), 4u);
  EXPECT_EQ(view.planned, 8u);
  const auto& first = view.episodes[1];
  EXPECT_EQ(first.phase, "evaluating");
  EXPECT_EQ(first.state, "queued");
  ASSERT_TRUE(first.queued);
  EXPECT_EQ(first.queued->position, 2u) << "another run's job stands before it";
  EXPECT_EQ(view.episodes[2].queued->position, 3u);
  EXPECT_THAT(detail_text(view, first), HasSubstr("queued for a slot, 2nd of 3"));
  EXPECT_DOUBLE_EQ(view.queue("evaluate")->wait(2), 4);
  auto row = to_json(view, first);
  EXPECT_EQ(row["position"], 2);
  EXPECT_EQ(row["task"], "native/row_sum");
}

/// Two compilers that did ten jobs of 0.2 s.
queue_row quick_queue() {
  queue_row x;
  x.name = "build";
  x.workers = x.credits = x.leased = 2;
  x.done = 10;
  x.mean_seconds = 0.2;
  return x;
}

TEST(live_view, the_wait_in_a_queue_is_what_jobs_took_and_what_those_at_work_take) {
  auto queue = quick_queue();
  queue.given_seconds = {0.1, 0.1};
  EXPECT_NEAR(queue.wait(8), 8 * 0.2 / 2, 1e-9) << "no job at work is late";
  queue.given_seconds = {15, 0.1};
  EXPECT_NEAR(queue.wait(8), 8 * (10 * 0.2 + 15 + 0.2) / 12 / 2, 1e-9);
  queue.given_seconds = {15, 20};
  EXPECT_NEAR(queue.wait(8), 15 + 7 * (10 * 0.2 + 35) / 12 / 2, 1e-9) << "both are late";
}

TEST(live_view, the_wait_in_a_queue_is_not_known_after_a_few_jobs) {
  auto queue = quick_queue();
  queue.done = queue_row::least_done - 1;
  EXPECT_EQ(queue.wait(8), 0);
  queue.done = queue_row::least_done;
  EXPECT_GT(queue.wait(8), 0);
  queue.credits = 0;
  EXPECT_EQ(queue.wait(8), 0) << "no worker takes them";
}

TEST(live_view, the_end_of_an_answer_that_streams_in_is_text) {
  auto view = read_live(tree(2));
  ASSERT_EQ(view.streams.size(), 1u);
  EXPECT_EQ(view.streams["g0.e2"].bytes, 1234u);
  EXPECT_THAT(view.streams["g0.e2"].tail, HasSubstr(" the end"));
  EXPECT_EQ(view.streams["g0.e2"].tail.find('\x1b'), std::string::npos);
}

TEST(live_view, says_in_words_how_the_policy_server_does) {
  auto view = read_live(tree(2));
  view.live = 4;
  auto one = health_of_policy(view);
  ASSERT_EQ(one.size(), 1u);
  EXPECT_FALSE(one[0].is_well);
  EXPECT_THAT(one[0].words, HasSubstr("answers some requests; 1 tried again, attempt 3: failed"));
  view.live = 1;
  EXPECT_THAT(health_of_policy(view)[0].words, HasSubstr("answers nonsense"));
  view.tried.begin()->second.category = "policy_unreachable";
  EXPECT_THAT(health_of_policy(view)[0].words, HasSubstr("does not answer"));
  view.tried.clear();
  EXPECT_EQ(health_of_policy(view)[0].words, "is not asked yet");
  actor_row server;
  server.role = "policy_server";
  server.id = "a";
  server.state = "resting";
  server.numbers = {{"in_flight", 2}, {"done", 7}, {"failed", 3}};
  view.actors.push_back(server);
  auto pool = health_of_policy(view);
  ASSERT_EQ(pool.size(), 2u);
  EXPECT_EQ(pool[0].words, "answers");
  EXPECT_EQ(pool[1].server, "a");
  EXPECT_FALSE(pool[1].is_well);
  EXPECT_THAT(pool[1].words, HasSubstr("2 in flight, 7 done, 3 failed"));
}

TEST(live_view, an_episode_at_work_names_its_worker_and_its_attempt) {
  auto view = read_live(tree(2));
  auto row = to_json(view, view.episodes[0]);
  EXPECT_EQ(row["state"], "evaluating");
  EXPECT_EQ(row["worker"], "cpu0");
  EXPECT_EQ(row["attempt"], 2);
  EXPECT_EQ(row["last_error"], "the worker is gone");
}

/// The slot cpu0 has "g0.e0" for a second, and "g0.e1", which it was leased ahead, waits behind it.
live_run tree_of_slot(double now) {
  std::string leased, first, behind;
  uint64_t run = 0;
  append_waiting(leased, run, {.run = run_number("first"), .episode = 0});
  append_waiting(leased, run, {.run = run_number("first"), .episode = 1});
  append_waiting(first, run = 0, {.run = run_number("first"), .episode = 0});
  append_waiting(behind, run = 0, {.run = run_number("first"), .episode = 1});
  live_run result;
  result.run.name = "first";
  result.says = build<wire::Snapshot>([&](wire::Snapshot::Builder x) {
    x.setActor("monitor");
    auto parts = x.initChildren(3);
    parts[0].setActor("run");
    auto episodes = parts[0].initChildren(2);
    put_episode(episodes[0], "g0.e0", "profiling", 0);
    put_episode(episodes[1], "g0.e1", "profiling", 1);
    for (auto episode : episodes) episode.setSince(now - 47);
    parts[1].setActor("cluster");
    auto queue = parts[1].initChildren(1)[0];
    queue.setActor("queue");
    queue.setId("profile");
    auto lease = queue.initChildren(1)[0];
    lease.setActor("lease");
    lease.setId(leased);
    lease.setState("profile");
    lease.setSince(now - 40);
    put(lease, {{"worker", 77}, {"attempt", 1}, {"attempts_allowed", 3}});
    parts[2].setActor("gpu_runner");
    parts[2].setId("cpu0");
    auto line = parts[2].initChildren(1)[0];
    line.setActor("slot_line");
    line.setId(first);
    line.setSince(now - 1);
    line.setDetail(behind);
  });
  return result;
}

// An episode that says "profiling" for 47 s may have been worked on for one of them.
TEST(live_view, the_time_of_work_has_no_waiting_in_it) {
  auto now = seconds_since_1970();
  auto view = read_live(tree_of_slot(now));
  ASSERT_EQ(view.episodes.size(), 2u);
  EXPECT_EQ(view.episodes[0].state, "profiling");
  EXPECT_DOUBLE_EQ(view.episodes[0].since, now - 1);
  EXPECT_EQ(view.episodes[1].state, "queued");
  EXPECT_DOUBLE_EQ(view.episodes[1].since, now - 47);
  EXPECT_THAT(detail_text(view, view.episodes[1]), HasSubstr("queued for a slot, 1st"));
}

TEST(explain, says_of_each_episode_what_it_waits_for) {
  auto view = read_live(tree(2));
  surroundings around;
  auto at_work = finding_of(view, view.episodes[0], around);
  EXPECT_THAT(at_work.text, HasSubstr("cpu0 has it"));
  EXPECT_THAT(at_work.text, HasSubstr("attempt 2 of 3"));
  auto waits = finding_of(view, view.episodes[2], around);
  EXPECT_EQ(waits.resource, "slot");
  EXPECT_FALSE(waits.starved);
  EXPECT_THAT(waits.text, HasSubstr("3rd in the queue for a slot"));
  auto nonsense = finding_of(view, view.episodes[3], around);
  EXPECT_EQ(nonsense.resource, "policy server");
  EXPECT_THAT(nonsense.text, HasSubstr("The policy server answers nonsense. Attempt 3 failed"));
  EXPECT_THAT(nonsense.text, HasSubstr("next attempt is in 2"));
  EXPECT_EQ(nonsense.next, "check policy.base_url");
}

TEST(explain, says_that_an_episode_ends_before_its_job_begins) {
  auto view = read_live(tree(2));
  view.episodes[2].left_seconds = 1; // the job begins in 6
  auto late = finding_of(view, view.episodes[2], {});
  EXPECT_THAT(late.text, HasSubstr("own deadline comes first, in 1"));
  EXPECT_THAT(late.next, HasSubstr("episode.deadline_ms"));
  view.episodes[2].left_seconds = 100;
  EXPECT_EQ(finding_of(view, view.episodes[2], {}).next, "");
}

TEST(explain, names_the_lost_node_where_no_runner_takes_the_jobs) {
  auto view = read_live(tree(0));
  surroundings around;
  auto alone = finding_of(view, view.episodes[1], around);
  EXPECT_TRUE(alone.starved);
  EXPECT_THAT(alone.text, HasSubstr("There is no slot: 3 jobs wait, the oldest for 7"));
  around.of_head = true;
  around.status = {{"lost", {{{"node", "n1"}, {"since", seconds_since_1970() - 3 * 3600}}}}};
  auto lost = finding_of(view, view.episodes[1], around);
  EXPECT_EQ(lost.resource, "node");
  EXPECT_THAT(lost.text, HasSubstr("The node n1 was lost 3 h"));
  auto all = findings_of(view, {}, around);
  EXPECT_EQ(all.front().resource, "node") << "what starves stands first";
  for (const auto& x : all) {
    bool named = x.resource == "node" || x.resource == "policy server";
    EXPECT_TRUE(named || !x.starved) << x.text;
  }
}

TEST(explain, names_the_nodes_that_a_run_goes_past_for_a_missing_layer) {
  auto view = read_live(tree(2));
  surroundings around;
  around.status = {
      {"runs",
       {{{"run", view.run}, {"slots", 0}, {"unfit_nodes", {"node n1 lacks cgroup_memory"}}}}}};
  auto all = findings_of(view, {}, around);
  EXPECT_EQ(all.front().resource, "node");
  EXPECT_TRUE(all.front().starved) << "there is no other node";
  EXPECT_THAT(all.front().text, HasSubstr("node n1 lacks cgroup_memory of the layers"));
  around.status["runs"][0]["unfit_nodes"] = json::array();
  for (const auto& x : findings_of(view, {}, around))
    EXPECT_THAT(x.text, Not(HasSubstr("layers of the sandbox")));
}

TEST(explain, says_so_where_no_node_of_a_head_takes_the_jobs) {
  auto view = read_live(tree(0));
  surroundings around;
  around.of_head = true;
  auto unasked = finding_of(view, view.episodes[1], around);
  EXPECT_EQ(unasked.resource, "node") << "the run's directory says so where no head was asked";
  EXPECT_THAT(unasked.next, HasSubstr("--head ADDR:PORT` says which was lost"));
  around.status = {{"nodes", json::array()}, {"lost", json::array()}};
  auto one = finding_of(view, view.episodes[1], around);
  EXPECT_EQ(one.resource, "node");
  EXPECT_TRUE(one.starved);
  EXPECT_THAT(one.text, HasSubstr("No node offers a slot: 3 jobs wait, the oldest for 7"));
  EXPECT_THAT(one.next, HasSubstr("kernelmill node --head"));
}

TEST(explain, what_is_lost_with_the_nodes_is_a_node) {
  stored_summary stored;
  stored.turns = 3;
  stored.troubles["worker_lost"] = {3, "the worker is gone", "", "g0.e0.t0"};
  auto all = findings_of(read_live(tree(2)), stored, {});
  EXPECT_EQ(all.front().resource, "node");
  EXPECT_TRUE(all.front().starved) << "no turn came through";
}

TEST(explain, a_full_disk_is_named_before_all_else) {
  surroundings around;
  around.free_bytes = 4096;
  around.disk_bytes = 1e9;
  run_directory run;
  run.path = "runs/first";
  auto all = findings_of_ended(run, {}, around);
  ASSERT_GE(all.size(), 2u);
  EXPECT_EQ(all[0].resource, "disk");
  EXPECT_THAT(all[0].text, HasSubstr("The disk of runs/first is full"));
  EXPECT_THAT(all[1].text, HasSubstr("cut off"));
}

TEST(live_view, places_are_written_as_people_say_them) {
  EXPECT_EQ(ordinal_text(1), "1st");
  EXPECT_EQ(ordinal_text(12), "12th");
  EXPECT_EQ(ordinal_text(22), "22nd");
  EXPECT_EQ(ordinal_text(113), "113th");
}

} // namespace live_test
} // namespace kernelmill::watch
