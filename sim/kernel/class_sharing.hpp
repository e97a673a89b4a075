// Max-min fair paces of classes of alike users, kept up to date while their members come and go.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

namespace numatwin {

// A class has n members, each of which takes `time` of every resource that it needs for a unit of
// work. A member's pace p is the time that a unit takes it: at least the class's least pace. What
// a resource does for its users takes it no longer than the time that passes:
//
//     sum over its classes of n * time / p <= room
//
// where a resource's room is 1 unless limit() has said less. Max-min fair: each member has its
// least pace, or uses a full resource none of whose users is faster. So members of a class are
// alike, and a thousand cost as much as one.
//
// share() fills only what a change can have reached, others' use taken as it is: changed classes
// and all users of the resources that bound any and that they use. Where the paces found change the
// use of a resource that bounds others, or fill one that others use, these join, and it is done
// again.
//
// Filling goes by local bottlenecks (Bertsekas and Gallager, Data Networks, 2nd ed., 6.5.2, for all
// bottlenecks at a time). The pace of a resource is what its rising users would have if all were
// bound there; it only falls as users freeze. In each round, a class freezes at its least pace if
// no resource of it is slower; else at that of its slowest resource, if that one is the slowest of
// all its users.
//
// Sums are exact: times are rounded to 2^-20 and uses to 2^-50, and sums of these are as precise as
// a double is (times up to 2^33 in all). So nothing depends on the order in which things are added,
// and no error builds up.
class ClassSharing {
  public:
    using Index = std::uint32_t;
    static constexpr double infinity = std::numeric_limits<double>::infinity();

    struct Need {
        Index resource;
        double time;  // of a unit of work
    };

    Index add_resource() {
        resource_.emplace_back();
        return static_cast<Index>(resource_.size() - 1);
    }
    // A class without members. Each resource once; times above 0.
    Index add_class(std::span<const Need> needs);

    // From the next share() on. A least pace of 0 is for classes that need a resource.
    void change(Index of, std::uint32_t members, double least_pace);
    // From the next share() on, its users have this part of the resource's time: above 0, at
    // most 1.
    void limit(Index resource, double room);
    // Returns the classes whose pace has changed; valid until the next call.
    std::span<const Index> share();

    // use(resource, time of a unit of work)
    void each_need(Index of, auto use) const {
        for (std::uint32_t k = class_[of].first, end = k + class_[of].count; k < end; ++k)
            use(need_[k].resource, need_[k].time);
    }
    // As of the last share(); infinite for a class without members.
    double pace(Index of) const { return class_[of].pace; }
    // Which resource bounds it; `none` if its least pace does.
    static constexpr Index none = ~Index{0};
    Index binding(Index of) const { return class_[of].binding; }
    // The part of its time that the resource is busy.
    double use(Index resource) const { return resource_[resource].use; }

  private:
    struct Class {
        double pace = infinity, least = infinity, asked_least = infinity;
        double next = infinity;  // pace that this share() finds
        std::uint32_t members = 0, shared_members = 0;
        Index binding = none, next_binding = none;
        std::uint32_t first = 0, count = 0;  // its needs
        bool changed = false, reached = false;
    };
    struct NeedState {
        Index resource;
        double time;
        double use = 0;           // by all members
        double at_least = 0;      // by a member at its least pace
        std::uint32_t place = 0;  // among the resource's users
    };
    struct User {
        Index of;
        std::uint32_t need;
    };
    struct Resource {
        double use = 0;
        double room = 1;
        double wanted = 0;        // use if all had their least paces: up to room, it bounds nobody
        std::uint32_t bound = 0;  // classes that it bounds
        Index filling = none;     // in filling_
        bool reached = false;     // all its users are filled
        std::vector<User> user;   // classes with members
    };
    struct Filling {  // a resource, while users freeze
        Index resource;
        double free, slope, pace;
        bool blocked, moved;
    };
    struct Rising {
        Index of;
        std::uint32_t first, count;  // in part_
        std::uint32_t slowest;
    };
    struct Part {
        Index filling;
        double slope;  // members * time
    };

    bool update(Index of);
    void reach_around(Index of);
    void enter(Class& state, Index of);
    void leave(Class& state);
    void reach(Index of);
    void reach_users(Index resource);
    void reach_bounding(const Class& state);
    void fill();
    void gather();
    void freeze(const Rising& rising, double pace, Index binding);
    bool spread();
    void commit();

    std::vector<Class> class_;
    std::vector<NeedState> need_;
    std::vector<Resource> resource_;
    std::vector<Index> changed_;   // classes, since the last share()
    std::vector<Index> limited_;   // resources, likewise
    std::vector<Index> reached_;   // classes that this one fills
    std::vector<Index> complete_;  // resources all of whose users it fills
    std::size_t present_ = 0;      // classes with members
    std::vector<Index> repaced_;
    std::vector<Filling> filling_;
    std::vector<Rising> rising_;
    std::vector<Part> part_;
};

}  // namespace numatwin
