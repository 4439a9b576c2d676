#include "messages/base/json_value.hpp"

template class nlohmann::basic_json<>;
template class nlohmann::basic_json<nlohmann::ordered_map>;
KERNELMILL_JSON_OF(, nlohmann::json);
KERNELMILL_JSON_OF(, nlohmann::ordered_json);
