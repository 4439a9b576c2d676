#include "retrieval/search/entry_drafts.hpp"

#include <fmt/format.h>

#include "retrieval/code/reference_code.hpp"

namespace kernelmill {

namespace {

/// What an entry is about, in few words.
std::string subject_of(const entry_draft& x) {
  return fmt::format("{}\n{}\n{}", x.entry.title, fmt::join(x.entry.families, " "), x.tags);
}

std::string title_of(const kernel_example& x) {
  const auto& what = x.task.empty() ? x.id : x.task;
  // A speedup that a corpus tells without a device is its own word, and a prompt calls it
  // unmeasured.
  if (x.speedup > 0 && (x.origin.empty() || !x.device.empty()))
    return fmt::format("Verified kernel for {}, {:.2f} times the baseline's speed", what,
                       x.speedup);
  // Nothing says that a row of a corpus was ever judged.
  return fmt::format("{} for {}", x.origin.empty() ? "Verified kernel" : "Kernel", what);
}

} // namespace

std::string written_in(std::string_view text, const std::string& language) {
  if (language != "python") return language;
  auto has = [&](std::string_view words) { return text.find(words) != text.npos; };
  if (has("import triton") || has("from triton")) return "triton";
  if (has("load_inline")) return "cuda";
  return language;
}

entry_draft draft_of(const knowledge_card& x) {
  entry_draft result;
  auto& to = result.entry;
  to.id = "card:" + x.id;
  to.kind = "card";
  to.title = x.title;
  to.text = x.body;
  to.source = x.source;
  to.families = x.families;
  to.backends = x.backends;
  result.tags = fmt::format("{}", fmt::join(x.tags, " "));
  return result;
}

entry_draft draft_of(const kernel_example& x) {
  entry_draft result;
  auto& to = result.entry;
  to.id = "kernel:" + x.id;
  to.kind = "kernel";
  to.title = title_of(x);
  to.text = x.source;
  to.source = x.id;
  to.task = x.task;
  if (!x.operator_family.empty()) to.families.push_back(x.operator_family);
  if (!x.backend.empty()) to.backends.push_back(x.backend);
  to.speedup = x.speedup;
  to.language = x.language;
  to.split = x.split;
  to.rights_source = x.rights_source;
  to.reference = x.reference;
  to.device = x.device;
  to.date = x.date;
  to.origin = x.origin;
  to.written_in = written_in(x.source, x.language);
  result.tags = x.task;
  if (x.language == "python") to.own_signature = read_reference(x.source).signature;
  if (x.reference.empty()) return result;
  auto code = read_reference(x.reference);
  to.operators = fmt::format("{}", fmt::join(code.operators, " "));
  to.signature = std::move(code.signature);
  result.code = std::move(code.words);
  return result;
}

expected<std::vector<float>> embed_drafts(embedder& embedding,
                                          const std::vector<entry_draft>& drafts) {
  std::vector<std::string> texts;
  for (const auto& x : drafts) {
    texts.push_back(subject_of(x));
    texts.emplace_back(x.entry.text.view());
    if (!x.code.empty()) texts.push_back(x.code);
  }
  auto parts = embedding.embed(texts);
  if (!parts) return parts;
  auto dimension = embedding.dimension();
  std::vector<float> rows(drafts.size() * dimension);
  const auto* part = parts->data();
  auto add = [&](float* row, float weight) {
    for (size_t i = 0; i < dimension; ++i) row[i] += weight * part[i];
    part += dimension;
  };
  for (size_t i = 0; i < drafts.size(); ++i) {
    auto* row = rows.data() + i * dimension;
    add(row, 0.25F);
    add(row, 0.25F);
    if (!drafts[i].code.empty()) add(row, 0.5F);
    normalize(row, dimension);
  }
  return rows;
}

term_list terms_of(const entry_draft& x) {
  term_list result;
  add_words(result, subject_of(x));
  add_words(result, x.code);
  add_words(result, x.entry.text);
  for (std::string_view rest = x.entry.operators; !rest.empty();) {
    auto end = std::min(rest.find(' '), rest.size());
    result.push_back(operator_term(rest.substr(0, end)));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return result;
}

} // namespace kernelmill
