// Times of an RSI commit over shared memory and of its parts, by turns in one process, in ns: means
// without the slowest twentieth and the clock's own time.
//
//     native_commits DIRECT RECORDS COMMITS KEY KEY KEY KEY
//
// One client; one node that holds records and timestamps, a forked process. Prints the commit (from
// the first CAS to the timestamp's bit, by the protocol), the same CAS and copies on the shared
// mapping with nothing between, the same through the fabric, and a hash of what the records hold.
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <numeric>
#include <stdexcept>
#include <vector>

#include "fabric/forked.hpp"
#include "systems/commits/board.hpp"
#include "systems/commits/one_sided_client.hpp"
#include "systems/commits/roles.hpp"

namespace numatwin::native {
namespace {

// Of one or more times without the slowest twentieth, and of few without the slowest: one of them
// may take longer than all others together. Clocks that tick in tens of nanoseconds do it no harm,
// as they would a median.
double usual_mean(std::vector<double> all) {
    const std::size_t slow = all.size() > 1 ? (all.size() + 19) / 20 : 0;
    std::ranges::sort(all);
    all.resize(all.size() - slow);
    return std::accumulate(all.begin(), all.end(), 0.0) / static_cast<double>(all.size());
}

using Clock = std::chrono::steady_clock;

double ns_since(Clock::time_point began) {
    return std::chrono::duration<double, std::nano>(Clock::now() - began).count();
}

void wait_until(Board& board, const Forked& peer, const std::function<bool()>& done) {
    while (!done()) {
        if (const auto failure = board.failure(); !failure.empty())
            throw std::runtime_error(failure);
        if (peer.ended()) throw std::runtime_error("the second process ended");
        ::usleep(500);
    }
}

// CAS and copies as a commit does them, on other records of the same region.
class RawCommit {
  public:
    RawCommit(const RunSetup& setup, Fabric& fabric, Fabric::Peer peer)
        : setup_(setup), fabric_(fabric), peer_(peer), blocks_(setup.updates * bytes()) {
        offsets_.resize(setup.updates);
        expected_.resize(setup.updates);
        words_.resize(setup.updates);
    }

    // Reads the blocks, as a transaction has read them before it commits.
    void read(const std::vector<std::int64_t>& keys) {
        Pending pending;
        for (std::size_t k = 0; k < offsets_.size(); ++k) {
            offsets_[k] = setup_.block_of(keys[k]) * bytes();
            fabric_.get(peer_, offsets_[k], &blocks_[k * bytes()], bytes(), pending);
        }
        fabric_.wait(pending);
        for (std::size_t k = 0; k < offsets_.size(); ++k) {
            std::memcpy(&expected_[k], &blocks_[k * bytes()], word_bytes);
            words_[k] = expected_[k] | LockWord::lock_bit;
        }
    }

    double direct_ns(std::byte* region) {
        const auto began = Clock::now();
        for (std::size_t k = 0; k < offsets_.size(); ++k)
            words_[k] = compare_and_swap(region + offsets_[k], expected_[k], words_[k]);
        for (std::size_t k = 0; k < offsets_.size(); ++k)
            std::memcpy(region + offsets_[k], &blocks_[k * bytes()], bytes());
        landed();
        const double took_ns = ns_since(began);
        check();
        return took_ns;
    }

    double fabric_ns() {
        Pending pending;
        const auto began = Clock::now();
        for (std::size_t k = 0; k < offsets_.size(); ++k)
            fabric_.compare_and_swap(peer_, offsets_[k], expected_[k], words_[k], pending);
        fabric_.wait(pending);
        for (std::size_t k = 0; k < offsets_.size(); ++k)
            fabric_.put(peer_, offsets_[k], &blocks_[k * bytes()], bytes());
        fabric_.flush(peer_, pending);
        fabric_.wait(pending);
        landed();
        const double took_ns = ns_since(began);
        check();
        return took_ns;
    }

  private:
    // A copy is done when others can see it, not when its stores wait in this processor: a commit's
    // last step, an atomic add, waits for them too.
    static void landed() { fence(true); }
    std::size_t bytes() const { return setup_.block_bytes(); }
    void check() const {
        if (words_ != expected_) throw std::runtime_error("a record was not as it was read");
    }

    const RunSetup& setup_;
    Fabric& fabric_;
    Fabric::Peer peer_;
    std::vector<std::byte> blocks_;
    std::vector<std::uint64_t> offsets_, expected_, words_;
};

void measure_commit(const RunSetup& setup, std::uint32_t commits) {
    Board board(setup);
    const Forked server([&] {
        try {
            const auto fabric = ucx_fabric(setup.fabric);
            run_role(setup, board, 1, *fabric);
        } catch (const std::exception& failure) {
            board.fail(1, failure.what());
        }
    });
    wait_until(board, server, [&] { return board.role(1).state.load() >= RoleState::ready; });
    const auto fabric = ucx_fabric(setup.fabric);
    board.publish_contact(0, fabric->contact());
    OneSidedClient client(setup, board, 0, *fabric);
    client.connect();
    const Fabric::Peer peer = fabric->connect(board.contact(1));
    std::byte* region = fabric->reach(peer);
    board.begin();

    RawCommit raw(setup, *fabric, peer);
    // Records of their own, so that none finds in the caches what another has left there.
    RunSetup other = setup;
    std::rotate(other.streams.begin(), other.streams.begin() + 2, other.streams.end());
    TransactionDraw others(other, 0);
    std::vector<double> commit_ns, raw_ns, raw_fabric_ns, clocks_ns;
    for (std::uint32_t k = 0; k < commits; ++k) {
        client.begin_next();
        if (client.prepare() != granted) throw std::runtime_error("a lone client aborted");
        auto began = Clock::now();
        if (client.commit() != granted) throw std::runtime_error("a lone client aborted");
        commit_ns.push_back(ns_since(began));
        others.next();
        raw.read(others.reads());
        if (region != nullptr) raw_ns.push_back(raw.direct_ns(region));
        others.next();
        raw.read(others.reads());
        raw_fabric_ns.push_back(raw.fabric_ns());
        client.run_one();
        began = Clock::now();
        clocks_ns.push_back(ns_since(began));
    }
    std::uint64_t hash = 14695981039346656037u;  // FNV-1a of the stocks
    std::vector<std::byte> block(setup.block_bytes());
    for (std::int64_t key = 0; key < setup.records; ++key) {
        Pending pending;
        fabric->get(peer, setup.block_of(key) * setup.block_bytes(), block.data(), block.size(),
                    pending);
        fabric->wait(pending);
        std::uint64_t stock;
        std::memcpy(&stock, &block[word_bytes], word_bytes);
        hash = (hash ^ stock) * 1099511628211u;
    }
    // What two looks at the clock take is none of theirs.
    const double clock_ns = usual_mean(clocks_ns);
    std::printf("%f %f %f %016" PRIx64 "\n", usual_mean(commit_ns) - clock_ns,
                raw_ns.empty() ? 0.0 : usual_mean(raw_ns) - clock_ns,
                usual_mean(raw_fabric_ns) - clock_ns, hash);
}

}  // namespace
}  // namespace numatwin::native

int main(int count, char** words) {
    using namespace numatwin::native;
    RunSetup setup;
    setup.nodes = 1, setup.managers = {0}, setup.timestamps = 0, setup.inserts = 0;
    setup.snapshot_bytes = 8;
    setup.fabric.transports = "posix,self";
    if (count != 8) return 2;
    setup.fabric.direct = std::strcmp(words[1], "direct") == 0;
    setup.records = std::atoll(words[2]);
    for (int k = 4; k < 8; ++k) setup.streams.push_back(std::strtoull(words[k], nullptr, 10));
    try {
        measure_commit(setup, static_cast<std::uint32_t>(std::atoi(words[3])));
    } catch (const std::exception& failure) {
        std::fprintf(stderr, "%s\n", failure.what());
        return 1;
    }
}
