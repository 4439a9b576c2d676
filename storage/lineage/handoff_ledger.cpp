#include "storage/lineage/handoff_ledger.hpp"

#include <array>
#include <cstring>

#include <capnp/serialize.h>
#include <kj/exception.h>

#include "storage/lineage/keys.hpp"
#include "storage/lineage/lmdb_environment.hpp"
#include "storage/lineage/lmdb_values.hpp"

namespace kernelmill {

struct handoff_ledger::state {
  std::unique_ptr<lmdb_environment> env;
};

namespace {

constexpr uint16_t event_schema = 1;

using event_key = std::array<unsigned char, 8>;

event_key event_key_of(uint64_t number) {
  event_key result;
  for (size_t i = 0; i < result.size(); ++i)
    result[i] = static_cast<unsigned char>(number >> (8 * (7 - i)));
  return result;
}

// The checksum of a value covers its key, which values of the store have 24 bytes of.
store_key padded(const event_key& key) {
  store_key result{};
  std::memcpy(result.data(), key.data(), key.size());
  return result;
}

expected<uint64_t> number_of(const MDB_val& key) {
  if (key.mv_size != sizeof(event_key))
    return infrastructure_error("store_damaged",
                                "failed to read the hand-off: a key has " +
                                    std::to_string(key.mv_size) + " bytes",
                                "restore it from a copy");
  uint64_t result = 0;
  for (size_t i = 0; i < sizeof(event_key); ++i)
    result = result << 8 | static_cast<const unsigned char*>(key.mv_data)[i];
  return result;
}

expected<void> visit_event(const MDB_val& key, const MDB_val& value, const handoff_visitor& visit) {
  auto number = number_of(key);
  KM_TRY(number);
  auto words = read_value(padded(event_key_of(*number)), bytes_of(value));
  KM_TRY(words);
  auto event = Message<wire::HandoffEvent>::from_bytes(words->data(), words->size());
  KM_TRY(event);
  try {
    auto view = event->open();
    return visit(*number, *view);
  } catch (const kj::Exception& e) {
    return infrastructure_error("store_damaged",
                                "failed to read event " + std::to_string(*number) +
                                    " of the hand-off: " + e.getDescription().cStr(),
                                "restore it from a copy");
  }
}

} // namespace

handoff_ledger::handoff_ledger(std::unique_ptr<state> x) : state_(std::move(x)) {
  // nop
}
handoff_ledger::handoff_ledger(handoff_ledger&&) noexcept = default;
handoff_ledger& handoff_ledger::operator=(handoff_ledger&&) noexcept = default;
handoff_ledger::~handoff_ledger() = default;

expected<handoff_ledger> handoff_ledger::open(const options& x) {
  store_options wanted;
  wanted.directory = x.directory;
  wanted.read_only = x.read_only;
  wanted.durable = x.durable;
  wanted.map_bytes = uint64_t{16} << 20;
  auto env = lmdb_environment::open(wanted);
  KM_TRY(env);
  return handoff_ledger{std::make_unique<state>(state{std::move(*env)})};
}

expected<void> handoff_ledger::append(const std::vector<Message<wire::HandoffEvent>>& events) {
  if (events.empty()) return {};
  return state_->env->write(
      [&](MDB_txn* txn, const lmdb_environment::databases& in) -> expected<int> {
        lmdb_cursor end;
        if (int code = mdb_cursor_open(txn, in.records, &end.at); code != 0) return code;
        MDB_val last{}, ignored{};
        int code = mdb_cursor_get(end.at, &last, &ignored, MDB_LAST);
        if (code != 0 && code != MDB_NOTFOUND) return code;
        auto number = code == 0 ? number_of(last) : expected<uint64_t>{0};
        KM_TRY(number);
        for (const auto& event : events) {
          auto key = event_key_of(++*number);
          auto at = val_of(key);
          MDB_val value{value_header_bytes + event.size(), nullptr};
          code = mdb_cursor_put(end.at, &at, &value, MDB_APPEND | MDB_RESERVE);
          if (code != 0) return code;
          write_value(static_cast<unsigned char*>(value.mv_data), padded(key),
                      {event.data(), event.size()}, event_schema);
        }
        return 0;
      });
}

expected<void> handoff_ledger::scan(uint64_t from, const handoff_visitor& visit) const {
  return state_->env->read(
      [&](MDB_txn* txn, const lmdb_environment::databases& in) -> expected<void> {
        lmdb_cursor here;
        if (int code = mdb_cursor_open(txn, in.records, &here.at); code != 0)
          return tl::unexpected(state_->env->failure(code, "read"));
        auto first = event_key_of(from);
        auto key = val_of(first);
        MDB_val value{};
        int code = mdb_cursor_get(here.at, &key, &value, MDB_SET_RANGE);
        for (; code == 0; code = mdb_cursor_get(here.at, &key, &value, MDB_NEXT))
          KM_TRY(visit_event(key, value, visit));
        if (code != MDB_NOTFOUND) return tl::unexpected(state_->env->failure(code, "read"));
        return {};
      });
}

} // namespace kernelmill
