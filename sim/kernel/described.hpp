// Structs that know their fields' names: each field is written once, and its name, type and words
// reach Python, its stub and the checks from there.
//
//     struct Wait {
//         FIELDS_OF(Wait);
//         FIELD(double, mean_ps, "on average");
//         FIELD(std::int64_t, slots, "that may wait", 128);  // by default; else 0, or empty
//         END_OF_FIELDS;
//     };
//     for_each_field<Wait>([](const auto& field) { use(field.name, field.member); });
//
// A line has one FIELD at most: its number is what they are told apart by.
#pragma once

#include <cstddef>
#include <utility>

namespace numatwin {

template <class Struct, class Value>
struct Field {
    const char* name;
    const char* words;
    Value Struct::* member;
};

template <std::size_t line>
struct AtLine {};

#define FIELDS_OF(Struct)     \
    using Described = Struct; \
    static constexpr std::size_t first_line = __LINE__
#define FIELD(Type, name, words, ...)                                              \
    static constexpr auto field(::numatwin::AtLine<__LINE__>) {                    \
        return ::numatwin::Field<Described, Type>{#name, words, &Described::name}; \
    }                                                                              \
    Type name {                                                                    \
        __VA_ARGS__                                                                \
    }
#define END_OF_FIELDS static constexpr std::size_t last_line = __LINE__

// Calls use(field) for each Field of a struct, in their order.
template <class Struct, class Use>
constexpr void for_each_field(Use use) {
    const auto at = [&]<std::size_t line>() {
        if constexpr (requires { Struct::field(AtLine<line>{}); })
            use(Struct::field(AtLine<line>{}));
    };
    [&]<std::size_t... k>(std::index_sequence<k...>) {
        (at.template operator()<Struct::first_line + k>(), ...);
    }(std::make_index_sequence<Struct::last_line - Struct::first_line>{});
}

}  // namespace numatwin
