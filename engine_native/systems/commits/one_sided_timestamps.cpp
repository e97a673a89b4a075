// RSI's clients and the timestamp server: snapshots, claims and bits.
#include <algorithm>

#include "systems/commits/one_sided_client.hpp"

namespace numatwin::native {

std::int64_t OneSidedClient::fetch_snapshot() {
    const std::int64_t highest = setup_.snapshot_bytes == 0 ? look_at_vector() : look_at_words();
    if (claims()) {
        const std::int64_t now_ns = board_.now_ns();
        if (highest != known_) {
            since_ns_ = now_ns;
        } else if (now_ns - since_ns_ >= setup_.skip_after_ns) {
            complain(Complaint::about_snapshot);
            since_ns_ = board_.now_ns();
        }
    }
    known_ = highest;
    lags_below_ = std::min(top_, known_ + bits_.reach()) - setup_.clients;
    if (remedied()) raise_floor();
    return highest;
}

// With remedies the leading run may pass a timestamp that its owner has not set, more than a lap
// while that sleeps; so what the bits mean depends on the floor: no bit is set more than a lap
// above it. It must not have moved meanwhile.
std::int64_t OneSidedClient::look_at_vector() {
    Pending pending;
    auto* floor = vector_.data();
    std::uint64_t floor_before = 0, floor_after = 0;
    do {
        if (remedied()) {
            fabric_.get(timestamps_, bits_.floor_at(), floor, word_bytes, pending);
            fabric_.order();
        }
        fabric_.get(timestamps_, bits_.bits_at(), vector_.data() + TimestampBits::head_bytes,
                    bits_.vector_bytes(), pending);
        count(OneSided::snapshot_read);
        if (remedied()) {
            fabric_.order();
            fabric_.get(timestamps_, bits_.floor_at(), reinterpret_cast<std::byte*>(&floor_after),
                        word_bytes, pending);
        }
        fabric_.wait(pending);
        std::memcpy(&floor_before, floor, word_bytes);
    } while (remedied() && floor_before != floor_after);
    if (remedied()) floor_ = static_cast<std::int64_t>(floor_before);
    const auto at_hand = [this](std::uint64_t word) {
        return vector_word(TimestampBits::head_bytes + word * word_bytes);
    };
    if (!remedied())
        top_ = bits_.top(
            next_cid_, known_ + bits_.reach(), [](std::uint64_t) { return true; }, at_hand);
    return bits_.run_end(std::max(known_, floor_), at_hand);
}

std::uint64_t OneSidedClient::vector_word(std::size_t at) const {
    std::uint64_t word;
    std::memcpy(&word, &vector_[at], word_bytes);
    return word;
}

std::uint64_t OneSidedClient::read_word(Fabric::Peer peer, std::uint64_t at) {
    Pending pending;
    std::uint64_t word = 0;
    fabric_.get(peer, at, reinterpret_cast<std::byte*>(&word), word_bytes, pending);
    fabric_.wait(pending);
    return word;
}

// From where the run ended the last time, as many words at a time as the scenario says.
std::int64_t OneSidedClient::look_at_words() {
    const std::uint64_t words = bits_.vector_bytes() / word_bytes;
    const std::uint64_t each = std::min<std::uint64_t>(
        std::max<std::uint64_t>(setup_.snapshot_bytes / word_bytes, 1), words);
    std::uint64_t first = 0, end = 0;  // those at hand
    Pending pending;
    std::uint64_t before = 0, after = 0;
    std::int64_t found;
    do {
        end = first;
        if (remedied()) before = read_word(timestamps_, bits_.floor_at());
        const std::int64_t from = std::max(known_, static_cast<std::int64_t>(before));
        found = bits_.run_end(from, [&](std::uint64_t word) {
            if (word < first || word >= end) {
                first = word;
                end = std::min(word + each, words);
                fabric_.get(timestamps_, bits_.bits_at() + first * word_bytes, vector_.data(),
                            (end - first) * word_bytes, pending);
                fabric_.wait(pending);
                count(OneSided::snapshot_read);
            }
            return vector_word((word - first) * word_bytes);
        });
        if (remedied()) {
            fabric_.order();
            after = read_word(timestamps_, bits_.floor_at());
        }
    } while (remedied() && before != after);
    if (remedied()) {
        floor_ = static_cast<std::int64_t>(before);
        return found;
    }
    top_ = bits_.top(
        next_cid_, known_ + bits_.reach(),
        [&](std::uint64_t word) { return word >= first && word < end; },
        [&](std::uint64_t word) { return vector_word((word - first) * word_bytes); });
    return found;
}

// Who sees the run well ahead of the floor raises this: timestamps end a lap above it, and the
// server's thread may be away for longer than a lap takes. Where the CAS fails another one did.
void OneSidedClient::raise_floor() {
    if (known_ - floor_ < std::max<std::int64_t>(bits_.lap() / 8, 1)) return;
    const auto expected = static_cast<std::uint64_t>(floor_);
    auto word = static_cast<std::uint64_t>(known_);
    Pending pending;
    fabric_.compare_and_swap(timestamps_, bits_.floor_at(), expected, word, pending);
    fabric_.wait(pending);
    floor_ = word == expected ? known_ : static_cast<std::int64_t>(word);
}

void OneSidedClient::wait_for_timestamps() {
    while (!owns_timestamp()) {
        pause(setup_.poll_ns);
        fetch_snapshot();
    }
    if (leases() && next_cid_ > LockWord::leased_cid_max) {
        board_.fail(client_, "more timestamps than a leased lock's word holds: a shorter run");
        throw Left{};
    }
}

// CAS of the timestamp's claim; where the server has skipped it, the first one that it has not.
Cause OneSidedClient::claim_all(Cause cause) {
    while (claims() && !claimed_) {
        if (!owns_timestamp()) return std::max(cause, cause_timestamps);
        Pending pending;
        if (!claim_word_ || claim_at_ != bits_.claim_at(next_cid_)) {
            claim_at_ = bits_.claim_at(next_cid_);
            claim_word_ = read_word(timestamps_, claim_at_);
        }
        if (bits_.is_claimed(*claim_word_, next_cid_)) {
            next_cid_ += setup_.clients;
            continue;
        }
        const std::uint64_t expected = *claim_word_;
        std::uint64_t word = bits_.claimed(expected, next_cid_);
        fabric_.compare_and_swap(timestamps_, claim_at_, expected, word, pending);
        count(OneSided::claim);
        fabric_.wait(pending);
        claimed_ = word == expected;
        claim_word_ = claimed_ ? bits_.claimed(expected, next_cid_) : word;
    }
    return cause;
}

void OneSidedClient::set_bit(RowKind kind) {
    const std::int64_t cid = next_cid_;
    next_cid_ += setup_.clients;
    claimed_ = false;
    log(kind, cid);
    TimestampBits::Bit bit = bit_cid_ == cid ? bit_ : bits_.bit(cid);
    if (lags()) [[unlikely]] {
        // Those of one word together.
        for (; lags(); next_cid_ += setup_.clients) {
            const TimestampBits::Bit more = bits_.bit(next_cid_);
            log(RowKind::rolled_back, next_cid_);
            if (more.at != bit.at) {
                add_bits(bit);
                bit = more;
            } else {
                bit.addend += more.addend;
            }
        }
    }
    add_bits(bit);
}

// Unsignaled, but for the last of each send_queue: its completion vouches for all.
void OneSidedClient::add_bits(const TimestampBits::Bit& bit) {
    auto& addend = addends_[unsignaled_];
    addend = bit.addend;
    fabric_.add(timestamps_, bit.at, addend);
    counters().messages[static_cast<std::size_t>(OneSided::bit)].add();
    if (++unsignaled_ < setup_.send_queue) return;
    unsignaled_ = 0;
    Pending pending;
    fabric_.flush(timestamps_, pending);
    fabric_.wait(pending);
    counters().messages[static_cast<std::size_t>(OneSided::bit_done)].add();
}

// An abort's timestamp is used up only where the run may stand at it (and its bit is not still one
// of the lap before, nor, where timestamps are claimed, unclaimed): else the next transaction takes
// it. Who used up one with each abort would get ahead of a client that waited for a processor as
// fast as that one, which aborts on old snapshots, catches up; and then both abort forever.
Cause OneSidedClient::abort(Cause cause) {
    if (!claimed_ && next_cid_ > known_ + setup_.clients && !lags()) return cause;
    if (claims() && !claimed_) claim_all(granted);
    if (owns_timestamp() && (!claims() || claimed_)) set_bit(RowKind::rolled_back);
    return cause;
}

}  // namespace numatwin::native
