// run_counted COMMAND…: runs a command between the marks of its begin and its end, and ends with
// its status as a shell would.
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>

#include "numatwin.emulator.h"

int main(int argc, char** argv) {
    if (argc < 2) {
        std::fprintf(stderr, "run_counted: expected a command\n");
        return 2;
    }
    // Who interrupts means the command.
    std::signal(SIGINT, SIG_IGN);
    std::signal(SIGQUIT, SIG_IGN);
    posix_spawnattr_t attributes;
    posix_spawnattr_init(&attributes);
    sigset_t restored;
    sigemptyset(&restored);
    sigaddset(&restored, SIGINT);
    sigaddset(&restored, SIGQUIT);
    posix_spawnattr_setsigdefault(&attributes, &restored);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);
    // What the kernel executes for one that does nothing: the least of some.
    for (int tries = 0; tries < 64; ++tries) {
        NUMATWIN_COUNT_MARK(0x05);
        getppid();
        NUMATWIN_COUNT_MARK(0x06);
    }
    NUMATWIN_COUNT_MARK(0x03);
    pid_t child = 0;
    const int failed = posix_spawnp(&child, argv[1], nullptr, &attributes, argv + 1, environ);
    int status = 0;
    if (failed == 0)
        while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
        }
    if (failed == 0) {
        NUMATWIN_COUNT_MARK(0x04);
    } else {
        NUMATWIN_COUNT_MARK(0x07);
        if (failed == ENOENT) {
            std::fprintf(stderr, "numatwin: error: no such command: '%s'\n", argv[1]);
            return 127;
        }
        std::fprintf(stderr, "numatwin: error: %s: %s\n", argv[1], std::strerror(failed));
        return 126;
    }
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}
