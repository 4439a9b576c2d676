#include "messages/json.hpp"

#include <capnp/schema.h>

#include "messages/base/digest.hpp"
#include "messages/base/json_value.hpp"

namespace kernelmill {

using nlohmann::ordered_json;

std::string snake_case(const char* camel) {
  std::string result;
  for (const char* c = camel; *c != '\0'; ++c) {
    if (*c >= 'A' && *c <= 'Z') {
      result += '_';
      result += static_cast<char>(*c - 'A' + 'a');
    } else {
      result += *c;
    }
  }
  return result;
}

std::string enum_name(capnp::DynamicEnum x) {
  KJ_IF_MAYBE (known, x.getEnumerant()) {
    return snake_case(known->getProto().getName().cStr());
  }
  return "unknown_" + std::to_string(x.getRaw());
}

namespace {

ordered_json value_of(capnp::DynamicValue::Reader x) {
  switch (x.getType()) {
    case capnp::DynamicValue::BOOL: return x.as<bool>();
    case capnp::DynamicValue::INT: return x.as<int64_t>();
    case capnp::DynamicValue::UINT: return x.as<uint64_t>();
    case capnp::DynamicValue::FLOAT: return x.as<double>();
    case capnp::DynamicValue::TEXT: {
      auto text = x.as<capnp::Text>();
      return std::string{text.begin(), text.size()};
    }
    case capnp::DynamicValue::DATA: {
      auto data = x.as<capnp::Data>();
      return to_hex(data.begin(), data.size());
    }
    case capnp::DynamicValue::LIST: {
      auto list = ordered_json::array();
      for (auto element : x.as<capnp::DynamicList>()) list.push_back(value_of(element));
      return list;
    }
    case capnp::DynamicValue::ENUM: return enum_name(x.as<capnp::DynamicEnum>());
    case capnp::DynamicValue::STRUCT: return to_json(x.as<capnp::DynamicStruct>());
    default: return nullptr;
  }
}

} // namespace

ordered_json to_json(capnp::DynamicStruct::Reader x) {
  auto object = ordered_json::object();
  for (auto field : x.getSchema().getFields()) {
    auto proto = field.getProto();
    bool in_union = proto.getDiscriminantValue() != capnp::schema::Field::NO_DISCRIMINANT;
    if (in_union && !x.has(field)) continue;
    object[snake_case(proto.getName().cStr())] = value_of(x.get(field));
  }
  return object;
}

} // namespace kernelmill
