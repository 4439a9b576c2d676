#include "actors/caf_error.hpp"

#include <caf/actor_system_config.hpp>
#include <caf/atom.hpp>
#include <caf/message.hpp>

#include "messages/without_stack.hpp"

namespace kernelmill {

namespace {

const caf::atom_value our_category = caf::atom("kernelmill");

} // namespace

caf::error to_caf(const error& x) {
  // Code 0 would mean "no error" to CAF.
  return {static_cast<uint8_t>(static_cast<uint8_t>(x.cls) + 1), our_category,
          caf::make_message(x.category, x.message, x.hint)};
}

void teach_errors(caf::actor_system_config& config) {
  config.add_error_category(
      our_category, [](uint8_t code, caf::atom_value category, const caf::message& context) {
        return render(from_caf({code, category, context}));
      });
}

error from_caf(const caf::error& x) {
  if (x.category() == our_category &&
      x.context().match_elements<std::string, std::string, std::string>())
    return {static_cast<fault_class>(x.code() - 1), x.context().get_as<std::string>(0),
            x.context().get_as<std::string>(1), x.context().get_as<std::string>(2)};
  return {fault_class::infrastructure,
          "actor_lost",
          without_stack(caf::actor_system_config::render(x)),
          {}};
}

} // namespace kernelmill
