// A worker's two incoming buffers: others write into one while it processes the other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>

#include "memory/memory.hpp"
#include "systems/eris/incoming_protocol.hpp"

namespace numatwin::native {

/// The protocol of incoming_protocol.hpp on real atomics and real bytes.
class IncomingBuffers {
  public:
    /// Two buffers of `bytes` each, a multiple of 8, from the owner's memory.
    /// Throws std::invalid_argument and std::bad_alloc.
    IncomingBuffers(Memory& memory, std::size_t bytes);
    ~IncomingBuffers();
    IncomingBuffers(const IncomingBuffers&) = delete;
    IncomingBuffers& operator=(const IncomingBuffers&) = delete;

    /// Any thread: commands, whole; a multiple of 8 bytes, more than 0, at most capacity(). False
    /// when there is no room, or in the moment of a swap: nothing was written, try again later.
    bool write(std::span<const std::byte> commands) {
        std::uint64_t retries = 0;
        return write(
            commands.size(),
            [&](std::byte* to) { std::memcpy(to, commands.data(), commands.size()); }, retries);
    }
    /// The same; `copy(std::byte* to)` writes the `bytes` bytes. Adds to `retries` how often the
    /// writer had to begin again since another one, or the owner, had been quicker.
    template <class Copy>
    bool write(std::size_t bytes, Copy&& copy, std::uint64_t& retries) {
        return protocol_.write(
            bytes,
            [&](std::uint32_t buffer, std::uint64_t offset) { copy(buffer_[buffer] + offset); },
            retries);
    }

    /// The owner: what was written since the last swap. Valid until the next one. Waits for writers
    /// that still copy.
    std::span<const std::byte> swap();

    /// The owner: whether nothing waits. A glance, without a swap.
    bool is_empty() const { return protocol_.is_empty(); }
    /// The owner: bytes that wait. A glance.
    std::size_t waiting_bytes() const { return protocol_.waiting_bytes(); }
    std::size_t capacity() const { return protocol_.capacity(); }

  private:
    /// The second buffer begins on a pair of lines of its own.
    std::size_t spaced() const { return (capacity() + 127) / 128 * 128; }
    std::size_t block_bytes() const { return 2 * spaced(); }

    Memory& memory_;
    std::byte* buffer_[2];
    IncomingProtocol<RealPlatform> protocol_;
};

/// Ends buffers that lie in a block of their owner's memory.
struct PlacedBuffersEnd {
    Memory* memory = nullptr;
    void* block = nullptr;
    void operator()(IncomingBuffers* buffers) const noexcept;
};
using PlacedBuffers = std::unique_ptr<IncomingBuffers, PlacedBuffersEnd>;

/// Incoming buffers whose descriptors lie in the owner's memory, too: each flush of others takes
/// their line from there. Throws as the constructor does.
PlacedBuffers placed_buffers(Memory& memory, std::size_t bytes);

}  // namespace numatwin::native
