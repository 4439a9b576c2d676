#pragma once

// Options and helpers of the commands that show views: below --root, or at a head.

#include <memory>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "launch/cluster/control_client.hpp"
#include "launch/commands/commands.hpp"

namespace kernelmill::commands {

/// Asks for views: of this machine's runs, or over one connection of a head's.
class view_client {
public:
  /// Errors: those of reaching a head, when --head is given.
  static expected<view_client> open(const invocation& in);

  expected<nlohmann::ordered_json> ask(const std::string& view,
                                       const nlohmann::ordered_json& query);
  bool is_remote() const { return line_ != nullptr; }

private:
  std::string root_;
  std::shared_ptr<head_line> line_; ///< null: this machine
};

/// One view, once.
expected<nlohmann::ordered_json> look(const invocation& in, const std::string& view,
                                      const nlohmann::ordered_json& query);

/// --root, --head and how its link is secured.
std::vector<cli::option_spec> with_view_options(std::vector<cli::option_spec> options);

/// --where and --sort of lists; `keys` stand in their help.
std::vector<cli::option_spec> with_list_options(std::vector<cli::option_spec> options);

/// A query with what was given of --where and --sort.
nlohmann::ordered_json list_query(const invocation& in);

// -- cells of tables ------------------------------------------------------------------------------

/// A text of a row, without control sequences; "-" when it is not there.
std::string cell(const nlohmann::ordered_json& row, const char* key);
std::string count_cell(const nlohmann::ordered_json& row, const char* key);
/// "1 turn", "3 turns", "- turns".
std::string counted_cell(const nlohmann::ordered_json& row, const char* key, const char* noun);
std::string seconds_cell(const nlohmann::ordered_json& row, const char* key);
std::string number_cell(const nlohmann::ordered_json& row, const char* key, int digits = 2);

/// The folder, by which commands find the run of a row, and the name of its records where that
/// differs.
std::string run_cell(const nlohmann::ordered_json& row);

/// "12th" of a position.
std::string position_cell(const nlohmann::ordered_json& row);

/// The first `count` characters of a text, and "…" for the rest, without newlines.
std::string one_line(const std::string& text, size_t count = 200);

} // namespace kernelmill::commands
