#include "launch/server/http/listening_thread.hpp"

#include <utility>

#include <pthread.h>

#include "actors/listening.hpp"
#include "actors/policy_client/http/open_files.hpp"

namespace kernelmill::http {

namespace {

// KJ would report on stderr what strangers, and scripted faults, do to their connections.
class quiet final : public kj::ExceptionCallback {
public:
  void logMessage(kj::LogSeverity, const char*, int, int, kj::String&&) override {
    // nop
  }
};

} // namespace

listening_thread::~listening_thread() {
  if (stop_.get() != nullptr) stop_->fulfill();
  if (worker_.joinable()) worker_.join();
}

expected<void> listening_thread::start(listening_options options, body work) {
  promise listening;
  auto heard = listening.get_future();
  worker_ = std::thread{[this, &listening, options = std::move(options), work = std::move(work)] {
    run(listening, options, work);
  }};
  auto port = heard.get();
  KM_TRY(port);
  port_ = *port;
  return {};
}

// `listening` lives until it is fulfilled, which happens exactly once.
void listening_thread::run(promise& listening, const listening_options& options, const body& work) {
  pthread_setname_np(pthread_self(), options.thread_name.c_str());
  bool told = false;
  quiet while_it_runs;
  auto thrown = kj::runCatchingExceptions([&] { serve(listening, told, options, work); });
  KJ_IF_MAYBE (e, thrown) {
    auto text = e->getDescription();
    if (!told)
      listening.set_value(tl::unexpected<error>{
          listen_error(options.host, options.port, {text.begin(), text.size()})});
  }
}

void listening_thread::serve(promise& listening, bool& told, const listening_options& options,
                             const body& work) {
  allow_open_files(open_files_for(options.open_files));
  auto io = kj::setupAsyncIo();
  auto address =
      io.provider->getNetwork().parseAddress(options.host.c_str(), options.port).wait(io.waitScope);
  auto receiver = address->listen();
  work(io, *receiver, [&](kj::Promise<void> served) {
    auto stop = kj::newPromiseAndCrossThreadFulfiller<void>();
    stop_ = kj::mv(stop.fulfiller);
    told = true;
    listening.set_value(static_cast<uint16_t>(receiver->getPort()));
    served.exclusiveJoin(kj::mv(stop.promise)).wait(io.waitScope);
  });
}

} // namespace kernelmill::http
