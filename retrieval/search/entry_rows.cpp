#include "retrieval/search/entry_rows.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

#include "retrieval/search/mapped_file.hpp"

namespace kernelmill {

namespace {

static_assert(std::endian::native == std::endian::little, "files hold little-endian numbers");

constexpr std::string_view entry_magic = "kmtexts1";

/// Every field of an entry, once: what is written is what is read.
template <class Entry, class F>
void each_field(Entry& x, F&& field) {
  field("id", x.id);
  field("kind", x.kind);
  field("title", x.title);
  field("text", x.text);
  field("source", x.source);
  field("task", x.task);
  field("operator_family", x.families);
  field("backends", x.backends);
  field("speedup", x.speedup);
  field("language", x.language);
  field("split", x.split);
  field("rights_source", x.rights_source);
  field("reference", x.reference);
  field("device", x.device);
  field("date", x.date);
  field("origin", x.origin);
  field("written_in", x.written_in);
  field("operators", x.operators);
  field("signature", x.signature);
  field("own_signature", x.own_signature);
}

std::string field_names() {
  std::string names;
  index_entry any;
  each_field(any, [&](std::string_view name, const auto&) { names.append(name).append(" "); });
  return names;
}

class entry_writer {
public:
  explicit entry_writer(digested_file& to) : to_(to) {}

  void write(uint64_t x) { to_.write(&x, sizeof x); }
  void write(double x) { to_.write(&x, sizeof x); }
  void write(std::string_view x) {
    write(uint64_t{x.size()});
    to_.write(x.data(), x.size());
  }
  void write(const std::vector<std::string>& xs) {
    write(uint64_t{xs.size()});
    for (const auto& x : xs) write(std::string_view{x});
  }

private:
  digested_file& to_;
};

/// Reads nothing beyond the end; whether it tried to is asked once.
class entry_reader {
public:
  explicit entry_reader(const mapped_file& from) : from_(from) {}

  std::string_view bytes(uint64_t size) {
    if (size > from_.size - at_) {
      failed_ = true;
      return {};
    }
    std::string_view x{reinterpret_cast<const char*>(from_.bytes) + at_, size};
    at_ += size;
    return x;
  }

  uint64_t number() {
    uint64_t x = 0;
    if (auto text = bytes(sizeof x); !failed_) std::memcpy(&x, text.data(), sizeof x);
    return x;
  }
  std::string_view text() { return bytes(number()); }

  void read(double& x) {
    if (auto text = bytes(sizeof x); !failed_) std::memcpy(&x, text.data(), sizeof x);
  }
  void read(std::string& x) { x = text(); }
  void read(shared_text& x) { x = shared_text{from_.memory, text()}; }
  void read(std::vector<std::string>& xs) {
    for (auto count = number(); count > 0 && !failed_; --count) xs.emplace_back(text());
  }

  bool failed() const { return failed_; }
  bool at_end() const { return at_ == from_.size; }

private:
  const mapped_file& from_;
  size_t at_ = 0;
  bool failed_ = false;
};

} // namespace

expected<std::string> write_entry_file(const std::string& path,
                                       const std::vector<index_entry>& entries) {
  digested_file file{path};
  entry_writer to{file};
  file.write(entry_magic.data(), entry_magic.size());
  to.write(std::string_view{field_names()});
  to.write(uint64_t{entries.size()});
  for (const auto& x : entries)
    each_field(x, [&](std::string_view, const auto& value) { to.write(value); });
  return file.close();
}

expected<std::vector<index_entry>> map_entry_file(const std::string& path,
                                                  const std::string& digest) {
  auto file = map_file(path, digest);
  KM_TRY(file);
  entry_reader from{*file};
  if (from.bytes(entry_magic.size()) != entry_magic)
    return damaged_index_file(path, "it holds no entries of an index");
  if (from.text() != field_names())
    return damaged_index_file(path, "its entries have other fields than those of this kernelmill");
  std::vector<index_entry> result;
  auto count = from.number();
  constexpr uint64_t least_entry_bytes = 64; // each text has its length before it
  result.reserve(std::min<uint64_t>(count, file->size / least_entry_bytes));
  for (; count > 0 && !from.failed(); --count)
    each_field(result.emplace_back(), [&](std::string_view, auto& value) { from.read(value); });
  if (from.failed() || !from.at_end()) return damaged_index_file(path, "it is cut off");
  // Where cards stand decides what of an entry is asked before it is shown.
  auto is_card = [](const index_entry& x) { return x.kind == "card"; };
  if (!std::is_partitioned(result.begin(), result.end(), is_card))
    return damaged_index_file(path, "a card stands behind a kernel");
  return result;
}

} // namespace kernelmill
