#pragma once

// Asks a server that speaks OpenAI's POST /v1/embeddings (vLLM, SGLang, llama-server, TEI and
// others). It accepts float arrays and base64 of little-endian floats, puts rows back in order by
// `index`, and checks that every row has the same, right number of finite floats.
//
// How a question travels is the caller's: retrieval knows no HTTP client. The key is read when the
// embedder is made, from an environment variable or a file, and lives in this object only: it
// appears in no identity, no message and no log.

#include <functional>
#include <memory>
#include <string>

#include "retrieval/search/embedder.hpp"

namespace kernelmill {

struct http_embedder_options {
  std::string base_url;         ///< with or without /v1, e.g. "http://127.0.0.1:8080/v1"
  std::string model;            ///< as the server names it
  std::string api_key_env;      ///< name of the variable that holds the key; empty: none
  std::string api_key_file;     ///< a file that holds the key; empty: none
  bool base64 = false;          ///< ask for base64, a third of the bytes of a float array
  size_t dimension = 0;         ///< expected floats in a row; 0: whatever the server answers
  size_t batch = 64;            ///< texts in one request
  size_t max_text_bytes = 8192; ///< longer texts are cut; models refuse what exceeds their window
  unsigned attempts = 3;        ///< for connection faults and for 408, 429 and 5xx
  unsigned timeout_ms = 30000;  ///< of one attempt
};

/// A POST of JSON.
struct embedder_question {
  std::string url;
  std::string key; ///< sent as `Authorization: Bearer`; empty: not sent
  std::string body;
  size_t most_bytes = 0; ///< of an answer
  unsigned timeout_ms = 0;
};

struct embedder_answer {
  long status = 0; ///< 0: no HTTP answer at all
  std::string body;
  std::string cause; ///< of status 0
};

/// Asks a server and waits for its answer. Redirects are not followed.
using embedder_post = std::function<embedder_answer(const embedder_question&)>;

/// Names the first option that cannot work.
expected<void> validate(const http_embedder_options& x);

/// Makes an embedder that has not yet asked anything. Not thread safe: one caller at a time.
expected<std::unique_ptr<embedder>> make_http_embedder(http_embedder_options options,
                                                       embedder_post post);

/// Parses the body of an answer to `count` texts: count * dimension floats, in order, not yet
/// normalized. `dimension` 0 takes that of the first row and stores it.
expected<std::vector<float>> parse_embeddings(std::string_view body, size_t count,
                                              size_t& dimension);

} // namespace kernelmill
