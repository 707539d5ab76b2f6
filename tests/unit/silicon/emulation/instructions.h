// Loads of boxes by a copy of the processor, and the other functions of silicon/cuda/instructions.h, which nothing calls.
#pragma once
#include <cstring>

#include "barriers.h"
#include "job.h"

namespace tilewright {

struct Form {
    uint32_t rank;
    bool im2col;
};
struct Start {
    int32_t coords[5];
    uint16_t offsets[3];
};

inline uint64_t __cvta_generic_to_global(const void* address) { return reinterpret_cast<uint64_t>(address); }
inline void atomicAdd(unsigned long long* sum, unsigned long long more) { __atomic_fetch_add(sum, more, __ATOMIC_SEQ_CST); }

inline bool multicast(Form, uint64_t map, const Start& at, uint32_t shared, uint32_t barrier, uint16_t mask)
{
    const CUtensorMap box = *reinterpret_cast<const CUtensorMap*>(map);
    const uint8_t* first = box.data + uint64_t(at.coords[1]) * box.pitch + at.coords[0];
    for (uint32_t core = 0; core < 16; ++core) {
        if (!(mask >> core & 1)) continue;
        // It ends some time later, of each receiver by itself.
        std::thread([=] {
            for (uint32_t row = 0; row < box.height; ++row) {
                std::memcpy(place(address_in(core, shared)) + row * box.width, first + uint64_t(row) * box.pitch, box.width);
                std::this_thread::yield();
            }
            complete(address_in(core, barrier), box.width * box.height);
        }).detach();
    }
    return true;
}

inline bool load(Form form, uint64_t map, const Start& at, uint32_t shared, uint32_t barrier)
{
    return multicast(form, map, at, shared, barrier, uint16_t(1u << rank));
}

[[noreturn]] inline bool none() { std::abort(); }
inline bool store(Form, uint64_t, const Start&, uint32_t) { none(); }
inline bool reduce(Reduction, Form, uint64_t, const Start&, uint32_t) { none(); }
inline bool prefetch(Form, uint64_t, const Start&) { none(); }
inline void prefetch_block(uint64_t, uint32_t) { none(); }
inline void copy_to_shared(uint32_t, uint64_t, uint32_t, uint32_t) { none(); }
inline void multicast_to_shared(uint32_t, uint64_t, uint32_t, uint32_t, uint16_t) { none(); }
inline void copy_to_global(uint64_t, uint32_t, uint32_t) { none(); }
inline void copy_in_shared(uint32_t, uint32_t, uint32_t, uint32_t) { none(); }
inline bool reduce_to_global(Reduction, Type, uint64_t, uint32_t, uint32_t) { none(); }
inline bool reduce_in_shared(Reduction, Type, uint32_t, uint32_t, uint32_t, uint32_t) { none(); }

}  // namespace tilewright
