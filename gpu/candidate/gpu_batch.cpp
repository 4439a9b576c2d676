#include "gpu/candidate/gpu_batch.hpp"

namespace kernelmill {

cuda::result gpu_batch::make(control_page* page) {
  if (page_ != nullptr) return 0;
  int code = cuda_.host_register(page, page_bytes, cuda::host_mapped);
  if (code == 0) code = cuda_.host_pointer(&there_, page, 0);
  if (code == 0) code = cuda_.event_create(&first_, 0);
  if (code == 0) code = cuda_.event_create(&last_, 0);
  if (code == 0) page_ = page;
  return code;
}

cuda::result gpu_batch::begin(control_page* page, cuda::stream stream, uint32_t number) {
  ended_ = false;
  int code = make(page);
  if (code == 0 && number != 0)
    code = cuda_.wait_value(stream, there_ + offsetof(control_page, open), number,
                            cuda::wait_at_least);
  return code == 0 ? cuda_.event_record(first_, stream) : code;
}

cuda::result gpu_batch::end(cuda::stream stream, uint32_t number) {
  int code = cuda_.event_record(last_, stream);
  if (code == 0)
    code = cuda_.write_value(stream, there_ + offsetof(control_page, completed), number, 0);
  ended_ = code == 0;
  return code;
}

void gpu_batch::note_seconds() {
  float milliseconds = 0;
  if (ended_ && cuda_.event_elapsed(&milliseconds, first_, last_) == 0)
    page_->inside = milliseconds * 1e-3;
  ended_ = false;
}

} // namespace kernelmill
