#include "gpu/profiler/host_sanitizer_report.hpp"

#include <algorithm>
#include <array>

#include "gpu/profiler/sanitizer_parts.hpp"
#include "messages/base/text.hpp"

namespace kernelmill {

namespace {

namespace parts = sanitizer_parts;

using parts::cut;
using parts::has_words;
using parts::take_prefix;

struct known_words {
  std::string_view words;
  memory_fault family;
};

// In a sanitizer's first line, the first that is there.
constexpr std::array faults_of_memory = {
    known_words{"use-after", memory_fault::use_after_free},
    known_words{"double-free", memory_fault::use_after_free},
    known_words{"attempting free", memory_fault::use_after_free},
    known_words{"alloc-dealloc-mismatch", memory_fault::use_after_free},
    known_words{"overflow on", memory_fault::out_of_bounds},
    known_words{"underflow on", memory_fault::out_of_bounds},
    known_words{"unknown-crash", memory_fault::out_of_bounds},
    known_words{"negative-size-param", memory_fault::out_of_bounds},
    known_words{"SEGV", memory_fault::out_of_bounds},
    known_words{"BUS", memory_fault::out_of_bounds},
    known_words{"param-overlap", memory_fault::undefined},
    known_words{"FPE", memory_fault::undefined},
    known_words{"ILL", memory_fault::undefined},
    known_words{"data race", memory_fault::race},
    known_words{"alloc", memory_fault::api_error}, // of a size or an alignment that there is not
    known_words{"memory", memory_fault::api_error},
    known_words{"rss limit", memory_fault::api_error}};

// The same of UndefinedBehaviorSanitizer, most of whose words are about arithmetic.
constexpr std::array faults_of_behaviour = {
    known_words{"misaligned address", memory_fault::misaligned},
    known_words{"out of bounds", memory_fault::out_of_bounds},
    known_words{"null pointer", memory_fault::out_of_bounds},
    known_words{"insufficient space", memory_fault::out_of_bounds},
    known_words{"pointer overflow", memory_fault::out_of_bounds},
    known_words{"applying non-zero offset", memory_fault::out_of_bounds}};

template <size_t N>
memory_fault family_of(std::string_view line, const std::array<known_words, N>& table,
                       memory_fault otherwise) {
  for (const auto& x : table)
    if (has_words(line, x.words)) return x.family;
  return otherwise;
}

std::string_view host_hint_of(const sanitizer_finding& x) {
  switch (x.family) {
    case memory_fault::out_of_bounds:
      return "compare the index with the length before the access; think of the last row and of "
             "the rest behind the last vector";
    case memory_fault::misaligned:
      return "load with memcpy or an unaligned intrinsic; rows begin where their length puts them";
    case memory_fault::race:
      return "give each thread its own element, or use a reduction, an atomic or a barrier";
    case memory_fault::use_after_free:
      return "let memory live until its last use, and free it once";
    case memory_fault::undefined:
      return "use a wider or an unsigned type, or test the operands before the operation";
    default: return "see the tool's words";
  }
}

// A report is read line by line; which stack a frame belongs to, the line above it says.
class reader {
public:
  reader(std::string_view end, std::string_view source) : end_(end), source_(source) {}

  void take(std::string_view line);
  sanitizer_report result();

private:
  enum class stack : unsigned char { none, access, other };

  bool begin(std::string_view line);
  bool begin_behaviour(std::string_view line);
  void take_access(std::string_view line);
  void take_place(std::string_view line);
  void take_frame(std::string_view line);
  void close();

  std::string_view end_;
  std::string_view source_;
  sanitizer_report report_;
  sanitizer_finding current_;
  std::string about_; // what the access is beside
  stack stack_ = stack::none;
  bool ended_ = false;
};

void reader::close() {
  if (!current_.words.empty()) {
    if (!about_.empty()) current_.words = cut(current_.words + " (" + about_ + ")");
    current_.hint = host_hint_of(current_);
    parts::keep(report_, current_);
  }
  current_ = {};
  about_.clear();
  stack_ = stack::none;
}

// "==12==ERROR: AddressSanitizer: heap-buffer-overflow on address 0x6 at pc 0x7 bp 0x8 sp 0x9",
// "WARNING: ThreadSanitizer: data race (pid=12)".
bool reader::begin(std::string_view line) {
  auto at = line.find("Sanitizer: ");
  bool is_one = at != line.npos && (has_words(line.substr(0, at), "ERROR: ") ||
                                    has_words(line.substr(0, at), "WARNING: "));
  if (!is_one) return false;
  close();
  auto words = line.substr(at + 11);
  current_.family = family_of(line, faults_of_memory, memory_fault::undefined);
  // Addresses differ from run to run.
  for (std::string_view behind : {" on address", " on unknown address", " (pid="})
    words = words.substr(0, words.find(behind));
  current_.words = cut(words);
  for (std::string_view space : {"heap", "stack", "global"})
    if (words.starts_with(space)) current_.space = space;
  stack_ = stack::access;
  return true;
}

// "kernel.cpp:12:7: runtime error: signed integer overflow: 2147483647 + 1 cannot be ..."
bool reader::begin_behaviour(std::string_view line) {
  constexpr std::string_view mark = ": runtime error: ";
  auto at = line.find(mark);
  if (at == line.npos) return false;
  close();
  auto place = line.substr(0, at);
  if (auto column = place.rfind(':'); column != place.npos)
    (void)parts::take_file(place.substr(0, column), current_.at);
  auto words = line.substr(at + mark.size());
  current_.family = family_of(words, faults_of_behaviour, memory_fault::undefined);
  if (words.starts_with("load ")) current_.access = "read";
  if (words.starts_with("store ")) current_.access = "write";
  current_.words = cut(words);
  stack_ = stack::access;
  return true;
}

// "READ of size 4 at 0x6 thread T1", "  Previous atomic write of size 4 at 0x7 by main thread:"
void reader::take_access(std::string_view line) {
  auto lower = lowered(line);
  bool is_other = lower.starts_with("previous ");
  stack_ = is_other ? stack::other : stack::access;
  if (is_other) {
    if (current_.others.size() < parts::most_others)
      current_.others.emplace_back();
    else
      stack_ = stack::none;
    return;
  }
  current_.access = has_words(lower, "atomic")  ? "atomic"
                    : has_words(lower, "write") ? "write"
                                                : "read";
  current_.bytes =
      static_cast<uint32_t>(std::min<uint64_t>(parts::count_after(line, " of size "), 1 << 20));
  if (auto at = line.find(" at 0x"); at != line.npos)
    current_.address = cut(line.substr(at + 4, line.find(' ', at + 4) - at - 4), 20);
  if (auto at = line.find("thread T"); at != line.npos)
    current_.thread = cut(line.substr(at + 7, line.find_first_of(" :", at + 7) - at - 7), 12);
  else if (has_words(line, "main thread"))
    current_.thread = "T0";
}

// What lies where the access went.
void reader::take_place(std::string_view line) {
  stack_ = stack::none;
  if (auto at = line.find(" is located "); at != line.npos) {
    auto where = line.substr(at + 12);
    about_ = cut(where.substr(0, where.find_first_of("[(")), 120);
  } else if (auto variable = line.find(" overflows this variable"); variable != line.npos) {
    auto first = line.find('\'');
    auto last = line.find('\'', first + 1);
    if (first != line.npos && last != line.npos)
      about_ = "overflows " + cut(line.substr(first, last - first + 1), 80);
  } else if (take_prefix(line, "Location is ")) {
    for (std::string_view space : {"heap", "stack", "global"})
      if (line.starts_with(space)) current_.space = space;
  }
  while (about_.ends_with(' ')) about_.pop_back();
}

// "#0 0x7fb9 in f(float*) /build/kernel.cpp:8", "#0 f(float*) /build/kernel.cpp:8 (lib.so+0x12f5)",
// "#1 0x7fb9  (/lib/libgomp.so.1+0x1cd8d)"
void reader::take_frame(std::string_view line) {
  if (stack_ == stack::none || current_.words.empty()) return;
  auto& at = stack_ == stack::access ? current_.at : current_.others.back();
  if (at.file == source_ && !at.kernel.empty()) return;
  line = trimmed(line.substr(std::min(line.size(), line.find(' '))));
  if (line.starts_with("0x")) line = trimmed(line.substr(std::min(line.size(), line.find(' '))));
  (void)take_prefix(line, "in ");
  auto module = line.rfind('(');
  if (module != line.npos && line.ends_with(')') && has_words(line.substr(module), "+0x"))
    line = trimmed(line.substr(0, module));
  code_place found;
  auto space = line.rfind(' ');
  if (space != line.npos && parts::take_file(line.substr(space + 1), found))
    line = trimmed(line.substr(0, space));
  found.kernel = cut(line);
  bool is_better = at.kernel.empty() && (at.file.empty() || at.file == found.file);
  if (is_better || found.file == source_) {
    // The sanitizer's own line is that of the access; a frame's may be that of the statement.
    if (at.file == found.file && at.line > 0) found.line = at.line;
    at = std::move(found);
  }
}

void reader::take(std::string_view line) {
  if (line == end_) {
    ended_ = true;
    return close();
  }
  if (has_words(line, "FATAL: ThreadSanitizer") || has_words(line, "Shadow memory range") ||
      has_words(line, "failed to allocate 0x") || has_words(line, "does not come first")) {
    report_.problem = sanitizer_problem::not_supported;
    report_.words = cut(line);
    return;
  }
  if (begin(line) || begin_behaviour(line)) return;
  if (current_.words.empty()) return;
  line = trimmed(line);
  auto lower = lowered(line.substr(0, 64));
  bool is_access = has_words(lower, " of size ") && !has_words(lower, "region") &&
                   (has_words(lower, "read ") || has_words(lower, "write "));
  if (line.starts_with("#")) return take_frame(line);
  if (line.starts_with("SUMMARY: ")) return close();
  if (is_access && !has_words(line, " is located ")) return take_access(line);
  if (line.empty()) {
    stack_ = stack::none;
    return;
  }
  // A signal has its stack right behind words of explanation.
  if (has_words(line, "thread T") && has_words(line, "allocated by")) return take_place(line);
  if (has_words(line, " is located ") || has_words(line, " overflows this variable") ||
      line.starts_with("Location is ") || line.starts_with("freed by ") ||
      line.starts_with("previously allocated by ") || line.starts_with("Thread T"))
    take_place(line);
}

sanitizer_report reader::result() {
  close();
  for (const auto& x : report_.findings) report_.errors += x.is_warning ? 0 : x.times;
  if (!ended_ && report_.findings.empty() && report_.problem == sanitizer_problem::none)
    report_.problem = sanitizer_problem::no_report;
  return std::move(report_);
}

} // namespace

sanitizer_report read_host_sanitizer_report(std::string_view text, std::string_view end,
                                            std::string_view source) {
  reader all{end, source};
  while (!text.empty()) all.take(next_line(text));
  return all.result();
}

} // namespace kernelmill
