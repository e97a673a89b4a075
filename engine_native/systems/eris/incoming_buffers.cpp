#include "systems/eris/incoming_buffers.hpp"

#include <new>
#include <stdexcept>

namespace numatwin::native {

namespace {

std::size_t checked(std::size_t bytes) {
    if (bytes == 0 || bytes % 8 != 0 || bytes > descriptor::offset_max) {
        throw std::invalid_argument("an incoming buffer has 8 bytes to 4 GiB, a multiple of 8");
    }
    return bytes;
}

}  // namespace

IncomingBuffers::IncomingBuffers(Memory& memory, std::size_t bytes)
    : memory_(memory), protocol_(checked(bytes)) {
    // One block: where the second allocation could fail, the first would have to be given back.
    buffer_[0] = static_cast<std::byte*>(memory_.allocate(block_bytes()));
    buffer_[1] = buffer_[0] + spaced();
}

IncomingBuffers::~IncomingBuffers() {
    memory_.release(buffer_[0], block_bytes());
}

// Blocks are aligned to 64 bytes: so much more, and there is a place in it.
constexpr std::size_t placed_bytes = sizeof(IncomingBuffers) + alignof(IncomingBuffers) - 64;

void PlacedBuffersEnd::operator()(IncomingBuffers* buffers) const noexcept {
    buffers->~IncomingBuffers();
    memory->release(block, placed_bytes);
}

PlacedBuffers placed_buffers(Memory& memory, std::size_t bytes) {
    void* const block = memory.allocate(placed_bytes);
    void* place = block;
    std::size_t room = placed_bytes;
    try {
        std::align(alignof(IncomingBuffers), sizeof(IncomingBuffers), place, room);
        return {new (place) IncomingBuffers(memory, bytes), {&memory, block}};
    } catch (...) {
        memory.release(block, placed_bytes);
        throw;
    }
}

std::span<const std::byte> IncomingBuffers::swap() {
    const auto taken = protocol_.swap();
    return {buffer_[taken.buffer], taken.bytes};
}

}  // namespace numatwin::native
