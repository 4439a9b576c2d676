#include "actors/episode/prompt_cache.hpp"

#include "messages/base/digest.hpp"

namespace kernelmill {

const shown_code& prompt_text::shown(const task& what) const {
  std::call_once(read_, [&] { shown_.emplace(what, user); });
  return *shown_;
}

std::shared_ptr<const prompt_text>
prompt_cache::open(const task& what, const Message<wire::RetrieveResult>& examples) {
  std::string_view bytes{examples.data(), examples.size()};
  auto view = examples.open();
  std::lock_guard guard{mutex_};
  auto& known = entries_[{what.id, view->getExamples().size()}];
  if (known.text && known.examples == bytes) return known.text;
  auto text = std::make_shared<prompt_text>();
  text->system = system_(what);
  text->user = task_prompt(what, *view);
  text->system_sha256 = sha256_hex(text->system);
  text->user_sha256 = sha256_hex(text->user);
  known.examples = bytes;
  known.text = text;
  return text;
}

} // namespace kernelmill
