// Bounded queues: a full one blocks its senders, in order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace numatwin {

// First in, first out; no allocation once it has grown to the longest it ever was.
template <class T>
class RingQueue {
  public:
    bool empty() const { return size_ == 0; }
    std::size_t size() const { return size_; }
    T& front() { return item_[first_]; }
    const T& front() const { return item_[first_]; }
    T& operator[](std::size_t k) { return item_[(first_ + k) & (item_.size() - 1)]; }

    void push(T item) {
        if (size_ == item_.size()) grow();
        (*this)[size_++] = std::move(item);
    }
    T pop() {
        T item = std::move(item_[first_]);
        first_ = (first_ + 1) & (item_.size() - 1);
        --size_;
        return item;
    }
    void clear() { first_ = size_ = 0; }

  private:
    void grow() {
        std::vector<T> more(item_.empty() ? 4 : 2 * item_.size());
        for (std::size_t k = 0; k < size_; ++k) more[k] = std::move((*this)[k]);
        item_.swap(more);
        first_ = 0;
    }

    std::vector<T> item_;  // its length is 0 or a power of two
    std::size_t first_ = 0;
    std::size_t size_ = 0;
};

// A queue of items of some size (1 unless told) with room for so many units. Who finds it full, or
// finds others held before it, is held with its item; as room comes, held items move in, in the
// order in which they came, none overtaking. An item larger than the room would be held for ever
// and is refused.
//
//     if (!queue.offer(item, units)) …            // its sender is held
//     taken = queue.take();                       // then, as room came:
//     while (queue.admit(item)) …                 // its sender may go on
template <class T>
class BoundedQueue {
  public:
    static constexpr std::uint64_t unlimited = std::numeric_limits<std::uint64_t>::max();

    explicit BoundedQueue(std::uint64_t room = unlimited) : room_(room) {}

    std::uint64_t room() const { return room_; }
    std::uint64_t used() const { return used_; }
    std::size_t size() const { return queued_.size(); }
    std::size_t held() const { return held_.size(); }
    bool empty() const { return queued_.empty(); }

    // True: it is in the queue. False: it is held.
    bool offer(T item, std::uint64_t units = 1) {
        if (units > room_) {
            throw std::invalid_argument("an item of " + std::to_string(units) +
                                        " units never fits a queue with room for " +
                                        std::to_string(room_));
        }
        if (is_full(units)) {
            held_.push({std::move(item), units});
            return false;
        }
        enter({std::move(item), units});
        return true;
    }

    bool is_full(std::uint64_t units = 1) const { return !held_.empty() || units > room_ - used_; }

    // The first item leaves; there must be one.
    T take() {
        Entry entry = queued_.pop();
        used_ -= entry.units;
        return std::move(entry.item);
    }

    // The same, but the item keeps its room, until so many units are released: it is worked on
    // where it lies.
    T take_keeping_room() { return std::move(queued_.pop().item); }
    void release(std::uint64_t units = 1) { used_ -= units; }

    // Moves the first held item into the queue if there is room now, and tells which it was. To be
    // called until false after each take() or release().
    bool admit(T& item) {
        if (held_.empty() || held_.front().units > room_ - used_) return false;
        item = held_.front().item;
        enter(held_.pop());
        return true;
    }

  private:
    struct Entry {
        T item;
        std::uint64_t units;
    };
    void enter(Entry entry) {
        used_ += entry.units;
        queued_.push(std::move(entry));
    }

    RingQueue<Entry> queued_;
    RingQueue<Entry> held_;
    std::uint64_t room_;
    std::uint64_t used_ = 0;
};

}  // namespace numatwin
