#include "retrieval/corpora/knowledge.hpp"

#include <algorithm>
#include <set>
#include <sstream>

#include <gmock/gmock.h>

#include "tests/unit/retrieval/test_support.hpp"

namespace kernelmill {

using test::card_text;
using test::failure;
using ::testing::HasSubstr;

namespace knowledge_test {

size_t words_in(const std::string& text) {
  std::istringstream in{text};
  size_t count = 0;
  for (std::string word; in >> word;) ++count;
  return count;
}

std::string failure_of(const std::string& text) {
  return failure(parse_card(text, "some/card.md"));
}

TEST(Knowledge, EveryCardOfTheProjectIsWellFormed) {
  auto cards = load_cards(test::knowledge_folder());
  ASSERT_TRUE(cards) << failure(cards);
  EXPECT_GE(cards->size(), 150U);
  std::set<std::string> kinds, titles;
  for (const auto& card : *cards) {
    SCOPED_TRACE(card.source);
    kinds.insert(card.kind);
    EXPECT_TRUE(titles.insert(card.title).second) << "two cards share the title " << card.title;
    auto fence = card.body.find("```");
    auto words = words_in(card.body.substr(0, fence));
    EXPECT_GE(words, fence == std::string::npos ? 80U : 35U);
    EXPECT_LE(words, 200U);
    EXPECT_LE(std::count(card.body.begin(), card.body.end(), '\n'), 52);
    EXPECT_FALSE(card.tags.empty());
    EXPECT_EQ(card.body.find("void solve"), std::string::npos);
  }
  EXPECT_EQ(kinds, (std::set<std::string>{"bottleneck", "hardware", "operator", "transformation"}));
}

TEST(Knowledge, HeaderAndBodyOfACardAreRead) {
  auto card = parse_card("---\r\nid: a-1\r\ntitle: T: more\r\nkind: hardware\r\noperator_family: "
                         "any\r\nbackends: cpu, hip\r\ntags: x,  y z\r\n---\r\n\r\nbody\r\n",
                         "a-1.md");
  ASSERT_TRUE(card) << failure(card);
  EXPECT_EQ(card->id, "a-1");
  EXPECT_EQ(card->title, "T: more");
  EXPECT_TRUE(card->families.empty());
  EXPECT_EQ(card->backends, (std::vector<std::string>{"cpu", "hip"}));
  EXPECT_EQ(card->tags, (std::vector<std::string>{"x", "y z"}));
  EXPECT_EQ(card->body, "body");
}

TEST(Knowledge, MalformedCardsAreNamedWithFileAndLine) {
  auto good = card_text("a", "body");
  auto with = [&](const std::string& from, const std::string& to) {
    auto text = good;
    return failure_of(text.replace(text.find(from), from.size(), to));
  };
  EXPECT_EQ(failure_of(good), "");
  EXPECT_THAT(failure_of("# A title\n"), HasSubstr("some/card.md:1: the first line is not"));
  EXPECT_THAT(failure_of("---\nid: a\n"), HasSubstr("no closing"));
  EXPECT_THAT(failure_of(""), HasSubstr("first line"));
  EXPECT_THAT(with("tags: test\n", ""), HasSubstr("key \"tags\" is missing"));
  EXPECT_THAT(with("tags: test", "tags:"), HasSubstr("some/card.md:7: key \"tags\" is empty"));
  EXPECT_THAT(with("tags: test", "tagz: test"), HasSubstr(":7: unknown key \"tagz\""));
  EXPECT_THAT(with("tags: test", "id: b"), HasSubstr(":7: key \"id\" appears twice"));
  EXPECT_THAT(with("tags: test", "tags test"), HasSubstr(":7: \"tags test\" is not"));
  EXPECT_THAT(with("kind: operator", "kind: opinion"), HasSubstr(":4: unknown kind \"opinion\""));
  EXPECT_THAT(with("backends: cpu", "backends: abacus"), HasSubstr("unknown backend \"abacus\""));
  EXPECT_THAT(with("id: a", "id: A b"), HasSubstr(":2: id \"A b\""));
  EXPECT_THAT(with("family: reduction", "family: Row Sum"), HasSubstr("\"Row Sum\""));
  EXPECT_THAT(with("body", ""), HasSubstr("no body"));
  EXPECT_THAT(failure_of(card_text("a", std::string(10000, 'x'))), HasSubstr("more than 8192"));
}

TEST(Knowledge, WhatWasMeasuredEndsTheBody) {
  auto with = [](const std::string& measured) {
    auto text = card_text("a", "body");
    return text.insert(text.find("tags:"), "measured: " + measured + "\n");
  };
  auto card = parse_card(with("3.10x on CPU (family 1), 2 cores, 2026-11-30"), "a.md");
  ASSERT_TRUE(card) << failure(card);
  EXPECT_EQ(card->body, "body\n\nThe snippet against its plain form: 3.10x on CPU (family 1), 2 "
                        "cores, 2026-11-30.");
  EXPECT_EQ(failure_of(with("12.00x on A, 2026-11-30; 0.95x on B, 2027-01-02")), "");
  for (const auto* bad : {"3x on A, 2026-11-30", "3.10 on A, 2026-11-30", "3.10x on A", "fast",
                          ".10x on A, 2026-11-30", "3.10x on , 2026-11-30",
                          "3.10x on A, 30.11.2026", "3.10x on A, 2026-11-30; B"})
    EXPECT_THAT(failure_of(with(bad)), HasSubstr(":7: \"" + std::string{bad} + "\" is not")) << bad;
}

TEST(Knowledge, FoldersWithoutCardsAndTwinsAreRefused) {
  test::temporary_folder folder;
  EXPECT_THAT(failure(load_cards(folder / "none")), HasSubstr("knowledge_missing"));
  EXPECT_THAT(failure(load_cards(folder.path())), HasSubstr("no *.md file"));
  folder.write("x/a.md", card_text("a", "one"));
  folder.write("README.md", "not a card");
  EXPECT_EQ(failure(load_cards(folder.path())), "");
  folder.write("y/a.md", card_text("a", "two"));
  EXPECT_THAT(failure(load_cards(folder.path())), HasSubstr("is also that of x/a.md"));
  folder.write("y/a.md", card_text("b", "two"));
  EXPECT_THAT(failure(load_cards(folder.path())), HasSubstr("differs from the file's name"));
  folder.write("y/a.md", "");
  EXPECT_THAT(failure(load_cards(folder.path())), HasSubstr("y/a.md"));
}

TEST(Knowledge, TheDigestFollowsContentAndNotOrder) {
  auto a = parse_card(card_text("a", "one"), "a.md"), b = parse_card(card_text("b", "two"), "b.md");
  auto changed = parse_card(card_text("b", "three"), "b.md");
  EXPECT_EQ(corpus_digest({*a, *b}), corpus_digest({*b, *a}));
  EXPECT_NE(corpus_digest({*a, *b}), corpus_digest({*a, *changed}));
  EXPECT_NE(corpus_digest({*a, *b}), corpus_digest({*a}));
}

} // namespace knowledge_test
} // namespace kernelmill
