#include <cstring>

#include "gpu/referee/slot.hpp"

namespace kernelmill {

namespace {

class host_slot final : public slot {
public:
  static expected<std::unique_ptr<slot>> create(candidate_process process, const task& x,
                                                int library) {
    std::unique_ptr<host_slot> result{new host_slot{std::move(process), x}};
    std::vector<shared_memory> parameters(x.arguments.size());
    result->buffers_.resize(x.arguments.size());
    for (size_t i = 0; i < x.arguments.size(); ++i) {
      const auto& arg = x.arguments[i];
      if (arg.role == argument_role::scalar) continue;
      auto buffer = shared_buffer::create(capacity_of(x, i), is_output(arg));
      KM_TRY(buffer);
      parameters[i] = {buffer->descriptor(), buffer->capacity(), is_output(arg), buffer->places()};
      result->buffers_[i] = std::move(*buffer);
    }
    KM_TRY(result->attach(parameters, library, x.function));
    return result;
  }

  std::optional<std::string> damage() const override {
    for (size_t i = 0; i < buffers_.size(); ++i)
      if (buffers_[i] && is_output(spec().arguments[i]))
        if (auto where = buffers_[i]->damage())
          return spec().arguments[i].name + " was written " + *where;
    return std::nullopt;
  }

private:
  host_slot(candidate_process process, const task& x) : slot(std::move(process), x) {
    rests_ = true;
  }

  void place(const workload& work, bool cold) override {
    for (size_t i = 0; i < buffers_.size(); ++i) {
      if (!buffers_[i]) continue;
      auto& buffer = *buffers_[i];
      const auto& arg = spec().arguments[i];
      const auto& t = work.tensor(i);
      if (cold) buffer.move_on();
      if (cold || buffer.bytes() != work.bytes(i)) buffer.place(work.bytes(i));
      if (is_filled(arg))
        std::memcpy(buffer.payload(),
                    arg.type == dtype::f32 ? static_cast<const void*>(t.f32.data()) : t.i32.data(),
                    buffer.bytes());
      else
        buffer.poison(arg.type == dtype::f32 ? poison_f32 : poison_i32);
    }
    if (cold)
      for (const auto& buffer : buffers_)
        if (buffer) buffer->flush();
  }

  size_t offset(size_t argument) const override { return buffers_[argument]->offset(); }

  void copy_out(size_t argument, taken_output& into, uint64_t order) const override {
    buffers_[argument]->take(bytes_of(into, spec().arguments[argument].type), order);
  }

  std::vector<std::optional<shared_buffer>> buffers_;
};

} // namespace

expected<std::unique_ptr<slot>> make_host_slot(candidate_process process, const task& x,
                                               int library) {
  return host_slot::create(std::move(process), x, library);
}

} // namespace kernelmill
