#include "launch/remote/near_session.hpp"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <map>
#include <set>

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>

#include "launch/remote/connection.hpp"
#include "launch/remote/fetching.hpp"
#include "messages/base/descriptor.hpp"
#include "messages/base/digest.hpp"
#include "messages/base/json_fields.hpp"
#include "storage/files.hpp"

namespace kernelmill::remote {

namespace {

constexpr int most_tries = 20; // 8 minutes without progress
constexpr int longest_wait_s = 30;
constexpr int follow_wait_ms = 60'000; // the far end speaks every 2 s
constexpr int close_wait_ms = 5'000;
constexpr uint64_t most_output = uint64_t{1} << 30;
constexpr int signals_that_leave = 3;

std::string sizes_text(size_t files, uint64_t bytes) {
  return fmt::format("{} file{}, {:.1f} KiB", files, files == 1 ? "" : "s",
                     static_cast<double>(bytes) / 1024);
}

} // namespace

expected<int> near_session::run(order what, std::vector<near_input> inputs,
                                std::vector<fetched_place> places) {
  order_ = std::move(what);
  inputs_ = std::move(inputs);
  places_ = std::move(places);
  for (const auto& word : order_.words) command_ += (command_.empty() ? "" : " ") + word;
  for (const auto& x : inputs_) {
    if (x.source.empty()) {
      order_.inputs.push_back({x.far, x.text.size(), sha256_hex(x.text), false});
      continue;
    }
    auto entry = describe_file(x.source, x.far);
    KM_TRY(entry);
    order_.inputs.push_back(std::move(*entry));
  }
  for (const auto& x : places_) order_.outputs.push_back(x.far);
  return until_done();
}

expected<int> near_session::attach(const near_record& known) {
  places_ = known.places;
  command_ = known.command;
  attached_ = opened_ = started_ = true;
  return until_done();
}

expected<void> near_session::close() {
  auto link = connection::open(options_.host, options_.build, options_.wake, options_.talk);
  KM_TRY(link);
  KM_TRY(link->send({"use", {{"session", id_}}}));
  KM_TRY(link->next_of("using"));
  auto known = find_record(id_);
  KM_TRY(close(*link));
  if (known) fetching{known->places, id_}.discard();
  return {};
}

expected<int> near_session::until_done() {
  auto way_back = "go on with: kernelmill remote attach " + options_.host + " " + id_;
  int tries = 0;
  while (true) {
    auto before = progress_;
    auto done = attempt();
    if (done) return exit_->signal != 0 ? 128 + exit_->signal : exit_->code;
    auto why = done.error();
    if (why.category == "remote_unreachable" && opened_) {
      tries = progress_ == before ? tries + 1 : 1;
      auto waited = tries > most_tries ? tl::unexpected<error>{why} : wait_before(tries, why);
      if (waited) continue;
      why = waited.error();
    }
    if (why.category == "cancelled") {
      options_.talk(started_ ? "left; the command runs on " + options_.host + "; " + way_back
                             : "left; nothing was started");
      return 128 + (last_signal_ == 0 ? SIGINT : last_signal_);
    }
    if (started_ && why.category != "not_found")
      why.hint += (why.hint.empty() ? "" : "; ") + way_back;
    return tl::unexpected<error>{std::move(why)};
  }
}

// All of it again on each connection; what was done is left out.
expected<void> near_session::attempt() {
  auto link = connection::open(options_.host, options_.build, options_.wake, options_.talk);
  if (!link && link.error().category == "cancelled") last_signal_ = options_.take_signal();
  KM_TRY(link);
  auto steps = [&]() -> expected<void> {
    KM_TRY(open(*link));
    if (!exit_) KM_TRY(follow(*link));
    if (!fetched_) KM_TRY(fetch(*link));
    return close(*link);
  };
  auto done = steps();
  // Nothing runs there yet, so nothing is to stay.
  if (!done && opened_ && !started_ && done.error().category != "remote_unreachable" &&
      link->send({"close"}))
    (void)link->next_of("closed", close_wait_ms);
  if (!done && done.error().category == "cancelled" && last_signal_ == 0)
    last_signal_ = options_.take_signal();
  // It was closed, and the connection broke before it could say so.
  if (!done && done.error().category == "not_found" && fetched_) return {};
  return done;
}

expected<void> near_session::open(connection& link) {
  if (started_) {
    KM_TRY(link.send({"use", {{"session", id_}}}));
    auto using_it = link.next_of("using");
    KM_TRY(using_it);
    if (text_in(using_it->head, "state") == "opened")
      return configuration_error(
          "not_found", "failed to follow the session " + id_ + ": its command was never started",
          "`kernelmill remote close " + options_.host + " " + id_ + "`, and run the command again");
    return {};
  }
  KM_TRY(link.send({"open", {{"session", id_}}, to_json(order_).dump()}));
  auto missing = link.next_of("missing");
  KM_TRY(missing);
  opened_ = true;
  KM_TRY(send_blobs(link, missing->payload));
  KM_TRY(link.send({"start"}));
  KM_TRY(link.next_of("started"));
  started_ = true;
  return store_record({id_, options_.host, command_, places_});
}

expected<void> near_session::send_blobs(connection& link, const std::string& list) {
  auto missing = nlohmann::json::parse(list, nullptr, false);
  if (!missing.is_array()) return broken_rules("its list of missing files is none");
  std::map<std::string, std::pair<const near_input*, uint64_t>> wanted;
  uint64_t bytes = 0;
  for (const auto& x : missing) {
    if (!x.is_object()) return broken_rules("its list of missing files is none");
    auto sha256 = text_in(x, "sha256");
    auto have = count_in(x, "have", 0);
    size_t i = 0;
    while (i < inputs_.size() && order_.inputs[i].sha256 != sha256) ++i;
    if (i == inputs_.size() || have > order_.inputs[i].size)
      return broken_rules("it misses a file that was not offered");
    wanted[sha256] = {&inputs_[i], have};
    bytes += order_.inputs[i].size - have;
  }
  if (!wanted.empty())
    options_.talk(options_.host + ": sending " + sizes_text(wanted.size(), bytes));
  for (const auto& [sha256, what] : wanted) {
    auto [input, offset] = what;
    descriptor in;
    if (!input->source.empty())
      in = descriptor{::open(input->source.c_str(), O_RDONLY | O_CLOEXEC)};
    bool last = false;
    while (!last) {
      std::string piece(most_piece, '\0');
      if (input->source.empty()) {
        piece = input->text.substr(offset, most_piece);
      } else {
        auto n = ::pread(in.get(), piece.data(), piece.size(), static_cast<off_t>(offset));
        if (n < 0) return tl::unexpected<error>{file_error(errno, "read", input->source)};
        piece.resize(static_cast<size_t>(n));
      }
      last = piece.size() < most_piece;
      auto size = piece.size();
      KM_TRY(link.send(
          {"blob", {{"sha256", sha256}, {"offset", offset}, {"last", last}}, std::move(piece)}));
      offset += size;
    }
  }
  return {};
}

expected<void> near_session::show(const frame& x) {
  auto stream = text_in(x.head, "stream");
  int number = stream == "stdout" ? 1 : stream == "stderr" ? 2 : 0;
  if (number == 0 || x.payload.empty() || x.payload.size() > most_piece)
    return broken_rules("output came that is of no stream");
  auto& shown = shown_[number - 1];
  if (count_in(x.head, "offset", most_output) != shown)
    return broken_rules("output came out of its order");
  if (shown + x.payload.size() > most_output)
    return broken_rules("the command printed more than 1 GiB");
  options_.print(number, x.payload);
  shown += x.payload.size();
  return {};
}

// The first two go to the command, as on a terminal; the third leaves it.
expected<void> near_session::pass_on_signal(connection& link) {
  int number = options_.take_signal();
  if (number == 0) return {};
  last_signal_ = number;
  if (number == SIGHUP || ++signals_ >= signals_that_leave) return cancelled();
  return link.send({"signal", {{"number", number}}});
}

expected<void> near_session::follow(connection& link) {
  KM_TRY(link.send({"follow", {{"stdout", shown_[0]}, {"stderr", shown_[1]}}}));
  while (true) {
    auto x = link.next(follow_wait_ms);
    if (!x && x.error().category == "cancelled") {
      KM_TRY(pass_on_signal(link));
      continue;
    }
    KM_TRY(x);
    ++progress_;
    if (x->verb == "beat") continue;
    if (x->verb == "data") {
      KM_TRY(show(*x));
      continue;
    }
    if (x->verb != "ended") return broken_rules("it answered something else than output");
    auto code = number_in(x->head, "code"), signal = number_in(x->head, "signal");
    if (code < -1 || code > 255 || signal < 0 || signal > 64 || (code < 0 && signal == 0))
      return broken_rules("the command has no exit code");
    exit_ = session_exit{static_cast<int>(code), static_cast<int>(signal)};
    return {};
  }
}

expected<void> near_session::fetch(connection& link) {
  KM_TRY(link.send({"list"}));
  auto list = link.next_of("files");
  KM_TRY(list);
  auto files = read_files(list->payload);
  KM_TRY(files);
  fetching all{places_, id_};
  auto wanted = all.plan(std::move(*files));
  KM_TRY(wanted);
  for (size_t begin = 0; begin < wanted->size(); begin += fetching::batch) {
    auto end = std::min(begin + fetching::batch, wanted->size());
    auto ask = nlohmann::json::array();
    for (size_t i = begin; i < end; ++i)
      ask.push_back({{"path", (*wanted)[i].entry.path}, {"offset", (*wanted)[i].have}});
    KM_TRY(link.send({"get", {}, ask.dump()}));
    for (size_t i = begin; i < end; ++i)
      for (bool last = false; !last; ++progress_) {
        auto piece = link.next_of("file");
        KM_TRY(piece);
        last = flag_in(piece->head, "last", false);
        if (text_in(piece->head, "path") != (*wanted)[i].entry.path)
          return broken_rules("it sent another file than asked for");
        KM_TRY(all.add((*wanted)[i], piece->payload, last));
      }
  }
  KM_TRY(all.commit());
  fetched_ = true;
  if (all.files() > 0)
    options_.talk(options_.host + ": fetched " + sizes_text(all.files(), all.bytes()));
  return {};
}

expected<void> near_session::close(connection& link) {
  KM_TRY(link.send({"close"}));
  KM_TRY(link.next_of("closed"));
  forget_record(id_);
  return {};
}

expected<void> near_session::wait_before(int tries, const error& why) {
  auto seconds = std::min(longest_wait_s, 1 << std::min(tries - 1, 5));
  options_.talk(fmt::format("{}; trying again in {} s", why.message, seconds));
  pollfd wake{options_.wake, POLLIN, 0};
  if (::poll(&wake, 1, seconds * 1000) <= 0) return {};
  last_signal_ = options_.take_signal();
  return cancelled();
}

expected<nlohmann::json> sessions_on(const near_options& options) {
  auto link = connection::open(options.host, options.build, options.wake, options.talk);
  KM_TRY(link);
  KM_TRY(link->send({"sessions"}));
  auto list = link->next_of("sessions");
  KM_TRY(list);
  return nlohmann::json::parse(list->payload, nullptr, false);
}

} // namespace kernelmill::remote
