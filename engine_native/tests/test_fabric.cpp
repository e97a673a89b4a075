// One-sided verbs and messages: the same tests for every fabric that this host can have.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "fabric/fabric.hpp"

namespace numatwin::native {
namespace {

using std::chrono::milliseconds;

std::unique_ptr<Fabric> make(const std::string& kind) {
    if (kind == "local") return local_fabric();
    FabricOptions options;
    options.direct = kind != "posix_by_ucx";
    options.transports = kind == "tcp" ? "tcp,self" : kind == "sysv" ? "sysv,self" : "posix,self";
    if (kind == "tcp") options.devices = "lo";
    return ucx_fabric(options);
}

// A server that looks at its network until the test is over, and echoes what it gets.
class Server {
  public:
    explicit Server(const std::string& kind) : fabric_(make(kind)) {
        region_ = fabric_->expose(1 << 16);
        contact_ = fabric_->contact();
    }
    ~Server() {
        stop_ = true;
        if (thread_.joinable()) thread_.join();
    }
    void serve(std::vector<std::byte> client) {
        thread_ = std::thread([this, client = std::move(client)] {
            const auto back = fabric_->connect(client);
            std::vector<std::byte> message;
            while (!stop_) {
                if (fabric_->receive(message))
                    fabric_->send(back, message);
                else
                    fabric_->sleep(milliseconds(1));
            }
        });
    }
    std::vector<std::byte> contact_;
    std::span<std::byte> region_;

  private:
    std::unique_ptr<Fabric> fabric_;
    std::thread thread_;
    std::atomic<bool> stop_{false};
};

class Fabrics : public testing::TestWithParam<const char*> {
  protected:
    void SetUp() override {
        server_ = std::make_unique<Server>(GetParam());
        client_ = make(GetParam());
        server_->serve(client_->contact());
        peer_ = client_->connect(server_->contact_);
    }
    void TearDown() override {
        server_.reset();
        client_.reset();
    }
    void land() {
        client_->flush(peer_, pending_);
        client_->wait(pending_);
    }
    std::vector<std::byte> got(std::uint64_t at, std::size_t bytes) {
        std::vector<std::byte> found(bytes, std::byte{7});
        client_->get(peer_, at, found.data(), bytes, pending_);
        client_->wait(pending_);
        return found;
    }
    std::uint64_t word(std::uint64_t at) {
        return *reinterpret_cast<const std::uint64_t*>(got(at, word_bytes).data());
    }
    // What stood there.
    std::uint64_t swapped(std::uint64_t at, std::uint64_t expected, std::uint64_t value) {
        client_->compare_and_swap(peer_, at, expected, value, pending_);
        client_->wait(pending_);
        return value;
    }

    std::unique_ptr<Server> server_;
    std::unique_ptr<Fabric> client_;
    Fabric::Peer peer_ = 0;
    Pending pending_;
};

TEST_P(Fabrics, what_is_exposed_is_zero_at_first) {
    EXPECT_EQ(got(0, 1 << 16), std::vector<std::byte>(1 << 16));
}

TEST_P(Fabrics, gets_what_was_put) {
    for (const std::size_t bytes : {8u, 64u, 1032u, 8192u, 40'000u}) {
        std::vector<std::byte> sent(bytes);
        for (std::size_t k = 0; k < bytes; ++k) sent[k] = static_cast<std::byte>(k * 7 + bytes);
        client_->put(peer_, 128, sent.data(), bytes);
        land();
        EXPECT_EQ(got(128, bytes), sent) << bytes;
    }
    EXPECT_EQ(word(120), 0u);
}

TEST_P(Fabrics, publishes_all_of_a_block) {
    std::vector<std::byte> sent(1032, std::byte{9});
    client_->publish(peer_, 1032, sent.data(), sent.size());
    land();
    EXPECT_EQ(got(1032, sent.size()), sent);
    EXPECT_EQ(word(1024), 0u);
    EXPECT_EQ(word(2064), 0u);
}

TEST_P(Fabrics, swaps_only_what_is_expected) {
    EXPECT_EQ(swapped(16, 0, 5), 0u);  // it found what it expected
    EXPECT_EQ(swapped(16, 0, 6), 5u);
    EXPECT_EQ(word(16), 5u);
}

TEST_P(Fabrics, adds_and_tells_what_was_there) {
    std::uint64_t found = 1;
    const std::uint64_t seven = 7, less = 0 - std::uint64_t{3};
    client_->fetch_add(peer_, 24, seven, found, pending_);
    client_->wait(pending_);
    EXPECT_EQ(found, 0u);
    client_->add(peer_, 24, less);
    land();
    EXPECT_EQ(word(24), 4u);
}

TEST_P(Fabrics, many_requests_at_once_all_count) {
    const std::uint64_t one = 1;
    for (int k = 0; k < 300; ++k) client_->add(peer_, 40, one);
    std::vector<std::uint64_t> found(64);
    for (auto& each : found) client_->fetch_add(peer_, 48, one, each, pending_);
    land();
    client_->wait(pending_);
    std::sort(found.begin(), found.end());
    for (std::size_t k = 0; k < found.size(); ++k) EXPECT_EQ(found[k], k);
    EXPECT_EQ(word(40), 300u);
}

TEST_P(Fabrics, messages_come_whole_and_in_order) {
    std::vector<std::byte> message;
    for (const std::size_t bytes : {1u, 100u, 8'000u, 60'000u}) {
        for (int k = 0; k < 20; ++k)
            client_->send(peer_, std::vector<std::byte>(bytes, static_cast<std::byte>(k)));
        for (int k = 0; k < 20; ++k) {
            while (!client_->receive(message)) client_->sleep(milliseconds(5));
            EXPECT_EQ(message, std::vector<std::byte>(bytes, static_cast<std::byte>(k)));
        }
    }
    EXPECT_FALSE(client_->receive(message));
}

TEST_P(Fabrics, counts_what_it_carries) {
    std::vector<std::byte> some(64);
    const std::uint64_t before = client_->carried_bytes;
    client_->put(peer_, 0, some.data(), 64);
    client_->get(peer_, 0, some.data(), 64, pending_);
    land();
    client_->wait(pending_);
    EXPECT_EQ(client_->carried_bytes - before, 128u);
}

// Several clients, each a thread: no add is lost, and a lock is held by one.
TEST_P(Fabrics, atomics_of_several_clients_are_atomic) {
    constexpr int clients = 3, each = 200;
    std::vector<std::thread> threads;
    for (int client = 0; client < clients; ++client)
        threads.emplace_back([&] {
            const auto fabric = make(GetParam());
            const auto peer = fabric->connect(server_->contact_);
            Pending pending;
            const auto locked = [&](std::uint64_t from, std::uint64_t to) {
                fabric->compare_and_swap(peer, 64, from, to, pending);
                fabric->wait(pending);
                return to == from;
            };
            for (int k = 0; k < each; ++k) {
                while (!locked(0, 1)) std::this_thread::yield();
                // Under the lock a plain get and put count right.
                std::uint64_t count = 0;
                fabric->get(peer, 72, reinterpret_cast<std::byte*>(&count), word_bytes, pending);
                fabric->wait(pending);
                ++count;
                fabric->put(peer, 72, reinterpret_cast<const std::byte*>(&count), word_bytes);
                fabric->flush(peer, pending);
                fabric->wait(pending);
                ASSERT_TRUE(locked(1, 0));
            }
        });
    for (auto& thread : threads) thread.join();
    EXPECT_EQ(word(72), static_cast<std::uint64_t>(clients * each));
}

#if !defined(NUMATWIN_UCX) || defined(__SANITIZE_THREAD__)
// UCX is not built for ThreadSanitizer.
INSTANTIATE_TEST_SUITE_P(All, Fabrics, testing::Values("local"));
#else
INSTANTIATE_TEST_SUITE_P(All, Fabrics,
                         testing::Values("local", "posix", "posix_by_ucx", "sysv", "tcp"),
                         [](const auto& kind) { return std::string(kind.param); });
#endif

#ifndef NUMATWIN_UCX
TEST(UcxFabric, says_what_is_missing) {
    try {
        ucx_fabric({});
        FAIL() << "expected an error";
    } catch (const std::runtime_error& failure) {
        EXPECT_NE(std::string(failure.what()).find("libucx-dev"), std::string::npos);
    }
}
#endif

}  // namespace
}  // namespace numatwin::native
