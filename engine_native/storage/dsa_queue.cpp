#include "storage/dsa_queue.hpp"

#include <fcntl.h>
#include <linux/idxd.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <limits>
#include <stdexcept>
#include <thread>

namespace numatwin::native {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::seconds patience{5};
constexpr std::uint8_t status_bits = 0x7f;  // the eighth: whether a fault was of a write

}  // namespace

// As the device reads and writes them.
struct DsaQueue::Request {
    alignas(64) dsa_hw_desc descriptor{};
    alignas(64) dsa_completion_record completion{};

    std::uint8_t status() {
        return static_cast<std::uint8_t>(__atomic_load_n(&completion.status, __ATOMIC_ACQUIRE) &
                                         status_bits);
    }
};

DsaQueue::DsaQueue(const std::string& path)
    : path_(path),
      file_(::open(path.c_str(), O_RDWR | O_CLOEXEC)),
      request_(std::make_unique<Request>()) {
    if (file_ < 0) fail(std::strerror(errno));
}

DsaQueue::~DsaQueue() {
    ::close(file_);
}

void DsaQueue::fail(const std::string& what) const {
    throw std::runtime_error(path_ + ": " + what);
}

void DsaQueue::begin(void* to, const void* from, std::size_t bytes) {
    if (bytes > std::numeric_limits<std::uint32_t>::max()) fail("a copy of 4 GiB or more");
    dsa_hw_desc& descriptor = request_->descriptor;
    descriptor = {};
    descriptor.opcode = DSA_OPCODE_MEMMOVE;
    // A completion record is asked for; what is written goes into the cache, as it is read next.
    descriptor.flags = IDXD_OP_FLAG_CRAV | IDXD_OP_FLAG_RCR | IDXD_OP_FLAG_CC;
    descriptor.completion_addr = reinterpret_cast<std::uint64_t>(&request_->completion);
    descriptor.src_addr = reinterpret_cast<std::uint64_t>(from);
    descriptor.dst_addr = reinterpret_cast<std::uint64_t>(to);
    descriptor.xfer_size = static_cast<std::uint32_t>(bytes);
    submit();
}

void DsaQueue::submit() {
    std::memset(static_cast<void*>(&request_->completion), 0, sizeof request_->completion);
    const auto until = Clock::now() + patience;
    for (;;) {
        const ssize_t written = ::write(file_, &request_->descriptor, sizeof request_->descriptor);
        if (written == static_cast<ssize_t>(sizeof request_->descriptor)) return;
        // A shared queue may be full.
        if (written < 0 && (errno == EAGAIN || errno == EINTR) && Clock::now() < until) continue;
        fail(written < 0 && errno == EINVAL
                 ? "its driver takes no requests that are written: expected Linux 6.9 or later"
                 : std::string("a request was refused: ") +
                       (written < 0 ? std::strerror(errno) : "written in part"));
    }
}

void DsaQueue::wait() {
    constexpr int spins = 2'000;
    const auto until = Clock::now() + patience;
    for (int looks = 0;; ++looks) {
        const std::uint8_t status = request_->status();
        if (status == DSA_COMP_SUCCESS) return;
        if (status == DSA_COMP_PAGE_FAULT_NOBOF) {
            dsa_hw_desc& descriptor = request_->descriptor;
            const std::uint32_t done = request_->completion.bytes_completed;
            if (done >= descriptor.xfer_size) fail("a page fault behind the end of a copy");
            descriptor.src_addr += done;
            descriptor.dst_addr += done;
            descriptor.xfer_size -= done;
            // Read, and written where it is to be written; nobody else works on either.
            const volatile char* from = reinterpret_cast<const char*>(descriptor.src_addr);
            volatile char* to = reinterpret_cast<char*>(descriptor.dst_addr);
            to[0] = from[0];
            submit();
        } else if (status != DSA_COMP_NONE) {
            fail("a copy failed with status " + std::to_string(status));
        } else if (looks > spins) {
            if (Clock::now() > until) fail("a copy was not done within 5 s");
            std::this_thread::yield();
        }
    }
}

}  // namespace numatwin::native
