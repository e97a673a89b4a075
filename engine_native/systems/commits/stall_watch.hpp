// Whether a run stands still since a client of it was killed, or has no client any more.
//
// Who is killed over shared memory may have taken a place in a server's queue and not filled it yet
// (README.md): the server waits for that forever, the clients wait for the server, and no process
// sees anything amiss. What can be seen is that no transaction ends any more. Time and counts are
// told to this: it reads no clock and no board.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "systems/commits/run_setup.hpp"

namespace numatwin::native {

class StallWatch {
  public:
    explicit StallWatch(const RunSetup& setup);

    // A client died that nobody wanted dead; `how`: as "client 1 died (Killed)".
    void died(std::string_view how);
    // Whether anybody did: before, there is nothing to look for.
    bool is_on() const { return deaths_ > 0; }
    // A look at the time `now_ns`, when so many transactions have ended (whether they committed,
    // aborted or were given up) and so many clients live that are not done. Tells in one line why
    // the run has to end, if so.
    std::optional<std::string> look(std::int64_t now_ns, std::uint64_t ended,
                                    std::uint32_t clients_left);

    // For how long no transaction ends before that is reported; 0: however long.
    std::int64_t patience_ns() const { return patience_ns_; }

  private:
    std::string message(std::string_view then) const;

    std::int64_t patience_ns_;
    std::uint32_t deaths_ = 0;
    std::string last_death_;
    std::optional<std::int64_t> looked_ns_;
    std::int64_t silent_ns_ = 0;  // since the last end of a transaction, or the first look
    std::uint64_t ended_ = 0;
};

}  // namespace numatwin::native
