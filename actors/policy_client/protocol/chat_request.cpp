#include "actors/policy_client/protocol/chat_request.hpp"

#include <algorithm>

#include "actors/policy_client/protocol/json_text.hpp"
#include "actors/policy_client/protocol/json_view.hpp"
#include "messages/base/json_depth.hpp"
#include "messages/base/json_value.hpp"

namespace kernelmill {

namespace {

constexpr size_t longest_name = 64; // OpenAI's limit

std::string_view text_in(capnp::Text::Reader x) {
  return {x.begin(), x.size()};
}

bool is_json_object(std::string_view text) {
  if (nests_deeper(text)) return false;
  json_document document{text};
  return is_object(document.root());
}

void append_name(std::string& to, std::string_view name) {
  auto allowed = [](unsigned char c) {
    return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_' ||
           c == '-';
  };
  std::string sent{name.substr(0, longest_name)};
  std::replace_if(sent.begin(), sent.end(), std::not_fn(allowed), '_');
  append_json(to, sent.empty() ? "_" : sent);
}

void append_arguments(std::string& to, std::string_view arguments) {
  if (arguments.find_first_not_of(" \t\r\n") == std::string_view::npos)
    return append_json(to, "{}");
  if (is_json_object(arguments)) return append_json(to, arguments);
  std::string packed = R"({"arguments":)";
  append_json(packed, arguments);
  append_json(to, packed + "}");
}

void append_calls(std::string& to, capnp::List<wire::ToolCall>::Reader calls) {
  to += R"(,"tool_calls":[)";
  for (auto separator = ""; auto x : calls) {
    to += separator;
    to += R"({"id":)";
    append_json(to, text_in(x.getId()));
    to += R"(,"type":"function","function":{"name":)";
    append_name(to, text_in(x.getName()));
    to += R"(,"arguments":)";
    append_arguments(to, text_in(x.getArguments()));
    to += "}}";
    separator = ",";
  }
  to += ']';
}

void append_messages(std::string& to, wire::CompletionRequest::Reader request,
                     const std::string* placeholder) {
  auto messages = request.getMessages();
  auto replaced = messages.size();
  for (unsigned i = 1; placeholder != nullptr && i < messages.size(); ++i)
    if (text_in(messages[i].getRole()) == "assistant") replaced = i;
  to += R"({"messages":[)";
  for (unsigned i = 0; i < messages.size(); ++i) {
    auto x = messages[i];
    to += i == 0 ? R"({"role":)" : R"(,{"role":)";
    append_json(to, text_in(x.getRole()));
    to += R"(,"content":)";
    // Of an answer that only calls, too: not every server takes null.
    append_json(to, i == replaced ? std::string_view{*placeholder} : text_in(x.getContent()));
    if (x.getCalls().size() > 0 && i != replaced) append_calls(to, x.getCalls());
    if (x.getCallId().size() > 0) {
      to += R"(,"tool_call_id":)";
      append_json(to, text_in(x.getCallId()));
    }
    to += '}';
  }
  to += ']';
}

// Schemas are sent as they are written: the order of their keys is what the model reads.
void append_tools(std::string& to, wire::CompletionRequest::Reader request,
                  std::string_view choice) {
  if (request.getTools().size() == 0) return;
  to += R"(,"tools":[)";
  for (auto separator = ""; auto x : request.getTools()) {
    to += separator;
    to += R"({"type":"function","function":{"name":)";
    append_json(to, text_in(x.getName()));
    to += R"(,"description":)";
    append_json(to, text_in(x.getDescription()));
    to += R"(,"parameters":)";
    auto schema = text_in(x.getParameters());
    to += is_json_object(schema) ? schema : R"({"type":"object","properties":{}})";
    to += "}}";
    separator = ",";
  }
  to += ']';
  if (choice.empty()) return;
  to += R"(,"tool_choice":)";
  append_json(to, choice);
}

size_t size_of(wire::CompletionRequest::Reader request) {
  constexpr size_t around = 64;
  auto size = around;
  for (auto x : request.getMessages()) {
    size += x.getContent().size() * 9 / 8 + around; // some bytes are escaped
    for (auto call : x.getCalls()) size += call.getArguments().size() * 5 / 4 + 2 * around;
  }
  for (auto x : request.getTools())
    size += x.getDescription().size() + x.getParameters().size() + 2 * around;
  return size;
}

} // namespace

std::string request_text(wire::CompletionRequest::Reader request, const nlohmann::json& fields,
                         std::string_view choice, const std::string* placeholder) {
  auto rest = write_json(fields);
  std::string result;
  result.reserve(size_of(request) + rest.size());
  append_messages(result, request, placeholder);
  append_tools(result, request, choice);
  result += ',';
  result.append(rest, 1);
  return result;
}

} // namespace kernelmill
