#include "gpu/task/program_answer.hpp"

#include <algorithm>
#include <optional>

#include "messages/base/lines.hpp"
#include "messages/base/text.hpp"
#include "messages/unified_diff.hpp"

namespace kernelmill {

namespace {

constexpr size_t most_shown = 200;

tl::unexpected<error> bad_answer(const std::string& why, std::string hint = {}) {
  return candidate_error("bad_answer", "failed to take the answer's files: " + why,
                         std::move(hint));
}

// "// file: src/sum.cu" as "src/sum.cu"; nothing of another line.
std::optional<std::string> path_in_mark(std::string_view line) {
  line = trimmed(line);
  for (std::string_view mark : {"// file:", "# file:"})
    if (line.starts_with(mark)) return std::string{trimmed(line.substr(mark.size()))};
  return std::nullopt;
}

bool begins_with_mark(std::string_view text) {
  for (auto line : lines_of(text))
    if (!trimmed(line).empty()) return path_in_mark(line).has_value();
  return false;
}

std::vector<program_file> sections_of(std::string_view text) {
  std::vector<program_file> result;
  for (auto line : lines_of(text)) {
    if (auto path = path_in_mark(line)) {
      result.push_back({std::move(*path), {}});
    } else if (!result.empty()) {
      result.back().text += line;
    }
  }
  return result;
}

expected<std::vector<program_file>> patched_files(const program_task& x, std::string_view diff) {
  auto changes = parse_unified_diff(diff);
  if (!changes) return bad_answer(changes.error().message);
  std::vector<program_file> result;
  for (const auto& change : *changes) {
    if (change.change == file_change::remove)
      return bad_answer("it removes " + change.path, "files may be changed and added");
    auto base = std::find_if(x.context.begin(), x.context.end(),
                             [&](const program_file& y) { return y.path == change.path; });
    auto text = apply_diff(change, base == x.context.end() ? std::string_view{} : base->text);
    if (!text) return bad_answer(text.error().message, text.error().hint);
    result.push_back({change.path, std::move(*text)});
  }
  return result;
}

bool is_name_part(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

// As a word of its own: "Sum" is not in "Summary".
bool has_name(std::string_view code, std::string_view name) {
  if (name.empty()) return true;
  for (auto at = code.find(name); at != code.npos; at = code.find(name, at + 1)) {
    auto behind = at + name.size();
    bool begins = at == 0 || !is_name_part(name.front()) || !is_name_part(code[at - 1]);
    bool ends = behind == code.size() || !is_name_part(name.back()) || !is_name_part(code[behind]);
    if (begins && ends) return true;
  }
  return false;
}

// What is left of a source behind each step; see code_alone().
class code_reader {
public:
  code_reader(std::string_view source, bool python) : rest_(source), python_(python) {}

  std::string run() {
    while (!rest_.empty()) step();
    return std::move(code_);
  }

private:
  void step() {
    if (python_ ? rest_.front() == '#' : rest_.starts_with("//")) return skip_to("\n", 0);
    if (!python_ && rest_.starts_with("/*")) return skip_to("*/", 2);
    for (std::string_view mark : {"\"\"\"", "'''"})
      if (python_ && rest_.starts_with(mark)) {
        rest_.remove_prefix(3);
        return skip_to(mark, 3);
      }
    if (!python_ && rest_.starts_with("R\"") && (code_.empty() || !is_name_part(code_.back())))
      return skip_raw();
    bool digits = rest_.front() == '\'' && !code_.empty() && is_name_part(code_.back()); // 1'000
    if (rest_.front() == '"' || (rest_.front() == '\'' && !digits)) return skip_text(rest_.front());
    code_ += rest_.front();
    rest_.remove_prefix(1);
  }

  // Lines stay, so that a place in the code is one of the source.
  void skip(size_t size) {
    for (char c : rest_.substr(0, size))
      if (c == '\n') code_ += c;
    rest_.remove_prefix(std::min(size, rest_.size()));
    code_ += ' ';
  }

  void skip_to(std::string_view end, size_t and_then) {
    auto at = rest_.find(end);
    skip(at == rest_.npos ? rest_.size() : at + and_then);
  }

  void skip_raw() {
    auto open = rest_.find('(');
    if (open == rest_.npos || open > 20) return skip(1);
    skip_to(")" + std::string{rest_.substr(2, open - 2)} + "\"", open);
  }

  void skip_text(char quote) {
    size_t at = 1;
    while (at < rest_.size() && rest_[at] != quote && rest_[at] != '\n')
      at += rest_[at] == '\\' ? 2 : 1;
    skip(std::min(at + 1, rest_.size()));
  }

  std::string_view rest_;
  bool python_;
  std::string code_;
};

} // namespace

std::string code_alone(std::string_view source, bool python) {
  return code_reader{source, python}.run();
}

expected<std::vector<program_file>> files_of_answer(const program_task& x,
                                                    std::string_view answer) {
  if (trimmed(answer).empty()) return bad_answer("it is empty");
  expected<std::vector<program_file>> files;
  if (begins_with_mark(answer))
    files = sections_of(answer);
  else if (looks_like_diff(answer))
    files = patched_files(x, answer);
  else
    files = std::vector<program_file>{{x.answer_file, std::string{answer}}};
  KM_TRY(files);
  auto known = writable_files(x);
  for (size_t i = 0; i < files->size(); ++i) {
    const auto& path = (*files)[i].path;
    if (std::find(known.begin(), known.end(), path) == known.end())
      return bad_answer("it writes \"" + path.substr(0, most_shown) +
                            "\", which is none of the files that answers may write",
                        "answers may write: " + joined(known));
    for (size_t j = 0; j < i; ++j)
      if ((*files)[j].path == path) return bad_answer("it writes " + path + " twice");
  }
  return files;
}

expected<void> check_references(const program_task& x, const std::vector<program_file>& files) {
  if (x.references.any.empty() && x.references.all.empty()) return {};
  std::string code;
  for (const auto& file : files) code += code_alone(file.text, file.path.ends_with(".py")) + '\n';
  auto is_there = [&](const std::string& name) { return has_name(code, name); };
  const auto& all = x.references.all;
  if (auto gone = std::find_if_not(all.begin(), all.end(), is_there); gone != all.end())
    return candidate_error("missing_reference", "the answer does not use " + *gone,
                           "the task asks for " + joined(all));
  const auto& any = x.references.any;
  if (!any.empty() && std::none_of(any.begin(), any.end(), is_there))
    return candidate_error("missing_reference", "the answer uses none of " + joined(any),
                           "the task asks for one of them");
  return {};
}

} // namespace kernelmill
