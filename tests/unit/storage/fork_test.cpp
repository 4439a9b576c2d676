#include "storage/lineage/fork.hpp"

#include <gtest/gtest.h>

#include "fixtures.hpp"
#include "messages/base/digest.hpp"
#include "messages/base/json_value.hpp"
#include "messages/contents.hpp"

namespace kernelmill {
namespace fork_test {

using namespace fixtures;

run_directory make_run(const temporary_folder& folder, const std::string& name) {
  auto made = create_run({folder / name, name, ""}, nlohmann::ordered_json::object(),
                         {{"tasks", {{{"id", "native/row_sum"}, {"digest", "d"}}}}});
  EXPECT_TRUE(made) << (made ? "" : render(made.error()));
  return *made;
}

TEST(fork, takes_every_long_text_of_a_turn_along) {
  temporary_folder folder;
  auto origin = make_run(folder, "origin");
  artifact_store texts{origin.artifacts};
  auto plain = make_tool_turn(0, 0, 0, "c1", "c0", "int x;", {.run = "origin"});
  capnp::MallocMessageBuilder builder;
  builder.setRoot(*plain.open());
  std::vector<std::string> all;
  for_each_content(builder.getRoot<wire::Record>().getTurn(),
                   [&](wire::Content::Builder x, const char*) {
                     all.push_back("text " + std::to_string(all.size()) + std::string(5000, 'x'));
                     ASSERT_TRUE(texts.put(sha256_hex(all.back()), all.back()));
                     auto ref = x.initArtifact();
                     ref.setSha256(sha256_hex(all.back()));
                     ref.setSize(all.back().size());
                   });
  ASSERT_EQ(all.size(), 10u) << "prompt, completion, candidate, feedback, two calls, a candidate";
  {
    auto to = store::open({.directory = origin.store, .durable = false});
    ASSERT_TRUE(to);
    ASSERT_TRUE(to->commit({Message<wire::Record>{builder}}));
  }
  auto from = fork_from(origin, 0, 0, 1);
  ASSERT_TRUE(from) << render(from.error());
  auto branch = make_run(folder, "branch");
  artifact_store moved{branch.artifacts};
  auto to = store::open({.directory = branch.store, .durable = false});
  ASSERT_TRUE(to);
  auto ok = commit_shared_turns(*from, branch, 1, *to, moved);
  ASSERT_TRUE(ok) << render(ok.error());
  for (const auto& text : all) {
    auto found = moved.get(sha256_hex(text));
    EXPECT_TRUE(found && *found == text) << text.substr(0, 8);
  }
  auto turn = to->find_turn(turn_id({"branch", "native/row_sum", 0, 0}, 0));
  ASSERT_TRUE(turn && *turn);
  EXPECT_EQ((**turn).open()->getTurn().getCandidates().size(), 1u);
}

} // namespace fork_test
} // namespace kernelmill
