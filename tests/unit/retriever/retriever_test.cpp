// On CAF's deterministic scheduler: one thread, every step taken by the test.

#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>
#include <caf/scheduler/test_coordinator.hpp>
#include <caf/scoped_actor.hpp>
#include <caf/stateful_actor.hpp>
#include <caf/typed_event_based_actor.hpp>
#include <gmock/gmock.h>

#include "actors/retriever/indexed_retriever.hpp"
#include "actors/retriever/no_retriever.hpp"
#include "retrieval/search/hashed_lexical_embedder.hpp"
#include "tests/unit/retrieval/test_support.hpp"

namespace kernelmill {

namespace retriever_test {

class switchable_embedder final : public embedder {
public:
  bool down = false;
  int asked = 0;
  std::string identity() const override { return inner_.identity(); }
  size_t dimension() const override { return inner_.dimension(); }
  bool blocking() const override { return false; }
  expected<std::vector<float>> embed(const std::vector<std::string>& texts) override {
    ++asked;
    if (down) return infrastructure_error("embedder_failed", "failed to embed texts: it is down");
    return inner_.embed(texts);
  }

private:
  hashed_lexical_embedder inner_;
};

struct testing_config : caf::actor_system_config {
  testing_config() {
    set("scheduler.policy", caf::atom("testing"));
    add_message_types<caf::id_block::kernelmill>();
  }
};

struct Retriever : ::testing::Test {
  testing_config config;
  caf::actor_system system{config};
  caf::scoped_actor self{system};
  test::temporary_folder folder;
  std::shared_ptr<switchable_embedder> embedding = std::make_shared<switchable_embedder>();
  std::shared_ptr<kernel_feed> feed = std::make_shared<kernel_feed>();

  retriever_actor spawn() {
    folder.write("sums.md", test::card_text("sums", "Sum the rows of a matrix."));
    auto index = loaded_index::in_memory(folder.path(), {}, embedding);
    if (!index) throw std::runtime_error(test::failure(index));
    return spawn_indexed_retriever(system, std::make_shared<loaded_index>(std::move(*index)), feed);
  }

  template <class Result, class... Ts>
  Result ask(const retriever_actor& to, Ts&&... xs) {
    auto request = self->request(to, caf::infinite, std::forward<Ts>(xs)...);
    dynamic_cast<caf::scheduler::test_coordinator&>(system.scheduler()).run();
    Result result;
    request.receive([&](Result& x) { result = std::move(x); },
                    [&](caf::error& e) { ADD_FAILURE() << system.render(e); });
    return result;
  }

  auto query(const retriever_actor& to, const std::string& text, const std::string& task,
             uint32_t count = 4) {
    auto request = build<wire::RetrieveRequest>([&](wire::RetrieveRequest::Builder x) {
      x.setQuery(text);
      x.setCount(count);
      x.setExcludeTask(task);
      x.setOperatorFamily("reduction");
      x.setBackend("cpu");
    });
    return ask<Message<wire::RetrieveResult>>(to, atom::query_v, envelope{}, request);
  }

  double number(const retriever_actor& of, const std::string& name) {
    auto snapshot = ask<Message<wire::Snapshot>>(of, atom::status_v);
    auto x = snapshot.open();
    for (auto quantity : x->getNumbers())
      if (name == quantity.getName().cStr()) return quantity.getValue();
    return -1;
  }
};

TEST_F(Retriever, AnswersWithExamplesAndCountsThem) {
  auto aut = spawn();
  auto answer = query(aut, "sum of rows", "native/row_sum");
  auto x = answer.open();
  ASSERT_EQ(x->getExamples().size(), 1U);
  auto example = x->getExamples()[0];
  EXPECT_STREQ(example.getId().cStr(), "card:sums");
  EXPECT_STREQ(example.getKind().cStr(), "card");
  EXPECT_STREQ(example.getSource().cStr(), "sums.md");
  EXPECT_STREQ(example.getText().cStr(), "Sum the rows of a matrix.");
  EXPECT_GT(example.getScore(), 0.3);
  EXPECT_EQ(x->getFault().getClass(), wire::FaultClass::NONE);
  EXPECT_EQ(number(aut, "queries"), 1);
  EXPECT_EQ(number(aut, "entries"), 1);
  EXPECT_EQ(number(aut, "results"), 1);
  EXPECT_GT(number(aut, "mean_query"), 0);
}

TEST_F(Retriever, KernelsOfTheFeedServeOtherTasksOnly) {
  auto aut = spawn();
  feed->push(test::verified("native/row_sum", test::row_sum_kernel, "t1"));
  auto own = query(aut, "row_sum rows cols", "native/row_sum");
  EXPECT_EQ(own.open()->getExamples().size(), 1U);
  EXPECT_EQ(own.open()->getWithheld(), 1U);
  auto other = query(aut, "row_sum rows cols", "native/softmax");
  EXPECT_EQ(other.open()->getExamples().size(), 2U);
  EXPECT_EQ(number(aut, "withheld"), 1);
  EXPECT_EQ(number(aut, "kernels"), 1);
}

TEST_F(Retriever, AnEmbedderThatIsDownIsAFaultInTheAnswer) {
  auto aut = spawn();
  embedding->down = true;
  feed->push(test::verified("native/row_sum", test::row_sum_kernel, "t1"));
  auto answer = query(aut, "sum of rows", "native/row_sum");
  auto x = answer.open();
  EXPECT_EQ(x->getExamples().size(), 0U);
  EXPECT_EQ(x->getFault().getClass(), wire::FaultClass::INFRASTRUCTURE);
  EXPECT_STREQ(x->getFault().getCategory().cStr(), "embedder_failed");
  EXPECT_EQ(number(aut, "failures"), 2) << "the kernel and the query";
  auto snapshot = ask<Message<wire::Snapshot>>(aut, atom::status_v);
  EXPECT_STREQ(snapshot.open()->getState().cStr(), "degraded");
  embedding->down = false;
  EXPECT_EQ(query(aut, "sum of rows", "native/row_sum").open()->getExamples().size(), 1U);
}

TEST_F(Retriever, TheEpisodesOfAGroupAreAnsweredByOneSearch) {
  auto aut = spawn();
  query(aut, "sum of rows", "native/row_sum");
  auto before = embedding->asked;
  for (int i = 0; i < 8; ++i)
    EXPECT_EQ(query(aut, "sum of rows", "native/row_sum").open()->getExamples().size(), 1U);
  EXPECT_EQ(embedding->asked, before);
  EXPECT_EQ(number(aut, "queries"), 9);
  EXPECT_EQ(number(aut, "results"), 9);
  query(aut, "sum of rows", "native/other");
  EXPECT_EQ(embedding->asked, before + 1) << "another task may see other kernels";
  feed->push(test::verified("native/row_max", test::row_max_kernel, "t1"));
  EXPECT_EQ(query(aut, "sum of rows", "native/row_sum").open()->getExamples().size(), 2U)
      << "a kernel has come";
}

TEST_F(Retriever, AMalformedRequestIsAFaultAndTheActorLives) {
  auto aut = spawn();
  auto words = kj::heapArray<capnp::word>(4);
  memset(words.asBytes().begin(), 0xFF, words.asBytes().size());
  auto answer = ask<Message<wire::RetrieveResult>>(
      aut, atom::query_v, envelope{}, Message<wire::RetrieveRequest>{std::move(words)});
  EXPECT_STREQ(answer.open()->getFault().getCategory().cStr(), "malformed_message");
  EXPECT_EQ(query(aut, "sum of rows", "").open()->getExamples().size(), 1U);
}

TEST_F(Retriever, WithoutAnIndexTheAnswerIsEmpty) {
  auto aut = system.spawn(no_retriever);
  auto answer = query(aut, "sum of rows", "native/row_sum");
  EXPECT_EQ(answer.open()->getExamples().size(), 0U);
  EXPECT_EQ(answer.open()->getWithheld(), 0U);
  EXPECT_EQ(answer.open()->getFault().getClass(), wire::FaultClass::NONE);
  EXPECT_EQ(number(aut, "queries"), 1);
  auto snapshot = ask<Message<wire::Snapshot>>(aut, atom::status_v);
  EXPECT_STREQ(snapshot.open()->getState().cStr(), "off");
}

} // namespace retriever_test
} // namespace kernelmill
