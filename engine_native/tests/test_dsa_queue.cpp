// Copies by a data streaming accelerator: descriptors and completions, by a device that a thread
// runs behind a pipe.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/idxd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <functional>
#include <numeric>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "storage/chunk_copier.hpp"

namespace numatwin::native {
namespace {

// Answers each descriptor by `answer`: the status, and bytes copied.
class PlayedDevice {
  public:
    using Answer = std::function<std::pair<int, std::uint32_t>(const dsa_hw_desc&)>;

    explicit PlayedDevice(Answer answer) : answer_(std::move(answer)) {
        char name[] = "/tmp/numatwin-dsa-XXXXXX";
        folder_ = ::mkdtemp(name);
        path = folder_ + "/wq0.0";
        EXPECT_EQ(::mkfifo(path.c_str(), 0600), 0);
        file_ = ::open(path.c_str(), O_RDWR);
        thread_ = std::thread([this] { work(); });
    }
    ~PlayedDevice() {
        const dsa_hw_desc last{};  // opcode 0: nothing to do any more
        EXPECT_EQ(::write(file_, &last, sizeof last), static_cast<ssize_t>(sizeof last));
        thread_.join();
        ::close(file_);
        std::filesystem::remove_all(folder_);
    }

    std::string path;
    int requests = 0;

  private:
    void work() {
        for (dsa_hw_desc asked; ::read(file_, &asked, sizeof asked) == sizeof asked;) {
            if (asked.opcode == DSA_OPCODE_NOOP) return;
            ++requests;
            EXPECT_EQ(asked.opcode, std::uint32_t{DSA_OPCODE_MEMMOVE});
            EXPECT_EQ(asked.completion_addr % 64, 0u);
            const auto [status, bytes] = answer_(asked);
            std::memcpy(reinterpret_cast<void*>(asked.dst_addr),
                        reinterpret_cast<const void*>(asked.src_addr), bytes);
            auto* done = reinterpret_cast<dsa_completion_record*>(asked.completion_addr);
            done->bytes_completed = bytes;
            __atomic_store_n(&done->status, static_cast<std::uint8_t>(status), __ATOMIC_RELEASE);
        }
    }

    Answer answer_;
    std::string folder_;
    int file_;
    std::thread thread_;
};

std::pair<int, std::uint32_t> succeeds(const dsa_hw_desc& asked) {
    return {DSA_COMP_SUCCESS, asked.xfer_size};
}

TEST(DsaCopier, FindsWhatAPlainScanFinds) {
    PlayedDevice device(succeeds);
    std::vector<std::uint64_t> column(10'007);
    std::iota(column.begin(), column.end(), 0);
    for (const std::size_t chunk : {1'000u, 10'007u, 20'000u}) {
        DsaCopier copier(chunk, device.path);
        const ValueRange range{500, 4'000};
        const auto plain = scan_kernels().sum(column.data(), column.size(), range);
        const auto found = copier.scan(column, range);
        EXPECT_EQ(found.matches, plain.matches);
        EXPECT_EQ(found.sum, plain.sum);
        copier.copy(column);
        EXPECT_EQ(copier.scan({}, range).matches, 0u);
    }
    EXPECT_EQ(device.requests, 2 * (11 + 1 + 1));
}

TEST(DsaQueue, GoesOnBehindAPageFault) {
    // The first request ends at a page that the device cannot reach.
    PlayedDevice device([first = true](const dsa_hw_desc& asked) mutable {
        return std::exchange(first, false)
                   ? std::pair<int, std::uint32_t>{DSA_COMP_PAGE_FAULT_NOBOF, 4096}
                   : succeeds(asked);
    });
    std::vector<char> from(10'000), to(10'000);
    std::iota(from.begin(), from.end(), 0);
    DsaQueue queue(device.path);
    queue.begin(to.data(), from.data(), from.size());
    queue.wait();
    EXPECT_EQ(from, to);
    EXPECT_EQ(device.requests, 2);
}

TEST(DsaQueue, SaysWhatFails) {
    PlayedDevice device(
        [](const dsa_hw_desc&) { return std::pair<int, std::uint32_t>{DSA_COMP_XFER_ERANGE, 0}; });
    char from[8]{}, to[8];
    DsaQueue queue(device.path);
    queue.begin(to, from, sizeof to);
    EXPECT_THROW(queue.wait(), std::runtime_error);
    EXPECT_THROW(DsaQueue("/dev/dsa/none"), std::runtime_error);
    // A driver without write().
    DsaQueue refused("/proc/self/mem");
    EXPECT_THROW(refused.begin(to, from, sizeof to), std::runtime_error);
}

}  // namespace
}  // namespace numatwin::native
