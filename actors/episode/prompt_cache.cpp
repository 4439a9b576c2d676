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

std::shared_ptr<const prompt_text>
prompt_cache::open_with(const task& what, const Message<wire::RetrieveResult>& examples,
                        std::string_view more) {
  if (more.empty()) return open(what, examples);
  auto text = std::make_shared<prompt_text>();
  text->system = system_(what);
  text->user = task_prompt(what, *examples.open()).append(more);
  text->system_sha256 = sha256_hex(text->system);
  text->user_sha256 = sha256_hex(text->user);
  return text;
}

} // namespace kernelmill
