#include "actors/snapshots.hpp"

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

Message<wire::Snapshot> with_children(const Message<wire::Snapshot>& head,
                                      const std::vector<Message<wire::Snapshot>>& children) {
  return build<wire::Snapshot>([&](wire::Snapshot::Builder x) {
    auto h = head.open();
    x.setActor(h->getActor());
    x.setId(h->getId());
    x.setState(h->getState());
    x.setSince(h->getSince());
    x.setDetail(h->getDetail());
    x.setNumbers(h->getNumbers());
    auto list = x.initChildren(static_cast<unsigned>(children.size()));
    for (unsigned i = 0; i < list.size(); ++i) list.setWithCaveats(i, *children[i].open());
  });
}

} // namespace kernelmill
