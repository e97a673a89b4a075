// run_counted FROM FOR COMMAND…: runs a command between the marks of its begin and its end, and
// ends with its status as a shell would.
//
// A region begins FROM seconds after the command, and where that takes FOR seconds, all ends with
// it;
// '-' for neither. SIGUSR1 begins a region, too, and SIGUSR2 ends it: what the command itself sends
// to its parent, as in `sh -c 'server & sleep 5; kill -USR1 $PPID; client; kill -USR2 $PPID'`.
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>

#include "numatwin.emulator.h"

namespace {

using Clock = std::chrono::steady_clock;
using Time = std::optional<Clock::time_point>;

Time after(Clock::time_point begin, const char* seconds) {
    if (std::strcmp(seconds, "-") == 0) return std::nullopt;
    const std::chrono::duration<double> given(std::atof(seconds));
    return begin + std::chrono::duration_cast<Clock::duration>(given);
}

// The next of these signals; 0 at the time limit.
int next_signal(const sigset_t& signals, Time until) {
    if (!until) return sigwaitinfo(&signals, nullptr);
    const auto left = std::max(*until - Clock::now(), Clock::duration::zero());
    const auto seconds = std::chrono::floor<std::chrono::seconds>(left);
    const timespec limit{seconds.count(), std::chrono::nanoseconds(left - seconds).count()};
    const int signal = sigtimedwait(&signals, nullptr, &limit);
    return signal < 0 && errno == EAGAIN ? 0 : signal;
}

// Waits for the command's end, or that of the region that its caller asked for; its status of wait.
int counted(pid_t child, const sigset_t& signals, const char* from, const char* length) {
    Time begin = after(Clock::now(), from), end;
    if (!begin && std::strcmp(length, "-") != 0) begin = Clock::now();
    for (int status = 0;;) {
        const int signal = next_signal(signals, begin ? begin : end);
        if (signal == SIGCHLD && waitpid(child, &status, WNOHANG) == child) {
            if (begin)
                std::fprintf(stderr,
                             "numatwin: the command ended before --count-from: all of it "
                             "was counted\n");
            return status;
        }
        if (signal == SIGUSR1 || (signal == 0 && begin)) NUMATWIN_COUNT_MARK(0x01);
        if (signal == SIGUSR2 || (signal == 0 && !begin)) NUMATWIN_COUNT_MARK(0x02);
        if (signal == 0 && !begin) return 0;  // what still runs ends with this process
        if (signal == 0) {
            end = after(*begin, length);
            begin.reset();
        }
    }
}

}  // namespace

int main(int argc, char** argv) {
    if (argc < 4) {
        std::fprintf(stderr, "run_counted: expected FROM, FOR and a command\n");
        return 2;
    }
    char** const command = argv + 3;
    // Who interrupts means the command.
    std::signal(SIGINT, SIG_IGN);
    std::signal(SIGQUIT, SIG_IGN);
    sigset_t waited, before;
    sigemptyset(&waited);
    for (const int signal : {SIGCHLD, SIGUSR1, SIGUSR2}) sigaddset(&waited, signal);
    sigprocmask(SIG_BLOCK, &waited, &before);
    posix_spawnattr_t attributes;
    posix_spawnattr_init(&attributes);
    sigset_t restored;
    sigemptyset(&restored);
    sigaddset(&restored, SIGINT);
    sigaddset(&restored, SIGQUIT);
    posix_spawnattr_setsigdefault(&attributes, &restored);
    posix_spawnattr_setsigmask(&attributes, &before);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK);
    // What the kernel executes for one that does nothing: the least of some.
    for (int tries = 0; tries < 64; ++tries) {
        NUMATWIN_COUNT_MARK(0x05);
        getppid();
        NUMATWIN_COUNT_MARK(0x06);
    }
    NUMATWIN_COUNT_MARK(0x03);
    pid_t child = 0;
    const int failed = posix_spawnp(&child, command[0], nullptr, &attributes, command, environ);
    if (failed == 0) {
        const int status = counted(child, waited, argv[1], argv[2]);
        NUMATWIN_COUNT_MARK(0x04);
        return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    }
    NUMATWIN_COUNT_MARK(0x07);
    if (failed == ENOENT) {
        std::fprintf(stderr, "numatwin: error: no such command: '%s'\n", command[0]);
        return 127;
    }
    std::fprintf(stderr, "numatwin: error: %s: %s\n", command[0], std::strerror(failed));
    return 126;
}
