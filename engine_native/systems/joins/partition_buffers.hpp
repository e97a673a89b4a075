// Software-managed buffers of partitions (Barthels et al., Rack-scale in-memory join processing
// using RDMA, SIGMOD 2015; Wassenberg and Sanders, Engineering a multi-core radix sort, 2011).
//
// Entries of a partition gather in a buffer that stays in a cache. A full one goes to the
// partition's place as a whole:
//
//     memory that this processor reaches   copied past the caches; the buffer is used again at once
//     else                                 put; the buffer has to wait, another one is taken
//
// Of the puts to a node only every n-th is followed by a signaled request, which vouches for all
// before it: then their buffers are free again. Who has none left waits for the oldest.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <numeric>
#include <stdexcept>
#include <utility>
#include <vector>

#include "fabric/fabric.hpp"
#include "fabric/streaming_copy.hpp"

namespace numatwin::native {

// Where the entries of a partition go: `room` of them, one after another.
struct PartitionPlace {
    std::byte* direct;   // null: at the peer's offset
    Fabric::Peer peer;   // else of no meaning
    std::uint64_t at;    // of its region
    std::uint64_t room;  // entries
};

struct BufferShape {
    std::uint32_t bytes;
    std::uint32_t signal_every;
    bool streaming;
};

template <class Entry>
class PartitionBuffers {
  public:
    PartitionBuffers(Fabric& fabric, BufferShape shape)
        : fabric_(fabric), shape_(shape), entries_(entries_in(shape.bytes)) {}

    // Begins again: by partition its place. Places begin with a line.
    void open(std::vector<PartitionPlace> places) {
        places_ = std::move(places);
        written_.assign(places_.size(), 0);
        while (buffers_.size() < places_.size()) take_more();
        if (cursors_.size() != places_.size()) {
            cursors_.resize(places_.size());
            free_.clear();
            for (std::size_t k = 0; k < buffers_.size(); ++k)
                if (k >= places_.size()) free_.push_back(buffers_[k].get());
            for (std::size_t k = 0; k < places_.size(); ++k) set(k, buffers_[k].get());
        }
    }

    void append(std::uint32_t partition, const Entry& entry) {
        Cursor& cursor = cursors_[partition];
        *cursor.next = entry;
        if (++cursor.next == cursor.end) write(partition);
    }

    // All that was appended has landed. What comes after in the program is seen after it.
    void finish() {
        for (std::uint32_t k = 0; k < cursors_.size(); ++k)
            if (cursors_[k].next != first(k)) write(k);
        for (Fabric::Peer peer = 0; peer < under_way_.size(); ++peer) {
            if (!under_way_[peer].empty()) signal(peer);
            while (!signaled_.empty()) take_back();
        }
        streamed();
    }

    // By partition, since open().
    const std::vector<std::uint64_t>& written() const { return written_; }

  private:
    struct Cursor {
        Entry *next, *end;
    };
    // A request that vouches for those before it, and the buffers that these hold.
    struct Signaled {
        std::unique_ptr<Pending> pending;
        std::vector<Entry*> held;
    };

    // As many as make whole lines, at least one such piece.
    static std::size_t entries_in(std::size_t bytes) {
        const std::size_t piece = std::lcm(sizeof(Entry), line_bytes) / sizeof(Entry);
        return std::max(bytes / sizeof(Entry) / piece, std::size_t{1}) * piece;
    }
    Entry* first(std::uint32_t k) const { return cursors_[k].end - entries_; }
    void set(std::size_t k, Entry* buffer) { cursors_[k] = {buffer, buffer + entries_}; }
    void take_more() { buffers_.push_back(make_lines<Entry>(entries_)); }

    [[gnu::noinline]] void write(std::uint32_t partition) {
        Entry* buffer = first(partition);
        const auto& place = places_[partition];
        const auto count = static_cast<std::uint64_t>(cursors_[partition].next - buffer);
        const std::uint64_t at = written_[partition] * sizeof(Entry);
        const std::size_t bytes = count * sizeof(Entry);
        if (written_[partition] + count > place.room)
            throw std::runtime_error("more tuples than the buffer of a partition has room for");
        written_[partition] += count;
        const auto* from = reinterpret_cast<const std::byte*>(buffer);
        if (place.direct == nullptr) {
            fabric_.put(place.peer, place.at + at, from, bytes);
            hold(place.peer, buffer);
            fabric_.progress();
            set(partition, take_free());
            return;
        }
        if (shape_.streaming)
            copy_streaming(place.direct + at, from, bytes);
        else
            copy_shared(place.direct + at, from, bytes);
        cursors_[partition].next = buffer;
    }

    void hold(Fabric::Peer peer, Entry* buffer) {
        if (peer >= under_way_.size()) under_way_.resize(peer + 1);
        under_way_[peer].push_back(buffer);
        if (under_way_[peer].size() >= shape_.signal_every) signal(peer);
    }
    void signal(Fabric::Peer peer) {
        signaled_.push_back({std::make_unique<Pending>(), std::move(under_way_[peer])});
        under_way_[peer].clear();
        fabric_.flush(peer, *signaled_.back().pending);
    }
    void take_back() {
        fabric_.wait(*signaled_.front().pending);
        free_.insert(free_.end(), signaled_.front().held.begin(), signaled_.front().held.end());
        signaled_.pop_front();
    }
    Entry* take_free() {
        while (!signaled_.empty() && signaled_.front().pending->requests == 0) take_back();
        // At most as many again as there are partitions, and those that no signal covers yet.
        if (free_.empty() && !signaled_.empty() && buffers_.size() >= 2 * places_.size())
            take_back();
        if (free_.empty()) {
            take_more();
            free_.push_back(buffers_.back().get());
        }
        Entry* found = free_.back();
        free_.pop_back();
        return found;
    }

    Fabric& fabric_;
    BufferShape shape_;
    std::size_t entries_;
    std::vector<PartitionPlace> places_;
    std::vector<std::uint64_t> written_;
    std::vector<Cursor> cursors_;
    std::vector<Lines<Entry>> buffers_;
    std::vector<Entry*> free_;
    std::vector<std::vector<Entry*>> under_way_;  // by peer: not yet vouched for
    std::deque<Signaled> signaled_;
};

}  // namespace numatwin::native
