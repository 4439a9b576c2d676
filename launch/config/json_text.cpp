#include "launch/config/json_text.hpp"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>

namespace kernelmill {

namespace {

constexpr size_t max_file_bytes = size_t{16} << 20;
constexpr int max_depth = 64;

text_position position_of(std::string_view text, size_t offset) {
  offset = std::min(offset, text.size());
  text_position at{1, 1};
  for (size_t i = 0; i < offset; ++i) {
    if (text[i] == '\n') {
      ++at.line;
      at.column = 1;
    } else {
      ++at.column;
    }
  }
  return at;
}

/// The line itself and a caret below the column; long lines are cut around the caret.
std::string excerpt(std::string_view text, text_position at) {
  size_t begin = 0;
  for (uint32_t line = 1; line < at.line; ++line) begin = text.find('\n', begin) + 1;
  auto line = std::string{text.substr(begin, text.find('\n', begin) - begin)};
  size_t column = at.column - 1;
  if (column > 60) {
    line.erase(0, column - 60);
    column = 60;
  }
  if (line.size() > 100) line.resize(100);
  for (auto& c : line)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = ' ';
  return "\n  " + line + "\n  " + std::string(column, ' ') + "^";
}

std::string where(const std::string& name, text_position at) {
  return name + ": line " + std::to_string(at.line) + ", column " + std::to_string(at.column);
}

/// Walks well-formed JSON with comments and notes where keys stand.
class key_scanner {
public:
  key_scanner(std::string_view text, std::map<std::string, text_position>& positions)
      : text_(text), positions_(positions) {}

  /// Returns the first repeated or too deep key, or nothing.
  std::optional<std::pair<std::string, size_t>> run() {
    if (text_.starts_with("\xef\xbb\xbf")) next_ = 3;
    value("", 0);
    return problem_;
  }
  bool too_deep() const { return too_deep_; }

private:
  void skip() {
    while (next_ < text_.size()) {
      if (std::strchr(" \t\r\n,:", text_[next_])) {
        advance(1);
      } else if (text_.substr(next_).starts_with("//")) {
        advance_to(std::min(text_.find('\n', next_), text_.size()));
      } else if (text_.substr(next_).starts_with("/*")) {
        auto end = text_.find("*/", next_ + 2);
        advance_to(end == std::string_view::npos ? text_.size() : end + 2);
      } else {
        return;
      }
    }
  }

  void advance(size_t n) { advance_to(next_ + n); }
  void advance_to(size_t target) {
    for (; next_ < target; ++next_) {
      if (text_[next_] == '\n') {
        ++at_.line;
        at_.column = 1;
      } else {
        ++at_.column;
      }
    }
  }

  std::string string() {
    auto begin = next_;
    auto end = begin + 1;
    while (end < text_.size() && text_[end] != '"') end += text_[end] == '\\' ? 2 : 1;
    advance_to(std::min(end + 1, text_.size()));
    auto parsed = nlohmann::json::parse(text_.substr(begin, next_ - begin), nullptr, false);
    return parsed.is_string() ? parsed.get<std::string>() : std::string{};
  }

  void value(const std::string& path, int depth) {
    skip();
    if (problem_ || next_ >= text_.size()) return;
    if (depth > max_depth) {
      too_deep_ = true;
      problem_.emplace(path, next_);
      return;
    }
    switch (text_[next_]) {
      case '{': object(path, depth); break;
      case '[': array(path, depth); break;
      case '"': string(); break;
      default:
        while (next_ < text_.size() && !std::strchr(" \t\r\n,]}/", text_[next_])) advance(1);
    }
  }

  void object(const std::string& path, int depth) {
    advance(1);
    for (skip(); !problem_ && next_ < text_.size() && text_[next_] != '}'; skip()) {
      auto offset = next_;
      auto at = at_;
      auto key = path.empty() ? string() : path + "." + string();
      if (!positions_.emplace(key, at).second) {
        problem_.emplace(key, offset);
        return;
      }
      value(key, depth + 1);
    }
    advance(1);
  }

  void array(const std::string& path, int depth) {
    advance(1);
    size_t index = 0;
    for (skip(); !problem_ && next_ < text_.size() && text_[next_] != ']'; skip())
      value(path + "[" + std::to_string(index++) + "]", depth + 1);
    advance(1);
  }

  std::string_view text_;
  std::map<std::string, text_position>& positions_;
  size_t next_ = 0;
  text_position at_{1, 1};
  bool too_deep_ = false;
  std::optional<std::pair<std::string, size_t>> problem_;
};

/// The library's words after its own prefixes: "unexpected '}'; expected string literal".
std::string parse_complaint(const std::string& what) {
  auto dash = what.find(" - ");
  auto text = dash == std::string::npos ? what : what.substr(dash + 3);
  auto read = text.find("last read: ");
  if (dash == std::string::npos) {
    auto colon = text.rfind(": ");
    if (colon != std::string::npos && read == std::string::npos) text = text.substr(colon + 2);
  }
  return text;
}

/// The number that the library could not hold: "number overflow parsing '1e999'".
std::string quoted_number(const std::string& what) {
  auto begin = what.find('\''), end = what.rfind('\'');
  return begin < end && end != what.npos ? what.substr(begin + 1, end - begin - 1) : std::string{};
}

} // namespace

expected<json_text> parse_json_text(std::string name, std::string_view text) {
  json_text result{std::move(name), {}, {}};
  try {
    result.value = nlohmann::json::parse(text, nullptr, true, true);
  } catch (const nlohmann::json::parse_error& e) {
    auto at = position_of(text, e.byte > 0 ? e.byte - 1 : 0);
    return configuration_error(
        "config_syntax",
        "failed to parse " + where(result.name, at) + ": " + parse_complaint(e.what()) +
            excerpt(text, at),
        "correct the JSON there; comments are allowed, trailing commas are not");
  } catch (const nlohmann::json::out_of_range& e) {
    auto number = quoted_number(e.what());
    auto at = position_of(text, std::min(text.find(number), text.size()));
    return configuration_error("config_syntax",
                               "failed to parse " + where(result.name, at) + ": the number " +
                                   number + " is too large for any value" + excerpt(text, at),
                               "write a number that a double holds, below 1.8e308");
  }
  key_scanner scanner{text, result.positions};
  if (auto problem = scanner.run()) {
    auto at = position_of(text, problem->second);
    auto what = scanner.too_deep()
                    ? "is nested deeper than " + std::to_string(max_depth) + " levels"
                    : std::string{"stands twice in its object"};
    return configuration_error("config_syntax",
                               "failed to parse " + where(result.name, at) + ": '" +
                                   problem->first + "' " + what + excerpt(text, at),
                               "keep one of them");
  }
  return result;
}

expected<json_text> read_json_file(const std::string& path) {
  std::error_code code;
  auto status = std::filesystem::status(path, code);
  if (!std::filesystem::exists(status))
    return configuration_error("config_not_found", "failed to read " + path + ": no such file",
                               "give the path of a configuration file");
  if (std::filesystem::is_directory(status))
    return configuration_error("config_unreadable",
                               "failed to read " + path + ": it is a directory",
                               "name the file inside it");
  std::ifstream file{path, std::ios::binary};
  if (!file)
    return configuration_error("config_unreadable",
                               "failed to read " + path + ": " + std::strerror(errno),
                               "check its permissions");
  std::string text;
  for (char part[65536]; file.read(part, sizeof part), file.gcount() > 0;) {
    text.append(part, static_cast<size_t>(file.gcount()));
    if (text.size() > max_file_bytes)
      return configuration_error("config_unreadable",
                                 "failed to read " + path + ": it is larger than 16 MiB",
                                 "a configuration is a few kilobytes; is this the right file?");
  }
  return parse_json_text(path, text);
}

} // namespace kernelmill
