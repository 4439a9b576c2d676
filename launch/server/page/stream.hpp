#pragma once

// One event stream for everything that changes. A run's journal (metrics.jsonl) is the source: a
// line is there as soon as its record is committed, whichever process commits it, and its place in
// the file is the event's id. So a reader that comes back with Last-Event-ID misses nothing, also
// when this process or the run's was started again in between.
//   turn, group   a line of the journal
//   run           a process began to work on a run, or works on it no longer
//   live          a document of `top` once a second, for readers that ask for it
//   dropped       so many events were left out: this reader was too slow, or wants no more a second

#include <cstdint>
#include <memory>

#include "launch/analysis/watch/world.hpp"
#include "launch/server/http/exchange.hpp"
#include "launch/server/page/subscription.hpp"

namespace kernelmill::page {

/// Thread-safe. It works only while there are readers.
class event_stream {
public:
  explicit event_stream(watch::world world);
  ~event_stream(); ///< finishes

  /// Tells readers what is left, and ends. The server must still be there.
  void finish();

  /// Opens the answer and sends events until the reader leaves. Answers 503 when there are too
  /// many readers.
  void add(subscription what, const http::exchange_ptr& to);

  uint64_t readers() const;
  uint64_t told() const;    ///< rounds of events so far; grows before their readers hear of them
  uint64_t dropped() const; ///< events, of all readers so far

private:
  struct impl;
  std::unique_ptr<impl> impl_;
};

} // namespace kernelmill::page
