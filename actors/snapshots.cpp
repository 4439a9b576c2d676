#include "actors/snapshots.hpp"

#include <chrono>

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

Message<wire::Snapshot> with_mailbox(const Message<wire::Snapshot>& x, uint64_t actor,
                                     uint64_t mailbox) {
  return build<wire::Snapshot>([&](wire::Snapshot::Builder to) {
    auto from = x.open();
    to.setActor(from->getActor());
    to.setId(from->getId());
    to.setState(from->getState());
    to.setSince(from->getSince());
    to.setDetail(from->getDetail());
    to.setChildren(from->getChildren());
    auto numbers = from->getNumbers();
    auto list = to.initNumbers(numbers.size() + 2);
    for (unsigned i = 0; i < numbers.size(); ++i) list.setWithCaveats(i, numbers[i]);
    list[numbers.size()].setName("actor");
    list[numbers.size()].setValue(static_cast<double>(actor));
    list[numbers.size() + 1].setName("mailbox");
    list[numbers.size() + 1].setValue(static_cast<double>(mailbox));
  });
}

double wall_clock() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

} // namespace kernelmill
