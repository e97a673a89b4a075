// What the boards of runs are made of: memory that processes share, and what they tell there.
#pragma once

#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>

namespace numatwin::native {

// Zeroed memory of this process and its children, or of the file `descriptor`, shared by all who
// map it. Its pages are small unless the kernel is told otherwise.
class SharedMemory {
  public:
    // Throws std::system_error, which says `what` it is for; `flags`: further ones of mmap.
    SharedMemory(std::size_t bytes, const char* what, int descriptor = -1, int flags = 0)
        : bytes_(bytes) {
        flags |= descriptor < 0 ? MAP_SHARED | MAP_ANONYMOUS : MAP_SHARED;
        void* found = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, flags, descriptor, 0);
        if (found == MAP_FAILED) throw std::system_error(errno, std::generic_category(), what);
        memory_ = static_cast<std::byte*>(found);
    }
    ~SharedMemory() { ::munmap(memory_, bytes_); }
    SharedMemory(const SharedMemory&) = delete;
    SharedMemory& operator=(const SharedMemory&) = delete;
    std::byte* data() const { return memory_; }

  private:
    std::size_t bytes_;
    std::byte* memory_;
};

// Like all on a board, it begins as zeros: no process needs to be first.
class FirstFailure {
  public:
    // The first failure is the one that is told, later ones are not.
    void tell(std::string_view text) {
        std::uint32_t none = 0;
        if (!state_.compare_exchange_strong(none, 1, std::memory_order_acq_rel)) return;
        std::copy_n(text.begin(), std::min(text.size(), text_.size() - 1), text_.begin());
        state_.store(2, std::memory_order_release);  // the text is whole
    }
    // Empty where nothing failed.
    std::string text() const {
        return state_.load(std::memory_order_acquire) == 2 ? text_.data() : std::string();
    }

  private:
    std::atomic<std::uint32_t> state_{0};
    std::array<char, 512> text_{};
};

// How a process is reached over the network; whoever reads it must have seen that it was written.
class Contact {
  public:
    void write(std::span<const std::byte> contact) {
        if (contact.size() > contact_.size())
            throw std::runtime_error("the network's address of a process is too long");
        std::copy(contact.begin(), contact.end(), contact_.begin());
        size_ = static_cast<std::uint32_t>(contact.size());
    }
    std::span<const std::byte> read() const { return {contact_.data(), size_}; }

  private:
    std::uint32_t size_ = 0;
    std::array<std::byte, 4096> contact_{};
};

}  // namespace numatwin::native
