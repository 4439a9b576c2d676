#include "messages/contract.hpp"

namespace kernelmill {

const char* to_string(contract_kind x) noexcept {
  switch (x) {
    case contract_kind::native: return "native";
    case contract_kind::device: return "device";
    case contract_kind::torch: return "torch";
    case contract_kind::program: return "program";
  }
  return "native";
}

expected<contract_kind> contract_of(std::string_view name) {
  for (auto x :
       {contract_kind::native, contract_kind::device, contract_kind::torch, contract_kind::program})
    if (name == to_string(x)) return x;
  return configuration_error("unsupported_contract",
                             "failed to use contract \"" + std::string{name} + "\"",
                             "there are native, device, torch and program");
}

} // namespace kernelmill
