// Verbs between two threads of this process, over any way that the fabric knows.
//
// Some transports need the asked end to look at the network. It does so until the asking end has
// ended its window, and so does the asking end for what comes back; a number says how many windows
// that has ended.
#include <atomic>
#include <stdexcept>
#include <vector>

#include "fabric/fabric.hpp"
#include "measure/engine_work.hpp"

namespace numatwin::native {

struct FabricPair::Ends {
    std::unique_ptr<Fabric> asking, asked;
    Fabric::Peer to_asked = 0, to_asking = 0;
    std::vector<std::byte> buffer = std::vector<std::byte>(region_bytes);
    alignas(128) std::atomic<std::uint64_t> ended{0};
    std::uint64_t answered = 0;
    // Of exchanges: turns that have begun, and those whose requests each end has landed.
    alignas(128) std::atomic<std::uint64_t> turns{0};
    alignas(128) std::atomic<std::uint64_t> landed[2] = {};
};

namespace {

std::unique_ptr<Fabric> open(const std::string& transports, bool direct) {
    if (transports == "threads") return local_fabric();
    FabricOptions options;
    options.transports = transports;
    options.direct = direct;
    return ucx_fabric(options);
}

}  // namespace

FabricPair::FabricPair(const std::string& transports, bool direct)
    : ends_(std::make_unique<Ends>()) {
    ends_->asking = open(transports, direct);
    ends_->asked = open(transports, direct);
    ends_->asked->expose(region_bytes);
    ends_->asking->expose(region_bytes);
    ends_->to_asked = ends_->asking->connect(ends_->asked->contact());
    ends_->to_asking = ends_->asked->connect(ends_->asking->contact());
    // The two are one processor apart: who waits looks, and never sleeps.
    ends_->asking->spins = ends_->asked->spins = ~std::uint32_t{0};
}

FabricPair::~FabricPair() = default;

Work FabricPair::ask(Verb verb, std::size_t bytes) {
    if (bytes == 0 || bytes % 8 != 0 || bytes > region_bytes) {
        throw std::invalid_argument("expected whole words of 8 bytes, within the region");
    }
    Ends* ends = ends_.get();
    auto request = [ends, verb, bytes, message = std::vector<std::byte>()]() mutable {
        Fabric& fabric = *ends->asking;
        Pending pending;
        std::uint64_t word = 0;
        const std::uint64_t zero = 0;
        switch (verb) {
            case Verb::kGet:
                fabric.get(ends->to_asked, 0, ends->buffer.data(), bytes, pending);
                break;
            case Verb::kPut:
                fabric.put(ends->to_asked, 0, ends->buffer.data(), bytes);
                fabric.flush(ends->to_asked, pending);
                break;
            case Verb::kCompareAndSwap:
                fabric.compare_and_swap(ends->to_asked, 0, zero, word, pending);
                break;
            case Verb::kFetchAdd:
                fabric.fetch_add(ends->to_asked, 0, zero, word, pending);
                break;
            case Verb::kMessage:
                fabric.send(ends->to_asked, {ends->buffer.data(), bytes});
                while (!fabric.receive(message)) fabric.progress();
                return 2.0;
        }
        fabric.wait(pending);
        return 1.0;
    };
    return [ends, request](std::int64_t end_ns) mutable {
        const double done =
            turns_until(end_ns, [&] { return request() + request() + request() + request(); });
        // release: what was asked before is done.
        ends->ended.fetch_add(1, std::memory_order_release);
        return done;
    };
}

Work FabricPair::answer() {
    Ends* ends = ends_.get();
    return [ends, message = std::vector<std::byte>()](std::int64_t) mutable {
        while (ends->ended.load(std::memory_order_acquire) == ends->answered) {
            ends->asked->progress();
            while (ends->asked->receive(message)) ends->asked->send(ends->to_asking, message);
        }
        ++ends->answered;
        return 0.0;
    };
}

Work FabricPair::exchange(Verb verb, std::size_t bytes, std::size_t batch, bool leads) {
    if (bytes == 0 || bytes % 8 != 0 || bytes > region_bytes || batch == 0)
        throw std::invalid_argument("expected whole words of 8 bytes, within the region");
    if (verb != Verb::kMessage && verb != Verb::kPut)
        throw std::invalid_argument("expected messages or puts");
    Ends* ends = ends_.get();
    // One turn: all of a batch posted, all of the other's batch received.
    auto turn = [ends, verb, bytes, batch, leads, from = std::vector<std::byte>(bytes),
                 message = std::vector<std::byte>()](std::uint64_t number) mutable {
        Fabric& fabric = leads ? *ends->asking : *ends->asked;
        const Fabric::Peer peer = leads ? ends->to_asked : ends->to_asking;
        std::size_t received = 0;
        Pending pending;
        for (std::size_t k = 0; k < batch; ++k) {
            if (verb == Verb::kMessage)
                fabric.send(peer, from);
            else
                fabric.put(peer, k * bytes % (region_bytes - bytes + 1) / 8 * 8, from.data(),
                           bytes);
            fabric.progress();
            while (fabric.receive(message)) ++received;
        }
        if (verb == Verb::kPut) {
            fabric.flush(peer, pending);
            fabric.wait(pending);
            received = batch;
        }
        while (received < batch) {
            fabric.progress();
            while (fabric.receive(message)) ++received;
        }
        ends->landed[leads ? 0 : 1].store(number, std::memory_order_release);
        // The other end's requests may need this one to look.
        while (ends->landed[leads ? 1 : 0].load(std::memory_order_acquire) < number)
            fabric.progress();
    };
    if (leads)
        return [ends, turn, batch](std::int64_t end_ns) mutable {
            const double done = turns_until(end_ns, [&] {
                turn(ends->turns.fetch_add(1, std::memory_order_acq_rel) + 1);
                return static_cast<double>(batch);
            });
            ends->ended.fetch_add(1, std::memory_order_release);
            return done;
        };
    return [ends, turn, batch](std::int64_t) mutable {
        double done = 0;
        for (;;) {
            const std::uint64_t mine = ends->landed[1].load(std::memory_order_relaxed);
            if (ends->turns.load(std::memory_order_acquire) > mine) {
                turn(mine + 1);
                done += static_cast<double>(batch);
            } else if (ends->ended.load(std::memory_order_acquire) != ends->answered) {
                break;
            }
        }
        ++ends->answered;
        return done;
    };
}

}  // namespace numatwin::native
