#include "memory/host.hpp"

#include <numa.h>
#include <numaif.h>
#include <pthread.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <limits>
#include <sstream>
#include <stdexcept>
#include <system_error>

#include "memory/mapping.hpp"

namespace numatwin::native {

namespace {

constexpr std::uint64_t unknown = std::numeric_limits<std::uint64_t>::max();
constexpr std::uint64_t KiB = 1024, MiB = KiB * KiB;

std::uint64_t difference(std::uint64_t from, std::uint64_t taken) {
    return from > taken ? from - taken : 0;
}

/// What the cgroup in this folder has left, version 2 or 1.
std::uint64_t left_in(const std::string& folder) {
    std::uint64_t limit = kernel_number(folder + "/memory.max", unknown);
    std::uint64_t used = kernel_number(folder + "/memory.current", 0);
    std::string inactive = "inactive_file";
    if (limit == unknown) {
        limit = kernel_number(folder + "/memory.limit_in_bytes", unknown);
        used = kernel_number(folder + "/memory.usage_in_bytes", 0);
        inactive = "total_inactive_file";
    }
    if (limit == unknown) return unknown;
    const std::uint64_t droppable = kernel_field(folder + "/memory.stat", inactive, 0);
    return difference(limit, difference(used, droppable));
}

/// The least along the path of a cgroup, up to the root: each limits what is below.
std::uint64_t least_left(const std::string& root, std::string path) {
    std::uint64_t least = left_in(root);
    while (path.size() > 1) {
        least = std::min(least, left_in(root + path));
        path.resize(path.find_last_of('/'));
    }
    return least;
}

/// A line is "number:controllers:path"; version 2's is "0::path".
std::uint64_t left_in_cgroups(const KernelFiles& files) {
    std::ifstream file(files.proc + "/self/cgroup");
    std::uint64_t least = unknown;
    for (std::string line; std::getline(file, line);) {
        const std::size_t first = line.find(':'), second = line.find(':', first + 1);
        if (second == std::string::npos) continue;
        std::string controllers(1, ',');
        controllers.append(line, first + 1, second - first - 1).append(1, ',');
        const std::string path = line.substr(second + 1);
        if (controllers == ",,") {
            least = std::min(least, least_left(files.sys + "/fs/cgroup", path));
        } else if (controllers.find(",memory,") != std::string::npos) {
            least = std::min(least, least_left(files.sys + "/fs/cgroup/memory", path));
        }
    }
    return least;
}

/// Claimed by Claims that live. Relaxed: a sum to be careful with, it orders nothing.
std::atomic<std::uint64_t> claimed_bytes{0};

}  // namespace

std::string size_text(std::uint64_t bytes) {
    return bytes < MiB ? std::to_string(bytes / KiB) + " KiB"
                       : std::to_string(bytes / MiB) + " MiB";
}

std::string kernel_line(const std::string& path) {
    std::ifstream file(path);
    std::string line;
    std::getline(file, line);
    return line;
}

std::uint64_t kernel_number(const std::string& path, std::uint64_t otherwise) {
    std::istringstream line(kernel_line(path));
    std::uint64_t value;
    return line >> value ? value : otherwise;
}

std::uint64_t kernel_field(const std::string& path, const std::string& field,
                           std::uint64_t otherwise) {
    std::ifstream file(path);
    for (std::string line; std::getline(file, line);) {
        // "MemFree:  12 kB", "Node 0 MemFree:  12 kB" and "inactive_file 12"
        std::istringstream words(line);
        for (std::string word; words >> word;) {
            if (word != field && word != field + ":") continue;
            std::uint64_t value;
            return words >> value ? value : otherwise;
        }
    }
    return otherwise;
}

std::uint64_t available_bytes(const KernelFiles& files) {
    const std::uint64_t host = kernel_field(files.proc + "/meminfo", "MemAvailable", unknown);
    return std::min(host == unknown ? unknown : host * KiB, left_in_cgroups(files));
}

std::uint64_t node_available_bytes(int node, const KernelFiles& files) {
    const std::string nodes = files.sys + "/devices/system/node/node";
    // A node alone has what the host has, and some kernels count it less, growing bit by bit.
    if (node == 0 && !std::filesystem::exists(nodes + "1")) return unknown;
    const std::string path = nodes + std::to_string(node) + "/meminfo";
    const std::uint64_t free = kernel_field(path, "MemFree", unknown);
    if (free == unknown) return unknown;
    // Half of the page cache may be mapped or dirty: count the other half only.
    const std::uint64_t cache = kernel_field(path, "Active(file)", 0) +
                                kernel_field(path, "Inactive(file)", 0) +
                                kernel_field(path, "SReclaimable", 0);
    return (free + cache / 2) * KiB;
}

Claim::Claim(std::uint64_t bytes, int node) : bytes_(bytes) {
    const std::uint64_t others = claimed_bytes.fetch_add(bytes, std::memory_order_relaxed);
    const std::uint64_t total = kernel_field("/proc/meminfo", "MemTotal", 0) * KiB;
    const std::uint64_t left = difference(available_bytes(), std::max(64 * MiB, total / 100));
    const std::uint64_t on_node = node < 0 ? unknown : node_available_bytes(node);
    const std::uint64_t free = difference(std::min(left, on_node), others);
    if (bytes <= free) return;
    claimed_bytes.fetch_sub(bytes, std::memory_order_relaxed);
    throw OutOfMemory("no memory left: " + size_text(bytes) + " more wanted, and " +
                      (on_node < left ? "node " + std::to_string(node) : "this host") +
                      " can spare " + size_text(free));
}

Claim::~Claim() {
    claimed_bytes.fetch_sub(bytes_, std::memory_order_relaxed);
}

namespace {

/// A set of CPUs as large as this host needs.
class CpuSet {
  public:
    CpuSet() : size_(CPU_ALLOC_SIZE(most)), set_(CPU_ALLOC(most)) {
        if (set_ == nullptr) throw std::bad_alloc();
        CPU_ZERO_S(size_, set_);
    }
    ~CpuSet() { CPU_FREE(set_); }
    CpuSet(const CpuSet&) = delete;
    CpuSet& operator=(const CpuSet&) = delete;

    bool has(int cpu) const { return CPU_ISSET_S(static_cast<std::size_t>(cpu), size_, set_); }
    void add(int cpu) { CPU_SET_S(static_cast<std::size_t>(cpu), size_, set_); }
    std::size_t size() const { return size_; }
    cpu_set_t* get() { return set_; }

    static constexpr int most = 8192;  // the kernel's NR_CPUS at its largest

  private:
    std::size_t size_;
    cpu_set_t* set_;
};

/// Of the process's first thread: a thread that is pinned would see its own CPU alone. The kernel
/// has taken out what the cpuset forbids.
std::vector<int> allowed_cpus() {
    CpuSet set;
    if (sched_getaffinity(getpid(), set.size(), set.get()) != 0) {
        throw std::system_error(errno, std::generic_category(), "the CPUs of this process");
    }
    std::vector<int> cpus;
    for (int cpu = 0; cpu < CpuSet::most; ++cpu) {
        if (set.has(cpu)) cpus.push_back(cpu);
    }
    return cpus;
}

HostNode node_facts(int id, const std::vector<int>& cpus) {
    long long free = 0;
    const long long bytes = numa_node_size64(id, &free);
    HostNode node{id};
    std::copy_if(cpus.begin(), cpus.end(), std::back_inserter(node.cpus),
                 [id](int cpu) { return numa_node_of_cpu(cpu) == id; });
    if (bytes > 0) {
        node.memory_bytes = static_cast<std::uint64_t>(bytes);
        node.free_bytes = static_cast<std::uint64_t>(free);
        node.may_allocate =
            numa_bitmask_isbitset(numa_all_nodes_ptr, static_cast<unsigned>(id)) != 0;
    }
    return node;
}

/// Some kernels count memory to its node bit by bit, long after the host has it.
void has_all(HostNode& node) {
    const auto field_bytes = [](const char* field) {
        return kernel_field("/proc/meminfo", field, 0) * 1024;
    };
    node.memory_bytes = std::max(node.memory_bytes, field_bytes("MemTotal"));
    node.free_bytes =
        std::min(std::max(node.free_bytes, field_bytes("MemFree")), node.memory_bytes);
}

/// "0-3,8"
std::string in_ranges(const std::vector<int>& cpus) {
    std::string text;
    for (std::size_t first = 0, last = 0; first < cpus.size(); first = ++last) {
        while (last + 1 < cpus.size() && cpus[last + 1] == cpus[last] + 1) ++last;
        text += (text.empty() ? "" : ",") + std::to_string(cpus[first]);
        if (last > first) text += "-" + std::to_string(cpus[last]);
    }
    return text;
}

/// "madvise" of "always [madvise] never"
std::string chosen(const std::string& line) {
    const std::size_t begin = line.find('['), end = line.find(']');
    if (begin == std::string::npos || end < begin) return "never";
    return line.substr(begin + 1, end - begin - 1);
}

bool is_node(int node) {
    return node >= 0 && static_cast<unsigned long>(node) < nodes_max;
}

NodeMask mask_of(int node) {
    constexpr unsigned long bits = 8 * sizeof(unsigned long);
    const auto number = static_cast<unsigned long>(node);
    NodeMask mask{};
    mask[number / bits] = 1UL << number % bits;
    return mask;
}

}  // namespace

std::vector<int> HostFacts::cpus() const {
    std::vector<int> cpus;
    for (const HostNode& node : nodes) cpus.insert(cpus.end(), node.cpus.begin(), node.cpus.end());
    std::sort(cpus.begin(), cpus.end());
    return cpus;
}

HostFacts host_facts() {
    HostFacts host;
    const std::vector<int> cpus = allowed_cpus();
    const auto page_bytes = static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
    if (numa_available() < 0) {
        // A kernel without NUMA: all is node 0.
        const auto pages = [&](int name) {
            return static_cast<std::uint64_t>(std::max(sysconf(name), 0L)) * page_bytes;
        };
        host.nodes = {{0, cpus, pages(_SC_PHYS_PAGES), pages(_SC_AVPHYS_PAGES), true}};
    } else {
        for (int id = 0; id <= numa_max_node(); ++id) {
            HostNode node = node_facts(id, cpus);
            if (node.memory_bytes > 0 || !node.cpus.empty()) host.nodes.push_back(std::move(node));
        }
        if (host.nodes.size() == 1) has_all(host.nodes.front());
    }
    host.available_bytes = available_bytes();
    host.page_bytes = page_bytes;
    host.huge_page_bytes = kernel_field("/proc/meminfo", "Hugepagesize", 0) * 1024;
    host.huge_pages_free = kernel_field("/proc/meminfo", "HugePages_Free", 0);
    host.transparent_huge_pages =
        chosen(kernel_line("/sys/kernel/mm/transparent_hugepage/enabled"));
    host.binding_refused = binding_refusal();
    return host;
}

void pin_thread(int cpu) {
    CpuSet set;
    if (cpu >= 0 && cpu < CpuSet::most) {
        set.add(cpu);
        if (sched_setaffinity(0, set.size(), set.get()) == 0) return;
    }
    throw std::invalid_argument("CPU " + std::to_string(cpu) +
                                " is not one that this process may use (" +
                                in_ranges(allowed_cpus()) + ")");
}

void move_stack(int node) noexcept {
    pthread_attr_t attributes;
    if (!is_node(node) || pthread_getattr_np(pthread_self(), &attributes) != 0) return;
    void* begin = nullptr;
    std::size_t bytes = 0;
    const NodeMask here = mask_of(node);
    if (pthread_attr_getstack(&attributes, &begin, &bytes) == 0)
        mbind(begin, bytes, MPOL_PREFERRED, here.data(), nodes_max, MPOL_MF_MOVE);
    pthread_attr_destroy(&attributes);
}

PreferredNode::PreferredNode(int node) noexcept {
    if (!is_node(node)) return;
    if (get_mempolicy(&mode_, before_.data(), nodes_max, nullptr, 0) != 0) return;
    const NodeMask here = mask_of(node);
    set_ = set_mempolicy(MPOL_PREFERRED, here.data(), nodes_max) == 0;
}

PreferredNode::~PreferredNode() {
    if (set_) set_mempolicy(mode_, mode_ == MPOL_DEFAULT ? nullptr : before_.data(), nodes_max);
}

}  // namespace numatwin::native
