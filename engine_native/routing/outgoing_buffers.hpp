// A worker's outgoing buffers: what it has for each other worker, until enough has gathered.
//
// Per target a unicast buffer and a buffer of references to the one multicast buffer. A flush
// copies the unicast commands and then the multicast commands referred to into the target's
// incoming buffer, in one sequential write. Commands to one target arrive in the order of their
// append, but multicast ones after the unicast ones of their flush.
//
// Back-pressure: where the target's incoming buffer is full, what is there stays there, and append
// refuses. Answers and forwarded commands must not be refused, else two workers that answer each
// other would wait for each other for ever: append_always puts what finds no room into more chunks
// of the buffer's size, which flush sends first.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "memory/memory.hpp"
#include "routing/command.hpp"
#include "routing/holder_bitmap.hpp"
#include "routing/incoming_buffers.hpp"

namespace numatwin::native {

struct OutgoingSizes {
    std::size_t unicast_bytes = 2064;    // per target: a header and 128 commands of 16 bytes
    std::size_t multicast_bytes = 4096;  // for all targets
};

struct OutgoingCounts {
    std::uint64_t flushes = 0, flushed_bytes = 0, multicast_bytes = 0, refused = 0;
};

class OutgoingBuffers {
  public:
    /// One target a worker. A target's incoming buffer must hold a unicast and a multicast buffer.
    /// Throws std::invalid_argument and std::bad_alloc.
    OutgoingBuffers(Memory& memory, std::span<IncomingBuffers* const> targets,
                    OutgoingSizes sizes = {});
    ~OutgoingBuffers();
    OutgoingBuffers(const OutgoingBuffers&) = delete;
    OutgoingBuffers& operator=(const OutgoingBuffers&) = delete;

    std::size_t targets() const;
    /// Words of payload that one command may have.
    std::size_t most_words() const;

    // `header.count` need not be set: it follows from the payload's length.

    /// One command, whole. False: no room there, nothing was appended.
    bool append(std::uint32_t target, CommandHeader header, std::span<const std::uint64_t> words);
    /// The same, never refused. Throws std::bad_alloc.
    void append_always(std::uint32_t target, CommandHeader header,
                       std::span<const std::uint64_t> words);
    /// Entry i to `targets[i]`. Returns how many, from the front, were appended: fewer than there
    /// are only where the next one's target has no room.
    std::size_t append_keys(CommandHeader header, std::span<const std::uint64_t> keys,
                            const std::uint32_t* targets);
    std::size_t append_pairs(CommandHeader header, std::span<const Pair> pairs,
                             const std::uint32_t* targets);
    /// One command for all `targets`, stored once. False: no room, nothing was appended.
    bool append_multicast(const HolderBitmap& targets, CommandHeader header,
                          std::span<const std::uint64_t> words);

    /// Sends what waits for the target. False: some is left, the incoming buffer is full.
    bool flush(std::uint32_t target);
    /// All targets, beginning with another one each time. False: some is left.
    bool flush_all();

    bool is_empty() const;
    std::size_t waiting_bytes(std::uint32_t target) const;
    const OutgoingCounts& counts() const;
};

}  // namespace numatwin::native
