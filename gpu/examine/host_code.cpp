#include "gpu/examine/compiled_code.hpp"

#include <algorithm>
#include <map>
#include <set>

namespace kernelmill {

namespace {

bool is_symbol(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         c == '$' || c == '.';
}

std::set<std::string> symbols_of(std::string_view operands) {
  std::set<std::string> result;
  for (size_t at = 0; at < operands.size();) {
    size_t end = at;
    while (end < operands.size() && is_symbol(operands[end])) ++end;
    if (end > at) result.emplace(operands.substr(at, end - at));
    at = end + 1;
  }
  return result;
}

struct assembly_line {
  std::string op;
  std::string_view operands;
};

struct assembly_function {
  std::vector<assembly_line> lines; // an empty `op` is a label that is jumped to
  std::set<std::string> symbols;
};

// "\tvmovss\t(%rax), %xmm0"; nothing of a directive.
assembly_line instruction_of(std::string_view line) {
  if (line.size() < 2 || line[0] != '\t' || line[1] < 'a' || line[1] > 'z') return {};
  line.remove_prefix(1);
  auto end = std::min(line.find_first_of("\t "), line.size());
  auto operands = line.substr(end);
  operands.remove_prefix(std::min(operands.find_first_not_of("\t "), operands.size()));
  return {std::string{line.substr(0, end)}, operands};
}

std::map<std::string, assembly_function> functions_of(std::string_view text) {
  std::map<std::string, assembly_function> result;
  assembly_function* current = nullptr;
  bool inline_text = false; // which a candidate wrote, between #APP and #NO_APP
  while (!text.empty()) {
    auto line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    if (line.starts_with("#APP")) inline_text = true;
    if (line.starts_with("#NO_APP")) inline_text = false;
    if (inline_text || line.empty()) continue;
    if (line.ends_with(':') && is_symbol(line[0])) {
      line.remove_suffix(1);
      bool local = line.starts_with(".L");
      if (!local) current = &result[std::string{line}];
      if (local && current != nullptr) current->lines.emplace_back();
      continue;
    }
    auto found = instruction_of(line);
    if (current == nullptr || found.op.empty()) continue;
    current->symbols.merge(symbols_of(found.operands));
    current->lines.push_back(std::move(found));
  }
  return result;
}

// In the order in which they are referred to, the wanted one first.
std::vector<const assembly_function*> reachable(const std::map<std::string, assembly_function>& all,
                                                const std::string& function) {
  std::vector<const assembly_function*> result;
  std::set<std::string> seen{function};
  std::vector<std::string> next{function};
  for (size_t i = 0; i < next.size(); ++i) {
    auto found = all.find(next[i]);
    if (found == all.end()) continue;
    result.push_back(&found->second);
    for (const auto& symbol : found->second.symbols)
      if (seen.insert(symbol).second) next.push_back(symbol);
  }
  return result;
}

bool has(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

bool is_move(std::string_view op) {
  return op.starts_with("mov") || op.starts_with("vmov") || op.starts_with("cvt");
}

// Which register allocation and calling convention decide, not what is computed.
bool is_bookkeeping(const assembly_line& x) {
  static const std::set<std::string, std::less<>> ops{
      "cltq", "cqto", "cwtl", "cltd", "nop", "ret", "jmp", "endbr64", "leave", "vzeroupper"};
  std::string_view op = x.op;
  if (ops.contains(op) || op.starts_with("push") || op.starts_with("pop") ||
      op.starts_with("lea") || op.starts_with("nop") || op.starts_with("xchg"))
    return true;
  bool own_memory = has(x.operands, "%rsp") || has(x.operands, "(%rip)");
  if (op.starts_with("mov") || op.starts_with("vmov")) return own_memory || !has(x.operands, "(");
  if (has(op, "xor")) return true; // a zero
  return own_memory && (op == "addq" || op == "subq" || op == "andq");
}

std::string word_of(const assembly_line& x) {
  if (x.op[0] == 'j') return "jump";
  if (x.op == "call") return "call " + std::string{x.operands.substr(0, x.operands.find('@'))};
  return x.op;
}

bool is_packed(std::string_view op) {
  if (is_move(op)) return false;
  for (const char* other : {"push", "pop", "prefetch", "pause"})
    if (op.starts_with(other)) return false;
  return op.ends_with("ps") || op.ends_with("pd") || op.starts_with("vp") || op.starts_with("p");
}

void count(const assembly_line& x, compiled_code& into) {
  std::string_view op = x.op;
  bool jumps_away = op == "jmp" && !x.operands.starts_with(".L") && !x.operands.starts_with("*");
  ++into.instructions;
  into.vector_instructions += is_packed(op);
  into.divisions += has(op, "div");
  into.calls += op == "call" || jumps_away;
  into.branches += op[0] == 'j' && op != "jmp";
}

} // namespace

compiled_code read_host_code(std::string_view assembly, const std::string& function) {
  compiled_code result;
  auto all = functions_of(assembly);
  std::vector<const assembly_function*> chosen;
  if (function.empty())
    for (const auto& [name, x] : all) chosen.push_back(&x);
  else
    chosen = reachable(all, function);
  for (const auto* x : chosen) {
    result.blocks.emplace_back();
    for (const auto& line : x->lines) {
      if (line.op.empty()) {
        result.blocks.emplace_back();
        continue;
      }
      count(line, result);
      if (!is_bookkeeping(line)) result.blocks.back().push_back(word_of(line));
      if (line.op[0] == 'j') result.blocks.emplace_back();
    }
  }
  std::erase_if(result.blocks, [](const auto& x) { return x.empty(); });
  for (auto& x : result.blocks) std::sort(x.begin(), x.end());
  return result;
}

} // namespace kernelmill
