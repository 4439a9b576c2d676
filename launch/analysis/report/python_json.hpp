#pragma once

// JSON as Python's json.dump writes it, and values taken out of it with their place in the file.

#include <memory>
#include <optional>
#include <string>

#include <nlohmann/json_fwd.hpp>

#include "messages/error.hpp"

namespace kernelmill::reporting {

/// Parses a file. NaN and Infinity, which Python writes and JSON does not have, become null.
/// Errors: "not_found", and `category` with line and column.
expected<nlohmann::ordered_json> read_python_json(const std::string& file,
                                                  const std::string& category);

/// An object within a file. A key that is missing or null has no value; one of another type is an
/// error that names file and key. The first error is kept, so that a reader can take all of an
/// object's keys and look once.
class json_object {
public:
  json_object(const std::string& file, const std::string& category, std::string where,
              const nlohmann::ordered_json& value);

  std::optional<bool> boolean(const char* key);
  std::optional<double> number(const char* key);
  std::optional<uint64_t> whole_number(const char* key);
  std::optional<std::string> text(const char* key);

  /// A missing one is an empty object.
  json_object object(const char* key);

  /// What was wrong so far, here or in an object that was taken from here.
  const std::optional<error>& wrong() const { return *wrong_; }

private:
  const nlohmann::ordered_json* find(const char* key) const;
  void complain(const char* key, const char* wanted, const nlohmann::ordered_json& got);
  std::string path(const char* key) const;

  std::string file_, category_, where_;
  const nlohmann::ordered_json* value_;
  std::shared_ptr<std::optional<error>> wrong_;
};

/// The error of a value of the wrong type, as json_object words it.
error wrong_type(const std::string& file, const std::string& category, const std::string& where,
                 const char* wanted, const nlohmann::ordered_json& got);

} // namespace kernelmill::reporting
