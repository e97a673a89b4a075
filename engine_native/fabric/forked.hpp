// A second process for measurements; it ends with the object, and with the process that made it.
#pragma once

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <functional>
#include <system_error>

namespace numatwin::native {

class Forked {
  public:
    explicit Forked(const std::function<void()>& serve) {
        const pid_t parent = ::getpid();
        pid_ = ::fork();
        if (pid_ < 0) throw std::system_error(errno, std::generic_category(), "a second process");
        if (pid_ > 0) return;
        if (::prctl(PR_SET_PDEATHSIG, SIGKILL) == 0 && ::getppid() == parent) serve();
        ::_exit(0);
    }
    ~Forked() {
        ::kill(pid_, SIGKILL);
        ::waitpid(pid_, nullptr, 0);
    }
    Forked(const Forked&) = delete;
    Forked& operator=(const Forked&) = delete;
    bool ended() const {
        siginfo_t found{};
        ::waitid(P_PID, static_cast<id_t>(pid_), &found, WEXITED | WNOHANG | WNOWAIT);
        return found.si_pid == pid_;
    }

  private:
    pid_t pid_;
};

}  // namespace numatwin::native
