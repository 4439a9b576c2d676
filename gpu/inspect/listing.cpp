#include "gpu/inspect/listing.hpp"

#include <algorithm>
#include <set>

#include "gpu/inspect/listing_parts.hpp"
#include "messages/base/text.hpp"

namespace kernelmill {

using namespace listing_parts;

namespace {

class ptx_reader : public listing_reader {
public:
  using listing_reader::listing_reader;

  void read(std::string_view text) {
    // The files are named at the end, after the code that refers to them.
    for (auto rest = text; !rest.empty();)
      if (auto line = trimmed(next_line(rest)); line.starts_with(".file")) learn_file(line);
    while (!text.empty()) take(trimmed(next_line(text)));
  }

private:
  void learn_file(std::string_view line) {
    auto words = words_in(line, 2);
    auto number = words.size() == 2 ? number_at(words[1]) : std::nullopt;
    if (number && is_ours(quoted_in(line, which_quoted::first))) ours_.insert(*number);
  }

  void take(std::string_view line) {
    line = trimmed(line.substr(0, line.find("//")));
    if (auto at = line.find(".entry "); at != line.npos) {
      depth_ = 0;
      in_statement_ = false;
      auto name = trimmed(line.substr(at + 7));
      return begin_kernel(name.substr(0, name.find_first_of("( \t")));
    }
    if (line.starts_with(".loc")) return take_place(line);
    if (line == "}") in_statement_ = false;
    while (!line.empty()) {
      bool opens = line.front() == '{', closes = line.front() == '}';
      if (in_statement_ || !(opens || closes)) {
        if (depth_ == 0) return; // parameters
        line = take_statement(line);
        continue;
      }
      depth_ += opens ? 1 : -1;
      if (depth_ <= 0) {
        depth_ = 0;
        end_kernel();
      }
      line = trimmed(line.substr(1));
    }
  }

  // Takes a label, or what there is of a statement: candidates write several in a line, and one in
  // several lines. Returns what lies behind it.
  std::string_view take_statement(std::string_view line) {
    auto name =
        line.find_first_not_of("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_$%");
    bool is_place = !in_statement_ && name != line.npos && name > 0 && line[name] == ':' &&
                    !line.substr(name).starts_with("::");
    auto end = is_place ? name : line.find(';');
    in_statement_ = end == line.npos;
    auto taken = line.substr(0, in_statement_ ? end : end + 1);
    // Declarations are no instructions.
    if (!taken.starts_with(".") && !taken.starts_with("{") && taken != ";") add(taken);
    return in_statement_ ? std::string_view{} : trimmed(line.substr(end + 1));
  }

  // ".loc 1 12 5" and ".loc 2 99 3, function_name $L__info_string0, inlined_at 1 12 5".
  void take_place(std::string_view line) {
    auto words = words_in(line, 10);
    line_ = 0;
    auto look = [&](size_t at) {
      if (at + 1 >= words.size() || line_ != 0) return;
      auto file = number_at(words[at]), number = number_at(words[at + 1]);
      if (file && number && ours_.contains(*file)) line_ = *number;
    };
    look(1);
    auto inlined = std::find(words.begin(), words.end(), "inlined_at");
    if (inlined != words.end()) look(static_cast<size_t>(inlined - words.begin()) + 1);
  }

  std::set<uint32_t> ours_;
  int depth_ = 0;
  bool in_statement_ = false; // that ends on another line
};

class sass_reader : public listing_reader {
public:
  using listing_reader::listing_reader;

  void read(std::string_view text) {
    while (!text.empty()) take(trimmed(next_line(text)));
    end_kernel();
  }

private:
  void take(std::string_view line) {
    constexpr std::string_view section = ".text.", function = "Function : ";
    if (line.starts_with(section) && line.ends_with(':')) {
      end_kernel();
      return begin_kernel(line.substr(section.size(), line.size() - section.size() - 1));
    }
    if (line.starts_with(function)) {
      end_kernel();
      return begin_kernel(line.substr(function.size()));
    }
    if (line.starts_with("//---") || line.starts_with(".section")) return end_kernel();
    if (line.starts_with("//## File ")) return take_place(line);
    if (is_label(line) && (line.starts_with(".L_") || line.starts_with("$")))
      return take_label(line);
    take_instruction(line);
  }

  // What ends a kernel's section is no part of the code: NOPs up to the next boundary, and a label.
  void end_kernel() {
    if (open_) {
      auto& lines = current().lines;
      while (!lines.empty() &&
             (is_label(lines.back().text) || lines.back().text.starts_with("NOP")))
        lines.pop_back();
    }
    listing_reader::end_kernel();
  }

  // A function in a kernel's section has no line until one is said: those of CUDA's own library
  // have none at all.
  void take_label(std::string_view line) {
    if (line.starts_with("$")) line_ = 0;
    add(line);
  }

  // "//## File "/build/kernel.cu", line 5" and, of a header, " inlined at "/build/kernel.cu", line
  // 9". Several such lines in a row tell one place from the innermost outwards.
  void take_place(std::string_view line) {
    if (!places_) line_ = 0;
    places_ = true;
    while (line_ == 0) {
      auto file = quoted_in(line, which_quoted::first);
      auto at = line.find("\", line ");
      if (file.empty() || at == line.npos) return;
      auto number = number_at(line.substr(at + 8));
      if (number && is_ours(file)) line_ = *number;
      line.remove_prefix(at + 8);
    }
  }

  // "/*0010*/  IMAD.MOV.U32 R1, RZ, RZ, c[0x0][0x28] ;  /* 0x00... */"
  void take_instruction(std::string_view line) {
    if (!line.starts_with("/*") || line.size() < 3 ||
        std::string_view{"0123456789abcdef"}.find(line[2]) == std::string_view::npos)
      return;
    auto end = line.find("*/");
    if (end == line.npos) return;
    auto address = address_at(line);
    line = trimmed(line.substr(end + 2));
    line = trimmed(line.substr(0, line.find("/*")));
    if (line.empty()) return; // the second half of an encoding
    places_ = false;
    add(line, address.value_or(0));
  }

  bool places_ = false; // the line before said a place
};

// The listing of the same kernel: PTX and SASS name it alike.
const kernel_listing* same_kernel(const std::vector<kernel_listing>& list,
                                  const std::string& name) {
  for (const auto& x : list)
    if (x.name == name) return &x;
  return nullptr;
}

} // namespace

std::vector<kernel_listing> read_ptx(std::string_view text, std::string_view file) {
  ptx_reader reader{file};
  reader.read(text);
  return reader.listings();
}

std::vector<kernel_listing> read_sass(std::string_view text, std::string_view file) {
  sass_reader reader{file};
  reader.read(text);
  return reader.listings();
}

bool is_full(const std::vector<kernel_listing>& x) {
  size_t lines = 0;
  for (const auto& one : x) lines += one.lines.size();
  return x.size() == most_kernels || lines == most_lines;
}

std::vector<kernel_resources> read_resource_usage(std::string_view text) {
  constexpr std::string_view function = "Function ";
  std::vector<kernel_resources> result;
  while (!text.empty() && result.size() < most_kernels) {
    auto line = trimmed(next_line(text));
    if (line.starts_with(function) && line.ends_with(':')) {
      result.emplace_back();
      result.back().name =
          readable(line.substr(function.size(), line.size() - function.size() - 1));
    }
    if (result.empty()) continue;
    // "REG:16 STACK:0 SHARED:512 LOCAL:0 CONSTANT[0]:560 ..."
    for (auto word : words_in(line, 16)) {
      auto colon = word.find(':');
      auto value = colon == word.npos ? std::nullopt : number_at(word.substr(colon + 1));
      if (!value) continue;
      auto name = word.substr(0, colon);
      if (name == "REG") result.back().registers = *value;
      if (name == "STACK") result.back().stack_frame = *value;
      if (name == "SHARED") result.back().shared_bytes = *value;
    }
  }
  return result;
}

std::optional<uint32_t> source_row::live() const {
  // Nothing is less than any number.
  auto most = std::max_element(sass_live.begin(), sass_live.end());
  return most == sass_live.end() ? std::nullopt : *most;
}

std::vector<kernel_view> side_by_side(std::string_view source,
                                      const std::vector<kernel_listing>& ptx,
                                      const std::vector<kernel_listing>& sass,
                                      const std::vector<kernel_listing>& gcn) {
  std::vector<std::string_view> lines;
  while (!source.empty()) lines.push_back(next_line(source));
  std::vector<std::string> names;
  for (const auto* list : {&ptx, &sass, &gcn})
    for (const auto& x : *list)
      if (std::find(names.begin(), names.end(), x.name) == names.end()) names.push_back(x.name);
  std::vector<kernel_view> result;
  for (const auto& name : names) {
    std::map<uint32_t, source_row> rows;
    auto put = [&](const kernel_listing* from, std::vector<std::string> source_row::*into) {
      if (from == nullptr) return;
      for (const auto& x : from->lines) (rows[x.source_line].*into).push_back(x.text);
    };
    put(same_kernel(ptx, name), &source_row::ptx);
    put(same_kernel(sass, name), &source_row::sass);
    put(same_kernel(gcn, name), &source_row::gcn);
    if (auto* from = same_kernel(sass, name))
      for (const auto& x : from->lines) rows[x.source_line].sass_live.push_back(x.live);
    auto& view = result.emplace_back(kernel_view{name, {}});
    for (auto& [number, row] : rows) {
      row.line = number;
      if (number > 0 && number <= lines.size())
        row.source = std::string{trimmed(lines[number - 1])};
      view.rows.push_back(std::move(row));
    }
  }
  return result;
}

} // namespace kernelmill
