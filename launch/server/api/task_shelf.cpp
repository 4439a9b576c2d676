#include "launch/server/api/task_shelf.hpp"

#include "messages/base/digest.hpp"
#include "messages/base/suggest.hpp"
#include "messages/folder_file.hpp"

namespace kernelmill::services {

namespace {

bool is_torch(const task& x) {
  return x.contract == contract_kind::torch;
}

std::string digest_of(const std::string& code) {
  constexpr auto blanks = " \t\r\n";
  auto from = code.find_first_not_of(blanks);
  if (from == code.npos) return {};
  return sha256_hex(code.substr(from, code.find_last_not_of(blanks) - from + 1));
}

} // namespace

expected<task_shelf> task_shelf::open(const task_roots& roots, const chosen_backend& backend,
                                      const torch_choice& choice, bool torch,
                                      std::vector<std::string>& problems) {
  auto ids = list_tasks(roots);
  KM_TRY(ids);
  task_shelf result;
  result.backend_ = backend.name;
  const auto terms = terms_of(backend, choice);
  for (const auto& id : *ids) {
    auto x = load_task(roots, id);
    if (!x) {
      problems.push_back(x.error().message);
      continue;
    }
    auto here = on_terms(**x, terms);
    if (!here || (is_torch(**here) && !torch)) continue;
    const auto& kept = *here;
    result.all_.push_back(kept);
    result.by_id_.emplace(id, kept);
    if (auto digest = digest_of(reference_of(*kept)); !digest.empty())
      result.by_reference_.emplace(digest, kept);
  }
  if (result.all_.empty())
    return configuration_error("unknown_task",
                               "failed to serve: there is no task for the backend " + backend.name,
                               "`kernelmill task list` shows them");
  return result;
}

expected<std::shared_ptr<const task>> task_shelf::find(const std::string& id) const {
  if (auto i = by_id_.find(id); i != by_id_.end()) return i->second;
  std::vector<std::string> ids;
  for (const auto& x : all_) ids.push_back(x->id);
  return configuration_error("unknown_task",
                             "there is no task \"" + id + "\" for the backend " + backend_ +
                                 did_you_mean(id, ids),
                             "GET /v1/tasks lists them");
}

std::string task_shelf::reference_of(const task& x) {
  if (is_torch(x)) return x.torch.code;
  return read_in_folder(x.directory, "reference.cpp").value_or("");
}

std::shared_ptr<const task> task_shelf::by_reference(const std::string& code) const {
  auto i = by_reference_.find(digest_of(code));
  return i == by_reference_.end() ? nullptr : i->second;
}

std::vector<std::string> task_shelf::directories() const {
  std::vector<std::string> result;
  for (const auto& x : all_) result.push_back(x->directory);
  return result;
}

} // namespace kernelmill::services
