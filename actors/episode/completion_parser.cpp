#include "actors/episode/completion_parser.hpp"

#include <algorithm>
#include <cstring>
#include <optional>

#include "actors/episode/clean_text.hpp"
#include "actors/episode/fence.hpp"
#include "messages/base/text.hpp"

namespace kernelmill {

namespace {

constexpr auto npos = std::string_view::npos;
constexpr std::string_view kernel_open = "<KERNEL>";
constexpr std::string_view kernel_close = "</KERNEL>";
constexpr std::string_view diagnosis_open = "<DIAGNOSIS>";
constexpr std::string_view diagnosis_close = "</DIAGNOSIS>";
constexpr std::string_view evidence_open = "<EVIDENCE>";
constexpr std::string_view evidence_close = "</EVIDENCE>";

// A million broken tags are one broken answer: more than this teaches a policy nothing.
constexpr size_t max_problems = 8;
constexpr size_t max_diagnosis_bytes = 256;
constexpr size_t max_statements = 16;
constexpr size_t max_statement_bytes = 100;

bool starts_with_any_case(std::string_view text, std::string_view lower) {
  if (text.size() < lower.size()) return false;
  for (size_t i = 0; i < lower.size(); ++i) {
    char c = text[i];
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    if (c != lower[i]) return false;
  }
  return true;
}

enum class tag_kind {
  none,
  think,
  think_end,
  kernel,
  kernel_end,
  kernel_misspelt,
  diagnosis,
  evidence
};

struct tag {
  tag_kind kind = tag_kind::none;
  size_t begin = npos;
  size_t end = npos;
};

// Reads the tag at the front of `text`, which starts with '<'.
std::pair<tag_kind, size_t> read_tag(std::string_view text) {
  // Most '<' of a kernel are comparisons, launches and templates.
  if (text.size() < 2 || std::string_view{"/tTkKDE"}.find(text[1]) == npos)
    return {tag_kind::none, 1};
  if (text.starts_with(kernel_open)) return {tag_kind::kernel, kernel_open.size()};
  if (text.starts_with(kernel_close)) return {tag_kind::kernel_end, kernel_close.size()};
  if (text.starts_with(diagnosis_open)) return {tag_kind::diagnosis, diagnosis_open.size()};
  if (text.starts_with(evidence_open)) return {tag_kind::evidence, evidence_open.size()};
  for (std::string_view name : {"<think>", "<thinking>"})
    if (starts_with_any_case(text, name)) return {tag_kind::think, name.size()};
  for (std::string_view name : {"</think>", "</thinking>"})
    if (starts_with_any_case(text, name)) return {tag_kind::think_end, name.size()};
  if (starts_with_any_case(text, "<kernel>"))
    return {tag_kind::kernel_misspelt, kernel_open.size()};
  return {tag_kind::none, 1};
}

tag next_tag(std::string_view text, size_t from) {
  while (from < text.size()) {
    auto* found = std::memchr(text.data() + from, '<', text.size() - from);
    if (found == nullptr) break;
    auto begin = static_cast<size_t>(static_cast<const char*>(found) - text.data());
    auto [kind, length] = read_tag(text.substr(begin));
    if (kind != tag_kind::none) return {kind, begin, begin + length};
    from = begin + 1;
  }
  return {};
}

tag next_think_tag(std::string_view text, size_t from) {
  for (auto x = next_tag(text, from); x.kind != tag_kind::none; x = next_tag(text, x.end))
    if (x.kind == tag_kind::think || x.kind == tag_kind::think_end) return x;
  return {};
}

// The end of a thought that is open at `from`. A <think> inside it is words of the thought.
tag next_think_end(std::string_view text, size_t from) {
  for (auto x = next_tag(text, from); x.kind != tag_kind::none; x = next_tag(text, x.end))
    if (x.kind == tag_kind::think_end) return x;
  return {};
}

// Walks the text once. Every search either moves `at_` behind what it found, or finds nothing
// and ends the walk, so that no input costs more than linear time.
class parser {
public:
  parser(std::string_view text, size_t max_kernel_bytes)
      : text_(text), max_kernel_bytes_(max_kernel_bytes) {}

  parsed_completion run() {
    take_headless_thought();
    while (step()) {
      // nop
    }
    if (kernels_ == 0 && !broken_) take_fence_outside();
    finish();
    return std::move(out_);
  }

private:
  void problem(std::string text) {
    if (out_.problems.size() < max_problems) out_.problems.push_back(std::move(text));
  }

  void fail(std::string text) {
    broken_ = true;
    problem(std::move(text));
  }

  // Chat templates may open <think> in the prompt; then the completion only closes it.
  void take_headless_thought() {
    auto first = next_think_tag(text_, 0);
    if (first.kind != tag_kind::think_end) return;
    add_thought(text_.substr(0, first.begin));
    at_ = segment_ = first.end;
  }

  bool step() {
    auto x = next_tag(text_, at_);
    at_ = x.end;
    switch (x.kind) {
      case tag_kind::none: end_segment(text_.size()); return false;
      case tag_kind::think: return take_thought(x);
      case tag_kind::kernel: return take_kernel(x);
      case tag_kind::diagnosis: return take_diagnosis(x);
      case tag_kind::evidence: return take_evidence(x);
      case tag_kind::kernel_misspelt: misspelt_ = text_.substr(x.begin, x.end - x.begin); break;
      case tag_kind::kernel_end: problem("</KERNEL> has no <KERNEL> before it."); break;
      case tag_kind::think_end: break;
    }
    return true;
  }

  void end_segment(size_t end) {
    if (kernels_ == 0 && end > segment_)
      segments_.push_back(text_.substr(segment_, end - segment_));
  }

  void add_thought(std::string_view thought) {
    if (kernels_ == 0 && thought.find(kernel_open) != npos) kernel_in_thought_ = true;
    thought = trimmed(thought);
    if (thought.empty()) return;
    if (!out_.thought.empty()) out_.thought += "\n\n";
    out_.thought += thought;
  }

  bool take_thought(const tag& open) {
    end_segment(open.begin);
    auto close = next_think_end(text_, open.end);
    if (close.kind == tag_kind::none) {
      add_thought(text_.substr(open.end));
      fail("<think> is not closed by </think>, so everything behind it counts as thought. The "
           "answer may have been cut off: think less, then close the tag.");
      return false;
    }
    add_thought(text_.substr(open.end, close.begin - open.end));
    at_ = segment_ = close.end;
    return true;
  }

  bool take_kernel(const tag& open) {
    end_segment(open.begin);
    auto close = text_.find(kernel_close, open.end);
    if (close == npos) {
      fail("<KERNEL> is not closed by </KERNEL>. The answer may have been cut off: write less "
           "before the kernel, or a shorter kernel.");
      return false;
    }
    auto content = text_.substr(open.end, close - open.end);
    if (auto again = content.rfind(kernel_open); again != npos) {
      problem("<KERNEL> is opened twice before </KERNEL>; the code behind the last one was taken.");
      content.remove_prefix(again + kernel_open.size());
    }
    at_ = segment_ = close + kernel_close.size();
    unwrap(content);
    return true;
  }

  bool take_diagnosis(const tag& open) {
    end_segment(open.begin);
    auto close = text_.find(diagnosis_close, open.end);
    if (close == npos) {
      fail("<DIAGNOSIS> is not closed by </DIAGNOSIS>.");
      return false;
    }
    auto label = trimmed(text_.substr(open.end, close - open.end));
    at_ = segment_ = close + diagnosis_close.size();
    if (label.empty() || label.size() > max_diagnosis_bytes) {
      problem("<DIAGNOSIS> must hold one label of the list and nothing else.");
    } else if (diagnosis_ && *diagnosis_ != label) {
      problem("There are two different diagnoses; give exactly one.");
      two_diagnoses_ = true;
    } else {
      diagnosis_ = label;
    }
    return true;
  }

  bool take_evidence(const tag& open) {
    end_segment(open.begin);
    auto close = text_.find(evidence_close, open.end);
    if (close == npos) {
      fail("<EVIDENCE> is not closed by </EVIDENCE>.");
      return false;
    }
    for (auto& x : evidence_lines(text_.substr(open.end, close - open.end)))
      if (out_.evidence.size() < max_statements) out_.evidence.push_back(std::move(x));
    at_ = segment_ = close + evidence_close.size();
    return true;
  }

  void unwrap(std::string_view content) {
    auto first = only_fence(trimmed(content));
    if (!first) first = next_fence(content, 0);
    if (!first) return add_kernel({trimmed(content), {}});
    if (!first->closed) problem("The code fence inside <KERNEL> is not closed.");
    auto second = next_fence(content, std::min(first->end, content.size()));
    if (second && trimmed(second->code) != trimmed(first->code)) {
      ++kernels_;
      return fail("<KERNEL> holds two different code blocks; give one complete program.");
    }
    add_kernel(*first);
  }

  void add_kernel(const fence& block) {
    auto code = trim_lines(block.code);
    if (++kernels_ == 1) {
      kernel_ = code;
      out_.language = language_of(block.info);
    } else if (code == kernel_) {
      problem("The same kernel is there twice; once is enough.");
    } else {
      fail("There are two different kernels; give exactly one <KERNEL> with the complete program.");
    }
  }

  struct candidates {
    std::optional<fence> first;
    bool several = false;

    void add(const fence& x) {
      if (!first)
        first = x;
      else if (trimmed(first->code) != trimmed(x.code))
        several = true;
    }
  };

  // An answer without <KERNEL>: one block of code may stand for it. A block that names a language
  // is preferred to one that does not; shell commands and tables are passed over.
  void take_fence_outside() {
    candidates labelled, plain;
    for (auto segment : segments_)
      for (auto x = next_fence(segment, 0); x; x = next_fence(segment, x->end)) {
        if (is_code_language(x->info))
          labelled.add(*x);
        else if (x->info.empty())
          plain.add(*x);
      }
    const auto& taken = labelled.first ? labelled : plain;
    if (!taken.first) return;
    if (taken.several)
      return fail("There is no <KERNEL>, and more than one code block could be it.");
    if (!taken.first->closed)
      return fail("There is no <KERNEL>, and the code block is not closed. The answer may have "
                  "been cut off.");
    problem("There is no <KERNEL>; the only code block was taken. Put the program between "
            "<KERNEL> and </KERNEL>.");
    add_kernel(*taken.first);
  }

  void finish() {
    if (diagnosis_ && !two_diagnoses_) out_.diagnosis = *diagnosis_;
    if (kernels_ == 0 && !broken_) explain_absence();
    if (!broken_ && kernels_ > 0 && kernel_.empty()) fail("The kernel is empty.");
    if (kernel_.size() > max_kernel_bytes_)
      fail("The kernel has " + std::to_string(kernel_.size()) + " bytes; at most " +
           std::to_string(max_kernel_bytes_) + " are allowed.");
    out_.ok = kernels_ > 0 && !broken_;
    if (!out_.ok) return out_.language.clear();
    out_.kernel = kernel_;
    out_.kernel_begin = static_cast<size_t>(kernel_.data() - text_.data());
  }

  void explain_absence() {
    if (trimmed(text_).empty()) return problem("The answer is empty.");
    if (kernel_in_thought_)
      problem("<KERNEL> stands inside <think>, where nothing is read as code. Close </think> "
              "first.");
    if (!misspelt_.empty())
      problem(std::string{misspelt_} + " is not the tag: write <KERNEL> in capitals.");
    problem("There is no kernel: put the complete program between <KERNEL> and </KERNEL>.");
  }

  std::string_view text_;
  size_t max_kernel_bytes_;
  parsed_completion out_;
  size_t at_ = 0;
  size_t segment_ = 0; // where the text outside of all tags goes on
  std::vector<std::string_view> segments_;
  size_t kernels_ = 0;
  std::string_view kernel_;
  std::string_view misspelt_;
  std::optional<std::string_view> diagnosis_;
  bool two_diagnoses_ = false;
  bool kernel_in_thought_ = false;
  bool broken_ = false;
};

} // namespace

std::vector<std::string> evidence_lines(std::string_view text) {
  std::vector<std::string> result;
  while (!text.empty() && result.size() < max_statements) {
    auto line = text.substr(0, text.find_first_of("\n;,"));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    line = trimmed(line);
    if (!line.empty() && line.size() <= max_statement_bytes) result.emplace_back(line);
  }
  return result;
}

void explain_cut(parsed_completion& x, std::string_view text, std::string_view limit) {
  if (x.ok) return;
  // A tag within a thought is talk of one.
  bool thinking = false;
  size_t spoken = 0;
  for (auto t = next_think_tag(text, 0); t.kind != tag_kind::none;
       t = next_think_tag(text, t.end)) {
    thinking = t.kind == tag_kind::think;
    spoken = t.end;
  }
  auto kernel = text.find(kernel_open, spoken);
  auto begun = !thinking && kernel != npos;
  auto ended = begun && text.find(kernel_close, kernel) != npos;
  auto where = ended   ? " before it was complete."
               : begun ? " before its kernel ended."
                       : " before a kernel began.";
  // The other problems name what is missing, and missing is what was cut off.
  if (!ended) x.problems.clear();
  x.problems.insert(x.problems.begin(), "The answer reached " + std::string{limit} + where +
                                            " Think less, then write a shorter program.");
}

parsed_completion parse_completion(std::string_view text, size_t max_kernel_bytes) {
  if (auto bad = first_bad_byte(text); bad != npos) {
    parsed_completion out;
    out.problems.push_back((text[bad] == '\0' ? "There is a NUL byte at offset "
                                              : "The text is not UTF-8 at offset ") +
                           std::to_string(bad) + "; write plain text.");
    return out;
  }
  return parser{text, max_kernel_bytes}.run();
}

} // namespace kernelmill
