// A fabric of threads in one process: plain memory and atomics, a mailbox for each thread.
#include <condition_variable>
#include <deque>
#include <mutex>

#include "fabric/fabric.hpp"
#include "fabric/streaming_copy.hpp"

namespace numatwin::native {
namespace {

struct Mailbox {
    std::mutex mutex;
    std::condition_variable filled;
    std::deque<std::vector<std::byte>> messages;
    bool woken = false;

    void put(Fabric::Bytes message) {
        {
            const std::lock_guard guard(mutex);
            messages.emplace_back(message.begin(), message.end());
        }
        filled.notify_one();
    }
};

// What a contact holds: addresses, as all is in one process.
struct Place {
    Mailbox* mailbox;
    std::byte* region;
};

class LocalFabric final : public Fabric {
  public:
    std::span<std::byte> expose(std::size_t bytes) override {
        region_ = zeroed_lines(bytes);
        return {region_.get(), bytes};
    }

    std::vector<std::byte> contact() override {
        // Without a region of its own its mailbox is all that may be asked for: any address does.
        auto* region = region_ ? region_.get() : reinterpret_cast<std::byte*>(&mailbox_);
        const Place place{&mailbox_, region};
        const auto* bytes = reinterpret_cast<const std::byte*>(&place);
        return {bytes, bytes + sizeof place};
    }

    Peer connect(Bytes contact) override {
        Place place;
        std::memcpy(&place, contact.data(), sizeof place);
        mailboxes_.push_back(place.mailbox);
        return add_peer(place.region);
    }

    void carry_message(Peer peer, Bytes message) override { mailboxes_[peer]->put(message); }

    bool receive(std::vector<std::byte>& message) override {
        const std::lock_guard guard(mailbox_.mutex);
        if (mailbox_.messages.empty()) return false;
        message = std::move(mailbox_.messages.front());
        mailbox_.messages.pop_front();
        return true;
    }

    bool progress() override { return false; }

    void sleep(std::chrono::milliseconds longest) override {
        std::unique_lock guard(mailbox_.mutex);
        mailbox_.filled.wait_for(guard, longest,
                                 [this] { return !mailbox_.messages.empty() || mailbox_.woken; });
        mailbox_.woken = false;
    }

    void wake() override {
        {
            const std::lock_guard guard(mailbox_.mutex);
            mailbox_.woken = true;
        }
        mailbox_.filled.notify_one();
    }

  protected:
    // Every peer is in this process: nothing is carried.
    void carry_put(Peer, std::uint64_t, const std::byte*, std::size_t) override {}
    void carry_get(Peer, std::uint64_t, std::byte*, std::size_t, Pending&) override {}
    void carry_compare_and_swap(Peer, std::uint64_t, const std::uint64_t&, std::uint64_t&,
                                Pending&) override {}
    void carry_fetch_add(Peer, std::uint64_t, const std::uint64_t&, std::uint64_t&,
                         Pending&) override {}
    void carry_add(Peer, std::uint64_t, const std::uint64_t&) override {}
    void carry_order() override {}
    void carry_flush(Peer, Pending&) override {}

  private:
    Lines<> region_;
    Mailbox mailbox_;
    std::vector<Mailbox*> mailboxes_;  // by peer
};

}  // namespace

std::unique_ptr<Fabric> local_fabric() {
    return std::make_unique<LocalFabric>();
}

}  // namespace numatwin::native
