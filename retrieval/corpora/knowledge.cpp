#include "retrieval/corpora/knowledge.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>

#include <fmt/format.h>

#include "messages/base/digest.hpp"
#include "messages/base/files.hpp"
#include "messages/base/text.hpp"

namespace kernelmill {

namespace {

// A card goes into prompts; one longer than this would crowd out the task.
constexpr size_t max_card_bytes = 8192;

constexpr std::array<std::string_view, 4> known_kinds = {"operator", "transformation", "bottleneck",
                                                         "hardware"};
constexpr std::array<std::string_view, 3> known_backends = {"cpu", "cuda", "hip"};
constexpr std::array<std::string_view, 6> known_keys = {
    "id", "title", "kind", "operator_family", "backends", "tags"};

// launch/tools/cards/measure.py writes it, and only a card with a pair of snippets has one.
constexpr std::string_view measured_key = "measured";

using header_map = std::map<std::string, std::pair<std::string, size_t>, std::less<>>;

template <size_t N>
bool contains(const std::array<std::string_view, N>& xs, std::string_view x) {
  return std::find(xs.begin(), xs.end(), x) != xs.end();
}

bool is_name(std::string_view x, char separator) {
  return !x.empty() && std::all_of(x.begin(), x.end(), [separator](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == separator;
  });
}

std::vector<std::string> split_list(std::string_view x) {
  std::vector<std::string> result;
  while (!x.empty()) {
    auto comma = x.find(',');
    if (auto item = trimmed(x.substr(0, comma)); !item.empty()) result.emplace_back(item);
    if (comma == std::string_view::npos) break;
    x.remove_prefix(comma + 1);
  }
  return result;
}

tl::unexpected<error> malformed(const std::string& source, size_t line, std::string cause,
                                std::string hint = {}) {
  auto place = line > 0 ? fmt::format("{}:{}", source, line) : source;
  return configuration_error("malformed_card",
                             fmt::format("failed to read knowledge card {}: {}", place, cause),
                             std::move(hint));
}

/// Reads the lines between the two rulers; `rest` is the body afterwards.
expected<header_map> parse_header(std::string_view& rest, const std::string& source) {
  if (trimmed(next_line(rest)) != "---")
    return malformed(source, 1, "the first line is not \"---\"",
                     "start the file with a header between two lines of \"---\"");
  header_map header;
  for (size_t number = 2; !rest.empty(); ++number) {
    auto line = trimmed(next_line(rest));
    if (line == "---") return header;
    if (line.empty()) continue;
    auto colon = line.find(':');
    if (colon == std::string_view::npos)
      return malformed(source, number, fmt::format("\"{}\" is not \"key: value\"", line));
    auto key = trimmed(line.substr(0, colon));
    auto value = trimmed(line.substr(colon + 1));
    if (!contains(known_keys, key) && key != measured_key)
      return malformed(source, number, fmt::format("unknown key \"{}\"", key),
                       fmt::format("known keys: {}, {}", joined(known_keys), measured_key));
    if (value.empty()) return malformed(source, number, fmt::format("key \"{}\" is empty", key));
    if (!header.try_emplace(std::string{key}, std::string{value}, number).second)
      return malformed(source, number, fmt::format("key \"{}\" appears twice", key));
  }
  return malformed(source, 0, "the header has no closing \"---\"");
}

expected<void> check_names(const std::vector<std::string>& names, const header_map& header,
                           const std::string& key, const std::string& source) {
  for (const auto& name : names)
    if (!is_name(name, '_'))
      return malformed(source, header.at(key).second,
                       fmt::format("\"{}\" in key \"{}\" is not a snake_case name", name, key));
  return {};
}

/// Whether `x` is "3.10x on DEVICE, 2026-11-30".
bool is_measurement(std::string_view x) {
  auto digits = [&](size_t from, size_t count) {
    auto part = x.substr(std::min(from, x.size()), count);
    return part.size() == count &&
           std::all_of(part.begin(), part.end(), [](char c) { return c >= '0' && c <= '9'; });
  };
  auto dot = x.find('.');
  auto comma = x.rfind(", ");
  if (dot == std::string_view::npos || dot == 0 || comma == std::string_view::npos) return false;
  auto device = dot + 3 + std::string_view{"x on "}.size();
  return digits(0, dot) && digits(dot + 1, 2) && x.substr(dot + 3, device - dot - 3) == "x on " &&
         device < comma && x.size() == comma + 12 && digits(comma + 2, 4) && digits(comma + 7, 2) &&
         digits(comma + 10, 2) && x[comma + 6] == '-' && x[comma + 9] == '-';
}

/// The header's `measured`, empty without one.
expected<std::string> measurement(const header_map& header, const std::string& source) {
  auto found = header.find(measured_key);
  if (found == header.end()) return std::string{};
  const auto& [text, line] = found->second;
  for (std::string_view rest = text; !rest.empty();) {
    auto end = rest.find("; ");
    if (!is_measurement(rest.substr(0, end)))
      return malformed(source, line, fmt::format("\"{}\" is not \"2.50x on DEVICE, DATE\"", text),
                       "have launch/tools/cards/measure.py write it");
    rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 2);
  }
  return text;
}

/// Everything about a header that needs more than one key or a list of known words.
expected<knowledge_card> interpret(const header_map& header, const std::string& source) {
  for (auto key : known_keys)
    if (!header.contains(key))
      return malformed(source, 0, fmt::format("key \"{}\" is missing", key));
  auto text = [&](const char* key) { return header.at(key).first; };
  auto line = [&](const char* key) { return header.at(key).second; };
  knowledge_card card{text("id"),
                      text("title"),
                      text("kind"),
                      split_list(text("operator_family")),
                      split_list(text("backends")),
                      split_list(text("tags")),
                      {},
                      source};
  if (!is_name(card.id, '-'))
    return malformed(source, line("id"),
                     fmt::format("id \"{}\" is not made of a-z, 0-9 and \"-\"", card.id));
  if (!contains(known_kinds, card.kind))
    return malformed(source, line("kind"), fmt::format("unknown kind \"{}\"", card.kind),
                     "known kinds: " + joined(known_kinds));
  if (card.families == std::vector<std::string>{"any"}) card.families.clear();
  KM_TRY(check_names(card.families, header, "operator_family", source));
  for (const auto& backend : card.backends)
    if (!contains(known_backends, backend))
      return malformed(source, line("backends"), fmt::format("unknown backend \"{}\"", backend),
                       "known backends: " + joined(known_backends));
  return card;
}

expected<std::string> read_text(const std::filesystem::path& path, const std::string& source) {
  auto text = read_whole(path.string());
  if (!text || text->empty()) return malformed(source, 0, "the file cannot be read, or is empty");
  return std::move(*text);
}

expected<std::vector<std::filesystem::path>> card_files(const std::filesystem::path& root) {
  std::vector<std::filesystem::path> files;
  std::error_code ec;
  for (std::filesystem::recursive_directory_iterator it{root, ec}, end; !ec && it != end;
       it.increment(ec))
    if (it->path().extension() == ".md" && it->path().filename() != "README.md")
      files.push_back(it->path());
  if (ec)
    return configuration_error(
        "knowledge_missing",
        fmt::format("failed to read knowledge cards of {}: {}", root.string(), ec.message()),
        "name the folder that holds the cards; the project's own are in configs/knowledge");
  if (files.empty())
    return configuration_error(
        "knowledge_missing",
        fmt::format("failed to read knowledge cards of {}: no *.md file there", root.string()),
        "name the folder that holds the cards; the project's own are in configs/knowledge");
  std::sort(files.begin(), files.end());
  return files;
}

} // namespace

expected<knowledge_card> parse_card(std::string_view text, const std::string& source) {
  if (text.size() > max_card_bytes)
    return malformed(source, 0, fmt::format("{} bytes, more than {}", text.size(), max_card_bytes),
                     "split the card; a prompt has room for a page, not for a chapter");
  auto rest = text;
  auto header = parse_header(rest, source);
  KM_TRY(header);
  auto card = interpret(*header, source);
  if (!card) return card;
  card->body = trimmed(rest);
  if (card->body.empty()) return malformed(source, 0, "the card has no body");
  auto measured = measurement(*header, source);
  KM_TRY(measured);
  if (!measured->empty())
    card->body += "\n\nThe snippet against its plain form: " + *measured + ".";
  return card;
}

expected<std::vector<knowledge_card>> load_cards(const std::string& directory) {
  auto files = card_files(directory);
  KM_TRY(files);
  std::map<std::string, knowledge_card> cards;
  for (const auto& file : *files) {
    auto source = file.lexically_relative(directory).generic_string();
    auto text = read_text(file, file.string());
    KM_TRY(text);
    auto card = parse_card(*text, file.string());
    KM_TRY(card);
    card->source = source;
    if (auto twin = cards.find(card->id); twin != cards.end())
      return malformed(file.string(), 0,
                       fmt::format("id \"{}\" is also that of {}", card->id, twin->second.source));
    if (card->id != file.stem().string())
      return malformed(file.string(), 0,
                       fmt::format("id \"{}\" differs from the file's name", card->id),
                       fmt::format("rename the file to {}.md", card->id));
    auto id = card->id;
    cards.emplace(std::move(id), std::move(*card));
  }
  std::vector<knowledge_card> result;
  for (auto& [id, card] : cards) result.push_back(std::move(card));
  return result;
}

std::string corpus_digest(const std::vector<knowledge_card>& cards) {
  std::vector<std::string> digests;
  for (const auto& x : cards)
    digests.push_back(
        sha256_hex(fmt::format("{}\n{}\n{}\n{}\n{}\n{}\n{}", x.id, x.title, x.kind,
                               joined(x.families), joined(x.backends), joined(x.tags), x.body)));
  std::sort(digests.begin(), digests.end());
  return sha256_hex(fmt::format("{}", fmt::join(digests, "")));
}

} // namespace kernelmill
