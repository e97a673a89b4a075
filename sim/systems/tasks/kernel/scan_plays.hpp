// Single scans by one thread or another way, one after the other, by the thousand: what a chooser
// of access paths learns from. The rules are those of TaskModel, of which this runs one task at a
// time beside background work that has settled.
#pragma once

#include <cstdint>
#include <vector>

#include "machine/kernel/shared_service.hpp"
#include "systems/tasks/kernel/setup.hpp"

namespace numatwin {

class ScanPlays {
  public:
    // The stages of `setup` are what scans may be; its first worker is the thread that scans.
    explicit ScanPlays(const TaskSetup& setup);

    // The number of a state in which these pieces of the setup's background (positions) go on, and
    // have done so for long.
    std::uint32_t state(const std::vector<std::int64_t>& pieces);
    // Units per ps of each of its pieces, with nothing beside them.
    std::vector<double> rates(std::uint32_t state) const;
    std::size_t states() const { return state_.size(); }

    // How long a scan takes: in a state, of a stage, of so many entries at a home, by a path (0 to
    // 2, as in TaskSetup::paths).
    Time play(std::uint32_t state, std::size_t stage, std::size_t home, double entries,
              std::int64_t path) const;

  private:
    struct Demands {
        std::uint32_t by_cpu, work;
        std::uint32_t copy[2];  // coherent, and not
    };
    struct State {
        SharedService service;
        Time now;
        std::vector<double> rates;
    };

    std::vector<MemoryUse> memory_of(const StageSetup& stage, std::size_t part) const;
    Time finish(SharedService& service, std::uint64_t job, Time now) const;

    const TaskSetup setup_;
    std::size_t n_, node_, core_;
    std::int64_t engine_;
    SharedService base_;
    std::uint32_t passing_;
    std::vector<Demands> demands_;  // by stage and home
    std::vector<std::uint32_t> background_;
    std::vector<State> state_;
};

}  // namespace numatwin
