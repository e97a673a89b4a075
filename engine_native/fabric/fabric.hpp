// One-sided verbs and messages between the threads or processes of a cluster, as one thread posts
// them.
//
// Each thread has a Fabric of its own. It may expose one region of memory, and reach the regions of
// its peers by offset. Requests are posted, and are done later:
//
//     get, compare_and_swap, fetch_add     when their Pending says so
//     put, publish, add                    unsignaled: when a later flush() of that peer is done
//     send                                 the message is copied; nobody waits
//
// Buffers must stay as they are until then. Offsets and sizes are multiples of 8 bytes.
//
// Two ways lead to a peer's region. Where this processor can reach it (a thread of this process; a
// segment of shared memory), requests are its own loads, stores and atomics, and are done at once.
// Else a subclass carries them.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "fabric/shared_words.hpp"

namespace numatwin::native {

// How many requests someone waits for.
struct Pending {
    std::uint32_t requests = 0;
    bool failed = false;  // the peer of one of them is gone
};

class Fabric {
  public:
    using Peer = std::uint32_t;
    using Bytes = std::span<const std::byte>;

    virtual ~Fabric() = default;
    Fabric(const Fabric&) = delete;
    Fabric& operator=(const Fabric&) = delete;

    // Memory that peers may reach from now on, all zero; once. Throws std::bad_alloc or
    // std::runtime_error.
    virtual std::span<std::byte> expose(std::size_t bytes) = 0;
    // What a peer needs to connect to this; after expose().
    virtual std::vector<std::byte> contact() = 0;
    // Ready for requests and messages to it. Throws std::runtime_error.
    virtual Peer connect(Bytes contact) = 0;

    // Its region, where this processor can reach it; else null.
    std::byte* reach(Peer peer) const { return mapped_[peer]; }
    // Whether requests to any peer are carried: who waits for these sleeps.
    bool carries() const { return carries_; }

    void put(Peer peer, std::uint64_t at, const std::byte* from, std::size_t bytes) {
        carried_bytes += bytes;
        if (std::byte* region = mapped_[peer])
            copy_shared(region + at, from, bytes);
        else
            carry_put(peer, at, from, bytes);
    }
    // Puts a block whose first word is seen last: who sees the new word sees all of the block.
    void publish(Peer peer, std::uint64_t at, const std::byte* block, std::size_t bytes) {
        carried_bytes += bytes;
        if (std::byte* region = mapped_[peer]) {
            copy_shared(region + at + word_bytes, block + word_bytes, bytes - word_bytes);
            std::uint64_t word;
            std::memcpy(&word, block, word_bytes);
            store_release(region + at, word);
            return;
        }
        carry_put(peer, at + word_bytes, block + word_bytes, bytes - word_bytes);
        order();
        carry_put(peer, at, block, word_bytes);
    }
    void get(Peer peer, std::uint64_t at, std::byte* into, std::size_t bytes, Pending& pending) {
        carried_bytes += bytes;
        if (std::byte* region = mapped_[peer])
            copy_shared(into, region + at, bytes);
        else
            carry_get(peer, at, into, bytes, pending);
    }
    // `word`: the word to store where `expected` stands; then the one that stood there. It stays
    // where it is until the request is done.
    void compare_and_swap(Peer peer, std::uint64_t at, const std::uint64_t& expected,
                          std::uint64_t& word, Pending& pending) {
        carried_bytes += 2 * word_bytes;
        if (std::byte* region = mapped_[peer])
            word = native::compare_and_swap(region + at, expected, word);
        else
            carry_compare_and_swap(peer, at, expected, word, pending);
    }
    void fetch_add(Peer peer, std::uint64_t at, const std::uint64_t& add, std::uint64_t& found,
                   Pending& pending) {
        carried_bytes += 2 * word_bytes;
        if (std::byte* region = mapped_[peer])
            found = native::fetch_add(region + at, add);
        else
            carry_fetch_add(peer, at, add, found, pending);
    }
    // Unsignaled.
    void add(Peer peer, std::uint64_t at, const std::uint64_t& addend) {
        carried_bytes += word_bytes;
        if (std::byte* region = mapped_[peer])
            native::fetch_add(region + at, addend);
        else
            carry_add(peer, at, addend);
    }
    // What was posted before happens before what is posted after, at each peer.
    void order() {
        fence();
        if (carries_) carry_order();
    }
    // Done when all that was posted to that peer has landed in its memory.
    void flush(Peer peer, Pending& pending) {
        if (mapped_[peer] == nullptr) carry_flush(peer, pending);
    }
    // Until all of them are done; sleeps in between. Throws std::runtime_error where a peer is
    // gone.
    void wait(Pending& pending) {
        while (pending.requests > 0)
            if (!progress()) idle();
        spun_ = 0;
        if (pending.failed) throw_gone();
    }

    // In order, from each peer; of any length.
    void send(Peer peer, Bytes message) {
        carried_bytes += message.size();
        carry_message(peer, message);
    }
    // The next message that came, if any did.
    virtual bool receive(std::vector<std::byte>& message) = 0;
    // Works on what is under way; whether anything was.
    virtual bool progress() = 0;
    // Until something may have come, or for so long.
    virtual void sleep(std::chrono::milliseconds longest) = 0;
    // Wakes who sleeps in another thread of this process; others are woken by what comes.
    virtual void wake() {}

    // Looks at the network so often before it sleeps.
    std::uint32_t spins = 64;
    // Of all that was put, got, swapped, added and sent.
    std::uint64_t carried_bytes = 0;

  protected:
    Fabric() = default;
    Peer add_peer(std::byte* mapped) {
        mapped_.push_back(mapped);
        carries_ = carries_ || mapped == nullptr;
        return static_cast<Peer>(mapped_.size() - 1);
    }
    virtual void carry_message(Peer, Bytes message) = 0;
    virtual void carry_put(Peer, std::uint64_t at, const std::byte* from, std::size_t bytes) = 0;
    virtual void carry_get(Peer, std::uint64_t at, std::byte* into, std::size_t bytes,
                           Pending&) = 0;
    virtual void carry_compare_and_swap(Peer, std::uint64_t at, const std::uint64_t& expected,
                                        std::uint64_t& word, Pending&) = 0;
    virtual void carry_fetch_add(Peer, std::uint64_t at, const std::uint64_t& add,
                                 std::uint64_t& found, Pending&) = 0;
    virtual void carry_add(Peer, std::uint64_t at, const std::uint64_t& addend) = 0;
    virtual void carry_order() = 0;
    virtual void carry_flush(Peer, Pending&) = 0;

  private:
    [[noreturn]] static void throw_gone() {
        throw std::runtime_error("the network lost a process");
    }
    void idle() {
        if (++spun_ < spins) return;
        spun_ = 0;
        sleep(std::chrono::milliseconds(10));
    }

    std::vector<std::byte*> mapped_;  // by peer: its region, where this processor can reach it
    bool carries_ = false;
    std::uint32_t spun_ = 0;
};

// How a fabric of processes is carried.
struct FabricOptions {
    // As UCX_TLS: "posix,self", "tcp,self" …
    std::string transports = "posix,sysv,self";
    // As UCX_NET_DEVICES: "lo", "mlx5_0:1" …; "all".
    std::string devices = "all";
    // Requests to shared memory are this processor's own; else they go through UCX all the same.
    bool direct = true;
    // All page table entries of a peer's shared memory as it connects: no request waits for one.
    bool populate = true;
};
// Whether processes make segments of shared memory for it.
inline bool makes_segments(const FabricOptions& options) {
    return options.transports.find("posix") != std::string::npos ||
           options.transports.find("sysv") != std::string::npos;
}

// Of threads in one process; peers that stand in a contact must live as long as this.
std::unique_ptr<Fabric> local_fabric();
// Of processes. Throws std::runtime_error where the engine was built without UCX.
std::unique_ptr<Fabric> ucx_fabric(const FabricOptions& options);

}  // namespace numatwin::native
