// What stands in the head of a safetensors file: eight bytes with its length, then JSON.

#include <cstring>

#include "launch/import/sol/data_set.hpp"
#include "messages/base/json_depth.hpp"

namespace kernelmill::sol {

namespace {

using nlohmann::json;

constexpr uint64_t longest_head = 16 << 20;

struct stored_type {
  const char* name;
  const char* type;
  int64_t bytes;
};

constexpr stored_type stored_types[] = {
    {"F64", "float64", 8},
    {"F32", "float32", 4},
    {"F16", "float16", 2},
    {"BF16", "bfloat16", 2},
    {"F8_E4M3", "float8_e4m3fn", 1},
    {"F8_E5M2", "float8_e5m2", 1},
    {"I64", "int64", 8},
    {"I32", "int32", 4},
    {"I16", "int16", 2},
    {"I8", "int8", 1},
    {"U8", "uint8", 1},
    {"BOOL", "bool", 1},
};

} // namespace

std::string wrong_in_safetensors(const std::string& file, const std::string& key,
                                 const std::string& type, const std::vector<int64_t>& sizes) {
  if (file.starts_with("version https://git-lfs"))
    return "it is a pointer of Git LFS; fetch it with `git lfs pull`";
  uint64_t length = 0;
  if (file.size() < 8) return "it is no safetensors file";
  std::memcpy(&length, file.data(), 8);
  if (length > longest_head || length > file.size() - 8) return "it is no safetensors file";
  auto head = file.substr(8, length);
  if (nests_deeper(head, 16)) return "its head nests too deep";
  auto all = json::parse(head, nullptr, false);
  if (!all.is_object()) return "its head is no JSON object";
  auto found = all.find(key);
  if (found == all.end() || !found->is_object()) return "it has no tensor \"" + key + "\"";
  const stored_type* kind = nullptr;
  for (const auto& one : stored_types)
    if (found->value("dtype", json{}) == one.name) kind = &one;
  if (kind == nullptr || kind->type != type) return "\"" + key + "\" is not of type " + type;
  if (found->value("shape", json{}) != json(sizes))
    return "\"" + key + "\" has not the shape that the axes give";
  auto place = found->value("data_offsets", json{});
  if (!place.is_array() || place.size() != 2 || !place[0].is_number_unsigned() ||
      !place[1].is_number_unsigned())
    return "\"" + key + "\" has no data_offsets";
  uint64_t wanted = static_cast<uint64_t>(kind->bytes);
  for (auto size : sizes)
    if (__builtin_mul_overflow(wanted, static_cast<uint64_t>(size), &wanted)) return "too large";
  auto first = place[0].get<uint64_t>();
  auto end = place[1].get<uint64_t>();
  if (first > end || end > file.size() - 8 - length || end - first != wanted)
    return "\"" + key + "\" does not lie in the file, or has another size";
  return {};
}

} // namespace kernelmill::sol
