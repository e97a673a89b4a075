#include "memory/manager.hpp"

#include <algorithm>
#include <utility>

#include "memory/host.hpp"
#include "memory/mapping.hpp"

namespace numatwin::native {
namespace {

constexpr std::size_t run_bytes = std::size_t{256} << 10;
constexpr std::size_t first_chunk_bytes = std::size_t{2} << 20;  // a huge page of most hosts
/// What chunks are multiples of, where little is left: pages, also of hosts where they are large.
constexpr std::size_t small_chunk_bytes = std::size_t{64} << 10;
constexpr std::size_t smallest_block_bytes = size_classes::bytes(0);

/// By the only thread that writes the count: no need of an atomic read-modify-write.
void add_relaxed(std::atomic<std::size_t>& count, std::size_t bytes) {
    count.store(count.load(std::memory_order_relaxed) + bytes, std::memory_order_relaxed);
}

std::byte* align(std::byte* at, std::size_t to) {
    const auto address = reinterpret_cast<std::uintptr_t>(at);
    return at + (round_up(address, to) - address);
}

std::size_t room(const std::byte* begin, const std::byte* end) {
    return begin < end ? static_cast<std::size_t>(end - begin) : 0;
}

}  // namespace

void* MemoryCache::allocate(std::size_t bytes) {
    if (bytes > size_classes::largest_cached) return manager_.allocate_large(bytes);
    const std::size_t size_class = size_classes::of(bytes);
    Magazines& magazines = magazines_[size_class];
    void* block = magazines.active;
    if (block != nullptr) {
        magazines.active = magazines.active->next;
        --magazines.filled;
    } else {
        block = refill(size_class);
    }
    add_relaxed(allocated_bytes_, size_classes::bytes(size_class));
    return block;
}

void MemoryCache::release(void* block, std::size_t bytes) noexcept {
    if (bytes > size_classes::largest_cached) return manager_.release_large(block, bytes);
    const std::size_t size_class = size_classes::of(bytes);
    put(size_class, block);
    add_relaxed(released_bytes_, size_classes::bytes(size_class));
}

void MemoryCache::put(std::size_t size_class, void* block) noexcept {
    Magazines& magazines = magazines_[size_class];
    if (magazines.filled >= size_classes::magazine(size_class)) {
        if (magazines.spare != nullptr) manager_.give_magazine(size_class, magazines.spare);
        magazines.spare = std::exchange(magazines.active, nullptr);
        magazines.filled = 0;
    }
    magazines.active = new (block) Block{magazines.active, nullptr};
    ++magazines.filled;
}

/// A block where the active magazine is empty.
void* MemoryCache::refill(std::size_t size_class) {
    Magazines& magazines = magazines_[size_class];
    magazines.filled = 0;
    Block* magazine = std::exchange(magazines.spare, nullptr);
    if (magazine == nullptr) magazine = manager_.take_magazine(size_class);
    if (magazine == nullptr) return cut(size_classes::bytes(size_class));
    magazines.active = magazine->next;
    magazines.filled = static_cast<std::uint32_t>(size_classes::magazine(size_class)) - 1;
    return magazine;
}

/// From the run, so that what is allocated one after the other lies together.
void* MemoryCache::cut(std::size_t bytes) {
    std::byte* block = align(run_, size_classes::alignment(bytes));
    if (run_ == nullptr || room(block, run_end_) < bytes) {
        const MemoryManager::Run run = manager_.take_run(bytes, run_bytes);
        keep_rest(run_end_);
        run_ = block = run.begin;
        run_end_ = run.end;
    }
    keep_rest(block);
    run_ = block + bytes;
    return block;
}

/// Makes free blocks of the run up to `until`, so that none of it is lost.
void MemoryCache::keep_rest(std::byte* until) noexcept {
    while (room(run_, until) >= smallest_block_bytes) {
        std::size_t size_class =
            size_classes::of(std::min(room(run_, until), size_classes::largest_cached));
        while (size_classes::bytes(size_class) > room(run_, until) ||
               align(run_, size_classes::alignment(size_classes::bytes(size_class))) != run_) {
            --size_class;
        }
        put(size_class, run_);
        run_ += size_classes::bytes(size_class);
    }
}

MemoryManager::MemoryManager(ManagerOptions options) : options_(std::move(options)) {}

MemoryManager::~MemoryManager() = default;

MemoryCache& MemoryManager::add_cache() {
    const std::scoped_lock lock(mutex_);
    caches_.push_back(std::unique_ptr<MemoryCache>(new MemoryCache(*this)));
    return *caches_.back();
}

MemoryUse MemoryManager::use() const {
    const std::scoped_lock lock(mutex_);
    MemoryUse use = mapped_;
    use.used_bytes = large_bytes_;
    for (const auto& cache : caches_) {
        // One cache may have released more than it allocated; the sum comes out right.
        use.used_bytes += cache->allocated_bytes_.load(std::memory_order_relaxed);
        use.used_bytes -= cache->released_bytes_.load(std::memory_order_relaxed);
    }
    return use;
}

MemoryManager::Block* MemoryManager::take_magazine(std::size_t size_class) noexcept {
    // Relaxed: what matters is read again under the lock; a miss costs a cut from the run.
    if (magazines_[size_class].load(std::memory_order_relaxed) == nullptr) return nullptr;
    const std::scoped_lock lock(mutex_);
    return pop_magazine(size_class);
}

void MemoryManager::give_magazine(std::size_t size_class, Block* first) noexcept {
    const std::scoped_lock lock(mutex_);
    push_magazine(size_class, first);
}

MemoryManager::Run MemoryManager::take_run(std::size_t least_bytes, std::size_t wanted_bytes) {
    const std::scoped_lock lock(mutex_);
    return cut_chunk(least_bytes, wanted_bytes);
}

/// Of its size class, from a magazine of one; beyond the largest class a mapping of its own.
void* MemoryManager::allocate_large(std::size_t bytes) {
    const std::scoped_lock lock(mutex_);
    if (bytes > size_classes::largest) {
        std::byte* block = map(bytes);
        large_bytes_ += mappings_.at(block).bytes();
        return block;
    }
    const std::size_t size_class = size_classes::of(bytes),
                      rounded = size_classes::bytes(size_class);
    void* block = pop_magazine(size_class);
    if (block == nullptr) block = cut_chunk(rounded, rounded).begin;
    large_bytes_ += rounded;
    return block;
}

void MemoryManager::release_large(void* block, std::size_t bytes) noexcept {
    const std::scoped_lock lock(mutex_);
    if (bytes <= size_classes::largest) {
        const std::size_t size_class = size_classes::of(bytes);
        push_magazine(size_class, new (block) Block{nullptr, nullptr});
        large_bytes_ -= size_classes::bytes(size_class);
        return;
    }
    const auto found = mappings_.find(block);
    const Mapping& mapping = found->second;
    large_bytes_ -= mapping.bytes();
    mapped_.reserved_bytes -= mapping.bytes();
    if (mapping.pages() == Pages::huge) mapped_.huge_bytes -= mapping.bytes();
    if (mapping.pages() == Pages::transparent) mapped_.transparent_bytes -= mapping.bytes();
    mappings_.erase(found);
}

MemoryManager::Block* MemoryManager::pop_magazine(std::size_t size_class) noexcept {
    std::atomic<Block*>& list = magazines_[size_class];
    Block* first = list.load(std::memory_order_relaxed);
    if (first != nullptr) list.store(first->next_magazine, std::memory_order_relaxed);
    return first;
}

void MemoryManager::push_magazine(std::size_t size_class, Block* first) noexcept {
    std::atomic<Block*>& list = magazines_[size_class];
    first->next_magazine = list.load(std::memory_order_relaxed);
    list.store(first, std::memory_order_relaxed);
}

/// Between `least_bytes` and `wanted_bytes`, at a multiple of 64.
MemoryManager::Run MemoryManager::cut_chunk(std::size_t least_bytes, std::size_t wanted_bytes) {
    if (room(chunk_.begin, chunk_.end) < least_bytes) map_chunk(least_bytes);
    const std::size_t bytes = std::min(room(chunk_.begin, chunk_.end), wanted_bytes);
    const Run run{chunk_.begin, chunk_.begin + bytes};
    chunk_.begin = align(run.end, 64);
    return run;
}

void MemoryManager::map_chunk(std::size_t least_bytes) {
    // The old chunk's rest is too small for this block, but not for all: magazines of one, as large
    // as fit.
    while (room(chunk_.begin, chunk_.end) >= 64) {
        std::size_t size_class = size_classes::of(room(chunk_.begin, chunk_.end));
        if (size_classes::bytes(size_class) > room(chunk_.begin, chunk_.end)) --size_class;
        push_magazine(size_class, new (chunk_.begin) Block{nullptr, nullptr});
        chunk_.begin += size_classes::bytes(size_class);
    }
    const std::size_t grown = mapped_.reserved_bytes / 8 / first_chunk_bytes * first_chunk_bytes;
    const std::size_t chunk = std::clamp(grown, first_chunk_bytes, options_.chunk_bytes);
    const std::size_t least = round_up(least_bytes, small_chunk_bytes);
    const std::size_t left = limit_left() / small_chunk_bytes * small_chunk_bytes;
    std::byte* begin = nullptr;
    try {
        begin = map(std::max(least, std::min(chunk, left)));
    } catch (const OutOfMemory&) {
        begin = map(least);  // the host may have so much left
    }
    chunk_ = {begin, begin + mappings_.at(begin).bytes()};
}

std::size_t MemoryManager::limit_left() const {
    const std::size_t reserved = mapped_.reserved_bytes;
    return options_.limit_bytes > reserved ? options_.limit_bytes - reserved : 0;
}

std::byte* MemoryManager::map(std::size_t bytes) {
    const auto check_limit = [&](std::size_t more_bytes) {
        if (more_bytes > limit_left()) {
            throw OutOfMemory("no memory left: the limit is " + size_text(options_.limit_bytes));
        }
    };
    try {
        check_limit(bytes);
        Mapping mapping(bytes, options_.placement, options_.huge_pages);
        check_limit(mapping.bytes());  // it was rounded up to pages
        std::byte* begin = mapping.begin();
        if (mapped_.refusal.empty()) mapped_.refusal = mapping.refusal();
        const Mapping& kept = mappings_.emplace(begin, std::move(mapping)).first->second;
        mapped_.reserved_bytes += kept.bytes();
        if (kept.pages() == Pages::huge) mapped_.huge_bytes += kept.bytes();
        if (kept.pages() == Pages::transparent) mapped_.transparent_bytes += kept.bytes();
        return begin;
    } catch (const OutOfMemory& error) {
        throw OutOfMemory(std::string(error.what()) + " (" + options_.object + " " +
                          describe(options_.placement) + " has " +
                          size_text(mapped_.reserved_bytes) + ")");
    }
}

}  // namespace numatwin::native
