// docs/reference/openapi.json, made from the tables of the API.

#include "launch/server/api/api_fields.hpp"
#include "messages/base/json_value.hpp"

namespace kernelmill::services {

namespace {

using json = nlohmann::ordered_json;

json type_of(const field& x) {
  auto reference = [&] { return json{{"$ref", std::string{"#/components/schemas/"} + x.of}}; };
  json result;
  switch (x.type) {
    case kind::text: result["type"] = "string"; break;
    case kind::flag: result["type"] = "boolean"; break;
    case kind::number: result["type"] = "number"; break;
    case kind::whole: result["type"] = "integer"; break;
    case kind::list:
      result["type"] = "array";
      result["items"] = *x.of != 0 ? reference() : json::object();
      break;
    case kind::object:
      if (*x.of != 0)
        result["allOf"] = json::array({reference()});
      else
        result["type"] = "object";
      break;
    case kind::any: break;
  }
  if (x.nullable) result["nullable"] = true;
  if (!x.choices.empty()) result["enum"] = x.choices;
  if (!x.choices.empty() && x.nullable) result["enum"].push_back(nullptr);
  if (*x.doc != 0) result["description"] = x.doc;
  return result;
}

json schema_of(const schema& x) {
  json result{{"type", "object"}, {"description", x.doc}, {"additionalProperties", x.more}};
  auto needed = json::array();
  for (const auto& one : x.members) {
    result["properties"][one.name] = type_of(one);
    if (one.required) needed.push_back(one.name);
  }
  if (!needed.empty()) result["required"] = needed;
  return result;
}

json content_of(const char* name, bool list) {
  json one{{"$ref", std::string{"#/components/schemas/"} + name}};
  json all{{"type", "array"}, {"items", one}};
  return {{"application/json", {{"schema", list ? all : one}}}};
}

const char* words_of(int status) {
  switch (status) {
    case 200: return "The answer.";
    case 202: return "Taken; ask for it by its id.";
    case 400: return "The request is wrong; the message names the field.";
    case 401: return "The token is missing or wrong.";
    case 404: return "There is none of that name.";
    case 409: return "It contradicts an earlier request; the message says which.";
    case 413: return "The body is too large.";
    case 415: return "The body is not said to be JSON.";
    case 429: return "The queue is full; come again after Retry-After seconds.";
    case 503: return "Not now.";
    default: return "";
  }
}

json operation_json(const operation& x) {
  json result{{"operationId", x.id}, {"summary", x.summary}};
  auto parameters = json::array();
  std::string path = x.path;
  if (auto from = path.find('{'); from != path.npos)
    parameters.push_back({{"name", path.substr(from + 1, path.find('}') - from - 1)},
                          {"in", "path"},
                          {"required", true},
                          {"schema", {{"type", "string"}}}});
  for (const auto& one : x.query)
    parameters.push_back({{"name", one.name},
                          {"in", "query"},
                          {"required", false},
                          {"description", one.doc},
                          {"schema", type_of({one.name, one.type, ""})}});
  if (std::string{x.id} == "evaluate")
    parameters.push_back(
        {{"name", "Idempotency-Key"},
         {"in", "header"},
         {"required", false},
         {"description", "A text of the client's. The same request with the same key is the same "
                         "evaluations, not new ones."},
         {"schema", {{"type", "string"}}}});
  if (!parameters.empty()) result["parameters"] = parameters;
  if (*x.body != 0)
    result["requestBody"] = {{"required", true}, {"content", content_of(x.body, false)}};
  result["responses"]["200"] = {{"description", words_of(200)},
                                {"content", content_of(x.answer, x.list)}};
  auto statuses = x.statuses;
  if (!x.open) statuses.insert(statuses.begin(), {400, 401});
  if (*x.body != 0) statuses.insert(statuses.end(), {413, 415});
  for (int status : statuses)
    result["responses"][std::to_string(status)] = {
        {"description", words_of(status)},
        {"content", content_of(status == 202             ? x.answer
                               : status == 503 && x.open ? x.answer
                                                         : "Error",
                               x.list && status == 202)}};
  if (x.open) result["security"] = json::array();
  return result;
}

} // namespace

std::string openapi_text() {
  json result{{"openapi", "3.0.3"},
              {"info",
               {{"title", "Kernelmill: evaluation and rollouts as services"},
                {"description", "Served by `kernelmill serve`."},
                {"version", "1"}}},
              {"security", json::array({{{"bearer", json::array()}}})}};
  for (const auto& one : operations()) {
    std::string method = one.method;
    for (auto& c : method) c = static_cast<char>(c | 0x20);
    auto& place = result["paths"][one.path][method];
    place = operation_json(one);
    if (std::string{one.id} == "evaluate") // one candidate, or many
      for (const char* status : {"200", "202"})
        place["responses"][status]["content"]["application/json"]["schema"] = {
            {"oneOf", json::array({{{"$ref", "#/components/schemas/Evaluation"}},
                                   {{"$ref", "#/components/schemas/Evaluations"}}})}};
  }
  for (const auto& one : schemas()) result["components"]["schemas"][one.name] = schema_of(one);
  result["components"]["securitySchemes"]["bearer"] = {{"type", "http"}, {"scheme", "bearer"}};
  return result.dump(2) + "\n";
}

} // namespace kernelmill::services
