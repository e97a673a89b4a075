#include "memory/mapping.hpp"

#include <numa.h>
#include <numaif.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "memory/host.hpp"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23  // Linux 5.14
#endif

namespace numatwin::native {
namespace {

// Each call waits for all processors once.
constexpr std::size_t stretch_bytes = std::size_t{64} << 20;
constexpr unsigned attempts_max = 100;

std::size_t page_bytes() {
    static const auto bytes = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    return bytes;
}

/// Zero where transparent huge pages are off or larger than a chunk can be.
std::size_t transparent_page_bytes() {
    static const std::size_t bytes = [] {
        const std::string folder = "/sys/kernel/mm/transparent_hugepage/";
        const bool never = kernel_line(folder + "enabled").find("[never]") != std::string::npos;
        const std::size_t size = kernel_number(folder + "hpage_pmd_size", 0);
        return never || size > (std::size_t{32} << 20) ? 0 : size;
    }();
    return bytes;
}

/// Of the pages that MAP_HUGETLB gives by default; zero if the host has none.
std::size_t reserved_page_bytes() {
    static const std::size_t bytes = kernel_field("/proc/meminfo", "Hugepagesize", 0) * 1024;
    return bytes;
}

std::byte* map_anonymous(std::size_t bytes, int flags) {
    void* address =
        mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);
    return address == MAP_FAILED ? nullptr : static_cast<std::byte*>(address);
}

/// Returns mbind's error, 0 if it did as told.
int bind_pages(void* address, std::size_t bytes, Placement placement) {
    if (placement.kind == Placement::Kind::anywhere) return 0;
    if (numa_available() < 0) return ENOSYS;
    const std::unique_ptr<bitmask, decltype(&numa_free_nodemask)> nodes(numa_allocate_nodemask(),
                                                                        numa_free_nodemask);
    int mode = MPOL_INTERLEAVE;
    if (placement.kind == Placement::Kind::node) {
        mode = MPOL_BIND;
        numa_bitmask_setbit(nodes.get(), static_cast<unsigned>(placement.node));
    } else {
        copy_bitmask_to_bitmask(numa_all_nodes_ptr, nodes.get());
    }
    const long status = mbind(address, bytes, mode, nodes->maskp, nodes->size + 1, 0);
    return status == 0 ? 0 : errno;
}

std::string refusal_of(int error) {
    return error == 0 ? "" : std::string("memory is not bound to nodes: mbind: ") + strerror(error);
}

[[noreturn]] void refuse_move(int node, int error) {
    throw std::invalid_argument("pages cannot move to node " + std::to_string(node) + ": " +
                                strerror(error));
}

void move_stretch(std::byte* begin, std::byte* end, int node) {
    std::vector<void*> left;
    for (std::byte* at = begin; at < end; at += page_bytes()) left.push_back(at);
    std::vector<int> nodes(left.size(), node), found(left.size());
    // Some are busy for a moment.
    for (unsigned attempt = 0; !left.empty(); ++attempt) {
        if (attempt == attempts_max) refuse_move(node, EBUSY);
        if (attempt > 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
        if (move_pages(0, left.size(), left.data(), nodes.data(), found.data(), MPOL_MF_MOVE) < 0)
            refuse_move(node, errno);
        // Where they are now; those that are nowhere come from swap.
        move_pages(0, left.size(), left.data(), nullptr, found.data(), 0);
        std::size_t kept = 0;
        for (std::size_t k = 0; k < left.size(); ++k)
            if (found[k] >= 0 && found[k] != node) left[kept++] = left[k];
        left.resize(kept);
    }
}

void check_node(Placement placement) {
    if (placement.kind != Placement::Kind::node) return;
    // Without NUMA in the kernel all memory counts as node 0.
    const int most = numa_available() < 0 ? 0 : numa_max_node();
    if (placement.node < 0 || placement.node > most) {
        throw std::invalid_argument("no node " + std::to_string(placement.node) + " on this host");
    }
}

}  // namespace

std::string describe(Placement placement) {
    switch (placement.kind) {
        case Placement::Kind::node:
            return "on node " + std::to_string(placement.node);
        case Placement::Kind::interleaved:
            return "interleaved over all nodes";
        default:
            return "on this host";
    }
}

Mapping::Mapping(std::size_t bytes, Placement placement, bool huge_pages) : bytes_(bytes) {
    check_node(placement);
    if (huge_pages && map_reserved(placement)) return;
    const Claim claim(bytes, placement.node);
    map_usual(placement, huge_pages);
}

Mapping::~Mapping() {
    unmap();
}

Mapping::Mapping(Mapping&& other) noexcept
    : begin_(std::exchange(other.begin_, nullptr)),
      bytes_(other.bytes_),
      pages_(other.pages_),
      refusal_(std::move(other.refusal_)) {}

/// Whether there were enough reserved huge pages where they are wanted. They are set aside
/// already, so they take nothing of what the host can spare. Where an eighth would be lost to
/// rounding, usual pages are better.
bool Mapping::map_reserved(Placement placement) {
    const std::size_t page = reserved_page_bytes();
    if (page == 0) return false;
    const std::size_t wanted = bytes_, rounded = round_up(wanted, page);
    if (rounded - wanted > wanted / 8) return false;
    if (kernel_field("/proc/meminfo", "HugePages_Free", 0) < rounded / page) return false;
    begin_ = map_anonymous(rounded, MAP_HUGETLB);
    if (begin_ == nullptr) return false;
    bytes_ = rounded;
    place(placement);
    // The node may have none though the host has: the kernel then says so here, while a plain
    // access would be a SIGBUS. A kernel that cannot populate is not asked for such pages.
    if (populate(false)) {
        pages_ = Pages::huge;
        return true;
    }
    unmap();
    refusal_.clear();
    bytes_ = wanted;
    return false;
}

void Mapping::map_usual(Placement placement, bool huge_pages) {
    bytes_ = round_up(bytes_, page_bytes());
    const std::size_t huge = huge_pages ? transparent_page_bytes() : 0;
    const bool aligned = huge > 0 && bytes_ >= huge;
    // Room to begin at a huge page; what is before and behind goes back.
    const std::size_t extra = aligned ? huge : 0;
    std::byte* address = map_anonymous(bytes_ + extra, 0);
    if (address == nullptr) {
        throw OutOfMemory("no memory left: the host refuses to map " + size_text(bytes_) + ": " +
                          strerror(errno));
    }
    begin_ = address;
    if (aligned) {
        const auto at = reinterpret_cast<std::uintptr_t>(address);
        const std::size_t before = round_up(at, huge) - at;
        begin_ = address + before;
        if (before > 0) munmap(address, before);
        if (extra > before) munmap(begin_ + bytes_, extra - before);
        if (madvise(begin_, bytes_, MADV_HUGEPAGE) == 0) pages_ = Pages::transparent;
    }
    // Else a kernel that gives huge pages unasked would spread these over nodes, not small ones.
    if (!huge_pages) madvise(begin_, bytes_, MADV_NOHUGEPAGE);
    place(placement);
    if (populate(true)) return;
    const int error = errno;
    unmap();
    throw OutOfMemory("no memory left " + describe(placement) + " for " + size_text(bytes_) + ": " +
                      strerror(error));
}

void Mapping::place(Placement placement) {
    refusal_ = refusal_of(bind_pages(begin_, bytes_, placement));
}

/// Whether all pages are there. `may_touch`: a kernel that has no call for it gets each page
/// touched.
bool Mapping::populate(bool may_touch) {
    int status = madvise(begin_, bytes_, MADV_POPULATE_WRITE);
    while (status != 0 && errno == EAGAIN) status = madvise(begin_, bytes_, MADV_POPULATE_WRITE);
    if (status == 0) return true;
    if (errno != EINVAL || !may_touch) return false;
    for (std::size_t at = 0; at < bytes_; at += page_bytes()) {
        static_cast<volatile std::byte*>(begin_)[at] = std::byte{0};
    }
    return true;
}

void Mapping::move(int node, const std::stop_token& stop) {
    check_node(Placement::on_node(node));
    if (pages_ != Pages::huge && node_available_bytes(node) < bytes_) refuse_move(node, ENOMEM);
    place(Placement::on_node(node));  // what comes from swap goes there, too
    for (std::byte* at = begin_; at < end() && !stop.stop_requested(); at += stretch_bytes)
        move_stretch(at, std::min(at + stretch_bytes, end()), node);
}

void Mapping::unmap() noexcept {
    if (begin_ != nullptr) munmap(begin_, bytes_);
    begin_ = nullptr;
}

std::string binding_refusal() {
    if (numa_available() < 0) return refusal_of(ENOSYS);
    std::byte* page = map_anonymous(page_bytes(), 0);
    if (page == nullptr) return refusal_of(errno);
    const int error = bind_pages(page, page_bytes(), Placement::interleaved());
    munmap(page, page_bytes());
    return refusal_of(error);
}

}  // namespace numatwin::native
