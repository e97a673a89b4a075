// A fabric of processes over UCX: shared memory, TCP, InfiniBand, one code for all.
//
// Over TCP UCX emulates gets and atomics: the process that they ask for must look at its network
// (progress) meanwhile. Storage servers do so in their loops; with shared memory and InfiniBand
// they sleep. Where UCX can map a peer's region (ucp_rkey_ptr: shared memory), requests are the
// processor's own, see fabric.hpp; `direct = false` sends them through UCX all the same.
#include <stdexcept>

#include "fabric/fabric.hpp"

#ifdef NUMATWIN_UCX

#include <poll.h>
#include <sys/mman.h>
#include <ucp/api/ucp.h>
#include <unistd.h>

#include <deque>
#include <new>

#include "fabric/segment_folder.hpp"

namespace numatwin::native {
namespace {

void check(ucs_status_t status, const char* what) {
    if (status == UCS_OK) return;
    throw std::runtime_error(std::string("UCX: ") + what + ": " + ucs_status_string(status));
}

// A contact: this head, then the worker's address and the key of the region (if it has one).
struct ContactHead {
    std::uint64_t region;
    std::uint64_t region_bytes;
    std::uint32_t address_bytes;
    std::uint32_t key_bytes;
};

class UcxFabric final : public Fabric {
  public:
    explicit UcxFabric(const FabricOptions& options)
        : direct_(options.direct),
          populate_(options.populate),
          survives_peers_(options.transports.starts_with("tcp")) {
        if (makes_segments(options)) use_segment_folder();
        ucp_config_t* config;
        check(ucp_config_read(nullptr, nullptr, &config), "its configuration");
        const std::unique_ptr<ucp_config_t, decltype(&ucp_config_release)> release(
            config, ucp_config_release);
        check(ucp_config_modify(config, "TLS", options.transports.c_str()), "transports");
        check(ucp_config_modify(config, "NET_DEVICES", options.devices.c_str()), "devices");

        ucp_params_t params{};
        params.field_mask = UCP_PARAM_FIELD_FEATURES;
        params.features = UCP_FEATURE_RMA | UCP_FEATURE_AMO64 | UCP_FEATURE_AM | UCP_FEATURE_WAKEUP;
        check(ucp_init(&params, config, &context_), options.transports.c_str());

        ucp_worker_params_t worker{};
        worker.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE;
        worker.thread_mode = UCS_THREAD_MODE_SINGLE;
        check(ucp_worker_create(context_, &worker, &worker_), "a worker");
        check(ucp_worker_get_efd(worker_, &wakeup_), "a worker's wake-up");

        ucp_am_handler_param_t handler{};
        handler.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_CB |
                             UCP_AM_HANDLER_PARAM_FIELD_ARG;
        handler.id = 0;
        handler.cb = on_message;
        handler.arg = this;
        check(ucp_worker_set_am_recv_handler(worker_, &handler), "messages");
    }

    ~UcxFabric() override {
        // Peers may be gone already: connections are dropped, not closed.
        for (auto& peer : peers_) {
            if (peer.key != nullptr) ucp_rkey_destroy(peer.key);
            close(peer.endpoint);
        }
        if (memory_ != nullptr) ucp_mem_unmap(context_, memory_);
        if (worker_ != nullptr) ucp_worker_destroy(worker_);
        if (context_ != nullptr) ucp_cleanup(context_);
    }

    std::span<std::byte> expose(std::size_t bytes) override {
        ucp_mem_map_params_t params{};
        params.field_mask = UCP_MEM_MAP_PARAM_FIELD_LENGTH | UCP_MEM_MAP_PARAM_FIELD_FLAGS;
        params.length = bytes;
        params.flags = UCP_MEM_MAP_ALLOCATE;
        check(ucp_mem_map(context_, &params, &memory_), "memory to expose");
        ucp_mem_attr_t found{};
        found.field_mask = UCP_MEM_ATTR_FIELD_ADDRESS;
        check(ucp_mem_query(memory_, &found), "memory to expose");
        region_ = static_cast<std::byte*>(found.address);
        region_bytes_ = bytes;
        std::memset(region_, 0, bytes);
        return {region_, bytes};
    }

    std::vector<std::byte> contact() override {
        ucp_address_t* address;
        std::size_t address_bytes = 0, key_bytes = 0;
        check(ucp_worker_get_address(worker_, &address, &address_bytes), "an address");
        void* key = nullptr;
        if (memory_ != nullptr) check(ucp_rkey_pack(context_, memory_, &key, &key_bytes), "a key");
        const ContactHead head{reinterpret_cast<std::uint64_t>(region_), region_bytes_,
                               static_cast<std::uint32_t>(address_bytes),
                               static_cast<std::uint32_t>(key_bytes)};
        std::vector<std::byte> made(sizeof head + address_bytes + key_bytes);
        std::memcpy(made.data(), &head, sizeof head);
        std::memcpy(made.data() + sizeof head, address, address_bytes);
        if (key_bytes > 0) std::memcpy(made.data() + sizeof head + address_bytes, key, key_bytes);
        ucp_worker_release_address(worker_, address);
        if (key != nullptr) ucp_rkey_buffer_release(key);
        return made;
    }

    Peer connect(Bytes contact) override {
        ContactHead head;
        std::memcpy(&head, contact.data(), sizeof head);
        const std::byte* address = contact.data() + sizeof head;
        ucp_ep_params_t params{};
        params.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS;
        params.address = reinterpret_cast<const ucp_address_t*>(address);
        if (survives_peers_) {
            params.field_mask |=
                UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE | UCP_EP_PARAM_FIELD_ERR_HANDLER;
            params.err_mode = UCP_ERR_HANDLING_MODE_PEER;
            // Requests that wait for the peer fail, which is enough.
            params.err_handler.cb = [](void*, ucp_ep_h, ucs_status_t) {};
        }
        Connection peer{nullptr, nullptr, head.region};
        check(ucp_ep_create(worker_, &params, &peer.endpoint), "a connection");
        peers_.push_back(peer);
        std::byte* mapped = nullptr;
        if (head.key_bytes > 0) {
            auto& key = peers_.back().key;
            check(ucp_ep_rkey_unpack(peer.endpoint, address + head.address_bytes, &key),
                  "the key of a peer's memory");
            void* found = nullptr;
            if (direct_ && ucp_rkey_ptr(key, head.region, &found) == UCS_OK)
                mapped = static_cast<std::byte*>(found);
            if (mapped != nullptr && populate_) populate(mapped, head.region_bytes);
        }
        return add_peer(mapped);
    }

    void carry_message(Peer peer, Bytes message) override {
        auto* copy = new std::vector<std::byte>(message.begin(), message.end());
        ucp_request_param_t param{};
        param.op_attr_mask =
            UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA | UCP_OP_ATTR_FIELD_FLAGS;
        param.flags = UCP_AM_SEND_FLAG_EAGER;  // the whole message comes at once
        param.cb.send = [](void* request, ucs_status_t, void* sent) {
            delete static_cast<std::vector<std::byte>*>(sent);
            ucp_request_free(request);
        };
        param.user_data = copy;
        const auto posted = ucp_am_send_nbx(peers_[peer].endpoint, 0, nullptr, 0, copy->data(),
                                            copy->size(), &param);
        if (UCS_PTR_IS_PTR(posted)) return;
        delete copy;
        check(UCS_PTR_STATUS(posted), "a message");
    }

    bool receive(std::vector<std::byte>& message) override {
        if (messages_.empty()) progress();
        if (messages_.empty()) return false;
        message = std::move(messages_.front());
        messages_.pop_front();
        return true;
    }

    bool progress() override {
        const bool worked = ucp_worker_progress(worker_) > 0;
        if (lost_a_message_) throw std::bad_alloc();
        return worked;
    }

    void sleep(std::chrono::milliseconds longest) override {
        if (!messages_.empty()) return;
        const auto armed = ucp_worker_arm(worker_);
        if (armed == UCS_ERR_BUSY) return;  // something came meanwhile
        check(armed, "a worker's wake-up");
        pollfd waited{wakeup_, POLLIN, 0};
        ::poll(&waited, 1, static_cast<int>(longest.count()));
    }

  protected:
    void carry_put(Peer to, std::uint64_t at, const std::byte* from, std::size_t bytes) override {
        const auto& peer = peers_[to];
        const auto param = unsignaled();
        settle(ucp_put_nbx(peer.endpoint, from, bytes, peer.region + at, peer.key, &param), nullptr,
               "a put");
    }
    void carry_get(Peer to, std::uint64_t at, std::byte* into, std::size_t bytes,
                   Pending& pending) override {
        const auto& peer = peers_[to];
        const auto param = signaled(pending);
        settle(ucp_get_nbx(peer.endpoint, into, bytes, peer.region + at, peer.key, &param),
               &pending, "a get");
    }
    void carry_compare_and_swap(Peer to, std::uint64_t at, const std::uint64_t& expected,
                                std::uint64_t& word, Pending& pending) override {
        atomic(to, at, UCP_ATOMIC_OP_CSWAP, expected, word, pending);
    }
    void carry_fetch_add(Peer to, std::uint64_t at, const std::uint64_t& add, std::uint64_t& found,
                         Pending& pending) override {
        atomic(to, at, UCP_ATOMIC_OP_ADD, add, found, pending);
    }
    void carry_add(Peer to, std::uint64_t at, const std::uint64_t& addend) override {
        const auto& peer = peers_[to];
        auto param = unsignaled();
        param.op_attr_mask |= UCP_OP_ATTR_FIELD_DATATYPE;
        param.datatype = ucp_dt_make_contig(word_bytes);
        settle(ucp_atomic_op_nbx(peer.endpoint, UCP_ATOMIC_OP_ADD, &addend, 1, peer.region + at,
                                 peer.key, &param),
               nullptr, "an atomic add");
    }
    void carry_order() override { check(ucp_worker_fence(worker_), "a fence"); }
    void carry_flush(Peer to, Pending& pending) override {
        const auto param = signaled(pending);
        settle(ucp_ep_flush_nbx(peers_[to].endpoint, &param), &pending, "a flush");
    }

  private:
    // All page table entries at once, so that no request waits for one. Older kernels (before 5.14)
    // cannot: they make them one by one, later.
    static void populate(std::byte* mapped, std::size_t bytes) {
#ifdef MADV_POPULATE_WRITE
        const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
        const auto first = reinterpret_cast<std::uintptr_t>(mapped) / page * page;
        const auto end = reinterpret_cast<std::uintptr_t>(mapped) + bytes;
        ::madvise(reinterpret_cast<void*>(first), end - first, MADV_POPULATE_WRITE);
#else
        (void)mapped, (void)bytes;
#endif
    }

    struct Connection {
        ucp_ep_h endpoint;
        ucp_rkey_h key;
        std::uint64_t region;
    };

    void atomic(Peer to, std::uint64_t at, ucp_atomic_op_t operation, const std::uint64_t& operand,
                std::uint64_t& result, Pending& pending) {
        const auto& peer = peers_[to];
        auto param = signaled(pending);
        param.op_attr_mask |= UCP_OP_ATTR_FIELD_DATATYPE | UCP_OP_ATTR_FIELD_REPLY_BUFFER;
        param.datatype = ucp_dt_make_contig(word_bytes);
        param.reply_buffer = &result;
        settle(ucp_atomic_op_nbx(peer.endpoint, operation, &operand, 1, peer.region + at, peer.key,
                                 &param),
               &pending, "an atomic");
    }

    static void on_done(void* request, ucs_status_t status, void* waited) {
        if (auto* pending = static_cast<Pending*>(waited); pending != nullptr) {
            --pending->requests;
            pending->failed = pending->failed || status != UCS_OK;
        }
        ucp_request_free(request);
    }
    static ucp_request_param_t unsignaled() {
        ucp_request_param_t param{};
        param.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
        param.cb.send = on_done;
        return param;
    }
    static ucp_request_param_t signaled(Pending& pending) {
        ++pending.requests;
        auto param = unsignaled();
        param.user_data = &pending;
        return param;
    }
    // Of a request that was done at once nobody will call back.
    static void settle(ucs_status_ptr_t posted, Pending* pending, const char* what) {
        if (UCS_PTR_IS_PTR(posted)) return;
        if (pending != nullptr) --pending->requests;
        check(UCS_PTR_STATUS(posted), what);
    }

    static ucs_status_t on_message(void* self, const void*, std::size_t, void* data,
                                   std::size_t bytes, const ucp_am_recv_param_t*) {
        auto& fabric = *static_cast<UcxFabric*>(self);
        const auto* first = static_cast<const std::byte*>(data);
        try {
            fabric.messages_.emplace_back(first, first + bytes);
        } catch (const std::bad_alloc&) {
            fabric.lost_a_message_ = true;  // told by progress(): nothing is thrown through UCX
        }
        return UCS_OK;
    }

    void close(ucp_ep_h endpoint) {
        ucp_request_param_t param{};
        param.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
        param.flags = UCP_EP_CLOSE_FLAG_FORCE;
        const auto closing = ucp_ep_close_nbx(endpoint, &param);
        if (!UCS_PTR_IS_PTR(closing)) return;
        while (ucp_request_check_status(closing) == UCS_INPROGRESS) ucp_worker_progress(worker_);
        ucp_request_free(closing);
    }

    bool direct_;
    bool populate_;
    // Else UCX mostly aborts a server that answers a client which has just been killed (README.md).
    // With shared memory nobody answers; for that UCX cannot tell who is gone.
    bool survives_peers_;
    ucp_context_h context_ = nullptr;
    ucp_worker_h worker_ = nullptr;
    ucp_mem_h memory_ = nullptr;
    std::byte* region_ = nullptr;
    std::size_t region_bytes_ = 0;
    int wakeup_ = -1;
    bool lost_a_message_ = false;
    std::vector<Connection> peers_;
    std::deque<std::vector<std::byte>> messages_;
};

}  // namespace

std::unique_ptr<Fabric> ucx_fabric(const FabricOptions& options) {
    return std::make_unique<UcxFabric>(options);
}

}  // namespace numatwin::native

#else

namespace numatwin::native {

std::unique_ptr<Fabric> ucx_fabric(const FabricOptions&) {
    throw std::runtime_error(
        "this engine was built without UCX: install libucx-dev and build numatwin again");
}

}  // namespace numatwin::native

#endif
