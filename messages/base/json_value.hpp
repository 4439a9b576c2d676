#pragma once

// nlohmann's JSON, instantiated once. A source that includes <nlohmann/json.hpp> itself compiles
// the parser, the serializer and the class for itself (0.9 s and 100 KB at -O1); with these
// declarations json_value.cpp does that for all.

#include <map>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#define KERNELMILL_JSON_OF(BEGIN, JSON)                                                            \
  BEGIN template class nlohmann::detail::serializer<JSON>;                                         \
  BEGIN template class nlohmann::detail::lexer<                                                    \
      JSON, nlohmann::detail::iterator_input_adapter<std::string::const_iterator>>;                \
  BEGIN template class nlohmann::detail::parser<                                                   \
      JSON, nlohmann::detail::iterator_input_adapter<std::string::const_iterator>>;                \
  BEGIN template class nlohmann::detail::lexer<                                                    \
      JSON, nlohmann::detail::iterator_input_adapter<const char*>>;                                \
  BEGIN template class nlohmann::detail::parser<                                                   \
      JSON, nlohmann::detail::iterator_input_adapter<const char*>>

extern template class nlohmann::basic_json<>;
extern template class nlohmann::basic_json<nlohmann::ordered_map>;
KERNELMILL_JSON_OF(extern, nlohmann::json);
KERNELMILL_JSON_OF(extern, nlohmann::ordered_json);
