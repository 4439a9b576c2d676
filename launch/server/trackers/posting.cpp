#include "launch/server/trackers/posting.hpp"

#include <future>
#include <memory>
#include <utility>

namespace kernelmill::trackers {

std::optional<http_response> post_until(http_client& client, http_request request,
                                        const std::function<steady_time()>& limit) {
  using std::chrono::milliseconds;
  auto left = std::chrono::duration_cast<milliseconds>(limit() - std::chrono::steady_clock::now());
  if (left.count() <= 0) return std::nullopt;
  request.timeout_ms = static_cast<uint32_t>(left.count());
  auto done = std::make_shared<std::promise<http_response>>();
  auto answer = done->get_future();
  auto id =
      client.submit(std::move(request), [done](http_response x) { done->set_value(std::move(x)); });
  while (answer.wait_for(milliseconds{20}) != std::future_status::ready)
    if (std::chrono::steady_clock::now() > limit()) {
      client.cancel(id);
      return std::nullopt;
    }
  return answer.get();
}

} // namespace kernelmill::trackers
