#include "systems/eris/incoming_buffers.hpp"

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

std::span<const std::byte> IncomingBuffers::swap() {
    const auto taken = protocol_.swap();
    return {buffer_[taken.buffer], taken.bytes};
}

}  // namespace numatwin::native
