#include "actors/snapshots.hpp"

#include <charconv>
#include <cstring>
#include <iterator>

namespace kernelmill {

Message<wire::Snapshot>
snapshot_of(std::string_view actor, std::string_view id, std::string_view state,
            std::string_view detail,
            std::initializer_list<std::pair<const char*, uint64_t>> numbers) {
  return build<wire::Snapshot>([&](wire::Snapshot::Builder x) {
    x.setActor(std::string{actor});
    x.setId(std::string{id});
    x.setState(std::string{state});
    x.setDetail(std::string{detail});
    auto list = x.initNumbers(static_cast<unsigned>(numbers.size()));
    unsigned i = 0;
    for (auto& [key, value] : numbers) {
      list[i].setName(key);
      list[i++].setValue(static_cast<double>(value));
    }
  });
}

Message<wire::Snapshot> with_numbers(const Message<wire::Snapshot>& x,
                                     std::initializer_list<std::pair<const char*, double>> more) {
  return build<wire::Snapshot>([&](wire::Snapshot::Builder to) {
    auto from = x.open();
    to.setActor(from->getActor());
    to.setId(from->getId());
    to.setState(from->getState());
    to.setSince(from->getSince());
    to.setDetail(from->getDetail());
    to.setChildren(from->getChildren());
    auto numbers = from->getNumbers();
    auto list = to.initNumbers(numbers.size() + static_cast<unsigned>(more.size()));
    for (unsigned i = 0; i < numbers.size(); ++i) list.setWithCaveats(i, numbers[i]);
    unsigned i = numbers.size();
    for (const auto& [name, value] : more) {
      list[i].setName(name);
      list[i++].setValue(value);
    }
  });
}

Message<wire::Snapshot> with_mailbox(const Message<wire::Snapshot>& x, uint64_t actor,
                                     uint64_t mailbox) {
  return with_numbers(
      x, {{"actor", static_cast<double>(actor)}, {"mailbox", static_cast<double>(mailbox)}});
}

void append_waiting(std::string& line, uint64_t& run, const envelope& where) {
  char text[48];
  auto* end = text;
  if (!line.empty()) *end++ = ' ';
  if (line.empty() || where.run != run) {
    end = std::to_chars(end, std::end(text), where.run, 16).ptr;
    *end++ = ':';
    run = where.run;
  }
  end = std::to_chars(end, std::end(text), where.episode).ptr;
  line.append(text, end);
}

namespace {

void put_children(wire::Snapshot::Builder to, wire::Snapshot::Reader head,
                  const std::vector<Message<wire::Snapshot>>& children) {
  to.setActor(head.getActor());
  to.setId(head.getId());
  to.setState(head.getState());
  to.setSince(head.getSince());
  to.setDetail(head.getDetail());
  to.setNumbers(head.getNumbers());
  auto list = to.initChildren(static_cast<unsigned>(children.size()));
  for (unsigned i = 0; i < list.size(); ++i) list.setWithCaveats(i, *children[i].open());
}

} // namespace

// Megabytes for a run of ten thousand episodes, and new memory is what costs most: built where it
// stays, in one piece of the size that it will have.
Message<wire::Snapshot> with_children(const Message<wire::Snapshot>& head,
                                      const std::vector<Message<wire::Snapshot>>& children) {
  auto h = head.open();
  constexpr size_t table = 1, root = 1, list_tag = 1; // words
  auto segment = root + h->totalSize().wordCount + (children.empty() ? 0 : list_tag);
  for (const auto& x : children) segment += x.open()->totalSize().wordCount;
  auto words = kj::heapArray<capnp::word>(table + segment);
  std::memset(words.begin(), 0, words.size() * sizeof(capnp::word));
  capnp::FlatMessageBuilder builder{words.slice(table, words.size())};
  try {
    put_children(builder.initRoot<wire::Snapshot>(), *h, children);
  } catch (const kj::Exception&) { // it holds what is shared twice, or is larger for another reason
    return build<wire::Snapshot>([&](wire::Snapshot::Builder x) { put_children(x, *h, children); });
  }
  if (builder.getSegmentsForOutput()[0].size() != segment) // a head whose own children are left out
    return Message<wire::Snapshot>{builder};
  const uint32_t sizes[2] = {0, static_cast<uint32_t>(segment)}; // one segment, and its words
  std::memcpy(words.begin(), sizes, sizeof sizes);
  return Message<wire::Snapshot>{std::move(words)};
}

} // namespace kernelmill
