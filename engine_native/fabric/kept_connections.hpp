// Keeps the network connections of a process open when it is killed.
//
// UCX emulates gets and atomics over TCP: the process that they ask for answers. Where the answer
// meets a connection that was reset, UCX (seen with 1.13) aborts that process: a client that is
// killed would take servers with it. A connection is only reset when nobody has it open any more.
// So the parent of all has a pair of sockets; each client sends its connections to the one end, and
// what was sent waits at the other, never taken, until the parent ends. Answers to the dead get
// lost in there.
#pragma once

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <span>
#include <string>
#include <system_error>
#include <vector>

namespace numatwin::native {

class KeptConnections {
  public:
    KeptConnections() {
        if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends_.data()) != 0)
            throw std::system_error(errno, std::generic_category(), "a pair of sockets");
    }
    KeptConnections(const KeptConnections&) = delete;
    KeptConnections& operator=(const KeptConnections&) = delete;
    ~KeptConnections() {
        for (const int end : ends_) ::close(end);
    }

    // All TCP connections that this process has now. The system may refuse to keep so many: then
    // it is as if they were not kept.
    void keep_own() const {
        std::vector<int> connections;
        for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
            const int descriptor = std::stoi(entry.path().filename());
            sockaddr_storage peer{};
            socklen_t length = sizeof peer;
            const bool connected =
                ::getpeername(descriptor, reinterpret_cast<sockaddr*>(&peer), &length) == 0;
            if (connected && peer.ss_family != AF_UNIX) connections.push_back(descriptor);
        }
        const std::span<const int> all(connections);
        for (std::size_t k = 0; k < all.size(); k += a_message)
            send(all.subspan(k, std::min(a_message, all.size() - k)));
    }

  private:
    static constexpr std::size_t a_message = 250;  // SCM_MAX_FD is 253

    void send(std::span<const int> connections) const {
        char nothing = 0;
        iovec sent{&nothing, 1};
        alignas(cmsghdr) std::array<char, CMSG_SPACE(a_message * sizeof(int))> control{};
        msghdr message{};
        message.msg_iov = &sent;
        message.msg_iovlen = 1;
        message.msg_control = control.data();
        message.msg_controllen = CMSG_SPACE(connections.size_bytes());
        cmsghdr* rights = CMSG_FIRSTHDR(&message);
        rights->cmsg_level = SOL_SOCKET;
        rights->cmsg_type = SCM_RIGHTS;
        rights->cmsg_len = CMSG_LEN(connections.size_bytes());
        std::memcpy(CMSG_DATA(rights), connections.data(), connections.size_bytes());
        ::sendmsg(ends_[0], &message, MSG_DONTWAIT | MSG_NOSIGNAL);
    }

    std::array<int, 2> ends_{-1, -1};
};

}  // namespace numatwin::native
