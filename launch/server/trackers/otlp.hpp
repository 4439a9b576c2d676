#pragma once

// Sends a run's episodes as traces to an OpenTelemetry collector: OTLP over HTTP, in JSON. On a
// thread of its own with a queue that has an end: a collector that is slow or gone costs the run
// nothing but traces, which are counted, and at its end one more `timeout_ms`.

#include <memory>

#include "launch/server/trackers/otlp_spans.hpp"
#include "messages/log/logger.hpp"
#include "storage/lineage/store.hpp"

namespace kernelmill::trackers {

class run_traces {
public:
  /// Whether start() would take them; before a run has a directory.
  static expected<void> check(const otlp_section& keys);

  /// Null when neither the keys nor OpenTelemetry's variables name a collector.
  static expected<std::unique_ptr<run_traces>> start(const otlp_section& keys, traced_run run,
                                                     std::shared_ptr<const store> records,
                                                     std::shared_ptr<const artifact_store> texts,
                                                     logger log);

  ~run_traces(); ///< finishes

  /// Sends what waits, for `timeout_ms` at most, and ends; what follows later goes nowhere.
  void finish();

  /// One record, as it is committed. Does not wait.
  void follow(wire::Record::Reader x);

private:
  class impl;
  explicit run_traces(std::unique_ptr<impl> x);
  std::unique_ptr<impl> impl_;
};

} // namespace kernelmill::trackers
