#include "gpu/inspect/jumps.hpp"

#include <algorithm>
#include <charconv>

#include "gpu/inspect/listing_parts.hpp"
#include "messages/base/text.hpp"

namespace kernelmill {

namespace {

using namespace listing_parts;

std::string_view first_part(std::string_view opcode, char end) {
  return opcode.substr(0, opcode.find(end));
}

// "(.L_x_3)" with a backquote before, or "0x160" of a listing without labels.
void take_sass_target(std::string_view operands, code_jump& to) {
  if (auto open = operands.find("`("); open != operands.npos) {
    auto label = operands.substr(open + 2);
    to.label = label.substr(0, label.find(')'));
    return;
  }
  auto hex = operands.rfind("0x");
  if (hex == operands.npos) return;
  auto digits = operands.substr(hex + 2);
  uint32_t value = 0;
  auto [end, problem] = std::from_chars(digits.data(), digits.data() + digits.size(), value, 16);
  (void)end;
  if (problem == std::errc{}) to.address = value;
}

code_jump jump_of_sass(std::string_view opcode, std::string_view operands, bool guarded) {
  code_jump result;
  auto name = first_part(opcode, '.');
  if (name == "EXIT" || name == "RET" || name == "KILL") result.goes_on = guarded;
  if (name == "BRX" || name == "JMX" || name == "BRXU" || name == "JMXU") result.jumps = true;
  if (name != "BRA" && name != "JMP") return result;
  result.jumps = true;
  // "BRA !P3, `(.L)" has a condition, too, as "BRA.DIV UR4, `(.L)".
  result.goes_on = guarded || operands.find(',') != operands.npos;
  take_sass_target(operands, result);
  return result;
}

code_jump jump_of_ptx(std::string_view opcode, std::string_view operands, bool guarded) {
  code_jump result;
  auto name = first_part(opcode, '.');
  if (name == "ret" || name == "exit" || name == "trap") result.goes_on = guarded;
  if (name == "brx") result.jumps = true;
  if (name != "bra") return result;
  result.jumps = true;
  result.goes_on = guarded;
  result.label = trimmed(operands);
  return result;
}

code_jump jump_of_gcn(std::string_view opcode, std::string_view operands) {
  code_jump result;
  // What s_setpc leads to is the caller, of a function.
  if (opcode.starts_with("s_endpgm") || opcode.starts_with("s_setpc")) result.goes_on = false;
  bool always = opcode == "s_branch";
  if (!always && !opcode.starts_with("s_cbranch")) return result;
  result.jumps = true;
  result.goes_on = !always;
  result.label = trimmed(operands);
  return result;
}

} // namespace

code_jump jump_of(std::string_view instruction) {
  bool guarded = instruction.starts_with("@");
  auto opcode = opcode_of(instruction);
  if (opcode.empty()) return {};
  auto operands =
      instruction.substr(static_cast<size_t>(opcode.data() - instruction.data()) + opcode.size());
  operands = trimmed(operands.substr(0, operands.find(';')));
  if (is_sass(opcode)) return jump_of_sass(opcode, operands, guarded);
  return is_gcn(opcode) ? jump_of_gcn(opcode, operands) : jump_of_ptx(opcode, operands, guarded);
}

bool is_function(std::string_view label) {
  // Those of PTX, which are no functions, begin with "$L__".
  return label.starts_with("$") && !label.starts_with("$L__");
}

} // namespace kernelmill
