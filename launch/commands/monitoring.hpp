#pragma once

// What `run`, `resume`, `head` and `page` share: the page beside what they do.

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "launch/cli/command.hpp"
#include "launch/cluster/head.hpp"
#include "launch/node/hosted_run.hpp"
#include "launch/server/page/page.hpp"
#include "launch/server/page/stored_page.hpp"

namespace kernelmill::commands {

cli::command page_row();
cli::command page_export_row();

/// docs/reference/page-openapi.json.
std::string page_api_text();

/// --monitor ADDR:PORT and what secures it.
std::vector<cli::option_spec> with_monitor_options(std::vector<cli::option_spec> options);

/// Reads them; nothing when no page is wanted. `name` is the option that says where: "--monitor" or
/// "--listen". Errors before anything starts: a token or TLS that is missing, an unreadable file.
expected<std::optional<page::options>> monitor_options(const cli::invocation& in, const char* name);

/// The page of a head of this process: its runs, its nodes, and what users may do to them.
expected<std::shared_ptr<void>> open_head_page(page::options options, head_window window);

/// The page of one run of this process, and of what else lies beside it.
class run_page {
public:
  /// Serves before the run begins: a port that is taken is found out early. `cancel` ends the run.
  static expected<std::unique_ptr<run_page>>
  start(page::options options, const std::string& directory, std::function<void()> cancel);
  ~run_page();

  /// The run, once its actors work; null before they end.
  void show(hosted_run* run);
  std::string url() const;

private:
  struct state;
  explicit run_page(std::unique_ptr<state> x);
  std::unique_ptr<state> state_;
};

/// --token-file, --tls-certificate, --tls-key.
std::vector<cli::option_spec> access_options();

} // namespace kernelmill::commands
