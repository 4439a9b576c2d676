// What is made of the tables of fields: JSON Schemas, features of data cards, a reference page.

#include "messages/base/json_value.hpp"
#include "storage/export/rows/forms.hpp"

namespace kernelmill::exports {

namespace {

using json = nlohmann::ordered_json;

// -- JSON Schema --------------------------------------------------------------------------------

json schema_of(const type& x);

json object_schema(const std::vector<field>& members) {
  json properties = json::object(), required = json::array();
  for (const auto& x : members) {
    auto schema = schema_of(x.of);
    if (x.optional) schema = {{"anyOf", json::array({std::move(schema), {{"type", "null"}}})}};
    if (!x.doc.empty()) schema["description"] = x.doc;
    properties[x.name] = std::move(schema);
    if (!x.optional) required.push_back(x.name);
  }
  return {{"type", "object"},
          {"properties", std::move(properties)},
          {"required", std::move(required)},
          {"additionalProperties", false}};
}

json schema_of(const type& x) {
  if (x.name == "record") return object_schema(x.members);
  if (x.name == "list") {
    auto items = schema_of(x.members.front().of);
    if (x.members.front().optional)
      items = {{"anyOf", json::array({std::move(items), {{"type", "null"}}})}};
    return {{"type", "array"}, {"items", std::move(items)}};
  }
  if (x.name == "string") return {{"type", "string"}};
  if (x.name == "bool") return {{"type", "boolean"}};
  return {{"type", x.name.starts_with("int") ? "integer" : "number"}};
}

// -- features -----------------------------------------------------------------------------------

void add_type(std::string& to, const type& x, const std::string& indent);

void add_members(std::string& to, const std::vector<field>& members, const std::string& indent) {
  for (const auto& x : members) {
    to += indent + "- name: " + x.name + "\n";
    add_type(to, x.of, indent + "  ");
  }
}

void add_type(std::string& to, const type& x, const std::string& indent) {
  if (x.name == "record") {
    to += indent + "struct:\n";
    add_members(to, x.members, indent);
    return;
  }
  if (x.name != "list") {
    to += indent + "dtype: " + x.name + "\n";
    return;
  }
  const auto& item = x.members.front().of;
  if (item.name == "record") {
    to += indent + "list:\n";
    add_members(to, item.members, indent);
  } else if (item.name == "list") {
    to += indent + "list:\n";
    add_type(to, item, indent + "  ");
  } else {
    to += indent + "list: " + item.name + "\n";
  }
}

// -- the page -----------------------------------------------------------------------------------

std::string type_text(const type& x) {
  if (x.name == "list") return "list of " + type_text(x.members.front().of);
  return x.name;
}

const std::vector<field>* members_within(const type& x) {
  if (x.name == "record") return &x.members;
  if (x.name == "list") return members_within(x.members.front().of);
  return nullptr;
}

void add_lines(std::string& to, const std::vector<field>& fields, const std::string& prefix) {
  for (const auto& x : fields) {
    auto name = prefix + x.name;
    to += "| `" + name + "` | " + type_text(x.of) + (x.optional ? ", or null" : "") + " | " +
          x.doc + " |\n";
    if (const auto* members = members_within(x.of)) add_lines(to, *members, name + ".");
  }
}

} // namespace

std::string schema_id(form x) {
  return "urn:kernelmill:schema:export-" + std::string{to_string(x)} + ":" +
         std::to_string(row_version);
}

std::string json_schema(form x) {
  json result = {{"$schema", "https://json-schema.org/draft/2020-12/schema"},
                 {"$id", schema_id(x)},
                 {"title", "A row of the export " + std::string{to_string(x)}},
                 {"description", std::string{summary_of(x)}}};
  result.update(object_schema(fields_of(x)));
  return result.dump(2) + "\n";
}

std::string features_yaml(form x, size_t indent) {
  std::string result;
  add_members(result, fields_of(x), std::string(indent, ' '));
  return result;
}

std::string fields_page() {
  std::string result;
  for (auto x : all_forms) {
    result += "\n## " + std::string{to_string(x)} + "\n\n" + std::string{summary_of(x)} +
              "\n\n| field | type | |\n|---|---|---|\n";
    add_lines(result, fields_of(x), "");
  }
  return result;
}

} // namespace kernelmill::exports
