#include "launch/server/api/evaluation_documents.hpp"

#include "launch/cli/terminal.hpp"

namespace kernelmill::services {

nlohmann::ordered_json evaluation_document(const evaluation_table& table, const evaluation& x,
                                           steady_time now) {
  using json = nlohmann::ordered_json;
  auto seconds = [](auto span) { return std::chrono::duration<double>(span).count(); };
  bool waits = x.state == evaluation_state::waiting;
  auto wait = table.expected_wait(x);
  auto begun = waits ? now : x.begun;
  auto ended = x.over() ? x.ended : now;
  return {
      {"schema_version", cli::document_version},
      {"id", x.id},
      {"task", x.order.candidate->what->id},
      {"name", x.order.name},
      {"state", to_string(x.state)},
      {"position", waits ? json(table.position(x)) : json(nullptr)},
      {"expected_wait_s", wait ? json(*wait) : json(nullptr)},
      {"from_cache", x.from_cache},
      {"seconds",
       {{"waiting", seconds(begun - x.entered)}, {"running", waits ? 0 : seconds(ended - begun)}}},
      {"verdict", x.result == nullptr ? json(nullptr) : x.result->verdict},
      {"feedback", x.result == nullptr ? json(nullptr) : json(x.result->feedback)}};
}

} // namespace kernelmill::services
