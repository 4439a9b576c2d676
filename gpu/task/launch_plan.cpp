#include "gpu/task/launch_plan.hpp"

#include <algorithm>
#include <cctype>

#include "messages/base/text.hpp"
#include "messages/base/utf8.hpp"

namespace kernelmill {

namespace {

constexpr const char* shape_of_launch =
    "write // launch: kernel<<<grid, block>>>(arguments), each an integer expression of the task's "
    "scalars or the name of a tensor";
constexpr const char* shape_of_scratch = "write // scratch: name[bytes]";

tl::unexpected<error> bad_line(unsigned line, const std::string& cause, const char* hint) {
  return candidate_error("bad_launch", "line " + std::to_string(line) + ": " + cause, hint);
}

bool is_name(const std::string& text) {
  auto letter = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; };
  return !text.empty() && !std::isdigit(static_cast<unsigned char>(text[0])) &&
         std::all_of(text.begin(), text.end(), letter);
}

// A line may be as long as a source; what is said of it is not.
std::string in_quotes(const std::string& text) {
  constexpr size_t most = 80;
  if (text.size() <= most) return "\"" + text + "\"";
  return "\"" + std::string{utf8_prefix(text, most)} + "...\"";
}

// At the commas that no parenthesis encloses; a text of blanks has no parts.
std::vector<std::string> parts_of(const std::string& text) {
  std::vector<std::string> result;
  int depth = 0;
  size_t start = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '(') ++depth;
    if (text[i] == ')') --depth;
    if (text[i] != ',' || depth != 0) continue;
    result.push_back(trimmed(text.substr(start, i - start)));
    start = i + 1;
  }
  auto last = trimmed(text.substr(start));
  if (!last.empty() || !result.empty()) result.push_back(last);
  return result;
}

// Reads one line; the cause of a failure is left in `cause`.
class line_reader {
public:
  explicit line_reader(unsigned line) : line_(line) {}

  expected<launch_line> launch(const std::string& text) {
    launch_line result;
    result.line = line_;
    auto open = text.find("<<<");
    auto close = text.find(">>>");
    if (open == text.npos || close == text.npos || close < open)
      return fail("no <<<grid, block>>>");
    result.kernel = trimmed(text.substr(0, open));
    if (!is_name(result.kernel) || result.kernel.size() > longest_kernel_name)
      return fail(in_quotes(result.kernel) + " is no name of a kernel");
    auto shape = parts_of(text.substr(open + 3, close - open - 3));
    if (shape.size() < 2 || shape.size() > 3)
      return fail("between <<< and >>> stand " + std::to_string(shape.size()) +
                  " parts, wanted grid, block and perhaps bytes of shared memory");
    auto list = trimmed(text.substr(close + 3));
    if (list.ends_with(";")) list = trimmed(list.substr(0, list.size() - 1));
    if (list.size() < 2 || list.front() != '(' || list.back() != ')')
      return fail("no (arguments) after >>>");
    result.arguments = parts_of(list.substr(1, list.size() - 2));
    if (result.arguments.size() > most_launch_arguments)
      return fail("more than " + std::to_string(most_launch_arguments) + " arguments");
    expression ignored; // what a name stands for, only the task knows
    for (const auto& argument : result.arguments)
      if (!parse(argument, ignored)) return fail(cause_);
    if (!dimensions(shape[0], result.grid) || !dimensions(shape[1], result.block) ||
        !parse(shape.size() == 3 ? shape[2] : "0", result.shared))
      return fail(cause_);
    return result;
  }

  expected<scratch_line> scratch(const std::string& text) {
    auto open = text.find('[');
    scratch_line result;
    result.line = line_;
    result.name = trimmed(text.substr(0, open));
    if (!is_name(result.name) || open == text.npos || text.back() != ']')
      return bad_line(line_, in_quotes(text) + " is no scratch buffer", shape_of_scratch);
    if (!parse(text.substr(open + 1, text.size() - open - 2), result.bytes))
      return bad_line(line_, cause_, shape_of_scratch);
    return result;
  }

private:
  tl::unexpected<error> fail(const std::string& cause) const {
    return bad_line(line_, cause, shape_of_launch);
  }

  bool parse(const std::string& text, expression& into) {
    auto parsed = expression::parse(text);
    if (!parsed) {
      cause_ = parsed.error().message;
      return false;
    }
    into = std::move(*parsed);
    return true;
  }

  bool dimensions(const std::string& text, std::array<expression, 3>& into) {
    std::vector<std::string> texts{text};
    auto rest = text.starts_with("dim3") ? trimmed(text.substr(4)) : std::string{};
    if (rest.starts_with("(") && rest.ends_with(")"))
      texts = parts_of(rest.substr(1, rest.size() - 2));
    if (texts.empty() || texts.size() > 3) {
      cause_ =
          in_quotes(text) + " has " + std::to_string(texts.size()) + " dimensions, wanted 1 to 3";
      return false;
    }
    texts.resize(3, "1");
    for (size_t i = 0; i < 3; ++i)
      if (!parse(texts[i], into[i])) return false;
    return true;
  }

  unsigned line_;
  std::string cause_;
};

// What follows `// word:`, or nothing.
std::string after(const std::string& line, const std::string& word) {
  auto text = trimmed(std::string_view{line});
  if (!text.starts_with("//")) return {};
  text = trimmed(text.substr(2));
  return text.starts_with(word + ":") ? std::string{trimmed(text.substr(word.size() + 1))}
                                      : std::string{};
}

template <class F>
void for_each_line(const std::string& source, F&& f) {
  unsigned line = 0;
  for (size_t at = 0; at <= source.size();) {
    auto end = std::min(source.find('\n', at), source.size());
    if (!f(++line, source.substr(at, end - at))) return;
    at = end + 1;
  }
}

std::string too_many(size_t most, const char* kind) {
  return "a candidate has at most " + std::to_string(most) + " " + kind + " lines";
}

// Adds what a line says, which most do not.
expected<void> read_line(unsigned line, const std::string& text, launch_plan& into) {
  line_reader reader{line};
  if (auto rest = after(text, "launch"); !rest.empty()) {
    auto one = reader.launch(rest);
    KM_TRY(one);
    if (into.launches.size() == most_launches)
      return bad_line(line, too_many(most_launches, "launch"), shape_of_launch);
    into.launches.push_back(std::move(*one));
  } else if (rest = after(text, "scratch"); !rest.empty()) {
    auto one = reader.scratch(rest);
    KM_TRY(one);
    for (const auto& other : into.scratch)
      if (other.name == one->name)
        return bad_line(line, "scratch " + in_quotes(one->name) + " is there already",
                        shape_of_scratch);
    if (into.scratch.size() == most_scratch_buffers)
      return bad_line(line, too_many(most_scratch_buffers, "scratch"), shape_of_scratch);
    into.scratch.push_back(std::move(*one));
  }
  return {};
}

} // namespace

std::vector<std::string> launch_texts(const std::string& source) {
  std::vector<std::string> result;
  for_each_line(source, [&](unsigned, const std::string& text) {
    if (auto said = after(text, "launch"); !said.empty()) result.push_back(std::move(said));
    return true;
  });
  return result;
}

bool has_launch_lines(const std::string& source) {
  return !launch_texts(source).empty();
}

expected<launch_plan> parse_launch_plan(const std::string& source) {
  launch_plan result;
  expected<void> ok;
  for_each_line(source, [&](unsigned line, const std::string& text) {
    ok = read_line(line, text, result);
    return ok.has_value();
  });
  KM_TRY(ok);
  if (result.launches.empty())
    return candidate_error("bad_launch", "the source has no launch line", shape_of_launch);
  return result;
}

expected<std::vector<std::vector<bound_argument>>> bind_arguments(const launch_plan& plan,
                                                                  const task& x) {
  std::vector<std::vector<bound_argument>> result;
  for (const auto& buffer : plan.scratch)
    for (const auto& arg : x.arguments)
      if (arg.name == buffer.name)
        return bad_line(buffer.line, "scratch " + buffer.name + " has the name of an argument",
                        shape_of_scratch);
  for (const auto& launch : plan.launches) {
    auto& list = result.emplace_back();
    for (const auto& text : launch.arguments) {
      bound_argument bound;
      auto tensor = std::find_if(x.arguments.begin(), x.arguments.end(), [&](const argument& a) {
        return a.name == text && a.role != argument_role::scalar;
      });
      auto buffer = std::find_if(plan.scratch.begin(), plan.scratch.end(),
                                 [&](const scratch_line& s) { return s.name == text; });
      if (tensor != x.arguments.end()) {
        bound.what = bound_argument::kind::tensor;
        bound.index = static_cast<size_t>(tensor - x.arguments.begin());
      } else if (buffer != plan.scratch.end()) {
        bound.what = bound_argument::kind::scratch;
        bound.index = static_cast<size_t>(buffer - plan.scratch.begin());
      } else {
        auto parsed = expression::parse(text);
        auto known = parsed ? parsed->evaluate(x.timed.scalars) : expected<int64_t>{0};
        if (!parsed || !known)
          return bad_line(launch.line,
                          "argument " + in_quotes(text) + " of " + launch.kernel +
                              " is no tensor, no scratch buffer and no expression of scalars: " +
                              (parsed ? known.error() : parsed.error()).message,
                          shape_of_launch);
        bound.value = std::move(*parsed);
      }
      list.push_back(std::move(bound));
    }
  }
  return result;
}

} // namespace kernelmill
