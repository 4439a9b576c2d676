#pragma once

// What requests may hold and answers do hold, as tables: requests are checked against them,
// docs/reference/openapi.json is written from them, and a test holds answers against that.

#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "messages/error.hpp"

namespace kernelmill::services {

enum class kind : unsigned char { text, flag, number, whole, list, object, any };

struct field {
  const char* name;
  kind type;
  const char* doc;
  bool required = false;
  bool nullable = false;
  std::vector<std::string> choices = {}; ///< of a text
  const char* of = "";                   ///< schema of an object, or of a list's elements
};

using fields = std::vector<field>;

/// A named object, or one under "components/schemas".
struct schema {
  const char* name;
  const char* doc;
  const fields& members;
  bool more = false; ///< others are taken, and not read
};

struct query_parameter {
  const char* name;
  kind type;
  const char* doc;
};

/// One way to ask. `path` is that of the route.
struct operation {
  const char* id; ///< "evaluate"
  const char* method;
  const char* path;
  const char* summary;
  std::vector<query_parameter> query = {};
  const char* body = "";          ///< schema of the request's body; "": none
  const char* answer = "";        ///< schema of the answer
  bool list = false;              ///< the answer is a list of them
  std::vector<int> statuses = {}; ///< besides 200; 400, 401 and 413 go without saying
  bool open = false;              ///< needs no token
};

const std::vector<operation>& operations();
const std::vector<schema>& schemas();
const operation& operation_of(const std::string& id);

/// Checks an object against its fields: unknown, missing and wrongly typed ones are named, after
/// `where` ("candidates[3]."). Category bad_request.
expected<void> check_fields(const nlohmann::json& x, const fields& members,
                            const std::string& where = {});

// What bodies hold.
const fields& evaluate_fields();
const fields& candidate_fields();
const fields& kernelgym_task_fields();
const fields& kernelgym_batch_fields();
const fields& kernelgym_workflow_fields();

/// docs/reference/openapi.json.
std::string openapi_text();

} // namespace kernelmill::services
