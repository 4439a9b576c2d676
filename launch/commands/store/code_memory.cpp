#include "launch/commands/store/code_memory.hpp"

#include "retrieval/guard/near_duplicates.hpp"

namespace kernelmill::commands {

namespace {

class near_duplicate_memory final : public exports::code_memory {
public:
  void remember(const std::string& code, const std::string& name) override {
    known_.add(shingles_of_code(code), name);
  }

  std::optional<std::string> find(const std::string& code) override {
    if (known_.size() == 0) return std::nullopt;
    return known_.find(shingles_of_code(code));
  }

  bool similar(const std::string& a, const std::string& b) override {
    return near_duplicate(shingles_of_code(a), shingles_of_code(b));
  }

  uint64_t remembered() const override { return known_.size(); }
  uint64_t dropped() const override { return known_.dropped(); }

private:
  near_duplicates known_;
};

} // namespace

std::shared_ptr<exports::code_memory> make_code_memory() {
  return std::make_shared<near_duplicate_memory>();
}

} // namespace kernelmill::commands
