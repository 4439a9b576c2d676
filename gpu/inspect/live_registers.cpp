// Life ranges of registers, as nvdisasm prints them beside SASS.

#include <algorithm>
#include <unordered_map>

#include "gpu/inspect/listing_parts.hpp"
#include "messages/base/text.hpp"

namespace kernelmill {

using namespace listing_parts;

namespace {

// What stands between two bars: "GPR", "PRED", "UGPR" above the table, numbers in it.
std::vector<std::string_view> cells_of(std::string_view table) {
  std::vector<std::string_view> result;
  for (auto begin = table.find('|'); begin != table.npos;) {
    auto end = table.find('|', begin + 1);
    if (end == table.npos) break;
    result.push_back(trimmed(table.substr(begin + 1, end - begin - 1)));
    begin = end;
  }
  return result;
}

class life_reader {
public:
  explicit life_reader(std::vector<kernel_listing>& sass) : sass_(sass) {
    // nop
  }

  void read(std::string_view text) {
    while (!text.empty()) take(trimmed(next_line(text)));
    end_kernel();
  }

private:
  void take(std::string_view line) {
    if (line.starts_with("//---")) return end_kernel();
    auto bar = line.find("// |");
    if (bar == line.npos) return;
    auto code = trimmed(line.substr(0, bar));
    auto cells = cells_of(line.substr(bar));
    if (code.empty()) return take_heading(cells);
    constexpr std::string_view section = ".text.";
    if (code.starts_with(section) && code.ends_with(':'))
      return begin_kernel(readable(code.substr(section.size(), code.size() - section.size() - 1)));
    auto address = address_at(code);
    if (!address || !column_ || *column_ >= cells.size()) return;
    // Where no register is live, nothing is printed.
    auto cell = cells[*column_];
    if (auto count = cell.empty() ? std::optional<uint32_t>{0} : number_at(cell))
      live_[*address] = *count;
  }

  void take_heading(const std::vector<std::string_view>& cells) {
    auto found = std::find(cells.begin(), cells.end(), "GPR");
    if (found != cells.end()) column_ = static_cast<size_t>(found - cells.begin());
  }

  void begin_kernel(const std::string& name) {
    auto found = std::find_if(sass_.begin(), sass_.end(),
                              [&](const kernel_listing& x) { return x.name == name; });
    kernel_ = found == sass_.end() ? nullptr : &*found;
    live_.clear();
  }

  void end_kernel() {
    if (kernel_ != nullptr)
      for (auto& line : kernel_->lines)
        if (auto found = live_.find(line.address); found != live_.end() && !is_label(line.text))
          line.live = found->second;
    kernel_ = nullptr;
    column_.reset();
  }

  std::vector<kernel_listing>& sass_;
  kernel_listing* kernel_ = nullptr;
  std::optional<size_t> column_; // of general registers; a kernel's table comes before its name
  std::unordered_map<uint32_t, uint32_t> live_;
};

} // namespace

void add_live_registers(std::string_view text, std::vector<kernel_listing>& sass) {
  life_reader{sass}.read(text);
}

} // namespace kernelmill
