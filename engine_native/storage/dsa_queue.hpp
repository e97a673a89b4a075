// A work queue of an Intel Data Streaming Accelerator, as Linux hands it to a process: copies of
// memory that a device makes while the processor does something else.
//
// Requests are descriptors written to the queue's file. The driver checks them and hands them on;
// it does so since Linux 6.9 ("dmaengine: idxd: add a write() method for applications to submit
// work"). The device writes the completion record: its first byte is no longer 0 when it is done.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace numatwin::native {

class DsaQueue {
  public:
    // By file, such as /dev/dsa/wq0.0. Throws std::runtime_error.
    explicit DsaQueue(const std::string& path);
    ~DsaQueue();
    DsaQueue(const DsaQueue&) = delete;
    DsaQueue& operator=(const DsaQueue&) = delete;

    // Begins a copy, one at a time. Throws std::runtime_error where the driver refuses it.
    void begin(void* to, const void* from, std::size_t bytes);
    // Until it is done. A page that the device cannot reach is touched, and the copy goes on behind
    // what is there. Throws std::runtime_error for any other failure, and after five seconds.
    void wait();

  private:
    struct Request;
    void submit();
    [[noreturn]] void fail(const std::string& what) const;

    const std::string path_;
    int file_;
    std::unique_ptr<Request> request_;
};

}  // namespace numatwin::native
