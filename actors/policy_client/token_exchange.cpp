#include "actors/policy_client/token_exchange.hpp"

namespace kernelmill {

namespace {

// Two answers that no template changes and that have no end in common.
const std::string placeholders[] = {"one", "two 2"};

// What a server says that does not have a route.
bool is_absent(long status) {
  return status == 404 || status == 405 || status == 501;
}

// Or not in this form.
bool lacks_route(long status) {
  return is_absent(status) || status == 400 || status == 422;
}

// It has no prompt: an engine refuses it before it samples anything.
const char* const no_request = "{}";

// Such an answer is asked for again, with the same prompt.
bool was_aborted(const completion_answer& x) {
  return x.finish_reason == "abort" || x.finish_reason == "error";
}

} // namespace

token_exchange::token_exchange(Message<wire::CompletionRequest> request, chat_options options,
                               bool known)
    : request_(std::move(request)), options_(std::move(options)), known_(known) {
  auto view = request_.open();
  for (auto id : view->getThreadIds()) thread_.ids.push_back(id);
  thread_.sampled = view->getThreadSampled();
  stop_texts_ = view->getSampling().getStop().size() > 0;
}

token_exchange::wanted token_exchange::next(const std::string& request_id,
                                            uint32_t max_tokens) const {
  auto view = request_.open();
  const auto& model = options_.model;
  auto kind = options_.kind;
  if (looks_for_route_) return {true, generate_path(kind), no_request};
  switch (stage_) {
    case stage::whole: return rendering(nullptr);
    case stage::first: return rendering(&placeholders[0]);
    case stage::second: return rendering(&placeholders[1]);
    case stage::generate:
      return {true, generate_path(kind),
              generate_body(kind, *view, prompt_, model, request_id, max_tokens)};
    case stage::text:
      return {true, detokenize_path(kind),
              detokenize_body(ids_of_text(answer_, stop_texts_), model)};
    case stage::done: break;
  }
  return {};
}

token_exchange::wanted token_exchange::rendering(const std::string* placeholder) const {
  auto view = request_.open();
  if (by_chat_)
    return {false, "chat/completions", render_by_chat_body(*view, options_, placeholder)};
  if (shown_) return {true, tokenize_path(options_.kind), tokenize_text_body(*shown_)};
  return {true, wants_text() ? template_path : tokenize_path(options_.kind),
          tokenize_body(*view, options_.model, placeholder)};
}

bool token_exchange::wants_text() const {
  return renders_as_text(options_.kind) && !by_chat_ && !shown_;
}

attempt_reading token_exchange::read(const http_response& response) {
  lacks_.clear();
  if (response.fault != transport_fault::none) return read_of_stage(response);
  bool absent = is_absent(response.status);
  if ((looks_for_route_ && !absent) || turns_to_chat(response)) {
    looks_for_route_ = !looks_for_route_ && !known_;
    attempt_reading nothing_yet;
    nothing_yet.signal.status = 200;
    return nothing_yet;
  }
  if (absent && (looks_for_route_ || stage_ == stage::generate))
    lacks_ = "the server has no /" + std::string{generate_path(options_.kind)} + " (it answered " +
             std::to_string(response.status) + ")";
  return read_of_stage(response);
}

attempt_reading token_exchange::read_of_stage(const http_response& response) {
  auto keep = [](auto& to) {
    return [&to](auto parsed) -> tl::expected<completion_answer, bad_answer> {
      if (!parsed) return tl::unexpected<bad_answer>{std::move(parsed.error())};
      to = std::move(*parsed);
      return completion_answer{};
    };
  };
  std::vector<int32_t> ids;
  std::string text;
  auto result = read_attempt(response, [&](std::string_view body) {
    switch (stage_) {
      case stage::generate: return parse_generated(options_.kind, body);
      case stage::text: return keep(text)(parse_detokenized(body));
      default: break;
    }
    if (wants_text()) return keep(text)(parse_detokenized(body));
    if (!by_chat_) return keep(ids)(parse_token_list(body));
    auto parsed = parse_chat_response(body);
    if (parsed) ids = parsed->prompt_token_ids;
    return parsed;
  });
  auto samples = stage_ == stage::generate || stage_ == stage::text;
  // The words of a rendering are the task's and the template's.
  if (!samples)
    result.signal.of_completion = result.signal.only_tool_calls = result.signal.broken_text = false;
  if (!result.understood) return result;
  switch (stage_) {
    case stage::generate: take_generated(result.answer); break;
    case stage::text: take_text(std::move(text)); break;
    case stage::done: break;
    default:
      if (was_aborted(result.answer)) break;
      if (wants_text()) {
        shown_ = std::move(text);
        break;
      }
      shown_.reset();
      take_rendered(std::move(ids));
      break;
  }
  if (stage_ != stage::done) return result;
  result.answer = answer_;
  result.signal.broken_text = answer_.broken_text;
  return result;
}

void token_exchange::take_rendered(std::vector<int32_t> ids) {
  if (ids.empty()) {
    lacks_ = "the server neither tokenizes messages nor tells the ids of a prompt";
    return;
  }
  auto goes_on = [&](token_span prompt) {
    return common_prefix(thread_.ids, prompt) == thread_.ids.size();
  };
  if (stage_ == stage::whole) {
    whole_ = std::move(ids);
    if (!goes_on(whole_)) {
      stage_ = stage::first;
      return;
    }
    prompt_ = std::move(whole_);
  } else if (stage_ == stage::first) {
    first_ = std::move(ids);
    stage_ = stage::second;
    return;
  } else {
    // A template that shows no answers at all renders both alike: then there is no tail to take.
    auto tail = first_ == ids ? token_span{} : common_suffix(first_, ids);
    auto extended = extend_thread(thread_, tail);
    prompt_ = extended ? std::move(*extended) : std::move(whole_);
  }
  stage_ = stage::generate;
}

void token_exchange::take_generated(const completion_answer& answer) {
  if (was_aborted(answer)) return;
  answer_ = answer;
  answer_.prompt_token_ids = prompt_;
  answer_.prompt_tokens = static_cast<uint32_t>(prompt_.size());
  if (answer_.model.empty()) answer_.model = options_.model;
  answer_.route = "tokens";
  auto has_text = options_.kind != server_kind::vllm || ids_of_text(answer_, stop_texts_).empty();
  stage_ = has_text ? stage::done : stage::text;
}

void token_exchange::take_text(std::string text) {
  answer_.content = cut_at_stop(text, *request_.open());
  // None of the stop texts is there, so the model itself ended: its mark is the last id.
  auto ended_itself = stop_texts_ && answer_.finish_reason == "stop" && answer_.content == text;
  settle_words(answer_);
  if (!ended_itself) stage_ = stage::done;
  stop_texts_ = false;
}

// Nothing has been sampled yet, so nothing is lost.
bool token_exchange::turns_to_chat(const http_response& response) {
  auto rendering = stage_ == stage::whole || stage_ == stage::first || stage_ == stage::second;
  if (!rendering || by_chat_ || !lacks_route(response.status)) return false;
  by_chat_ = true;
  return true;
}

} // namespace kernelmill
