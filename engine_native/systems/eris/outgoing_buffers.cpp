#include "systems/eris/outgoing_buffers.hpp"

#include <algorithm>
#include <cstring>
#include <stdexcept>

namespace numatwin::native {

namespace {

// The caller's next entries mostly lie behind these: they come from memory meanwhile.
constexpr std::size_t entries_ahead = 512;

// An odd number of lines apart, the ends of many buffers do not meet in the same sets of the cache.
std::size_t spaced(std::size_t bytes) {
    return ((bytes + 63) / 64 | 1) * 64;
}

OutgoingSizes checked(OutgoingSizes sizes, std::span<IncomingBuffers* const> targets) {
    if (sizes.unicast_bytes < sizeof(CommandHeader) + 8 || sizes.unicast_bytes % 8 != 0 ||
        sizes.multicast_bytes % 8 != 0) {
        throw std::invalid_argument("an outgoing buffer has 24 bytes or more, a multiple of 8");
    }
    for (const IncomingBuffers* target : targets) {
        if (sizes.unicast_bytes + sizes.multicast_bytes > target->capacity()) {
            throw std::invalid_argument(
                "an incoming buffer must hold an outgoing and a multicast buffer");
        }
    }
    return sizes;
}

CommandHeader header_at(const std::byte* at) {
    CommandHeader header;
    std::memcpy(&header, at, sizeof header);
    return header;
}

// How many entries the payload has.
std::size_t check_payload(const CommandHeader& header, std::span<const std::uint64_t> words,
                          std::size_t most_words) {
    if (header.entry_words == 0 || words.empty() || words.size() % header.entry_words != 0) {
        throw std::length_error("a command has one entry or more, all of one size");
    }
    const std::size_t entries = words.size() / header.entry_words;
    if (words.size() > most_words || entries > most_entries) {
        throw std::length_error("a command must fit into a buffer");
    }
    return entries;
}

}  // namespace

OutgoingBuffers::OutgoingBuffers(Memory& memory, std::span<IncomingBuffers* const> targets,
                                 OutgoingSizes sizes)
    : memory_(memory),
      sizes_(checked(sizes, targets)),
      stride_(spaced(sizes.unicast_bytes)),
      lanes_(targets.size()),
      rows_(targets.size()) {
    opened_.reserve(targets.size());
    block_ = static_cast<std::byte*>(
        memory_.allocate(stride_ * targets.size() + sizes_.multicast_bytes));
    multicast_ = block_ + stride_ * targets.size();
    for (std::uint32_t target = 0; target < targets.size(); ++target) {
        rows_[target].incoming = targets[target];
        restart(target, block_ + stride_ * target);
    }
}

OutgoingBuffers::~OutgoingBuffers() {
    for (std::byte* chunk : made_) {
        memory_.release(chunk, stride_);
    }
    memory_.release(block_, stride_ * rows_.size() + sizes_.multicast_bytes);
}

// -- entries, many at once

template <class Entry>
std::size_t OutgoingBuffers::append_entries(CommandHeader header, std::span<const Entry> entries,
                                            const std::uint32_t* targets) {
    header.entry_words = sizeof(Entry) / 8;
    header.count = 0;
    if (!current_.merges_with(header)) {
        close_all();
    }
    current_ = header;
    Lane* lanes = lanes_.data();
    constexpr std::size_t of_line = 64 / sizeof(Entry);
    const auto put = [&](std::size_t i) {
        Lane& lane = lanes[targets[i]];
        std::byte* at = lane.at;  // read once: for all the compiler knows, the copy may change it
        if (at == lane.limit) [[unlikely]] {
            if (!open(targets[i])) {
                return false;
            }
            at = lane.at;
        }
        std::memcpy(at, &entries[i], sizeof(Entry));
        lane.at = at + sizeof(Entry);
        return true;
    };
    std::size_t i = 0;
    for (; i + of_line <= entries.size(); i += of_line) {
        __builtin_prefetch(entries.data() + i + entries_ahead);
        for (std::size_t k = 0; k < of_line; ++k) {
            if (!put(i + k)) [[unlikely]] {
                return i + k;
            }
        }
    }
    for (; i < entries.size(); ++i) {
        if (!put(i)) {
            return i;
        }
    }
    return entries.size();
}

std::size_t OutgoingBuffers::append_keys(CommandHeader header, std::span<const std::uint64_t> keys,
                                         const std::uint32_t* targets) {
    return append_entries(header, keys, targets);
}

std::size_t OutgoingBuffers::append_pairs(CommandHeader header, std::span<const Pair> pairs,
                                          const std::uint32_t* targets) {
    return append_entries(header, pairs, targets);
}

// Room for one entry at least under current_: in the last command, or in a new one.
bool OutgoingBuffers::open(std::uint32_t target) {
    const std::size_t entry_bytes = std::size_t{8} * current_.entry_words;
    close(target);
    if (!extends_last(target, current_, 1)) {
        if (room(target) < sizeof(CommandHeader) + entry_bytes &&
            !make_room(target, Refusal::allowed)) {
            return false;
        }
        put_header(target, current_);
    }
    Row& row = rows_[target];
    Lane& lane = lanes_[target];
    const std::size_t under_it = header_at(row.last).count;
    const std::size_t entries = std::min(room(target) / entry_bytes, most_entries - under_it);
    lane.limit = lane.at + entries * entry_bytes;
    row.open = true;
    if (!row.listed) {
        row.listed = true;
        opened_.push_back(target);
    }
    return true;
}

// Sets the count of the last command.
void OutgoingBuffers::close(std::uint32_t target) {
    Row& row = rows_[target];
    if (row.open) {
        Lane& lane = lanes_[target];
        CommandHeader header = header_at(row.last);
        const auto bytes = static_cast<std::size_t>(lane.at - row.last) - sizeof header;
        header.count =
            static_cast<std::uint16_t>(static_cast<std::uint32_t>(bytes / 8) / header.entry_words);
        std::memcpy(row.last, &header, sizeof header);
        lane.limit = lane.at;
        row.open = false;
    }
}

void OutgoingBuffers::close_all() {
    for (const std::uint32_t target : opened_) {
        close(target);
        rows_[target].listed = false;
    }
    opened_.clear();
}

// -- whole commands

bool OutgoingBuffers::append(std::uint32_t target, CommandHeader header,
                             std::span<const std::uint64_t> words, Refusal refusal) {
    const std::size_t entries = check_payload(header, words, most_words());
    close(target);
    if (!extends_last(target, header, entries)) {
        if (room(target) < sizeof header + words.size_bytes() && !make_room(target, refusal)) {
            return false;
        }
        header.count = 0;
        put_header(target, header);
    }
    CommandHeader extended = header_at(rows_[target].last);
    extended.count = static_cast<std::uint16_t>(extended.count + entries);
    std::memcpy(rows_[target].last, &extended, sizeof extended);
    Lane& lane = lanes_[target];
    std::memcpy(lane.at, words.data(), words.size_bytes());
    lane.limit = lane.at += words.size_bytes();
    return true;
}

// Whether so many more entries may stand under the last command's header, which is closed.
bool OutgoingBuffers::extends_last(std::uint32_t target, const CommandHeader& header,
                                   std::size_t entries) const {
    const std::byte* last = rows_[target].last;
    if (last == nullptr || room(target) < 8 * header.entry_words * entries) {
        return false;
    }
    const CommandHeader before = header_at(last);
    return before.merges_with(header) && before.count + entries <= most_entries;
}

void OutgoingBuffers::put_header(std::uint32_t target, const CommandHeader& header) {
    Lane& lane = lanes_[target];
    rows_[target].last = lane.at;
    std::memcpy(lane.at, &header, sizeof header);
    lane.at += sizeof header;
}

bool OutgoingBuffers::append_multicast(const HolderBitmap& targets, CommandHeader header,
                                       std::span<const std::uint64_t> words) {
    header.count = static_cast<std::uint16_t>(check_payload(
        header, words, std::max(sizes_.multicast_bytes, sizeof header) / 8 - sizeof header / 8));
    const std::size_t bytes = sizeof header + words.size_bytes();
    if (sizes_.multicast_bytes - multicast_used_ < bytes) {
        flush_all();
        if (sizes_.multicast_bytes - multicast_used_ < bytes) {
            return false;
        }
    }
    // Room for all references first: what follows cannot fail half-way.
    targets.for_each([&](std::size_t target) {
        std::vector<Reference>& references = rows_[target].references;
        if (references.size() == references.capacity()) {
            references.reserve(std::max<std::size_t>(4, 2 * references.size()));
        }
    });
    std::byte* at = multicast_ + multicast_used_;
    std::memcpy(at, &header, sizeof header);
    std::memcpy(at + sizeof header, words.data(), words.size_bytes());
    targets.for_each([&](std::size_t target) {
        Row& row = rows_[target];
        row.references.push_back(
            {static_cast<std::uint32_t>(multicast_used_), static_cast<std::uint32_t>(bytes)});
        row.reference_bytes += bytes;
        ++references_;
    });
    multicast_used_ = references_ == 0 ? 0 : multicast_used_ + bytes;
    return true;
}

// -- sending

bool OutgoingBuffers::make_room(std::uint32_t target, Refusal refusal) {
    if (flush(target)) {
        return true;
    }
    if (refusal == Refusal::allowed) {
        return false;
    }
    Row& row = rows_[target];
    std::byte* chunk = new_chunk();
    const auto bytes = static_cast<std::size_t>(lanes_[target].at - row.begin);
    row.waiting.push_back({row.begin, bytes});
    spare_.pop_back();
    restart(target, chunk);
    return true;
}

// A free chunk, the last of spare_.
std::byte* OutgoingBuffers::new_chunk() {
    if (spare_.empty()) {
        made_.reserve(made_.size() + 1);
        spare_.reserve(rows_.size() + made_.size() + 1);  // then a flush never allocates
        made_.push_back(static_cast<std::byte*>(memory_.allocate(stride_)));
        spare_.push_back(made_.back());
    }
    return spare_.back();
}

void OutgoingBuffers::restart(std::uint32_t target, std::byte* chunk) {
    Row& row = rows_[target];
    row.begin = chunk;
    row.last = nullptr;
    row.open = false;
    lanes_[target] = {chunk, chunk};
}

bool OutgoingBuffers::flush(std::uint32_t target) {
    Row& row = rows_[target];
    close(target);
    if (!row.waiting.empty() && !send_waiting(row)) {
        return false;
    }
    const auto bytes = static_cast<std::size_t>(lanes_[target].at - row.begin);
    const std::size_t all = bytes + row.reference_bytes;
    if (all == 0) {
        return true;
    }
    const bool sent = row.incoming->write(
        all,
        [&](std::byte* to) {
            std::memcpy(to, row.begin, bytes);
            to += bytes;
            for (const Reference& reference : row.references) {
                std::memcpy(to, multicast_ + reference.offset, reference.bytes);
                to += reference.bytes;
            }
        },
        counts_.retries);
    if (!sent) {
        ++counts_.refused;
        return false;
    }
    ++counts_.flushes;
    counts_.flushed_bytes += all;
    counts_.multicast_bytes += row.reference_bytes;
    references_ -= row.references.size();
    row.references.clear();
    row.reference_bytes = 0;
    if (references_ == 0) {
        multicast_used_ = 0;
    }
    restart(target, row.begin);
    return true;
}

// Chunks that found no room before; they go first, one write each.
bool OutgoingBuffers::send_waiting(Row& row) {
    std::size_t sent = 0;
    for (const Chunk& chunk : row.waiting) {
        if (!row.incoming->write(
                chunk.bytes, [&](std::byte* to) { std::memcpy(to, chunk.begin, chunk.bytes); },
                counts_.retries)) {
            ++counts_.refused;
            break;
        }
        ++counts_.flushes;
        counts_.flushed_bytes += chunk.bytes;
        spare_.push_back(chunk.begin);
        ++sent;
    }
    row.waiting.erase(row.waiting.begin(), row.waiting.begin() + static_cast<std::ptrdiff_t>(sent));
    return row.waiting.empty();
}

bool OutgoingBuffers::flush_all() {
    bool all_sent = true;
    const auto targets = static_cast<std::uint32_t>(rows_.size());
    for (std::uint32_t i = 0; i < targets; ++i) {
        const std::uint32_t target = (first_ + i) % targets;
        all_sent &= flush(target);
    }
    first_ = targets == 0 ? 0 : (first_ + 1) % targets;
    return all_sent;
}

bool OutgoingBuffers::is_empty() const {
    for (std::uint32_t target = 0; target < rows_.size(); ++target) {
        if (waiting_bytes(target) != 0) {
            return false;
        }
    }
    return true;
}

std::size_t OutgoingBuffers::waiting_bytes(std::uint32_t target) const {
    const Row& row = rows_[target];
    std::size_t bytes = static_cast<std::size_t>(lanes_[target].at - row.begin);
    for (const Chunk& chunk : row.waiting) {
        bytes += chunk.bytes;
    }
    return bytes + row.reference_bytes;
}

}  // namespace numatwin::native
