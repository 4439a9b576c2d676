#pragma once

// Runs the real kernelmill and takes what it says.

#include <string>
#include <vector>

#include "messages/base/json_value.hpp"

namespace kernelmill::test {

struct program_result {
  int code = -1; ///< exit code, or 128 + signal
  std::string out;
  std::string err;

  /// The one document on stdout; discarded when it is none.
  nlohmann::json document() const { return nlohmann::json::parse(out, nullptr, false); }
  /// The "error" object of stderr's document.
  nlohmann::json fault() const;
};

struct program_options {
  std::string input;                    ///< of stdin
  std::string directory;                ///< empty: the test's scratch directory
  std::vector<std::string> environment; ///< added to a small fixed one
};

/// Runs build/bin/kernelmill with these arguments to its end.
program_result kernelmill(const std::vector<std::string>& arguments,
                          const program_options& options = {});

/// Runs any program.
program_result run_program(const std::vector<std::string>& argv,
                           const program_options& options = {});

/// A kernelmill that goes on: its first line of stdout is read, then it is ended by a signal.
class running_program {
public:
  running_program(const std::vector<std::string>& arguments, const program_options& options = {});
  ~running_program();
  std::string first_line();
  void wait_for_error(const std::string& text); ///< until stderr holds it, or ends
  bool running() const;
  int number() const { return pid_; }
  program_result stop(int signal);

private:
  int pid_ = -1;
  int out_ = -1;
  int err_ = -1;
  std::string seen_;
  std::string seen_error_;
};

std::string binary();
std::string source_file(const std::string& path);

/// A directory that goes when the process ends.
const std::string& scratch();
std::string write_file(const std::string& name, const std::string& text);

} // namespace kernelmill::test
