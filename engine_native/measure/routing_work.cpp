// Routing as one worker does it, from a batch of keys to the targets' incoming buffers.
#include <memory>
#include <random>
#include <stdexcept>
#include <vector>

#include "measure/engine_work.hpp"
#include "memory/memory.hpp"
#include "systems/eris/router.hpp"

namespace numatwin::native {
namespace {

constexpr std::size_t kBatch = 512;
constexpr std::size_t kPairs = std::size_t{1} << 14;
constexpr std::size_t kMulticastBytes = 4096;
constexpr std::size_t kFlushesHeld = 8;  // by an incoming buffer

std::vector<Partition> equal_partitions(std::size_t targets) {
    const std::uint64_t width = ~std::uint64_t{0} / targets;
    std::vector<Partition> partitions;
    for (std::size_t at = 0; at < targets; ++at) {
        partitions.push_back({at * width, static_cast<std::uint32_t>(at)});
    }
    return partitions;
}

class Worker {
  public:
    Worker(std::size_t targets, std::size_t buffer_bytes)
        : table_(memory_, equal_partitions(targets), 1), pairs_(kPairs) {
        std::vector<IncomingBuffers*> ends;
        for (std::size_t at = 0; at < targets; ++at) {
            incoming_.push_back(std::make_unique<IncomingBuffers>(
                memory_, kFlushesHeld * (buffer_bytes + kMulticastBytes)));
            ends.push_back(incoming_.back().get());
        }
        outgoing_ = std::make_unique<OutgoingBuffers>(memory_, ends,
                                                      OutgoingSizes{buffer_bytes, kMulticastBytes});
        router_ = std::make_unique<Router>(*outgoing_);
        header_.entry_words = 2;
        std::mt19937_64 random(1);
        for (Pair& pair : pairs_) pair = {random(), 1};
    }

    double route_batch() {
        std::span<const Pair> left(pairs_.data() + at_, kBatch);
        at_ = (at_ + kBatch) % kPairs;
        while (!left.empty()) {
            left = left.subspan(router_->route_pairs(table_, header_, left));
            if (!left.empty()) {
                for (const auto& buffers : incoming_) buffers->swap();
            }
        }
        return kBatch;
    }

  private:
    HeapMemory memory_;
    PartitionTree table_;
    std::vector<std::unique_ptr<IncomingBuffers>> incoming_;
    std::unique_ptr<OutgoingBuffers> outgoing_;
    std::unique_ptr<Router> router_;
    CommandHeader header_;
    std::vector<Pair> pairs_;
    std::size_t at_ = 0;
};

}  // namespace

Work routing(std::size_t targets, std::size_t buffer_bytes) {
    if (targets == 0) throw std::invalid_argument("expected at least one target");
    return [worker = std::make_shared<Worker>(targets, buffer_bytes)](std::int64_t end_ns) {
        return turns_until(end_ns, [&worker] {
            double done = 0.0;
            for (int batch = 0; batch < 4; ++batch) done += worker->route_batch();
            return done;
        });
    };
}

}  // namespace numatwin::native
