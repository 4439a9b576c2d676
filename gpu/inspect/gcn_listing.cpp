// Assembly of AMD GPUs, as clang writes it.

#include <algorithm>
#include <set>

#include "gpu/inspect/listing_parts.hpp"
#include "messages/base/text.hpp"

namespace kernelmill {

using namespace listing_parts;

namespace {

class gcn_reader : public listing_reader {
public:
  using listing_reader::listing_reader;

  void read(std::string_view text) {
    while (!text.empty()) take(trimmed(next_line(text)));
  }

private:
  void take(std::string_view line) {
    if (line.starts_with(".file")) return learn_file(line);
    // "	.type	_Z7reversePKfPfi,@function", and its label below.
    if (auto words = words_in(line, 3);
        words.size() == 3 && words[0] == ".type" && words[2] == "@function") {
      next_ = words[1];
      return;
    }
    auto code = trimmed(line.substr(0, line.find(';')));
    if (!next_.empty() && code.ends_with(':') && code.substr(0, code.size() - 1) == next_) {
      next_ = {};
      return begin_kernel(code.substr(0, code.size() - 1));
    }
    if (code.starts_with(".Lfunc_end")) return end_kernel();
    if (code.starts_with(".loc")) return take_place(code);
    // Labels of branches are kept; those of the tables of debugging are not.
    bool branch_target = code.starts_with(".LBB") && code.ends_with(':');
    if (code.empty() || (code.starts_with(".") && !branch_target)) return;
    bool spill = line.find("Folded Spill") != line.npos;
    bool reload = line.find("Folded Reload") != line.npos;
    add(spill    ? std::string{code} + " ; spill"
        : reload ? std::string{code} + " ; reload"
                 : std::string{code});
  }

  void learn_file(std::string_view line) {
    auto words = words_in(line, 2);
    auto number = words.size() == 2 ? number_at(words[1]) : std::nullopt;
    if (number && is_ours(quoted_in(line, which_quoted::last))) ours_.insert(*number);
  }

  // ".loc 0 8 18 is_stmt 0": file, line, column. Line 0 has none.
  void take_place(std::string_view line) {
    auto words = words_in(line, 3);
    auto file = words.size() == 3 ? number_at(words[1]) : std::nullopt;
    auto number = words.size() == 3 ? number_at(words[2]) : std::nullopt;
    line_ = file && number && ours_.contains(*file) ? *number : 0;
  }

  std::set<uint32_t> ours_;
  std::string_view next_; // function whose label comes
};

// "NumVgprs: 6" and "codeLenInByte = 180" below a function.
void take_comment(std::string_view line, gcn_resources& x) {
  line = trimmed(line.substr(1));
  auto end = line.find_first_of(":=");
  if (end == line.npos) return;
  auto value = number_at(trimmed(line.substr(end + 1)));
  auto name = trimmed(line.substr(0, end));
  if (!value) return;
  if (name == "Occupancy") x.waves = *value;
  if (name == "codeLenInByte") x.code_bytes = *value;
}

// ".vgpr_count: 6" of the metadata at the end.
void take_entry(std::string_view name, uint32_t value, gcn_resources& x) {
  if (name == ".vgpr_count") x.vgprs = value;
  if (name == ".agpr_count") x.agprs = value;
  if (name == ".sgpr_count") x.sgprs = value;
  if (name == ".vgpr_spill_count") x.vgpr_spills = value;
  if (name == ".sgpr_spill_count") x.sgpr_spills = value;
  if (name == ".private_segment_fixed_size") x.scratch_bytes = value;
  if (name == ".group_segment_fixed_size") x.lds_bytes = value;
  if (name == ".wavefront_size") x.wavefront = value;
}

// Kernels of the metadata. Each is an entry of a list, whose keys stand two columns further in;
// what stands deeper is of its arguments.
std::vector<gcn_resources> read_metadata(std::string_view text) {
  std::vector<gcn_resources> result;
  bool inside = false;
  while (!text.empty()) {
    auto line = next_line(text);
    if (line.starts_with("amdhsa.")) inside = line.starts_with("amdhsa.kernels:");
    if (line.starts_with("...") || trimmed(line) == ".end_amdgpu_metadata") inside = false;
    bool first = line.starts_with("  - "), further = line.starts_with("    .");
    if (!inside || !(first || further)) continue;
    if (first && result.size() == most_kernels) break;
    if (first) result.emplace_back();
    if (result.empty()) continue;
    auto words = words_in(line.substr(4), 2);
    if (words.size() < 2 || !words[0].ends_with(':')) continue;
    auto key = words[0].substr(0, words[0].size() - 1);
    if (key == ".name") result.back().name = std::string{trimmed(words[1], "'\"")};
    if (auto value = number_at(words[1])) take_entry(key, *value, result.back());
  }
  return result;
}

} // namespace

std::vector<kernel_listing> read_gcn(std::string_view text, std::string_view file) {
  gcn_reader reader{file};
  reader.read(text);
  return reader.listings();
}

std::vector<gcn_resources> read_gcn_resources(std::string_view text) {
  auto result = read_metadata(text);
  gcn_resources* of = nullptr; // whose comments these are
  while (!text.empty()) {
    auto line = trimmed(next_line(text));
    if (line.starts_with(".amdhsa_kernel ")) {
      auto name = trimmed(line.substr(15));
      auto found = std::find_if(result.begin(), result.end(),
                                [&](const gcn_resources& x) { return x.name == name; });
      of = found == result.end() ? nullptr : &*found;
    }
    if (line.find("; -- Begin function") != line.npos) of = nullptr;
    if (of != nullptr && line.starts_with(";")) take_comment(line, *of);
  }
  for (auto& x : result) x.name = readable(x.name);
  return result;
}

} // namespace kernelmill
