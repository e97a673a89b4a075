#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <exception>
#include <memory>
#include <new>
#include <string>
#include <thread>
#include <vector>

#include "fabric/segment_folder.hpp"
#include "memory/host.hpp"
#include "systems/joins/join_board.hpp"
#include "systems/joins/join_operator.hpp"

namespace numatwin::native {
namespace {

template <class Word>
void run(const JoinSetup& setup, JoinBoard& board, std::uint32_t node, Fabric& fabric) {
    const auto tables = draw_tables<Word>(setup, node);
    board.expected(node) = tables.expected;
    for (const std::uint32_t table : {0u, 1u}) {
        const auto counts = board.counts(node, table);
        for (const auto& tuple : table == 0 ? tables.inner : tables.outer)
            ++counts[partition_of(scattered(tuple.key), setup.bits())];
    }
    board.meet(node, fabric);
    JoinNode at{setup, board, node, fabric, {}, std::vector<Fabric::Peer>(setup.nodes)};
    const auto played = make_operator(at, tables);
    at.region = fabric.expose(played->region_bytes());
    board.contact(node).write(fabric.contact());
    board.meet(node, fabric);
    for (std::uint32_t other = 0; other < setup.nodes; ++other)
        if (other != node) at.peers[other] = fabric.connect(board.contact(other).read());
    for (std::uint32_t round = 0; round < setup.rounds; ++round) {
        board.meet(node, fabric);
        auto& figures = board.figures(round, node);
        figures.began_ns = steady_ns();
        played->play(round, figures);
        figures.ended_ns = steady_ns();
    }
    if (setup.keep_rows) board.add_rows(played->take_rows());
    // What is exposed stays until all are done.
    board.meet(node, fabric);
}

}  // namespace

void run_node(const JoinSetup& setup, JoinBoard& board, std::uint32_t node,
              Fabric& fabric) noexcept {
    try {
        if (!setup.cpus.empty()) pin_thread(setup.cpus[node]);
        if (setup.tuple_bytes == 8)
            run<std::uint32_t>(setup, board, node, fabric);
        else
            run<std::uint64_t>(setup, board, node, fabric);
    } catch (const std::bad_alloc&) {
        board.fail("no memory left for a node and its tables");
    } catch (const std::exception& failure) {
        board.fail(failure.what());
    }
}

void run_as_threads(const JoinSetup& setup, JoinBoard& board) {
    setup.check();
    std::vector<std::unique_ptr<Fabric>> fabrics;
    for (std::uint32_t node = 0; node < setup.nodes; ++node) fabrics.push_back(local_fabric());
    {
        std::vector<std::jthread> threads;
        for (std::uint32_t node = 0; node < setup.nodes; ++node)
            threads.emplace_back([&, node] { run_node(setup, board, node, *fabrics[node]); });
    }
    board.check();
}

namespace {

class Children {
  public:
    Children() = default;
    ~Children() {
        for (const pid_t pid : pids_)
            if (pid != 0) ::kill(pid, SIGKILL);
        for (const pid_t pid : pids_)
            if (pid != 0) ::waitpid(pid, nullptr, 0);
    }
    Children(const Children&) = delete;
    Children& operator=(const Children&) = delete;

    void start(const JoinSetup& setup, JoinBoard& board, std::uint32_t node) {
        const pid_t parent = ::getpid(), pid = ::fork();
        if (pid < 0)
            throw std::runtime_error("no process for node " + std::to_string(node) + ": " +
                                     std::strerror(errno));
        if (pid > 0) {
            pids_.push_back(pid);
            return;
        }
        // The parent may have died before this could be asked for.
        if (::prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || ::getppid() != parent) ::_exit(1);
        try {
            const auto fabric = ucx_fabric(setup.fabric);
            run_node(setup, board, node, *fabric);
        } catch (const std::exception& failure) {
            board.fail(failure.what());
        }
        ::_exit(0);
    }
    void wait(JoinBoard& board) {
        for (std::size_t left = pids_.size(); left > 0; --left) {
            int status = 0;
            pid_t pid;
            do pid = ::waitpid(-1, &status, 0);
            while (pid < 0 && errno == EINTR);
            std::size_t node = 0;
            while (node < pids_.size() && pids_[node] != pid) ++node;
            if (node == pids_.size()) {  // not one of the nodes: the guard of their segments
                ++left;
                continue;
            }
            pids_[node] = 0;
            if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
                board.fail("node " + std::to_string(node) + " died" +
                           (WIFSIGNALED(status)
                                ? std::string(" (") + ::strsignal(WTERMSIG(status)) + ")"
                                : ""));
                return;
            }
        }
    }

  private:
    std::vector<pid_t> pids_;  // by node; 0: it has ended
};

}  // namespace

void run_as_processes(const JoinSetup& setup, JoinBoard& board) {
    setup.check();
    // Before the first fork: all have it in common.
    if (makes_segments(setup.fabric)) use_segment_folder();
    {
        Children children;
        for (std::uint32_t node = 0; node < setup.nodes; ++node) children.start(setup, board, node);
        children.wait(board);
    }
    board.check();
}

}  // namespace numatwin::native
