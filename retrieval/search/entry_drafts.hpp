#pragma once

// How entries are made: of a card or a kernel, with the texts that are embedded and the terms that
// are searched.

#include <string>
#include <string_view>
#include <vector>

#include "retrieval/corpora/knowledge.hpp"
#include "retrieval/search/index.hpp"

namespace kernelmill {

/// An entry before it is one.
struct entry_draft {
  index_entry entry;
  std::string tags; ///< of a card; the task of a kernel
  std::string code; ///< words of a kernel's reference
};

entry_draft draft_of(const knowledge_card& x);
entry_draft draft_of(const kernel_example& x);

/// What a text is written in: Python that imports triton is "triton", Python that builds an
/// extension of its own is "cuda", all else is its language.
std::string written_in(std::string_view text, const std::string& language);

/// One row for each draft. Of a kernel with a reference half of it is the reference: problems are
/// compared with problems. The other half, or all, is half subject and half text: in a page of
/// advice the few words that name its subject would otherwise weigh no more than any others.
expected<std::vector<float>> embed_drafts(embedder& embedding,
                                          const std::vector<entry_draft>& drafts);

/// What a search by words finds it by.
term_list terms_of(const entry_draft& x);

} // namespace kernelmill
