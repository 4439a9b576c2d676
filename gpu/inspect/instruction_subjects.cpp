#include "gpu/inspect/instruction_subjects.hpp"

#include <algorithm>
#include <initializer_list>

#include "gpu/inspect/listing_parts.hpp"

namespace kernelmill {

namespace {

using listing_parts::is_gcn;
using listing_parts::is_sass;

bool begins_with(std::string_view x, std::initializer_list<std::string_view> list) {
  return std::any_of(list.begin(), list.end(), [&](auto prefix) { return x.starts_with(prefix); });
}

bool holds(std::string_view x, std::string_view part) {
  return x.find(part) != x.npos;
}

bool is_of_sass(std::string_view opcode, std::string_view subject) {
  if (subject == "local memory") return begins_with(opcode, {"LDL", "STL"});
  if (subject == "double precision")
    return begins_with(opcode, {"DADD", "DMUL", "DFMA", "DSETP", "DMNMX"}) ||
           holds(opcode, ".F64") || holds(opcode, "64H");
  // REDUX adds up within a warp, without memory.
  if (subject == "atomics")
    return begins_with(opcode, {"ATOM", "RED"}) && !opcode.starts_with("REDUX");
  if (subject == "barriers") return opcode == "BAR" || opcode.starts_with("BAR.");
  if (subject == "shared memory") return begins_with(opcode, {"LDS", "STS", "ATOMS", "LDGSTS"});
  // HFMA2.MMA is no matrix product: it multiplies two halves.
  if (subject == "tensor cores")
    return begins_with(opcode, {"HMMA", "IMMA", "DMMA", "BMMA", "QMMA", "OMMA", "HGMMA", "IGMMA",
                                "QGMMA", "BGMMA", "UTCHMMA", "UTCIMMA", "UTCQMMA", "UTCOMMA"});
  if (subject == "asynchronous copies")
    return begins_with(opcode, {"LDGSTS", "UTMALDG", "UTMASTG", "UBLKCP"});
  if (subject == "calls") return opcode.starts_with("CALL");
  return begins_with(opcode, {"LDG", "STG", "LD.", "ST."}) && !opcode.starts_with("LDGDEPBAR");
}

bool is_of_ptx(std::string_view opcode, std::string_view subject) {
  bool moves = begins_with(opcode, {"ld", "st", "mov", "cvta"});
  bool accesses = begins_with(opcode, {"ld", "st", "cp."});
  if (subject == "local memory") return accesses && holds(opcode, ".local");
  if (subject == "double precision") return !moves && holds(opcode, ".f64");
  if (subject == "atomics") return begins_with(opcode, {"atom.", "red."});
  if (subject == "barriers") return begins_with(opcode, {"bar.", "barrier."});
  if (subject == "shared memory")
    return (accesses || opcode.starts_with("atom.")) && holds(opcode, ".shared");
  if (subject == "tensor cores")
    return begins_with(opcode, {"mma.", "wmma.mma.", "wgmma.mma_async.", "tcgen05.mma."});
  if (subject == "asynchronous copies")
    // Those of TMA end with "mbarrier::complete_tx::bytes", perhaps with "cta_group::2".
    return begins_with(opcode, {"cp.async."}) && !opcode.starts_with("cp.async.mbarrier.") &&
           !holds(opcode, "commit_group") && !holds(opcode, "wait_");
  if (subject == "calls") return opcode == "call" || opcode.starts_with("call.");
  return accesses && holds(opcode, ".global");
}

bool is_of_gcn(std::string_view opcode, std::string_view text, std::string_view subject) {
  // HIP's own loads are global_ and flat_; before gfx940 a thread's stack is a buffer in s[0:3].
  bool buffer = opcode.starts_with("buffer_");
  bool stack = opcode.starts_with("scratch_") || (buffer && holds(text, "s[0:3]"));
  bool atomic = holds(opcode, "_atomic") ||
                begins_with(opcode, {"ds_add", "ds_sub", "ds_inc", "ds_dec", "ds_min", "ds_max",
                                     "ds_and", "ds_or", "ds_xor", "ds_cmpst", "ds_wrxchg"});
  if (subject == "local memory") return stack;
  if (subject == "double precision") return opcode.starts_with("v_") && holds(opcode, "_f64");
  if (subject == "atomics") return atomic;
  if (subject == "barriers") return opcode.starts_with("s_barrier");
  if (subject == "shared memory") return opcode.starts_with("ds_");
  if (subject == "tensor cores")
    return begins_with(opcode, {"v_mfma", "v_smfmac", "v_wmma", "v_swmmac"});
  if (subject == "asynchronous copies") return holds(opcode, "_lds_") || holds(opcode, "_to_lds");
  if (subject == "calls") return begins_with(opcode, {"s_swappc", "s_call"});
  return !stack && (begins_with(opcode, {"global_", "flat_"}) || buffer);
}

// "LDG", "E" and "128" of "LDG.E.128".
template <class F>
void each_part(std::string_view opcode, char separator, F look) {
  while (!opcode.empty()) {
    auto end = std::min(opcode.find(separator), opcode.size());
    look(opcode.substr(0, end));
    opcode.remove_prefix(std::min(end + 1, opcode.size()));
  }
}

std::optional<memory_access> access_of_sass(std::string_view opcode) {
  memory_access result;
  auto name = opcode.substr(0, opcode.find('.'));
  if (name == "LDG" || name == "STG")
    result.space = memory_space::global;
  else if (name == "LDS" || name == "STS")
    result.space = memory_space::shared;
  else if (name == "LDL" || name == "STL")
    result.space = memory_space::local;
  else
    return std::nullopt;
  result.stores = name[0] == 'S';
  each_part(opcode, '.', [&](std::string_view x) {
    if (x == "U8" || x == "S8") result.bits = 8;
    if (x == "U16" || x == "S16") result.bits = 16;
    if (x == "64") result.bits = 64;
    if (x == "128") result.bits = 128;
    if (x == "256") result.bits = 256;
  });
  return result;
}

std::optional<memory_access> access_of_ptx(std::string_view opcode) {
  memory_access result;
  bool loads = opcode.starts_with("ld."), stores = opcode.starts_with("st.");
  if (!loads && !stores) return std::nullopt;
  result.stores = stores;
  bool known = false;
  uint32_t elements = 1, bits = 32;
  each_part(opcode, '.', [&](std::string_view x) {
    // ".shared::cta" is shared memory, too.
    auto space = x.substr(0, x.find(':'));
    known = known || space == "global" || space == "shared" || space == "local";
    if (space == "global") result.space = memory_space::global;
    if (space == "shared") result.space = memory_space::shared;
    if (space == "local") result.space = memory_space::local;
    if (x == "v2") elements = 2;
    if (x == "v4") elements = 4;
    if (x == "v8") elements = 8;
    // The type comes last: "b8", "f32", "bf16x2".
    auto digits = x.find_first_of("0123456789");
    auto number = digits == x.npos ? 0 : listing_parts::number_at(x.substr(digits)).value_or(0);
    bool type = begins_with(x, {"b", "u", "s", "f"}) && number >= 8 && number <= 128;
    if (type) bits = number * (x.ends_with("x2") ? 2 : 1);
  });
  result.bits = bits * elements;
  return known ? std::optional{result} : std::nullopt;
}

// "dwordx4", "b128", "ushort", "sbyte": what an instruction's last part says of its width.
std::optional<uint32_t> gcn_bits(std::string_view part) {
  if (part == "dword") return 32;
  if (part.starts_with("dwordx"))
    if (auto count = listing_parts::number_at(part.substr(6)); count && *count <= 16)
      return 32 * *count;
  if (part == "ubyte" || part == "sbyte" || part == "byte") return 8;
  if (part == "ushort" || part == "sshort" || part == "short") return 16;
  if (begins_with(part, {"b", "u", "i"}))
    if (auto bits = listing_parts::number_at(part.substr(1)); bits && *bits >= 8 && *bits <= 128)
      return *bits;
  return std::nullopt;
}

std::optional<memory_access> access_of_gcn(std::string_view opcode, std::string_view text) {
  memory_access result;
  if (is_of_gcn(opcode, text, "atomics")) return std::nullopt;
  bool shared = opcode.starts_with("ds_");
  if (shared)
    result.space = memory_space::shared;
  else if (is_of_gcn(opcode, text, "local memory"))
    result.space = memory_space::local;
  else if (!begins_with(opcode, {"global_", "buffer_"}))
    return std::nullopt; // flat_: any space
  bool loads = holds(opcode, "_load") || begins_with(opcode, {"ds_read"});
  result.stores = holds(opcode, "_store") || begins_with(opcode, {"ds_write"});
  if (!loads && !result.stores) return std::nullopt;
  std::optional<uint32_t> bits;
  each_part(opcode, '_', [&](std::string_view x) {
    if (auto found = gcn_bits(x)) bits = found;
  });
  if (!bits) return std::nullopt;
  bool two = begins_with(opcode, {"ds_read2", "ds_write2", "ds_load_2", "ds_store_2"});
  result.bits = two ? 2 * *bits : *bits;
  return result;
}

} // namespace

bool is_about(std::string_view instruction, std::string_view subject) {
  auto opcode = listing_parts::opcode_of(instruction);
  if (opcode.empty() || listing_parts::is_label(instruction)) return false;
  if (is_sass(opcode)) return is_of_sass(opcode, subject);
  return is_gcn(opcode) ? is_of_gcn(opcode, instruction, subject) : is_of_ptx(opcode, subject);
}

std::optional<memory_access> access_of(std::string_view instruction) {
  auto opcode = listing_parts::opcode_of(instruction);
  if (opcode.empty() || listing_parts::is_label(instruction)) return std::nullopt;
  if (is_sass(opcode)) return access_of_sass(opcode);
  return is_gcn(opcode) ? access_of_gcn(opcode, instruction) : access_of_ptx(opcode);
}

} // namespace kernelmill
