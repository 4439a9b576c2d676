#include "launch/server/api/api_fields.hpp"

#include <algorithm>

#include "messages/base/json_value.hpp"
#include "messages/base/suggest.hpp"
#include "messages/base/text.hpp"

namespace kernelmill::services {

namespace {

tl::unexpected<error> bad(std::string message, std::string hint = {}) {
  return configuration_error("bad_request", std::move(message), std::move(hint));
}

bool fits(const nlohmann::json& x, const field& to) {
  if (to.nullable && x.is_null()) return true;
  switch (to.type) {
    case kind::text: return x.is_string();
    case kind::flag: return x.is_boolean();
    case kind::number: return x.is_number();
    case kind::whole: return x.is_number_integer();
    case kind::list: return x.is_array();
    case kind::object: return x.is_object();
    case kind::any: return true;
  }
  return false;
}

const char* name_of(kind x) {
  switch (x) {
    case kind::text: return "a text";
    case kind::flag: return "true or false";
    case kind::number: return "a number";
    case kind::whole: return "a whole number";
    case kind::list: return "a list";
    case kind::object: return "an object";
    case kind::any: return "anything";
  }
  return "";
}

} // namespace

expected<void> check_fields(const nlohmann::json& x, const fields& members,
                            const std::string& where) {
  if (!x.is_object()) {
    auto what = where.empty() ? std::string{"the body"} : where.substr(0, where.size() - 1);
    return bad(what + " must be an object");
  }
  std::vector<std::string> names;
  for (const auto& one : members) names.emplace_back(one.name);
  for (const auto& [key, value] : x.items()) {
    auto one = std::find_if(members.begin(), members.end(),
                            [&name = key](const field& f) { return name == f.name; });
    if (one == members.end())
      return bad("unknown field \"" + where + key + "\"" + did_you_mean(key, names),
                 "known are " + joined(names));
    if (!fits(value, *one))
      return bad("the field \"" + where + key + "\" must be " + name_of(one->type));
    if (!one->choices.empty() && value.is_string() &&
        std::find(one->choices.begin(), one->choices.end(), value.get<std::string>()) ==
            one->choices.end())
      return bad("the field \"" + where + key + "\" must be one of " + joined(one->choices));
  }
  for (const auto& one : members)
    if (one.required && !x.contains(one.name))
      return bad("the field \"" + where + one.name + "\" is missing");
  return {};
}

const operation& operation_of(const std::string& id) {
  const auto& all = operations();
  return *std::find_if(all.begin(), all.end(), [&](const operation& x) { return id == x.id; });
}

} // namespace kernelmill::services
