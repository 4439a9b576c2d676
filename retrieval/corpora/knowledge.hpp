#pragma once

// A knowledge card is one page of advice: what an operator costs, when a transformation pays,
// how a bottleneck shows, what a machine can do. Cards are markdown files with a short header:
//
//   ---
//   id: block-matmul
//   title: Block a matrix product for the caches
//   kind: transformation            # operator, transformation, bottleneck, hardware
//   operator_family: matmul, attention
//   backends: cpu                   # cpu, cuda, hip
//   tags: tiling, cache
//   measured: 3.10x on DEVICE, 2026-11-30     # only where a tool measured it; several with "; "
//   ---
//   The advice: a rule, why, and often a snippet in a fence.
//
// The snippet is the text of snippets/ID/after.{cpp,cu,hip,py} beside the cards, which
// launch/tools/cards compiles, checks and measures. Every other key must be there once;
// `operator_family: any` means that the card is about no family in particular. The file is named
// <id>.md, so that an id found in a log is found on disk.

#include <string>
#include <string_view>
#include <vector>

#include "messages/error.hpp"

namespace kernelmill {

struct knowledge_card {
  std::string id;
  std::string title;
  std::string kind;
  std::vector<std::string> families; ///< snake_case; empty for "any"
  std::vector<std::string> backends;
  std::vector<std::string> tags;
  std::string body;   ///< ends with what was measured
  std::string source; ///< path below the corpus folder
};

/// Parses one card; `source` names it in errors, with the line.
expected<knowledge_card> parse_card(std::string_view text, const std::string& source);

/// Loads every *.md below `directory`, sorted by id. Fails on the first malformed card, on an id
/// that two files share, and on a folder without cards. A README.md is not a card.
expected<std::vector<knowledge_card>> load_cards(const std::string& directory);

/// SHA-256 over what retrieval uses of the cards; the order of the files does not count.
std::string corpus_digest(const std::vector<knowledge_card>& cards);

} // namespace kernelmill
