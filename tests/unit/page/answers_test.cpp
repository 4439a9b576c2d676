// Documents that several ask for at once: shared, but never older than what the asker knows of.

#include <atomic>
#include <future>
#include <memory>
#include <string>

#include <gtest/gtest.h>

#include "launch/server/http/exchange_state.hpp"
#include "launch/server/page/answers.hpp"

namespace kernelmill::page {

namespace answers_test {

using namespace std::chrono_literals;

/// A client that asks, and waits for the answer.
struct asker {
  std::shared_ptr<http::exchange::state> state = std::make_shared<http::exchange::state>(1 << 20);
  http::exchange_ptr to = std::make_shared<http::exchange>(state);

  std::string answer() {
    for (;;) {
      auto woken = std::make_shared<std::promise<void>>();
      auto wait = woken->get_future();
      if (state->wake_by([woken] { woken->set_value(); })) wait.get();
      if (auto step = state->next(); step.head) return step.head->body;
    }
  }
};

/// A document that says how far the world was when its making began, and can be held up.
struct world {
  std::atomic<uint64_t> version = 0;
  std::atomic<int> made = 0;
  std::promise<void> begun, gate;
  answers all{1, [this] { return version.load(); }};

  answers::maker document() {
    return [this] {
      ++made;
      return http::response{200, "text/plain", std::to_string(version.load()), {}};
    };
  }

  answers::maker held_document() {
    return [this] {
      ++made;
      auto seen = version.load();
      begun.set_value();
      gate.get_future().wait();
      return http::response{200, "text/plain", std::to_string(seen), {}};
    };
  }
};

TEST(answers, one_making_is_shared_while_nothing_changes) {
  world x;
  asker first, second;
  x.all.ask("key", 1h, x.document(), first.to);
  EXPECT_EQ(first.answer(), "0");
  x.all.ask("key", 1h, x.document(), second.to);
  EXPECT_EQ(second.answer(), "0");
  EXPECT_EQ(x.made, 1);
}

TEST(answers, what_was_kept_is_not_given_to_a_client_that_knows_of_a_change) {
  world x;
  asker first, second;
  x.all.ask("key", 1h, x.document(), first.to);
  EXPECT_EQ(first.answer(), "0");
  ++x.version;
  x.all.ask("key", 1h, x.document(), second.to);
  EXPECT_EQ(second.answer(), "1");
  EXPECT_EQ(x.made, 2);
}

TEST(answers, a_making_that_began_before_the_change_is_not_joined) {
  world x;
  asker first, second, third, fourth;
  x.all.ask("key", 1h, x.held_document(), first.to);
  x.begun.get_future().wait();
  x.all.ask("key", 1h, x.document(), second.to); // nothing has changed: the same making will do
  ++x.version;
  x.all.ask("key", 1h, x.document(), third.to);
  x.all.ask("key", 1h, x.document(), fourth.to);
  x.gate.set_value();
  EXPECT_EQ(first.answer(), "0");
  EXPECT_EQ(second.answer(), "0");
  EXPECT_EQ(third.answer(), "1");
  EXPECT_EQ(fourth.answer(), "1");
  EXPECT_EQ(x.made, 2);
}

TEST(answers, what_is_sampled_is_kept_though_something_changed) {
  world x;
  asker first, second;
  x.all.ask_sampled("key", x.document(), first.to);
  EXPECT_EQ(first.answer(), "0");
  ++x.version;
  x.all.ask_sampled("key", x.document(), second.to);
  auto said = second.answer();
  EXPECT_TRUE(said == "0" || said == "1"); // on a machine that stood still meanwhile
  EXPECT_EQ(x.made, said == "0" ? 1 : 2);
}

TEST(answers, what_is_settled_is_kept_under_its_key_alone) {
  world x;
  asker first, second, third;
  x.all.ask_settled("key 1", x.document(), first.to);
  EXPECT_EQ(first.answer(), "0");
  ++x.version;
  x.all.ask_settled("key 1", x.document(), second.to);
  EXPECT_EQ(second.answer(), "0");
  x.all.ask_settled("key 2", x.document(), third.to);
  EXPECT_EQ(third.answer(), "1");
  EXPECT_EQ(x.made, 2);
}

TEST(answers, what_can_wait_is_done_while_nothing_is_asked_until_there_is_no_more) {
  world x;
  std::promise<void> done;
  int steps = 0;
  x.all.when_idle([&](const std::atomic<size_t>& waiting) {
    EXPECT_EQ(waiting, 0U);
    if (++steps < 3) return true;
    done.set_value();
    return false;
  });
  done.get_future().wait();
  asker first;
  x.all.ask("key", 1h, x.document(), first.to);
  EXPECT_EQ(first.answer(), "0");
  EXPECT_EQ(steps, 3);
}

TEST(answers, clients_that_wait_at_the_end_are_told_so) {
  auto x = std::make_unique<world>();
  asker first, second;
  x->all.ask("key", 0ms, x->held_document(), first.to);
  x->begun.get_future().wait();
  x->all.ask("other", 0ms, x->document(), second.to);
  x->gate.set_value();
  x.reset();
  EXPECT_EQ(first.answer(), "0");
  auto said = second.answer(); // the end came first, or the document did
  EXPECT_TRUE(said == "0" || said.find("the process ends") != std::string::npos) << said;
}

} // namespace answers_test
} // namespace kernelmill::page
