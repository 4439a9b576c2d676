#include "gpu/inspect/listing_parts.hpp"

#include <algorithm>
#include <array>
#include <charconv>

#include "messages/base/text.hpp"

namespace kernelmill::listing_parts {

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
  return readable_symbol(symbol);
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

std::optional<uint32_t> address_at(std::string_view line) {
  if (!line.starts_with("/*")) return std::nullopt;
  line.remove_prefix(2);
  uint32_t value = 0;
  auto [end, problem] = std::from_chars(line.data(), line.data() + line.size(), value, 16);
  (void)end;
  return problem == std::errc{} ? std::optional{value} : std::nullopt;
}

std::string_view quoted_in(std::string_view x, which_quoted which) {
  bool last = which == which_quoted::last;
  auto one = last ? x.rfind('"') : x.find('"');
  if (one == x.npos || (last && one == 0)) return {};
  auto other = last ? x.rfind('"', one - 1) : x.find('"', one + 1);
  if (other == x.npos) return {};
  auto begin = std::min(one, other) + 1;
  return x.substr(begin, std::max(one, other) - begin);
}

std::string_view opcode_of(std::string_view text) {
  if (text.starts_with("@")) {
    auto blank = text.find(' ');
    text = blank == text.npos ? std::string_view{} : trimmed(text.substr(blank));
  }
  return text.substr(0, text.find_first_of(" \t;"));
}

bool is_sass(std::string_view opcode) {
  return !opcode.empty() && opcode[0] >= 'A' && opcode[0] <= 'Z';
}

bool is_gcn(std::string_view opcode) {
  constexpr std::array<std::string_view, 10> prefixes{
      "s_", "v_", "ds_", "global_", "flat_", "buffer_", "scratch_", "image_", "tbuffer_", "exp_"};
  return std::any_of(prefixes.begin(), prefixes.end(),
                     [&](std::string_view prefix) { return opcode.starts_with(prefix); });
}

void listing_reader::begin_kernel(std::string_view symbol) {
  open_ = result_.size() < most_kernels;
  line_ = 0;
  if (open_) result_.push_back({readable(symbol), {}});
}

void listing_reader::add(std::string_view text, uint32_t address) {
  if (!open_ || count_ == most_lines) return;
  ++count_;
  result_.back().lines.push_back({line_, with_single_blanks(text), address});
}

} // namespace kernelmill::listing_parts
