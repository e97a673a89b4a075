// A worker's outgoing buffers: what it has for each other worker, until enough has gathered.
//
// Per target a unicast buffer and a buffer of references to the one multicast buffer. A flush
// copies the unicast commands and then the multicast commands referred to into the target's
// incoming buffer, in one sequential write. Commands to one target arrive in the order of their
// append, but multicast ones after the unicast ones of their flush.
//
// Back-pressure: where the target's incoming buffer is full, what is there stays there, and append
// refuses. Answers and forwarded commands must not be refused, else two workers that answer each
// other would wait for each other forever: append_always puts what finds no room into more chunks
// of the buffer's size, which flush sends first.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "memory/memory.hpp"
#include "systems/eris/command.hpp"
#include "systems/eris/holder_bitmap.hpp"
#include "systems/eris/incoming_buffers.hpp"

namespace numatwin::native {

struct OutgoingSizes {
    std::size_t unicast_bytes = 2064;    // per target: a header and 128 commands of 16 bytes
    std::size_t multicast_bytes = 4096;  // for all targets
};

struct OutgoingCounts {
    std::uint64_t flushes = 0;          // writes into an incoming buffer
    std::uint64_t flushed_bytes = 0;    // multicast ones once a target
    std::uint64_t multicast_bytes = 0;  // of these, multicast commands
    std::uint64_t refused = 0;          // flushes that found no room
    std::uint64_t retries = 0;          // exchanges of a descriptor that had to begin again
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

    std::size_t targets() const { return rows_.size(); }
    /// Words of payload that one command may have.
    std::size_t most_words() const { return (sizes_.unicast_bytes - sizeof(CommandHeader)) / 8; }

    // `header.count` need not be set: it follows from the payload's length. A payload is of at
    // least one word, at most most_words(); else std::length_error.

    /// One command, whole. False: no room there, nothing was appended.
    bool append(std::uint32_t target, CommandHeader header, std::span<const std::uint64_t> words) {
        return append(target, header, words, Refusal::allowed);
    }
    /// The same, never refused. Throws std::bad_alloc.
    void append_always(std::uint32_t target, CommandHeader header,
                       std::span<const std::uint64_t> words) {
        append(target, header, words, Refusal::never);
    }
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
    /// What waits for the target, multicast commands included.
    std::size_t waiting_bytes(std::uint32_t target) const;
    const OutgoingCounts& counts() const { return counts_; }

  private:
    enum class Refusal : std::uint8_t { allowed, never };

    // What the next entry for a target needs. Where `at` is `limit`, room must be made first.
    struct Lane {
        std::byte* at;
        std::byte* limit;
    };
    struct Reference {
        std::uint32_t offset, bytes;
    };
    struct Chunk {
        std::byte* begin;
        std::size_t bytes;
    };
    // The rest about a target.
    struct Row {
        IncomingBuffers* incoming;
        std::byte* begin = nullptr;  // of the chunk that is being filled
        std::byte* last = nullptr;   // header of the last command in it
        bool open = false;           // entries are being appended to it; its count is not set yet
        bool listed = false;         // in opened_
        std::vector<Chunk> waiting;  // full chunks that found no room, oldest first
        std::vector<Reference> references;
        std::size_t reference_bytes = 0;
    };

    template <class Entry>
    std::size_t append_entries(CommandHeader header, std::span<const Entry> entries,
                               const std::uint32_t* targets);
    bool append(std::uint32_t target, CommandHeader header, std::span<const std::uint64_t> words,
                Refusal refusal);
    bool open(std::uint32_t target);
    void close(std::uint32_t target);
    void close_all();
    bool extends_last(std::uint32_t target, const CommandHeader& header, std::size_t entries) const;
    void put_header(std::uint32_t target, const CommandHeader& header);
    bool make_room(std::uint32_t target, Refusal refusal);
    void restart(std::uint32_t target, std::byte* chunk);
    std::byte* new_chunk();
    bool send_waiting(Row& row);
    std::size_t room(std::uint32_t target) const {
        return static_cast<std::size_t>(rows_[target].begin + sizes_.unicast_bytes -
                                        lanes_[target].at);
    }

    Memory& memory_;
    OutgoingSizes sizes_;
    std::size_t stride_;  // from one target's first chunk to the next one's
    std::byte* block_;    // the first chunks, then the multicast buffer
    std::byte* multicast_;
    std::size_t multicast_used_ = 0;
    std::size_t references_ = 0;  // of all targets to the multicast buffer
    std::vector<Lane> lanes_;
    std::vector<Row> rows_;
    CommandHeader current_;              // of the lanes that are open
    std::vector<std::uint32_t> opened_;  // those that have been opened under it
    std::vector<std::byte*> made_;       // chunks beyond the first ones
    std::vector<std::byte*> spare_;      // chunks that are free
    std::uint32_t first_ = 0;            // where the next flush_all begins
    OutgoingCounts counts_;
};

}  // namespace numatwin::native
