#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <new>
#include <set>
#include <string>
#include <system_error>
#include <vector>

#include "fabric/cut_connections.hpp"
#include "fabric/kept_connections.hpp"
#include "fabric/segment_folder.hpp"
#include "memory/host.hpp"
#include "systems/commits/roles.hpp"
#include "systems/commits/stall_watch.hpp"

namespace numatwin::native {
namespace {

// A client that shall die holding locks, and takes none, dies without.
constexpr std::int64_t patience_ns = 500'000'000;
// Looks at the board as often.
constexpr int period_ms = 2;

[[noreturn]] void fail(const char* what) {
    throw std::system_error(errno, std::generic_category(), what);
}

std::string name_of(const RunSetup& setup, std::uint32_t role) {
    if (role < setup.clients) return "client " + std::to_string(role);
    const std::uint32_t node = role - setup.clients;
    for (std::size_t server = 0; server < setup.storage.size(); ++server)
        if (setup.storage[server] == node) return "storage server " + std::to_string(server);
    return "the timestamp server";
}

class Launcher {
  public:
    Launcher(const RunSetup& setup, int board_descriptor, int control)
        : setup_(setup), board_(setup, board_descriptor), control_(control), stall_(setup) {
        sigset_t children;
        ::sigemptyset(&children);
        ::sigaddset(&children, SIGCHLD);
        if (::sigprocmask(SIG_BLOCK, &children, &mask_before_) != 0) fail("signals");
        signals_ = ::signalfd(-1, &children, SFD_CLOEXEC | SFD_NONBLOCK);
        if (signals_ < 0) fail("signals");
        pids_.assign(setup.roles(), 0);
        stopped_.assign(setup.stop_node.size(), false);
        if (setup.cut_ns.empty()) return;
        rlimit files{};  // this process has all connections that may be cut
        ::getrlimit(RLIMIT_NOFILE, &files);
        files.rlim_cur = files.rlim_max;
        ::setrlimit(RLIMIT_NOFILE, &files);
    }
    ~Launcher() {
        kill_all();
        ::close(signals_);
    }
    Launcher(const Launcher&) = delete;
    Launcher& operator=(const Launcher&) = delete;

    void run() {
        try {
            // Before the first fork: all have it in common.
            if (makes_segments(setup_.fabric)) use_segment_folder();
        } catch (const std::exception& failure) {
            board_.fail_run(failure.what());
            return;
        }
        // Servers first, so that clients find their addresses.
        for (std::uint32_t role = setup_.clients; role < setup_.roles(); ++role) start(role);
        for (std::uint32_t role = 0; role < setup_.clients; ++role) start(role);
        while (running_ > 0 && wait_for_news()) {
            reap();
            if (!board_.failure().empty()) return;
            for (std::size_t k = 0; k < setup_.stop_node.size(); ++k) play_stop(k);
            play_cuts();
            if (board_.phase() != Phase::running) continue;
            for (std::size_t k = 0; k < setup_.death_client.size(); ++k) play_death(k);
            for (std::uint32_t client = 0; client < setup_.clients; ++client) fence(client);
            if (stall_.is_on()) look_for_stall();
        }
    }

  private:
    void start(std::uint32_t role) {
        const pid_t launcher = ::getpid();
        const pid_t pid = ::fork();
        if (pid < 0) {
            board_.fail_run(std::string("no process for ") + name_of(setup_, role) + ": " +
                            std::strerror(errno));
            return;
        }
        if (pid > 0) {
            pids_[role] = pid;
            ++running_;
            return;
        }
        // The launcher may have died before this could be asked for.
        if (::prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || ::getppid() != launcher) ::_exit(1);
        ::sigprocmask(SIG_SETMASK, &mask_before_, nullptr);
        ::close(control_);
        board_.role(role).pid.store(::getpid());
        try {
            if (role < setup_.cpus.size()) pin_thread(setup_.cpus[role]);
            const auto fabric = ucx_fabric(setup_.fabric);
            run_role(setup_, board_, role, *fabric, &kept_);
            // What is exposed stays until all are done; connections are not worth closing.
            while (board_.phase() < Phase::finished && role >= setup_.clients) ::usleep(1000);
        } catch (const std::bad_alloc&) {
            board_.fail(role, "no memory left for the network of a process");
        } catch (const std::exception& failure) {
            board_.fail(role, failure.what());
        }
        ::_exit(0);
    }

    // False once the parent is gone, or has had enough.
    bool wait_for_news() {
        pollfd waited[] = {{control_, 0, 0}, {signals_, POLLIN, 0}};
        ::poll(waited, 2, period_ms);
        signalfd_siginfo ignored;
        while (::read(signals_, &ignored, sizeof ignored) > 0) {
        }
        return waited[0].revents == 0;
    }

    void reap() {
        for (std::uint32_t role = 0; role < setup_.roles(); ++role) {
            int status = 0;
            if (pids_[role] == 0 || ::waitpid(pids_[role], &status, WNOHANG) <= 0) continue;
            ended(role, status);
        }
    }

    void ended(std::uint32_t role, int status) {
        pids_[role] = 0;
        --running_;
        auto& slot = board_.role(role);
        const bool wanted =
            slot.holding.load() != 0 || dying_.contains(role) || fenced_.contains(role);
        const Phase phase = board_.phase();
        const bool was_done = slot.state.load() >= RoleState::done;
        if (!was_done && role >= setup_.clients && phase != Phase::finished)
            board_.fail_run(name_of(setup_, role) + " died" + cause(status));
        else if (!was_done && role < setup_.clients && phase == Phase::starting)
            board_.fail_run(name_of(setup_, role) + " died" + cause(status) +
                            " before the run began");
        if (!was_done && !wanted && phase < Phase::stopping && role < setup_.clients) {
            if (board_.traced()) board_.log(role, RowKind::died, role, 0, 0);
            stall_.died(name_of(setup_, role) + " died" + cause(status));
        }
        if (WIFSIGNALED(status))
            slot.killed.store(1 + static_cast<std::uint32_t>(WTERMSIG(status)));
        slot.gone.store(1, std::memory_order_release);
    }

    static std::string cause(int status) {
        if (WIFSIGNALED(status)) return std::string(" (") + ::strsignal(WTERMSIG(status)) + ")";
        return " (exit status " + std::to_string(WEXITSTATUS(status)) + ")";
    }

    void look_for_stall() {
        std::uint64_t ended = 0;
        std::uint32_t left = 0;
        for (std::uint32_t client = 0; client < setup_.clients; ++client) {
            ended += board_.counters(client).ended();
            left += pids_[client] != 0 && board_.role(client).state.load() < RoleState::done;
        }
        // Clients are done only after this has changed.
        if (board_.phase() != Phase::running) return;
        if (const auto why = stall_.look(board_.now_ns(), ended, left)) board_.fail_run(*why);
    }

    // A server that stops does nothing until it goes on; as the run ends, all go on.
    void play_stop(std::size_t which) {
        const pid_t pid = pids_[setup_.node_role(setup_.stop_node[which])];
        const std::int64_t now_ns = board_.now_ns(), until_ns = setup_.return_ns[which];
        const bool stops = board_.phase() == Phase::running && now_ns >= setup_.stop_ns[which] &&
                           (until_ns < 0 || now_ns < until_ns);
        if (pid == 0 || stops == stopped_[which]) return;
        stopped_[which] = stops;
        ::kill(pid, stops ? SIGSTOP : SIGCONT);
    }

    // To and from a client that is dead nothing passes either: what it had sent would else arrive
    // after its locks were broken and its timestamps set. As the run ends, all are back.
    void play_cuts() {
        if (setup_.cut_ns.empty()) return;
        try {
            cut_.take(kept_);
            cut_.set([this](std::uint32_t one, std::uint32_t other) {
                return is_dead(one) || is_dead(other) || is_cut(one, other);
            });
        } catch (const std::exception& failure) {
            board_.fail_run(failure.what());
        }
    }
    bool is_dead(std::uint32_t role) const { return pids_[role] == 0 || fenced_.contains(role); }
    bool is_cut(std::uint32_t one, std::uint32_t other) const {
        const std::int64_t now_ns = board_.now_ns();
        for (std::size_t k = 0; board_.phase() == Phase::running && k < setup_.cut_ns.size(); ++k) {
            const std::uint32_t* sides = &setup_.cut_side[k * setup_.roles()];
            if (now_ns >= setup_.cut_ns[k] && now_ns < setup_.mend_ns[k] &&
                sides[one] + sides[other] == 3)
                return true;
        }
        return false;
    }

    // Once its time has come: as it comes to its step; never where an install waits for a path.
    void play_death(std::size_t which) {
        const std::uint32_t client = setup_.death_client[which];
        const std::int64_t at_ns = setup_.death_ns[which], step = setup_.death_step[which];
        auto& slot = board_.role(client);
        const std::int64_t now_ns = board_.now_ns();
        if (now_ns < at_ns || pids_[client] == 0) return;
        slot.die.store(2 + step);
        const bool waits = step >= 0 || now_ns < at_ns + patience_ns || slot.installing.load() != 0;
        if (slot.holding.load(std::memory_order_acquire) == 0 && waits) return;
        dying_.insert(client);
        ::kill(pids_[client], SIGKILL);
    }

    // Stops it first: if it is in the middle of installing, it goes on until that is done. So what
    // it wrote has been written in full, and it will never write again.
    void fence(std::uint32_t client) {
        auto& slot = board_.role(client);
        if (slot.fence.load(std::memory_order_seq_cst) == 0 || slot.gone.load() != 0) return;
        const pid_t pid = pids_[client];
        if (pid == 0 || fenced_.contains(client)) return;
        ::kill(pid, SIGSTOP);
        int status = 0;
        if (::waitpid(pid, &status, WUNTRACED) != pid) return;
        if (!WIFSTOPPED(status)) {
            ended(client, status);
            return;
        }
        if (slot.installing.load(std::memory_order_seq_cst) != 0) {
            ::kill(pid, SIGCONT);
            return;
        }
        fenced_.insert(client);
        play_cuts();
        // In its stead: it never learns more of it.
        board_.log(client, RowKind::fenced, client, 0, 0);
        ::kill(pid, SIGKILL);
    }

    void kill_all() noexcept {
        for (const pid_t pid : pids_)
            if (pid != 0) ::kill(pid, SIGKILL);
        for (auto& pid : pids_) {
            if (pid != 0) ::waitpid(pid, nullptr, 0);
            pid = 0;
        }
    }

    const RunSetup& setup_;
    Board board_;
    int control_;
    KeptConnections kept_;
    CutConnections cut_;
    int signals_ = -1;
    sigset_t mask_before_{};
    std::vector<pid_t> pids_;    // by role; 0: not there
    std::vector<bool> stopped_;  // by stop: whether its server does nothing
    std::uint32_t running_ = 0;
    std::set<std::uint32_t> dying_, fenced_;
    StallWatch stall_;
};

}  // namespace

void launch(const RunSetup& setup, int board_descriptor, int control_descriptor) {
    Launcher(setup, board_descriptor, control_descriptor).run();
}

}  // namespace numatwin::native
