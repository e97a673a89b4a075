#include "systems/commits/thread_cluster.hpp"

#include <chrono>
#include <stdexcept>

#include "memory/host.hpp"
#include "systems/commits/roles.hpp"

namespace numatwin::native {

using std::chrono::milliseconds;

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
    if (!setup_.deaths.empty()) deaths_ = std::thread([this] { play_deaths(); });
}

void ThreadCluster::play_deaths() {
    while (board_.phase() == Phase::running) {
        for (const auto& [client, at_ns] : setup_.deaths)
            if (board_.now_ns() >= at_ns) board_.role(client).die.store(1);
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
