// What goes into the timing program: one Timing, then so many Shapes; timing.py has the same records.
//
// It answers with one JSON object: the GPU, what is wrong with each shape (null if nothing is), and the milliseconds of
// every round: of the copy, of blocks, and of every shape; 0 of one with which something is wrong.
#pragma once
#include <cstdint>

#include "job.h"

namespace tilewright {

struct Timing {
    uint32_t shapes;
    uint32_t rounds;  // each times every shape once
    uint64_t bytes;   // of the memory that tensors lie in, and that is copied to compare with
};

// Boxes of a tensor, each loaded once: box n starts in dimension d at first[d] + step[d] * (digit d of n), where digit d
// counts to count[d].
struct Shape {
    MapRecord map;
    int32_t first[5];
    uint32_t count[5], step[5];
    uint32_t extent[5];    // units of a box, 1 beyond the rank
    uint32_t unit_bytes;   // of dimension 0
    uint32_t stage_bytes;  // of shared memory that a box takes, a multiple of 128
};

static_assert(sizeof(Timing) == 16 && sizeof(Shape) == 272);

}  // namespace tilewright
