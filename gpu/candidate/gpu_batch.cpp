#include "gpu/candidate/gpu_batch.hpp"

namespace kernelmill {

cuda::result gpu_batch::make(void* page, batch_words* words) {
  if (words_ != nullptr) return 0;
  int code = cuda_.host_register(page, page_bytes, cuda::host_mapped);
  if (code == cuda::already_registered) code = 0;
  if (code == 0) code = cuda_.host_pointer(&there_, page, 0);
  if (code == 0) code = cuda_.event_create(&first_, 0);
  if (code == 0) code = cuda_.event_create(&last_, 0);
  if (code != 0) return code;
  there_ +=
      static_cast<cuda::device_pointer>(reinterpret_cast<char*>(words) - static_cast<char*>(page));
  words_ = words;
  return 0;
}

cuda::result gpu_batch::begin(void* page, batch_words* words, cuda::stream stream,
                              uint32_t number) {
  ended_ = false;
  int code = make(page, words);
  if (code == 0 && number != 0)
    code =
        cuda_.wait_value(stream, there_ + offsetof(batch_words, open), number, cuda::wait_at_least);
  return code == 0 ? cuda_.event_record(first_, stream) : code;
}

cuda::result gpu_batch::end(cuda::stream stream, uint32_t number) {
  int code = cuda_.event_record(last_, stream);
  if (code == 0)
    code = cuda_.write_value(stream, there_ + offsetof(batch_words, completed), number, 0);
  ended_ = code == 0;
  return code;
}

void gpu_batch::note_seconds() {
  float milliseconds = 0;
  if (ended_ && cuda_.event_elapsed(&milliseconds, first_, last_) == 0)
    words_->inside = milliseconds * 1e-3;
  ended_ = false;
}

} // namespace kernelmill
