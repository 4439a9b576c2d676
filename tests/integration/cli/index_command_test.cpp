#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/integration/cli/program.hpp"
#include "tests/unit/retrieval/tiny_http_server.hpp"

namespace kernelmill::test {

namespace index_command_test {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

/// An embeddings server whose vectors count letters.
std::string letters_of(const std::string& question, size_t dimension) {
  auto data = nlohmann::json::array();
  const auto asked = nlohmann::json::parse(question);
  for (const auto& text : asked.at("input")) {
    std::vector<float> row(dimension);
    for (char c : text.get<std::string>()) row[static_cast<unsigned char>(c) % dimension] += 1;
    data.push_back({{"index", data.size()}, {"embedding", row}});
  }
  return nlohmann::json{{"data", data}}.dump();
}

TEST(index_command, what_is_built_can_be_asked) {
  auto built = kernelmill({"index", "build", "index", "--json"});
  ASSERT_EQ(built.code, 0) << built.err;
  EXPECT_GE(built.document()["cards"], 30);
  auto answer =
      kernelmill({"index", "query", "--json", "--count", "3", "index", "sum", "of", "each", "row"});
  ASSERT_EQ(answer.code, 0) << answer.err;
  EXPECT_EQ(answer.document()["results"].size(), 3u);
  auto first = [](const char* weight) {
    auto found = kernelmill({"index", "query", "--json", "index", "sum", "of", "each", "row",
                             "--words-weight", weight});
    return found.document()["results"][0]["id"];
  };
  EXPECT_NE(first("0"), first("100")) << "by vectors alone, and by words";
}

TEST(index_command, an_index_that_is_not_there_is_3) {
  EXPECT_EQ(kernelmill({"index", "query", "nowhere", "text"}).code, 3);
}

TEST(index_command, a_servers_embedder_is_remembered_and_its_key_is_not) {
  size_t dimension = 24;
  tiny_http_server server{[&](const std::string& head, const std::string& body) {
    if (head.find("Bearer sk-of-the-index") == std::string::npos) return http_response(401, "{}");
    return http_response(200, letters_of(body, dimension));
  }};
  auto key = write_file("embedder.key", "sk-of-the-index\n");
  program_options options;
  options.environment = {"no_proxy=127.0.0.1"};
  auto with_server = [&](std::vector<std::string> words) {
    for (auto& x : {std::string{"--embedder"}, std::string{"http"}, std::string{"--base-url"},
                    server.url() + "/v1", std::string{"--model"}, std::string{"letters"},
                    std::string{"--api-key-file"}, key})
      words.push_back(x);
    return kernelmill(words, options);
  };
  auto built = with_server({"index", "build", "served", "--json"});
  ASSERT_EQ(built.code, 0) << built.err;
  EXPECT_EQ(built.document()["embedder"], "openai-embeddings/1 model=letters");
  EXPECT_EQ(built.document()["dimension"], 24);
  EXPECT_LT(server.requests(), 20) << "texts travel in batches";
  auto answer = with_server({"index", "query", "served", "sum", "of", "each", "row", "--json"});
  ASSERT_EQ(answer.code, 0) << answer.err;
  EXPECT_EQ(answer.document()["results"].size(), 5U);
  EXPECT_THAT(run_program({"/bin/grep", "-r", "sk-of-the-index", "served"}).out, "");

  auto words = kernelmill({"index", "query", "served", "sum"}, options);
  EXPECT_EQ(words.code, 4) << words.err;
  EXPECT_THAT(words.err, AllOf(HasSubstr("--embedder http --model letters"),
                               HasSubstr("kernelmill index build served`")));
  dimension = 32;
  auto other = with_server({"index", "query", "served", "sum"});
  EXPECT_EQ(other.code, 4) << other.err;
  EXPECT_THAT(other.err, AllOf(HasSubstr("have 24 floats, the embedder's have 32"),
                               HasSubstr("kernelmill index build served --embedder http --model "
                                         "letters --base-url URL`"),
                               Not(HasSubstr("sk-of-the-index"))));
}

TEST(index_command, options_of_a_server_want_its_kind) {
  auto x = kernelmill({"index", "build", "none", "--model", "letters"});
  EXPECT_EQ(x.code, 2) << x.err;
  EXPECT_THAT(x.err, HasSubstr("--embedder http"));
  auto small = kernelmill({"index", "build", "none", "--dimension", "12"});
  EXPECT_EQ(small.code, 2);
  EXPECT_THAT(small.err, HasSubstr("64 or more"));
  auto nowhere = kernelmill({"index", "build", "none", "--embedder", "http"});
  EXPECT_EQ(nowhere.code, 2);
  EXPECT_THAT(nowhere.err, HasSubstr("--base-url of a command"));
}

// -- corpora --------------------------------------------------------------------------------------

using nlohmann::json;

std::string kernel_of(const std::string& operation) {
  return "import triton\nimport triton.language as tl\n\n@triton.jit\ndef kernel(x, y, n):\n    i "
         "= "
         "tl.program_id(0)\n    tl.store(y + i, " +
         operation + "(tl.load(x + i)))\n";
}

json kernelbook_row(int uuid, const std::string& operation) {
  return {{"uuid", uuid},
          {"module_name", "Module" + std::to_string(uuid)},
          {"repo_name", "owner/name"},
          {"licenses", {"MIT"}},
          {"python_code", "import torch\ndef forward(x):\n    return torch." + operation + "(x)\n"},
          {"triton_code", kernel_of("tl." + operation)}};
}

/// A problem whose task is in the split "train".
json sakana_row(int level, const std::string& operation, double speedup, bool correct = true) {
  return {{"Op_Name", "1_" + operation},
          {"Level_ID", level},
          {"Task_ID", 1},
          {"Kernel_Name", operation + "_vec4"},
          {"CUDA_Speedup_Native", speedup},
          {"Correct", correct},
          {"PyTorch_Code_Module",
           "import torch\ndef forward(x):\n    return torch." + operation + "(x)\n"},
          {"CUDA_Code", "__global__ void k(float* x) { x[threadIdx.x] = " + operation +
                            "f(x[threadIdx.x]); }\n"}};
}

std::string write_rows(const std::string& name, const std::vector<json>& rows) {
  std::string text;
  for (const auto& x : rows) text += (x.is_string() ? x.get<std::string>() : x.dump()) + "\n";
  return write_file(name, text);
}

program_result build(std::vector<std::string> words, const program_options& options = {}) {
  words.insert(words.begin(), {"index", "build", "corpora"});
  words.emplace_back("--json");
  return kernelmill(words, options);
}

/// "ROWS REASON" of what a source left out.
std::vector<std::string> left_out(const program_result& x, size_t source = 0) {
  std::vector<std::string> result;
  const auto document = x.document();
  for (const auto& one : document["sources"][source]["left_out"])
    result.push_back(one["rows"].dump() + " " + one["reason"].get<std::string>());
  return result;
}

// Each of its rows has the licence of a repository: a user reads them, says so, and accepts.
TEST(index_command, kernelbook_is_indexed_once_its_licence_was_read_and_its_terms_are_accepted) {
  auto rows = write_rows("kernelbook.jsonl", {kernelbook_row(1, "exp"), "{\"python_code\": 7}",
                                              kernelbook_row(2, "sin"), kernelbook_row(3, "cos")});
  auto from = "kernelbook=" + rows;
  auto unread = build({"--from", from, "--accept-terms", "kernelbook-rows"});
  EXPECT_EQ(unread.code, 2) << unread.err;
  EXPECT_EQ(unread.fault()["category"], "licence_forbids");
  EXPECT_THAT(unread.fault()["message"], HasSubstr("is unconfirmed"));

  std::ifstream in{source_file("configs/licences/kernelbook.json")};
  auto file = json::parse(in);
  file["confirmed"] = "2026-12-01";
  std::filesystem::create_directories(scratch() + "/data/kernelmill/licences");
  write_file("data/kernelmill/licences/kernelbook.json", file.dump());
  program_options own;
  own.environment = {"XDG_DATA_HOME=" + scratch() + "/data"};
  auto refused = build({"--from", from}, own);
  EXPECT_THAT(refused.err, HasSubstr("--accept-terms kernelbook-rows"));
  EXPECT_FALSE(std::filesystem::exists(scratch() + "/corpora"));

  auto built = build({"--from", from, "--accept-terms", "kernelbook-rows"}, own);
  ASSERT_EQ(built.code, 0) << built.err;
  EXPECT_EQ(built.document()["kernels"], 3);
  EXPECT_EQ(built.document()["cards"], 0);
  EXPECT_EQ(built.document()["sources"][0]["rows"], 4);
  EXPECT_THAT(left_out(built), testing::ElementsAre("1 malformed, the first is " + rows +
                                                    ":2: the column \"python_code\" holds no "
                                                    "text"));
  auto few = build({"--from", from, "--limit", "1", "--accept-terms", "kernelbook-rows"}, own);
  EXPECT_EQ(few.document()["kernels"], 1) << few.err;

  auto found = kernelmill({"index", "query", "corpora", "--reference",
                           write_file("problem.py", "import torch\ndef forward(x):\n    return "
                                                    "torch.sin(x)\n"),
                           "--language", "triton"});
  ASSERT_EQ(found.code, 0) << found.err;
  EXPECT_THAT(found.out,
              AllOf(HasSubstr("kernel:kernelbook/"), HasSubstr("KernelBook, owner/name")));
}

TEST(index_command, sakanas_rows_are_filtered_and_counted) {
  json array = json::array({sakana_row(1, "exp", 2.0), sakana_row(1, "log", 0.5),
                            sakana_row(2, "sqrt", 3.0), sakana_row(1, "tanh", 9.0, false)});
  auto from = "sakana=" + write_file("sakana.json", array.dump(1));
  auto all = build({"--from", from});
  ASSERT_EQ(all.code, 0) << all.err;
  EXPECT_EQ(all.document()["kernels"], 3);
  EXPECT_THAT(left_out(all), testing::ElementsAre(HasSubstr("1 found wrong by their corpus")));
  EXPECT_EQ(build({"--from", from, "--with-failures"}).document()["kernels"], 4);
  auto some = build({"--from", from, "--levels", "1", "--min-speedup", "1.5"});
  EXPECT_EQ(some.document()["kernels"], 1) << some.err;
  EXPECT_EQ(left_out(some).size(), 3U);
  auto none = build({"--from", from, "--language", "hip"});
  EXPECT_EQ(none.code, 2) << none.err;
  EXPECT_EQ(none.fault()["category"], "corpus_empty");
  EXPECT_THAT(none.fault()["hint"], HasSubstr("3 of " + from + ": not written in hip"));

  auto people = kernelmill({"index", "build", "corpora", "--from", from, "--from", "cards"});
  ASSERT_EQ(people.code, 0) << people.err;
  EXPECT_THAT(people.out, AllOf(HasSubstr(from + ": 4 rows read, 3 kept\n"),
                                HasSubstr("  1 left out: found wrong")));
  auto found = kernelmill({"index", "query", "corpora", "kernel", "sqrt", "--backend", "cuda"});
  EXPECT_THAT(found.out, AllOf(HasSubstr("SPEEDUP"), HasSubstr("3.00x"),
                               HasSubstr("AI CUDA Engineer Archive, sqrt_vec4, CC-BY-4.0")));
}

TEST(index_command, rows_of_ones_own_say_whose_they_are_and_repeat_nothing) {
  auto row = [](const std::string& code, double speedup) {
    return json{{"kernel", code}, {"language", "cpp"}, {"source", "own"}, {"speedup", speedup}};
  };
  json unnamed = row("int another(int x) { return x - 1; }", 1);
  unnamed.erase("source");
  json bound = row("int bound(int x) { return x * 3; }", 1);
  bound["task"] = "sol-execbench/softmax"; // whose solutions must not be trained on
  auto first = "ndjson=" +
               write_rows("own.ndjson", {row("int f(int x) { return x + 1; }", 1),
                                         row("int g(int x) { return x * x; }", 1), unnamed, bound});
  auto second = "ndjson=" + write_rows("more.ndjson", {row("int f(int x) { return x + 1; }", 2)});
  auto built = build({"--from", first, "--from", second});
  ASSERT_EQ(built.code, 0) << built.err;
  EXPECT_EQ(built.document()["kernels"], 2);
  EXPECT_THAT(left_out(built),
              testing::UnorderedElementsAre(HasSubstr("1 their rows do not say whose they are"),
                                            HasSubstr("1 sol-execbench/softmax is of"),
                                            HasSubstr("1 they repeat a kernel")));
  EXPECT_EQ(built.document()["sources"][1]["kept"], 1) << "the faster one";
  auto again = kernelmill({"index", "query", "corpora", "f", "x", "--json"});
  EXPECT_THAT(again.out, HasSubstr("kernel:own/1-2")) << "the id of the first file's is taken";
}

TEST(index_command, a_wrong_source_says_what_to_type) {
  auto refused = [](const std::string& from) {
    auto x = build({"--from", from});
    EXPECT_EQ(x.code, from == "ndjson=nowhere" ? 3 : 2) << from << x.err;
    return x.fault().dump();
  };
  EXPECT_THAT(refused("huggingface=x"), HasSubstr("there are: cards, kernelbook"));
  EXPECT_THAT(refused("run"), HasSubstr("--from run=RUN"));
  EXPECT_THAT(refused("sakana="), HasSubstr("--from sakana=FILE"));
  EXPECT_THAT(refused("ndjson=nowhere"), HasSubstr("missing_file"));
  auto wrong = write_rows("wrong.jsonl", {{{"code", "x"}}, {{"code", "y"}}});
  EXPECT_THAT(refused("sakana=" + wrong),
              AllOf(HasSubstr("malformed_corpus"), HasSubstr("wrong.jsonl:1"),
                    HasSubstr("PyTorch_Code_Module"), HasSubstr("none of its 2 rows")));
  EXPECT_THAT(refused("ndjson=" + write_file("empty.jsonl", "")), HasSubstr("it has no row"));
  EXPECT_THAT(
      refused("ndjson=" + write_rows("acme.ndjson", {{{"kernel", "x"}, {"source", "acme"}}})),
      AllOf(HasSubstr("their source \\\"acme\\\" has no file"), HasSubstr("acme.json"),
            Not(HasSubstr("task.json"))));
  EXPECT_EQ(build({"--from", "cards", "--from", "cards"}).code, 2);
  EXPECT_EQ(build({"--levels", "one"}).code, 2);
  EXPECT_EQ(build({"--min-speedup", "0"}).code, 2);
  EXPECT_EQ(kernelmill({"index", "query", "corpora"}).code, 2);
  EXPECT_EQ(kernelmill({"index", "query", "corpora", "x", "--backend", "gpu"}).code, 2);
  EXPECT_EQ(kernelmill({"index", "query", "corpora", "f", "--words-weight", "101"}).code, 2);
  EXPECT_EQ(kernelmill({"index", "query", "corpora", "f", "--code-weight", "nan"}).code, 2);
}

TEST(index_command, code_without_an_operator_says_that_little_is_found) {
  ASSERT_EQ(kernelmill({"index", "build", "index"}).code, 0);
  auto code = write_file("no_problem.py", "answer = 42\n");
  auto found = kernelmill({"index", "query", "index", "--reference", code});
  EXPECT_EQ(found.code, 0) << found.err;
  EXPECT_THAT(found.err, HasSubstr("no operator of PyTorch"));
}

} // namespace index_command_test

} // namespace kernelmill::test
