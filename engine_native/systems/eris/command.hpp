// Data commands as they lie in buffers: a header of 16 bytes, then entries of one size.
//
// One header serves many entries: lookups are a header and keys, upserts a header and pairs of key
// and value. What the operations are is the worker's matter; routing only moves them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <span>

namespace numatwin::native {

struct CommandHeader {
    std::uint8_t operation = 0;
    std::uint8_t entry_words = 1;  // 8-byte words of an entry: 1 a key, 2 a key and its value
    std::uint16_t object = 0;
    std::uint16_t origin = 0;    // the worker that wants the answer
    std::uint16_t count = 0;     // entries that follow
    std::uint32_t callback = 0;  // what the origin knows the command by
    std::uint32_t stamp = 0;     // when it was made, see stamp_of

    std::size_t words() const { return std::size_t{entry_words} * count; }
    std::size_t bytes() const { return sizeof(CommandHeader) + 8 * words(); }
    /// Whether entries under both headers may stand under one. The older stamp then holds for all.
    bool merges_with(const CommandHeader& other) const {
        return operation == other.operation && entry_words == other.entry_words &&
               object == other.object && origin == other.origin && callback == other.callback;
    }
};
static_assert(sizeof(CommandHeader) == 16 && alignof(CommandHeader) <= 8);

inline constexpr std::size_t most_entries = 0xffff;

/// A key and its value: what an upsert carries; also the 16-byte command of raw routing.
struct Pair {
    std::uint64_t key, value;
    bool operator==(const Pair&) const = default;
};
static_assert(sizeof(Pair) == 16);

/// Stamps count steps of 16 ns and wrap round after 68 s: enough for the latency of a command,
/// which is at most half of that. What seems to end before it began, as clocks of two sockets may
/// differ a little, took no time.
inline constexpr int stamp_shift = 4;
constexpr std::uint32_t stamp_of(std::uint64_t time_ns) {
    return static_cast<std::uint32_t>(time_ns >> stamp_shift);
}
constexpr std::uint64_t elapsed_ns(std::uint32_t from, std::uint32_t to) {
    const std::uint32_t steps = to - from;
    return steps >> 31 != 0 ? 0 : std::uint64_t{steps} << stamp_shift;
}

/// A command that lies in a buffer.
struct Command {
    CommandHeader header;
    std::span<const std::uint64_t> words;

    /// Of entries of two words.
    std::span<const Pair> pairs() const {
        return {reinterpret_cast<const Pair*>(words.data()), words.size() / 2};
    }
};

/// The commands in a run of bytes, one after the other, as IncomingBuffers::swap returns it.
class Commands {
  public:
    explicit Commands(std::span<const std::byte> bytes) : bytes_(bytes) {}

    class Iterator {
      public:
        using value_type = Command;
        using difference_type = std::ptrdiff_t;
        Iterator() = default;
        explicit Iterator(const std::byte* at) : at_(at) {}
        Command operator*() const {
            CommandHeader header;
            std::memcpy(&header, at_, sizeof header);
            const auto* words = reinterpret_cast<const std::uint64_t*>(at_ + sizeof header);
            return {header, {words, header.words()}};
        }
        Iterator& operator++() {
            at_ += (**this).header.bytes();
            return *this;
        }
        Iterator operator++(int) {
            Iterator before = *this;
            ++*this;
            return before;
        }
        bool operator==(const Iterator&) const = default;

      private:
        const std::byte* at_ = nullptr;
    };

    Iterator begin() const { return Iterator(bytes_.data()); }
    Iterator end() const { return Iterator(bytes_.data() + bytes_.size()); }
    bool empty() const { return bytes_.empty(); }

  private:
    std::span<const std::byte> bytes_;
};
static_assert(std::forward_iterator<Commands::Iterator> || std::input_iterator<Commands::Iterator>);

}  // namespace numatwin::native
