#include "gpu/inspect/listing.hpp"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <memory>
#include <optional>
#include <set>

#include <cxxabi.h>

#include "messages/base/text.hpp"

namespace kernelmill {

namespace {

constexpr size_t most_kernels = 64;
constexpr size_t most_lines = 100'000; // of all kernels together

// "ld.global.f32 \t%f1" is how nvcc writes it.
std::string with_single_blanks(std::string_view x) {
  std::string result;
  for (char c : x) {
    bool blank = c == ' ' || c == '\t';
    if (!blank)
      result += c;
    else if (!result.ends_with(' '))
      result += ' ';
  }
  return result;
}

std::string readable(std::string_view symbol) {
  std::string name{symbol};
  if (!name.starts_with("_Z") || name.size() > 4000) return name;
  int status = 0;
  std::unique_ptr<char, decltype(&std::free)> text{
      abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status), &std::free};
  return status == 0 && text ? std::string{text.get()} : name;
}

std::string_view base_name(std::string_view path) {
  return path.substr(path.find_last_of('/') + 1);
}

std::optional<uint32_t> number_at(std::string_view x) {
  uint32_t value = 0;
  auto [end, problem] = std::from_chars(x.data(), x.data() + x.size(), value);
  (void)end;
  return problem == std::errc{} ? std::optional{value} : std::nullopt;
}

// The words of a line, as many as fit.
std::vector<std::string_view> words_in(std::string_view x, size_t most) {
  std::vector<std::string_view> result;
  while (result.size() < most) {
    auto begin = x.find_first_not_of(" \t,");
    if (begin == x.npos) break;
    x.remove_prefix(begin);
    auto end = std::min(x.find_first_of(" \t,"), x.size());
    result.push_back(x.substr(0, end));
    x.remove_prefix(end);
  }
  return result;
}

// What lies between the first two quotes.
std::string_view quoted_in(std::string_view x) {
  auto begin = x.find('"');
  if (begin == x.npos) return {};
  auto end = x.find('"', begin + 1);
  return end == x.npos ? std::string_view{} : x.substr(begin + 1, end - begin - 1);
}

class listing_reader {
public:
  explicit listing_reader(std::string_view file) : file_(base_name(file)) {
    // nop
  }

  std::vector<kernel_listing> listings() { return std::move(result_); }

protected:
  void begin_kernel(std::string_view symbol) {
    open_ = result_.size() < most_kernels;
    line_ = 0;
    if (open_) result_.push_back({readable(symbol), {}});
  }

  void end_kernel() { open_ = false; }

  void add(std::string_view text) {
    if (!open_ || count_ == most_lines) return;
    ++count_;
    result_.back().lines.push_back({line_, with_single_blanks(text)});
  }

  bool is_ours(std::string_view path) const { return base_name(path) == file_; }

  bool open_ = false;
  uint32_t line_ = 0;

private:
  std::string_view file_;
  std::vector<kernel_listing> result_;
  size_t count_ = 0;
};

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
    if (number && is_ours(quoted_in(line))) ours_.insert(*number);
  }

  void take(std::string_view line) {
    if (auto at = line.find(".entry "); at != line.npos) {
      auto name = trimmed(line.substr(at + 7));
      return begin_kernel(name.substr(0, name.find_first_of("( \t")));
    }
    if (line.starts_with("}") && depth_ <= 1) {
      depth_ = 0;
      return end_kernel();
    }
    if (line == "{") ++depth_;
    if (line.starts_with("}")) --depth_;
    if (line.starts_with(".loc")) return take_place(line);
    // Declarations and parameters are no instructions.
    if (depth_ == 0 || line.empty() || line.starts_with(".") || line.starts_with("//") ||
        line.starts_with("{") || line.starts_with("}"))
      return;
    add(line);
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
};

class sass_reader : public listing_reader {
public:
  using listing_reader::listing_reader;

  void read(std::string_view text) {
    while (!text.empty()) take(trimmed(next_line(text)));
  }

private:
  void take(std::string_view line) {
    constexpr std::string_view section = ".text.", function = "Function : ";
    if (line.starts_with(section) && line.ends_with(':'))
      return begin_kernel(line.substr(section.size(), line.size() - section.size() - 1));
    if (line.starts_with(function)) return begin_kernel(line.substr(function.size()));
    if (line.starts_with("//---") || line.starts_with(".section")) return end_kernel();
    if (line.starts_with("//## File ")) return take_place(line);
    take_instruction(line);
  }

  // "//## File "/build/kernel.cu", line 5" and, of a header, " inlined at "/build/kernel.cu", line
  // 9". Several such lines in a row tell one place from the innermost outwards.
  void take_place(std::string_view line) {
    if (!places_) line_ = 0;
    places_ = true;
    while (line_ == 0) {
      auto file = quoted_in(line);
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
    line = trimmed(line.substr(end + 2));
    line = trimmed(line.substr(0, line.find("/*")));
    if (line.empty()) return; // the second half of an encoding
    places_ = false;
    add(line);
  }

  bool places_ = false; // the line before said a place
};

// -- what instructions do -------------------------------------------------------------------------

// Without the guard: "@P0 BRA" and "@%p1 bra" are branches.
std::string_view opcode_of(std::string_view text) {
  if (text.starts_with("@")) {
    auto blank = text.find(' ');
    text = blank == text.npos ? std::string_view{} : trimmed(text.substr(blank));
  }
  return text.substr(0, text.find_first_of(" \t;"));
}

bool begins_with_any(std::string_view x, std::initializer_list<std::string_view> list) {
  return std::any_of(list.begin(), list.end(),
                     [&](std::string_view prefix) { return x.starts_with(prefix); });
}

const char* class_of_sass(std::string_view x) {
  if (begins_with_any(x, {"LDG", "STG", "RED", "ATOMG", "LD.", "ST.", "UTMA", "ATOM."}))
    return "global memory";
  if (begins_with_any(x, {"LDS", "STS", "ATOMS", "LDGSTS", "STAS"})) return "shared memory";
  if (begins_with_any(x, {"LDL", "STL"})) return "local memory";
  if (begins_with_any(x, {"HMMA", "IMMA", "DMMA", "QMMA", "HGMMA", "IGMMA", "QGMMA", "WGMMA"}))
    return "tensor cores";
  if (begins_with_any(x, {"DADD", "DMUL", "DFMA", "DSETP"})) return "double precision";
  if (begins_with_any(x, {"FADD", "FMUL", "FFMA", "FSETP", "FSEL", "FMNMX", "MUFU", "HADD", "HMUL",
                          "HFMA", "FSWZ", "F2F", "FCHK"}))
    return "floating point";
  if (begins_with_any(x, {"BAR", "WARPSYNC", "SYNCS", "MEMBAR", "DEPBAR"})) return "barriers";
  if (begins_with_any(x, {"BRA", "EXIT", "RET", "CALL", "BSSY", "BSYNC", "JMP", "BRX"}))
    return "control";
  if (begins_with_any(x, {"IADD",  "IMAD",  "ISETP", "SHF",  "LOP",  "LEA",    "IMNMX",
                          "UIADD", "UIMAD", "USHF",  "ULOP", "ULEA", "UISETP", "IABS",
                          "SEL",   "I2F",   "F2I",   "POPC", "PRMT", "VIADD"}))
    return "integer";
  return "other";
}

const char* class_of_ptx(std::string_view x) {
  if (x.find(".global") != x.npos) return "global memory";
  if (x.find(".shared") != x.npos) return "shared memory";
  if (x.find(".local") != x.npos) return "local memory";
  if (begins_with_any(x, {"mma", "wmma", "wgmma", "ldmatrix"})) return "tensor cores";
  if (begins_with_any(x, {"bar", "barrier", "membar", "fence"})) return "barriers";
  if (begins_with_any(x, {"bra", "ret", "call", "exit", "brx"})) return "control";
  if (x.ends_with(".f64")) return "double precision";
  if (x.ends_with(".f32") || x.ends_with(".f16") || x.ends_with(".bf16") || x.ends_with(".f16x2"))
    return "floating point";
  if (begins_with_any(x, {"add", "sub", "mul", "mad", "shl", "shr", "and", "or", "xor", "setp",
                          "cvt", "min", "max", "div", "rem"}))
    return "integer";
  return "other";
}

// PTX is in small letters, SASS in capitals.
bool is_capital(std::string_view x) {
  return !x.empty() && x[0] >= 'A' && x[0] <= 'Z';
}

// The listing of the same kernel: PTX and SASS name it alike.
const kernel_listing* same_kernel(const std::vector<kernel_listing>& list,
                                  const std::string& name) {
  for (const auto& x : list)
    if (x.name == name) return &x;
  return nullptr;
}

bool is_label(std::string_view x) {
  return x.ends_with(':');
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

std::map<std::string, uint32_t> instruction_mix(const kernel_listing& x) {
  std::map<std::string, uint32_t> result;
  for (const auto& line : x.lines) {
    if (is_label(line.text)) continue;
    auto opcode = opcode_of(line.text);
    ++result[is_capital(opcode) ? class_of_sass(opcode) : class_of_ptx(opcode)];
  }
  return result;
}

std::vector<kernel_view> side_by_side(std::string_view source,
                                      const std::vector<kernel_listing>& ptx,
                                      const std::vector<kernel_listing>& sass) {
  std::vector<std::string_view> lines;
  while (!source.empty()) lines.push_back(next_line(source));
  std::vector<std::string> names;
  for (const auto* list : {&ptx, &sass})
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
