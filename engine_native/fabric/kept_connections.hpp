// Keeps the network connections of a process open when it is killed.
//
// UCX emulates gets and atomics over TCP: the process that they ask for answers. Where the answer
// meets a connection that was reset, UCX (seen with 1.13) aborts that process: a client that is
// killed would take servers with it. A connection is only reset when nobody has it open any more.
// So the parent of all has a pair of sockets; each client sends its connections to the one end, and
// what was sent waits at the other until the parent ends, or takes it (cut_connections.hpp).
// Answers to the dead get lost in there.
#pragma once

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <span>
#include <stdexcept>
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

    // All TCP connections that this process, which has that role, has now. The system may refuse to
    // keep so many: then it is as if they were not kept; it throws where they shall be `taken`.
    void keep_own(std::uint32_t role, bool taken) const {
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
            if (!send(role, all.subspan(k, std::min(a_message, all.size() - k)), taken) && taken)
                refuse();
    }

    // What was sent and not taken yet: calls with a role and a connection of it.
    template <class Act>
    void take(const Act& act) const {
        for (;;) {
            Letter letter(a_message);
            if (::recvmsg(ends_[1], &letter.head, MSG_DONTWAIT | MSG_CMSG_CLOEXEC) <= 0) return;
            const cmsghdr* rights = CMSG_FIRSTHDR(&letter.head);
            if (rights == nullptr || (letter.head.msg_flags & MSG_CTRUNC) != 0) refuse();
            std::array<int, a_message> connections{};
            const std::size_t bytes = rights->cmsg_len - CMSG_LEN(0);
            std::memcpy(connections.data(), CMSG_DATA(rights), bytes);
            for (std::size_t k = 0; k < bytes / sizeof(int); ++k) act(letter.role, connections[k]);
        }
    }

  private:
    static constexpr std::size_t a_message = 250;  // SCM_MAX_FD is 253

    // A role, and room for so many connections of it.
    struct Letter {
        explicit Letter(std::size_t connections) {
            head.msg_iov = &text;
            head.msg_iovlen = 1;
            head.msg_control = control.data();
            head.msg_controllen = CMSG_SPACE(connections * sizeof(int));
        }
        std::uint32_t role = 0;
        iovec text{&role, sizeof role};
        alignas(cmsghdr) std::array<char, CMSG_SPACE(a_message * sizeof(int))> control{};
        msghdr head{};
    };

    [[noreturn]] static void refuse() {
        throw std::runtime_error(
            "too many connections for paths to be cut: fewer clients, or a higher ulimit -n");
    }
    bool send(std::uint32_t role, std::span<const int> connections, bool waits) const {
        Letter letter(connections.size());
        letter.role = role;
        cmsghdr* rights = CMSG_FIRSTHDR(&letter.head);
        rights->cmsg_level = SOL_SOCKET;
        rights->cmsg_type = SCM_RIGHTS;
        rights->cmsg_len = CMSG_LEN(connections.size_bytes());
        std::memcpy(CMSG_DATA(rights), connections.data(), connections.size_bytes());
        return ::sendmsg(ends_[0], &letter.head, MSG_NOSIGNAL | (waits ? 0 : MSG_DONTWAIT)) > 0;
    }

    std::array<int, 2> ends_{-1, -1};
};

}  // namespace numatwin::native
