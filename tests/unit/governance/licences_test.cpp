#include "actors/governance/licences.hpp"

#include <filesystem>
#include <fstream>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kernelmill {
namespace licences_test {

using ::testing::AllOf;
using ::testing::HasSubstr;

licence read(const std::string& text) {
  auto x = parse_licence(text, "x.json");
  if (!x) throw std::runtime_error(render(x.error()));
  return *x;
}

std::string why_not(const std::string& text) {
  auto x = parse_licence(text, "x.json");
  return x ? "it was read" : render(x.error());
}

std::string document(const std::string& source, const std::string& train,
                     const std::string& more = "") {
  return R"({"schema_version": 1, "source": ")" + source + R"(", "title": "The )" + source +
         R"( set", "licence": "L", "confirmed": "2026-11-24", "match": [")" + source + R"(/*"], )" +
         more + R"("allows": {"evaluate": true, "train": )" + train + R"(, "share": true}})";
}

licence_table table_of(const std::vector<std::string>& documents) {
  std::vector<licence> all;
  for (const auto& x : documents) all.push_back(read(x));
  auto result = licence_table::of(std::move(all));
  if (!result) throw std::runtime_error(render(result.error()));
  return *result;
}

const std::string digest(64, 'a');

licence_table three() {
  return table_of(
      {document("free", "true"),
       document("bound", "false", R"("digests": [")" + digest + R"("], )"),
       document("asks", R"("terms")", R"("terms": "asks-1.0", "since": "2026-06-09", )")});
}

TEST(licences, are_read_from_json_with_comments) {
  auto x = read("// ours\n" + document("asks", R"("terms")", R"("terms": "asks-1.0", )"));
  EXPECT_EQ(x.source, "asks");
  EXPECT_EQ(x.of(purpose::train), allowance::on_terms);
  EXPECT_EQ(x.of(purpose::share), allowance::yes);
  EXPECT_EQ(x.terms, "asks-1.0");
}

TEST(licences, name_file_and_key_of_what_is_wrong) {
  struct {
    std::string text;
    const char* said;
  } cases[] = {{"{\n\n]", "x.json:3"},
               {"[]", "must hold an object"},
               {R"({"schema_version": 1, "sauce": "x"})", "unknown key \"sauce\""},
               {R"({"source": "x"})", "\"schema_version\" must be 1"},
               {document("Big", "true"), "small letters"},
               {document("x", "\"maybe\""), "\"allows.train\" must be true, false or \"terms\""},
               {document("x", "\"terms\""), "no \"terms\" are named"},
               {document("x", "true", R"("since": "June", )"), "\"since\" must be a date"},
               {document("x", "true", R"("confirmed": "yes", )"), "\"confirmed\" must be a date"},
               {document("x", "true", R"("models": "x*", )"), "\"models\" must be a list"},
               {document("x", "true", R"("digests": ["abc"], )"), "\"digests\" takes SHA-256"},
               {document("x", "true", R"("match": "x/*", )"), "\"match\" must be a list"},
               {R"({"schema_version": 1, "source": "x", "title": "X", "licence": "L",
           "allows": {"evaluate": true, "train": true}})",
                "\"allows.share\" is missing"}};
  for (const auto& [text, said] : cases)
    EXPECT_THAT(why_not(text), AllOf(HasSubstr("x.json"), HasSubstr(said))) << text;
}

TEST(licences, of_one_source_are_one_file) {
  auto x = licence_table::of({read(document("x", "false")), read(document("x", "true"))});
  ASSERT_FALSE(x);
  EXPECT_EQ(x.error().category, "bad_licence");
}

TEST(licences, that_a_file_of_the_user_confirms_are_confirmed) {
  auto shipped = read(document("asks", R"("terms")", R"("terms": "t", )"));
  auto confirmed = shipped;
  shipped.confirmed.clear();
  for (auto both : {std::vector{shipped, confirmed}, {confirmed, shipped}}) {
    auto x = licence_table::of(both);
    ASSERT_TRUE(x);
    ASSERT_EQ(x->all().size(), 1u);
    EXPECT_TRUE(decide(*x, {"asks/a", {}, {}}, purpose::train, {"t"}).allowed);
  }
  auto looser = confirmed;
  looser.allows[static_cast<size_t>(purpose::train)] = allowance::yes;
  EXPECT_FALSE(licence_table::of({shipped, looser})) << "it says more than what ships";
  EXPECT_FALSE(licence_table::of({confirmed, confirmed}));
}

TEST(licences, of_tasks_and_models_are_found_whatever_their_letters_are) {
  auto all = three();
  EXPECT_FALSE(decide(all, {"Bound/A", {}, "free"}, purpose::train, {}).allowed);
}

TEST(licences, decide_by_source_id_and_digest) {
  auto all = three();
  EXPECT_TRUE(decide(all, {"free/a", {}, {}}, purpose::train, {}).allowed);
  EXPECT_TRUE(decide(all, {"mine/a", {}, "free"}, purpose::train, {}).allowed);
  for (const origin_facts& x :
       {origin_facts{"bound/a", {}, {}}, {"mine/a", {}, "bound"}, {"mine/a", digest, {}}}) {
    auto said = decide(all, x, purpose::train, {});
    EXPECT_FALSE(said.allowed) << x.id;
    EXPECT_EQ(said.source, "bound");
    EXPECT_THAT(said.reason,
                HasSubstr(x.id + " is of The bound set, which must not be trained on"));
    EXPECT_TRUE(decide(all, x, purpose::evaluate, {}).allowed);
  }
}

TEST(licences, take_the_strictest_of_those_that_fit) {
  auto all = three();
  EXPECT_FALSE(decide(all, {"bound/a", {}, "free"}, purpose::train, {}).allowed);
  EXPECT_FALSE(decide(all, {"free/a", digest, "free"}, purpose::train, {}).allowed);
  EXPECT_FALSE(decide(all, {"asks/a", {}, "free"}, purpose::train, {}).allowed);
}

TEST(licences, that_ask_for_terms_allow_once_they_are_accepted) {
  auto all = three();
  auto before = decide(all, {"asks/a", {}, {}}, purpose::train, {});
  EXPECT_FALSE(before.allowed);
  EXPECT_THAT(before.reason, HasSubstr("since 2026-06-09 without its terms"));
  EXPECT_THAT(before.hint, HasSubstr("--accept-terms asks-1.0"));
  auto after = decide(all, {"asks/a", {}, {}}, purpose::train, {"asks-1.0"});
  EXPECT_TRUE(after.allowed);
  EXPECT_EQ(after.terms, "asks-1.0") << "what was accepted is told";
}

TEST(licences, that_forbid_are_lifted_by_no_terms) {
  auto said = decide(three(), {"bound/a", {}, {}}, purpose::train, {"asks-1.0"});
  EXPECT_FALSE(said.allowed);
  EXPECT_THAT(said.hint, HasSubstr("no terms that are accepted change that"));
}

TEST(licences, that_are_unknown_allow_to_evaluate_alone) {
  auto all = three();
  for (const origin_facts& x :
       {origin_facts{"mine/a", {}, {}}, {"mine/a", {}, "unknown"}, {"free/a", {}, "unknown"}}) {
    EXPECT_TRUE(decide(all, x, purpose::evaluate, {}).allowed);
    auto said = decide(all, x, purpose::train, {});
    EXPECT_FALSE(said.allowed) << x.id << " " << x.source;
    EXPECT_THAT(said.hint, AllOf(HasSubstr("`source` in task.json"), HasSubstr(x.id)));
  }
}

TEST(licences, of_unknown_terms_are_refused) {
  auto ok = three().check_terms({"asks-1.0", "asks-2.0"});
  ASSERT_FALSE(ok);
  EXPECT_EQ(ok.error().category, "unknown_terms");
  EXPECT_THAT(ok.error().hint, HasSubstr("asks-1.0"));
}

class shipped_licences : public ::testing::Test {
protected:
  shipped_licences() {
    std::vector<licence> all;
    auto folder = std::string{std::getenv("KERNELMILL_SOURCE_DIR")} + "/configs/licences";
    for (const auto& x : std::filesystem::directory_iterator{folder}) {
      std::ifstream in{x.path()};
      std::ostringstream text;
      text << in.rdbuf();
      auto one = parse_licence(text.str(), x.path().string());
      if (!one) throw std::runtime_error(render(one.error()));
      EXPECT_EQ(one->source + ".json", x.path().filename().string());
      all.push_back(std::move(*one));
    }
    table_ = *licence_table::of(std::move(all));
  }

  bool may(const std::string& task, purpose wanted, std::set<std::string> accepted = {}) {
    return decide(table_, {task, {}, {}}, wanted, accepted).allowed;
  }

  licence_table table_;
};

TEST_F(shipped_licences, keep_evaluation_sets_out_of_training_whatever_is_accepted) {
  std::set<std::string> everything;
  for (const auto& x : table_.all())
    if (!x.terms.empty()) everything.insert(x.terms);
  EXPECT_FALSE(everything.empty());
  for (const auto* task : {"compute-eval/CUDA/16", "sol-execbench/L1/1"}) {
    EXPECT_TRUE(may(task, purpose::evaluate)) << task;
    EXPECT_FALSE(may(task, purpose::train, everything)) << task;
    EXPECT_FALSE(may(task, purpose::share, everything)) << task;
  }
}

TEST_F(shipped_licences, allow_what_is_free_and_ask_where_terms_are_to_be_read) {
  for (const auto* task : {"native/row_sum", "torch/lstm_last", "kernelbench/level1/19_ReLU"})
    for (auto wanted : all_purposes) EXPECT_TRUE(may(task, wanted)) << task;
  EXPECT_FALSE(may("reference-kernels/amd/gemm", purpose::train));
  EXPECT_TRUE(may("reference-kernels/amd/gemm", purpose::train, {"researcher-reciprocity-1.0"}));
  EXPECT_FALSE(may("another/task", purpose::train));
}

TEST_F(shipped_licences, of_models_ask_for_terms_and_leave_open_weights_alone) {
  auto may_train = [&](const std::string& model, const std::string& named = {},
                       std::set<std::string> accepted = {}) {
    auto said = decide_answers(table_, model, named, purpose::train, accepted);
    return !said || said->allowed;
  };
  for (const auto* model :
       {"gpt-5.5", "openai/gpt-4.1", "o3-mini", "claude-opus-4-7", "gemini-3-pro"})
    EXPECT_FALSE(may_train(model)) << model;
  for (const auto* model : {"gpt-oss-120b", "openai/gpt-oss-20b", "Qwen/Qwen3-8B", "m", "olmo", ""})
    EXPECT_TRUE(may_train(model)) << model;
  for (const auto* model :
       {"GPT-5.5", "azure/gpt-4.1", "openrouter/openai/o3", "ft:gpt-4.1:us",
        "us.anthropic.claude-3", "openrouter/anthropic/claude-opus-4-7", "models/gemini-3-pro"})
    EXPECT_FALSE(may_train(model)) << "behind a gateway: " << model;
  EXPECT_FALSE(may_train("behind-a-proxy", "openai-answers")) << "policy.licence names the source";
  EXPECT_TRUE(may_train("m", "Apache-2.0")) << "no source: a licence for the data card";
  auto said = decide_answers(table_, "gpt-5.5", {}, purpose::train, {});
  EXPECT_THAT(said->reason, HasSubstr("an answer by gpt-5.5 is of OpenAI's models, whose licence "
                                      "(LicenseRef-OpenAI-terms) is unconfirmed"));
}

TEST_F(shipped_licences, that_are_unconfirmed_allow_to_evaluate_alone) {
  std::set<std::string> everything;
  for (const auto& x : table_.all())
    if (!x.terms.empty()) everything.insert(x.terms);
  size_t seen = 0;
  for (const auto& x : table_.all()) {
    if (!x.confirmed.empty()) continue;
    ++seen;
    origin_facts task{"mine/a", {}, x.source};
    EXPECT_TRUE(decide(table_, task, purpose::evaluate, {}).allowed) << x.source;
    for (auto wanted : {purpose::train, purpose::share}) {
      auto said = decide(table_, task, wanted, everything);
      EXPECT_FALSE(said.allowed) << x.source;
      EXPECT_THAT(said.reason, AllOf(HasSubstr("is unconfirmed"), HasSubstr("must not be")));
      EXPECT_THAT(said.hint, AllOf(HasSubstr(x.url), HasSubstr(x.source + ".json")));
      EXPECT_FALSE(decide_answers(table_, "m", x.source, wanted, everything)->allowed) << x.source;
      for (const auto& glob : x.match)
        EXPECT_FALSE(may(glob.substr(0, glob.find('*')) + "a", wanted, everything)) << glob;
    }
  }
  EXPECT_GT(seen, 0u);
}

// -- the page -----------------------------------------------------------------------------------

std::string quoted_list(const std::vector<std::string>& xs) {
  std::string result;
  for (const auto& x : xs) result += (result.empty() ? "`" : ", `") + x + "`";
  return result;
}

const char* word_of(allowance x) {
  return x == allowance::yes ? "yes" : x == allowance::no ? "no" : "with terms";
}

std::string page_of(const licence_table& table) {
  std::string result = "| source | of | licence | train | share | terms | read on |\n"
                       "|---|---|---|---|---|---|---|\n";
  for (const auto& x : table.all()) {
    EXPECT_EQ(x.of(purpose::evaluate), allowance::yes) << x.source << ": the page says all may be";
    auto tasks = quoted_list(x.match), models = quoted_list(x.models);
    auto of = tasks + (models.empty() ? "" : (tasks.empty() ? "models " : "; models ") + models);
    result += "| `" + x.source + "` | " + (of.empty() ? "-" : of) + " | " +
              (x.url.empty() ? x.name : "[" + x.name + "](" + x.url + ")") +
              (x.since.empty() ? "" : " since " + x.since) + " | " + word_of(x.of(purpose::train)) +
              " | " + word_of(x.of(purpose::share)) + " | " +
              (x.terms.empty() ? "-" : "`" + x.terms + "`") + " | " +
              (x.confirmed.empty() ? "not confirmed" : x.confirmed) + " |\n";
  }
  return result;
}

TEST_F(shipped_licences, are_those_of_the_reference_page) {
  auto path = std::string{std::getenv("KERNELMILL_SOURCE_DIR")} + "/docs/reference/licences.md";
  std::ifstream in{path};
  std::ostringstream text;
  text << in.rdbuf();
  auto page = text.str();
  auto begin = page.find("| source | of |");
  ASSERT_NE(begin, std::string::npos);
  auto end = page.find("\n\n", begin);
  ASSERT_NE(end, std::string::npos);
  auto table = page.substr(begin, end + 1 - begin);
  if (std::getenv("KERNELMILL_WRITE_GOLDEN"))
    std::ofstream{path} << page.substr(0, begin) + page_of(table_) + page.substr(end + 1);
  else
    EXPECT_EQ(table, page_of(table_))
        << "KERNELMILL_WRITE_GOLDEN=1 build/tests/actor_tests writes it anew";
}

TEST_F(shipped_licences, name_where_they_can_be_read) {
  for (const auto& x : table_.all())
    EXPECT_TRUE(x.source.starts_with("own") || x.url.starts_with("https://")) << x.source;
}

} // namespace licences_test
} // namespace kernelmill
