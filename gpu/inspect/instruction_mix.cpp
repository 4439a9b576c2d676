#include <algorithm>
#include <initializer_list>

#include "gpu/inspect/instruction_subjects.hpp"
#include "gpu/inspect/listing_parts.hpp"

namespace kernelmill {

using namespace listing_parts;

namespace {

bool begins_with_any(std::string_view x, std::initializer_list<std::string_view> list) {
  return std::any_of(list.begin(), list.end(),
                     [&](std::string_view prefix) { return x.starts_with(prefix); });
}

const char* class_of_sass(std::string_view x) {
  // Names that begin as those of memory do: a wait for copies, and sums within a warp.
  if (x.starts_with("LDGDEPBAR")) return "barriers";
  if (x.starts_with("REDUX")) return "integer";
  if (begins_with_any(x, {"LDG", "STG", "RED", "ATOMG", "LD.", "ST.", "UTMA", "ATOM."}))
    return "global memory";
  if (begins_with_any(x, {"LDS", "STS", "ATOMS", "LDGSTS", "STAS"})) return "shared memory";
  if (begins_with_any(x, {"LDL", "STL"})) return "local memory";
  if (begins_with_any(x, {"HMMA", "IMMA", "DMMA", "QMMA", "HGMMA", "IGMMA", "QGMMA", "WGMMA"}))
    return "tensor cores";
  if (is_about(x, "double precision")) return "double precision";
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
  if (x.starts_with("cvta")) return "integer"; // makes an address, and goes nowhere
  if (x.find(".global") != x.npos) return "global memory";
  if (x.find(".shared") != x.npos) return "shared memory";
  if (x.find(".local") != x.npos) return "local memory";
  if (begins_with_any(x, {"mma", "wmma", "wgmma", "ldmatrix"})) return "tensor cores";
  if (begins_with_any(x, {"bar", "barrier", "membar", "fence"})) return "barriers";
  if (begins_with_any(x, {"bra", "ret", "call", "exit", "brx"})) return "control";
  if (is_about(x, "double precision")) return "double precision";
  if (x.ends_with(".f32") || x.ends_with(".f16") || x.ends_with(".bf16") || x.ends_with(".f16x2"))
    return "floating point";
  if (begins_with_any(x, {"add", "sub", "mul", "mad", "shl", "shr", "and", "or", "xor", "setp",
                          "cvt", "min", "max", "div", "rem"}))
    return "integer";
  return "other";
}

const char* class_of_gcn_scalar(std::string_view x) {
  if (begins_with_any(x, {"s_load", "s_buffer_load", "s_store", "s_scratch"}))
    return "scalar memory";
  if (begins_with_any(x, {"s_waitcnt", "s_wait_", "s_nop", "s_delay_alu", "s_sleep"}))
    return "waits";
  if (begins_with_any(x, {"s_barrier", "s_dcache", "s_gl1", "s_icache"})) return "barriers";
  bool branches = begins_with_any(
      x, {"s_cbranch", "s_branch", "s_endpgm", "s_setpc", "s_swappc", "s_call", "s_getpc"});
  return branches || x.find("saveexec") != x.npos ? "control" : "scalar arithmetic";
}

const char* class_of_gcn_vector(std::string_view x) {
  if (begins_with_any(x, {"v_mfma", "v_smfmac", "v_wmma", "v_swmmac"})) return "matrix cores";
  if (begins_with_any(x, {"v_mov", "v_accvgpr", "v_readlane", "v_writelane", "v_readfirstlane",
                          "v_cndmask", "v_perm", "v_swap"}))
    return "moves";
  if (x.find("_f64") != x.npos) return "double precision";
  if (x.find("_f32") != x.npos || x.find("_f16") != x.npos || x.find("_bf16") != x.npos)
    return "floating point";
  return "integer";
}

// `text` is the whole instruction: what buffers are is told by the operands.
const char* class_of_gcn(std::string_view x, std::string_view text) {
  if (x.starts_with("s_")) return class_of_gcn_scalar(x);
  if (x.starts_with("v_")) return class_of_gcn_vector(x);
  if (begins_with_any(x, {"ds_"})) return "shared memory";
  if (begins_with_any(x, {"scratch_"})) return "local memory";
  if (begins_with_any(x, {"buffer_gl", "buffer_wb", "buffer_inv"})) return "barriers";
  // HIP's own loads are global_ and flat_; before gfx940 a thread's stack is a buffer in s[0:3].
  bool stack = x.starts_with("buffer_") && text.find("s[0:3]") != text.npos;
  if (stack) return "local memory";
  if (begins_with_any(x, {"global_", "flat_", "buffer_", "image_", "tbuffer_"}))
    return "global memory";
  return "other";
}

const char* class_of(std::string_view opcode, std::string_view text) {
  if (is_sass(opcode)) return class_of_sass(opcode);
  return is_gcn(opcode) ? class_of_gcn(opcode, text) : class_of_ptx(opcode);
}

} // namespace

std::map<std::string, uint32_t> instruction_mix(const kernel_listing& x) {
  std::map<std::string, uint32_t> result;
  for (const auto& line : x.lines)
    if (!is_label(line.text)) ++result[class_of(opcode_of(line.text), line.text)];
  return result;
}

} // namespace kernelmill
