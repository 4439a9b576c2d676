#pragma once

// The routes of the page as a table: the server serves it, and docs/reference/page-openapi.json is
// written from it.

#include <atomic>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "launch/server/http/router.hpp"
#include "launch/server/page/answers.hpp"
#include "launch/server/page/kept_runs.hpp"
#include "launch/server/page/metrics_text.hpp"
#include "launch/server/page/page.hpp"
#include "launch/server/page/stream.hpp"

namespace kernelmill::page {

struct parameter {
  const char* name;
  const char* type; ///< "string" or "integer"
  const char* doc;
};

/// One way to ask. `path` is that of the route.
struct operation {
  const char* id;
  const char* method;
  const char* path;
  const char* summary;
  std::vector<parameter> query = {};
  const char* type = "application/json"; ///< of the answer
  bool open = false;                     ///< needs no token
};

const std::vector<operation>& operations();

/// What handlers share. The order of the members is that in which they may end: the answers'
/// threads use all of the others.
struct page_state {
  options settings;
  std::atomic<uint64_t> requests = 0;
  std::atomic<uint64_t> changes = 0; ///< that readers made here
  metrics_table metrics;
  std::mutex metrics_mutex;
  kept_runs kept{[this] { return version(); }};
  std::unique_ptr<event_stream> events;
  std::unique_ptr<answers> documents;

  /// Grows with all that readers can know of: a document that began after it grew shows that.
  uint64_t version() const { return changes + events->told(); }
};

/// The routes of operations(), and those of the page's own files.
std::vector<http::route> routes_of(const std::shared_ptr<page_state>& x);

/// The document of an operation without side effects, such as "episode": `parts` are those of its
/// path.
expected<watch::json> document_of(const watch::world& in, const std::string& id,
                                  std::map<std::string, std::string> parts,
                                  const watch::json& query, kept_runs& kept);

/// `in` as views of launch/analysis/watch see it that go by what `kept` has. Both outlive it.
watch::world with_kept(const watch::world& in, kept_runs& kept);

/// A file of the page, from the program itself.
struct asset {
  const char* path; ///< "/page/app.js"
  const char* type;
  const unsigned char* bytes;
  size_t size;
};
const std::vector<asset>& assets();

} // namespace kernelmill::page
