#include "systems/commits/roles.hpp"

#include <chrono>
#include <new>
#include <stdexcept>

#include "memory/host.hpp"
#include "memory/mapping.hpp"
#include "systems/commits/one_sided_client.hpp"
#include "systems/commits/two_phase.hpp"

namespace numatwin::native {
namespace {

using std::chrono::milliseconds;

void run_client(const RunSetup& setup, Board& board, std::uint32_t role, Fabric& fabric,
                const KeptConnections* kept) {
    const auto client = make_client(setup, board, role, fabric);
    board.publish_contact(role, fabric.contact());
    client->connect();
    board.role(role).state.store(RoleState::connected, std::memory_order_release);
    while (board.phase() == Phase::starting) {
        fabric.progress();  // servers may connect meanwhile
        std::this_thread::sleep_for(std::chrono::microseconds(500));
    }
    if (kept != nullptr) kept->keep_own(role, !setup.cut_ns.empty());
    client->run();
}

void run_node(const RunSetup& setup, Board& board, std::uint32_t role, Fabric& fabric,
              const KeptConnections* kept) {
    const auto node = make_node(setup, board, role - setup.clients, fabric);
    node->load();
    board.publish_contact(role, fabric.contact());
    node->serve(setup.cut_ns.empty() ? nullptr : kept);
}

}  // namespace

std::unique_ptr<CommitClient> make_client(const RunSetup& setup, Board& board, std::uint32_t client,
                                          Fabric& fabric) {
    if (setup.one_sided) return std::make_unique<OneSidedClient>(setup, board, client, fabric);
    return std::make_unique<TwoPhaseClient>(setup, board, client, fabric);
}

std::unique_ptr<CommitNode> make_node(const RunSetup& setup, Board& board, std::uint32_t node,
                                      Fabric& fabric) {
    if (setup.one_sided) return std::make_unique<OneSidedNode>(setup, board, node, fabric);
    return std::make_unique<TwoPhaseNode>(setup, board, node, fabric);
}

void run_role(const RunSetup& setup, Board& board, std::uint32_t role, Fabric& fabric,
              const KeptConnections* kept) noexcept {
    if (setup.crowded) fabric.spins = 1;
    try {
        if (role < setup.clients)
            run_client(setup, board, role, fabric, kept);
        else
            run_node(setup, board, role, fabric, kept);
        board.role(role).state.store(RoleState::done, std::memory_order_release);
    } catch (const CommitClient::Left&) {
        board.role(role).state.store(RoleState::done, std::memory_order_release);
    } catch (const OutOfMemory& failure) {
        board.fail(role, failure.what());
    } catch (const std::bad_alloc&) {
        board.fail(role, role < setup.clients ? "no memory left for a client"
                                              : "no memory left for a server and its records");
    } catch (const std::exception& failure) {
        // Who sees a connection break is not who broke it: whoever reaps that one tells first.
        if (board.phase() == Phase::running) std::this_thread::sleep_for(milliseconds(300));
        board.fail(role, failure.what());
    }
}

ThreadCluster::ThreadCluster(const RunSetup& setup) : setup_(setup), board_(setup_) {}

ThreadCluster::~ThreadCluster() {
    stop();
}

void ThreadCluster::start() {
    for (std::uint32_t role = 0; role < setup_.roles(); ++role) fabrics_.push_back(local_fabric());
    for (std::uint32_t role = 0; role < setup_.roles(); ++role)
        threads_.emplace_back([this, role] {
            if (role < setup_.cpus.size()) pin_thread(setup_.cpus[role]);
            run_role(setup_, board_, role, *fabrics_[role]);
        });
    while (!board_.all_roles(RoleState::connected)) {
        if (const auto failure = board_.failure(); !failure.empty()) {
            stop();
            throw std::runtime_error(failure);
        }
        std::this_thread::sleep_for(milliseconds(1));
    }
    board_.begin();
    if (!setup_.death_client.empty()) deaths_ = std::thread([this] { play_deaths(); });
}

void ThreadCluster::play_deaths() {
    while (board_.phase() == Phase::running) {
        for (std::size_t death = 0; death < setup_.death_client.size(); ++death)
            if (board_.now_ns() >= setup_.death_ns[death])
                board_.role(setup_.death_client[death]).die.store(2 + setup_.death_step[death]);
        std::this_thread::sleep_for(milliseconds(1));
    }
}

void ThreadCluster::stop() {
    if (threads_.empty()) return;
    if (board_.phase() == Phase::running) board_.set_phase(Phase::stopping);
    if (deaths_.joinable()) deaths_.join();
    while (board_.phase() == Phase::stopping && !board_.all_clients(RoleState::done))
        std::this_thread::sleep_for(milliseconds(1));
    board_.set_phase(Phase::finished);
    for (auto& fabric : fabrics_) fabric->wake();
    for (auto& thread : threads_) thread.join();
    threads_.clear();
    fabrics_.clear();
}

}  // namespace numatwin::native
