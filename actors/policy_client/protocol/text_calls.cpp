#include "actors/policy_client/protocol/text_calls.hpp"

#include <algorithm>
#include <optional>

#include "actors/policy_client/protocol/json_view.hpp"
#include "actors/policy_client/protocol/xml_calls.hpp"
#include "messages/base/json_depth.hpp"
#include "messages/base/utf8.hpp"

namespace kernelmill {

namespace {

constexpr auto nowhere = std::string_view::npos;
constexpr std::string_view blanks = " \t\r\n";
constexpr std::string_view block_open = "<tool_call>", block_close = "</tool_call>";
constexpr std::string_view list_mark = "[TOOL_CALLS]", id_mark = "[CALL_ID]", args_mark = "[ARGS]";
constexpr std::string_view python_mark = "<|python_tag|>";
constexpr std::string_view thought_open = "<think>", thought_close = "</think>";
constexpr size_t max_problems = 32;
constexpr size_t max_excerpt = 160;

std::string_view without_blanks(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(blanks), text.size()));
  return text.substr(0, text.find_last_not_of(blanks) + 1);
}

// Of a text that may be long and of several lines, its beginning in one line.
std::string excerpt_of(std::string_view text) {
  auto part = utf8_prefix(text, max_excerpt);
  std::string result{part};
  std::replace_if(
      result.begin(), result.end(), [](unsigned char c) { return c < ' ' || c == 0x7f; }, ' ');
  return '"' + result + (part.size() < text.size() ? " ...\"" : "\"");
}

// Where the object or list at the front of a text ends, if it does.
size_t end_of_value(std::string_view text) {
  size_t depth = 0;
  bool quoted = false;
  for (size_t i = 0; i < text.size(); ++i) {
    auto c = text[i];
    if (c == '"') quoted = !quoted;
    if (c == '\\' && quoted) ++i;
    if (quoted) continue;
    if (c == '{' || c == '[') ++depth;
    if ((c == '}' || c == ']') && --depth == 0) return i + 1;
  }
  return nowhere;
}

// Objects and lists, one after the other with nothing between them but what separates them; none
// where there is anything else.
std::optional<std::vector<std::string_view>> values_in(std::string_view text) {
  std::vector<std::string_view> result;
  for (;;) {
    text.remove_prefix(std::min(text.find_first_not_of(" \t\r\n;,"), text.size()));
    if (text.empty()) break;
    if (text.front() != '{' && text.front() != '[') return std::nullopt;
    auto end = end_of_value(text);
    if (end == nowhere) return std::nullopt;
    result.push_back(text.substr(0, end));
    text.remove_prefix(end);
  }
  if (result.empty()) return std::nullopt;
  return result;
}

std::string written(json_element x) {
  auto result = std::string{simdjson::minify(x)};
  show_mended(result);
  return result;
}

// Why a value is no call; empty when it is one.
const char* read_call(const json_found& value, tool_call& to) {
  if (!is_object(value)) return "is no JSON object";
  // Models repeat the form of requests, too.
  auto function = member(value, "function");
  auto inner = is_object(function) ? function : value;
  auto name = as<std::string_view>(member(inner, "name"));
  if (!name || name->empty()) return "has no \"name\" that is text";
  to.name = *name;
  show_mended(to.name);
  to.id = text_of(member(value, "id"));
  auto arguments = member(inner, "arguments");
  if (!arguments) arguments = member(inner, "parameters");
  if (!arguments || arguments->is_null()) {
    to.arguments = "{}";
  } else if (arguments->is_object()) {
    to.arguments = written(*arguments);
  } else {
    auto text = text_of(arguments); // JSON in JSON
    show_mended(text);
    json_document packed{text};
    if (!is_object(packed.root()) || nests_deeper(text))
      return "has \"arguments\" that are no JSON object";
    to.arguments = std::move(text);
  }
  return "";
}

class text_call_reader {
public:
  explicit text_call_reader(std::string_view answer) : rest_(answer) {}

  text_calls run() {
    take_thought();
    if (rest_.find(block_open) != nowhere)
      take_blocks();
    else if (rest_.find(list_mark) != nowhere)
      take_lists();
    else
      take_whole();
    out_.text = without_blanks(out_.text);
    if (missed_ > 0)
      out_.problems.push_back(std::to_string(missed_) + " more calls are broken like these");
    if (out_.surplus > 0)
      out_.problems.push_back("of " + std::to_string(max_tool_calls + out_.surplus) +
                              " calls only the first " + std::to_string(max_tool_calls) +
                              " are kept");
    return std::move(out_);
  }

private:
  void keep(size_t count) {
    out_.text += rest_.substr(0, count);
    rest_.remove_prefix(std::min(count, rest_.size()));
  }

  void take_thought() {
    auto end = rest_.find(thought_close);
    if (end != nowhere) return keep(end + thought_close.size());
    if (!without_blanks(rest_).starts_with(thought_open)) return;
    if (rest_.find(block_open) != nowhere)
      problem("<think> is not closed by </think>, so calls behind it count as thought", rest_);
    keep(rest_.size());
  }

  void take_blocks() {
    // Searched once each: what is not there is not looked for from every block.
    auto close = rest_.find(block_close);
    auto whole = rest_;
    auto begin = whole.find(block_open);
    size_t at = 0;
    while (begin != nowhere) {
      auto first = begin + block_open.size();
      auto next = whole.find(block_open, first);
      if (close != nowhere && close < first) close = whole.find(block_close, first);
      auto end = std::min({close, next, whole.size()});
      auto behind = end == close ? end + block_close.size() : end;
      if (take_block(whole.substr(first, end - first))) {
        out_.text += whole.substr(at, begin - at);
        at = behind;
      }
      begin = next;
    }
    out_.text += whole.substr(at);
  }

  // One form or the other; of both, neither can be read whole.
  bool take_block(std::string_view block) {
    const std::string what = "a <tool_call> block";
    auto body = without_blanks(block);
    if (!is_xml_call(body)) return take_values(block, what);
    std::vector<tool_call> calls;
    if (std::string_view why = read_xml_calls(body, calls); !why.empty())
      return problem(what + " " + std::string{why}, block);
    for (auto& x : calls) add(std::move(x));
    return true;
  }

  void take_lists() {
    auto begin = rest_.find(list_mark);
    while (begin != nowhere) {
      keep(begin);
      auto end = rest_.find(list_mark, list_mark.size());
      auto size = std::min(end, rest_.size());
      auto segment = without_blanks(rest_.substr(list_mark.size(), size - list_mark.size()));
      if (take_segment(segment))
        rest_.remove_prefix(size);
      else
        keep(size);
      begin = rest_.find(list_mark);
    }
    keep(rest_.size());
  }

  // [{...}, ...], or NAME[CALL_ID]ID[ARGS]{...} with both marks optional.
  bool take_segment(std::string_view segment) {
    constexpr auto what = "what follows [TOOL_CALLS]";
    if (segment.starts_with('[') || segment.starts_with('{')) return take_values(segment, what);
    auto brace = segment.find('{');
    auto head = segment.substr(0, brace);
    auto values = brace == nowhere ? std::nullopt : values_in(segment.substr(brace));
    auto name = head.substr(0, std::min(head.find(id_mark), head.find(args_mark)));
    tool_call call;
    if (auto at = head.find(id_mark); at != nowhere) {
      auto id = head.substr(at + id_mark.size());
      call.id = without_blanks(id.substr(0, id.find(args_mark)));
    }
    call.name = without_blanks(name);
    if (!values || values->size() != 1 || call.name.empty() ||
        call.name.find_first_of(blanks) != std::string::npos)
      return problem(std::string{what} + " is neither a list of calls nor NAME[ARGS]{...}",
                     segment);
    auto document = json_document::of_answer(values->front());
    if (!is_object(document.root()) || nests_deeper(values->front()))
      return problem(std::string{what} + " has arguments that are no JSON", segment);
    call.arguments = written(*document.root());
    add(std::move(call));
    return true;
  }

  // An answer that is nothing but calls. One that only looks like it is an answer in JSON.
  void take_whole() {
    auto body = without_blanks(rest_);
    auto marked = body.starts_with(python_mark);
    if (marked) body = without_blanks(body.substr(python_mark.size()));
    auto inside = body.starts_with('{') ? without_blanks(body.substr(1)) : std::string_view{};
    if (inside.starts_with("\"name\"") &&
        (body.find("\"parameters\"") != nowhere || body.find("\"arguments\"") != nowhere)) {
      if (take_values(body, "the answer")) return;
    } else if (marked) {
      problem("what follows <|python_tag|> is no call", body);
    }
    keep(rest_.size());
  }

  bool take_values(std::string_view text, const std::string& what) {
    auto values = values_in(text);
    if (!values) return problem(what + " is not JSON", text);
    std::vector<tool_call> calls;
    for (auto value : *values) {
      auto document = json_document::of_answer(value);
      if (!document.root() || nests_deeper(value)) return problem(what + " is not JSON", value);
      auto list = list_in(document.root());
      if (!list) {
        if (!take_value(document.root(), value, what, calls)) return false;
        continue;
      }
      for (auto x : *list)
        if (!take_value(x, value, what, calls)) return false;
    }
    for (auto& x : calls) add(std::move(x));
    return true;
  }

  bool take_value(const json_found& value, std::string_view text, const std::string& what,
                  std::vector<tool_call>& to) {
    tool_call call;
    if (std::string_view why = read_call(value, call); !why.empty())
      return problem(what + " " + std::string{why}, text);
    if (to.size() < max_tool_calls)
      to.push_back(std::move(call));
    else
      ++out_.surplus;
    return true;
  }

  void add(tool_call call) {
    if (out_.calls.size() < max_tool_calls)
      out_.calls.push_back(std::move(call));
    else
      ++out_.surplus;
  }

  bool problem(const std::string& what, std::string_view where) {
    if (out_.problems.size() < max_problems)
      out_.problems.push_back(what + ": " + excerpt_of(without_blanks(where)));
    else
      ++missed_;
    return false;
  }

  std::string_view rest_;
  text_calls out_;
  size_t missed_ = 0;
};

} // namespace

text_calls parse_text_calls(std::string_view answer) {
  return text_call_reader{answer}.run();
}

} // namespace kernelmill
