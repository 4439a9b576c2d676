#include "retrieval/search/http_embedder.hpp"

#include <algorithm>
#include <bit>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <thread>

#include <fmt/format.h>

#include "messages/base/base64.hpp"
#include "messages/base/json_value.hpp"
#include "messages/base/utf8.hpp"

namespace kernelmill {

namespace {

// 64 rows of 8192 floats as decimal text are about 8 MB; more is not an answer to our question.
constexpr size_t max_answer_bytes = size_t{64} << 20;
constexpr auto first_pause = std::chrono::milliseconds{100};

tl::unexpected<error> failed(const std::string& cause, std::string hint = {}) {
  return infrastructure_error("embedder_failed", "failed to embed texts: " + cause,
                              std::move(hint));
}

expected<std::string> read_key(const http_embedder_options& x) {
  std::string key;
  if (!x.api_key_env.empty()) {
    const char* value = std::getenv(x.api_key_env.c_str());
    if (value == nullptr || *value == '\0')
      return configuration_error(
          "api_key_missing",
          fmt::format("failed to read the embedder's key: variable {} is not set", x.api_key_env),
          "set the variable, or leave api_key_env empty for a server that wants no key");
    key = value;
  } else if (!x.api_key_file.empty()) {
    std::ifstream in{x.api_key_file};
    if (!std::getline(in, key) || key.empty())
      return configuration_error(
          "api_key_missing",
          fmt::format("failed to read the embedder's key: file {} is missing or empty",
                      x.api_key_file),
          "put the key on the file's first line");
  }
  while (!key.empty() && (key.back() == '\r' || key.back() == ' ')) key.pop_back();
  if (std::any_of(key.begin(), key.end(), [](unsigned char c) { return c < 0x21 || c > 0x7E; }))
    return configuration_error("api_key_malformed",
                               "failed to read the embedder's key: it holds a byte that no HTTP "
                               "header may carry",
                               "check the variable or file for stray spaces and line breaks");
  return key;
}

std::string endpoint_of(std::string base) {
  while (!base.empty() && base.back() == '/') base.pop_back();
  return base + (base.ends_with("/v1") ? "/embeddings" : "/v1/embeddings");
}

/// At most 300 bytes of a server's words, without control bytes.
std::string excerpt(std::string_view text) {
  std::string result{utf8_prefix(text, 300)};
  std::replace_if(
      result.begin(), result.end(), [](unsigned char c) { return c < 0x20; }, ' ');
  return result;
}

/// The text of a server's {"error": {"message": ...}}, or the start of whatever it said.
std::string complaint_of(const std::string& body) {
  auto parsed = nlohmann::json::parse(body, nullptr, false);
  if (parsed.is_object() && parsed.contains("error")) {
    const auto& x = parsed["error"];
    if (x.is_string()) return excerpt(x.get_ref<const std::string&>());
    if (x.is_object() && x.contains("message") && x["message"].is_string())
      return excerpt(x["message"].get_ref<const std::string&>());
  }
  return excerpt(body);
}

bool worth_another_try(const embedder_answer& x) {
  return x.status == 0 || x.status == 408 || x.status == 429 || x.status >= 500;
}

expected<std::vector<float>> row_from_base64(const std::string& text) {
  static_assert(std::endian::native == std::endian::little, "rows travel as little-endian floats");
  auto bytes = from_base64(text, base64_letters::any);
  if (!bytes) return failed("the answer holds malformed base64");
  if (bytes->size() % sizeof(float) != 0)
    return failed(fmt::format("a row of {} base64 bytes is no array of floats", bytes->size()));
  std::vector<float> row(bytes->size() / sizeof(float));
  if (!row.empty()) std::memcpy(row.data(), bytes->data(), bytes->size());
  return row;
}

expected<std::vector<float>> row_of(const nlohmann::json& item) {
  auto embedding = item.find("embedding");
  if (embedding == item.end()) return failed("an item of \"data\" has no \"embedding\"");
  if (embedding->is_string()) return row_from_base64(embedding->get_ref<const std::string&>());
  if (!embedding->is_array()) return failed("\"embedding\" is neither an array nor base64");
  std::vector<float> row;
  row.reserve(embedding->size());
  for (const auto& x : *embedding) {
    if (!x.is_number()) return failed("\"embedding\" holds something that is no number");
    row.push_back(x.get<float>());
  }
  return row;
}

/// Puts one item of "data" where its index says. `seen` marks the rows that are there.
expected<void> place_row(const nlohmann::json& item, size_t position, size_t& dimension,
                         std::vector<std::vector<float>>& rows) {
  if (!item.is_object()) return failed("an item of \"data\" is no object");
  auto index = position;
  if (auto i = item.find("index"); i != item.end()) {
    if (!i->is_number_unsigned()) return failed("\"index\" is no whole number");
    index = i->get<size_t>();
  }
  if (index >= rows.size() || !rows[index].empty())
    return failed(fmt::format("index {} is out of range or appears twice", index));
  auto row = row_of(item);
  KM_TRY(row);
  if (dimension == 0) dimension = row->size();
  if (row->empty() || row->size() != dimension)
    return failed(fmt::format("row {} has {} floats, expected {}", index, row->size(), dimension),
                  "the model behind the server differs from the one configured");
  if (!std::all_of(row->begin(), row->end(), [](float x) { return std::isfinite(x); }))
    return failed(fmt::format("row {} holds a number that is not finite", index));
  rows[index] = std::move(*row);
  return {};
}

class http_embedder final : public embedder {
public:
  http_embedder(http_embedder_options options, std::string key, embedder_post post)
      : options_(std::move(options)), dimension_(options_.dimension), key_(std::move(key)),
        post_(std::move(post)) {
    // nop
  }

  std::string identity() const override {
    // The address is left out: the same model behind another address gives the same vectors.
    return fmt::format("openai-embeddings/1 model={}", options_.model);
  }
  size_t dimension() const override { return dimension_; }
  bool blocking() const override { return true; }

  expected<std::vector<float>> embed(const std::vector<std::string>& texts) override {
    std::vector<float> rows;
    for (size_t begin = 0; begin < texts.size(); begin += options_.batch) {
      auto count = std::min(options_.batch, texts.size() - begin);
      auto part = embed_batch(texts, begin, count);
      if (!part) return part;
      rows.insert(rows.end(), part->begin(), part->end());
    }
    for (size_t i = 0; i < texts.size(); ++i) normalize(rows.data() + i * dimension_, dimension_);
    return rows;
  }

private:
  expected<std::vector<float>> embed_batch(const std::vector<std::string>& texts, size_t begin,
                                           size_t count) {
    auto input = nlohmann::json::array();
    for (size_t i = begin; i < begin + count; ++i)
      input.push_back(std::string{utf8_prefix(texts[i], options_.max_text_bytes)});
    nlohmann::json question{{"model", options_.model},
                            {"input", std::move(input)},
                            {"encoding_format", options_.base64 ? "base64" : "float"}};
    // `replace` writes U+FFFD for bytes that are no UTF-8 instead of throwing.
    auto body = question.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
    auto got = post_with_retries(body);
    if (got.status == 0)
      return failed(fmt::format("{}: {}", endpoint_of(options_.base_url), got.cause),
                    "check that the embedding server runs there: its address is "
                    "retrieval.embedder.base_url of a run, --base-url of a command");
    if (got.status != 200)
      return failed(fmt::format("{} answered {}: {}", endpoint_of(options_.base_url), got.status,
                                without_key(complaint_of(got.body))));
    return parse_embeddings(got.body, count, dimension_);
  }

  embedder_answer post_with_retries(const std::string& body) const {
    auto pause = first_pause;
    const embedder_question question{endpoint_of(options_.base_url), key_, body, max_answer_bytes,
                                     options_.timeout_ms};
    for (unsigned attempt = 1;; ++attempt, pause *= 4) {
      auto got = post_(question);
      if (!worth_another_try(got) || attempt >= options_.attempts) return got;
      std::this_thread::sleep_for(pause);
    }
  }

  /// A server may echo the key in its complaint.
  std::string without_key(std::string text) const {
    if (key_.empty()) return text;
    for (size_t at = 0; (at = text.find(key_, at)) != std::string::npos;)
      text.replace(at, key_.size(), "[key]");
    return text;
  }

  http_embedder_options options_;
  size_t dimension_;
  std::string key_;
  embedder_post post_;
};

} // namespace

expected<std::vector<float>> parse_embeddings(std::string_view body, size_t count,
                                              size_t& dimension) {
  auto parsed = nlohmann::json::parse(body, nullptr, false);
  if (parsed.is_discarded()) return failed("the answer is not JSON");
  if (!parsed.is_object() || !parsed.contains("data") || !parsed["data"].is_array())
    return failed("the answer has no list \"data\"");
  const auto& data = parsed["data"];
  if (data.size() != count)
    return failed(fmt::format("the answer has {} rows for {} texts", data.size(), count));
  std::vector<std::vector<float>> rows(count);
  for (size_t i = 0; i < count; ++i) KM_TRY(place_row(data[i], i, dimension, rows));
  std::vector<float> result;
  result.reserve(count * dimension);
  for (const auto& row : rows) result.insert(result.end(), row.begin(), row.end());
  return result;
}

expected<void> validate(const http_embedder_options& x) {
  auto wrong = [](const char* key, const char* cause) {
    std::string option = key;
    std::replace(option.begin(), option.end(), '_', '-');
    return configuration_error(
        "bad_config", fmt::format("failed to use embedder option {}: {}", key, cause),
        fmt::format("set retrieval.embedder.{} of a run, --{} of a command", key, option));
  };
  if (!x.base_url.starts_with("http://") && !x.base_url.starts_with("https://"))
    return wrong("base_url", "it must begin with http:// or https://");
  if (x.base_url.find('@') != std::string::npos)
    return wrong("base_url", "it must hold no user or password; use api_key_env or api_key_file");
  if (x.model.empty()) return wrong("model", "it is empty");
  if (!x.api_key_env.empty() && !x.api_key_file.empty())
    return wrong("api_key_env", "api_key_file is given too; give one of the two");
  if (x.batch == 0 || x.attempts == 0)
    return configuration_error("bad_config",
                               "failed to use an embedder: batch and attempts must be at least 1");
  if (x.timeout_ms == 0) return wrong("timeout_ms", "it must be at least 1");
  return {};
}

expected<std::unique_ptr<embedder>> make_http_embedder(http_embedder_options options,
                                                       embedder_post post) {
  KM_TRY(validate(options));
  auto key = read_key(options);
  KM_TRY(key);
  return std::make_unique<http_embedder>(std::move(options), std::move(*key), std::move(post));
}

} // namespace kernelmill
