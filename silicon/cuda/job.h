// What goes in and out of the replay program: records of fixed size, little-endian, on standard input and output.
//
// The program first writes a Hello. Then, until its input ends, it reads a Job and answers with a Reply:
//   Job:   JobHeader, `maps` times MapRecord, `commands` times CommandRecord, global memory, shared memory
//   Reply: ReplyHeader, `maps` times MapReply, `commands` times `cores` CommandReply, global memory, `cores` times
//          shared memory
// A job of several cores is a cluster of as many blocks of threads. Their shared memories begin alike.
// Memories are in a Reply only if its status is OK. After any other status the program has ended.
// packing.py has the same records; tests/unit/silicon/test_packing.py compares sizes and offsets.
#pragma once
#include <cstdint>

namespace tilewright {

constexpr uint32_t HELLO = 0x32475754;  // "TWG2", the version of this format
constexpr uint32_t JOB = 0x4A475754;    // "TWGJ"
constexpr uint32_t REPLY = 0x52475754;  // "TWGR"

constexpr uint32_t MOST_CORES = 8;  // blocks that every GPU takes in a cluster

enum class Status : uint32_t { OK = 0, FAILED = 1 };

struct Hello {
    uint32_t magic;          // HELLO
    uint32_t status;         // Status; FAILED: `message` says why there is no GPU to work on
    int32_t major, minor;    // compute capability
    int32_t driver;          // as cuDriverGetVersion gives it: 13000 is CUDA 13.0
    int32_t runtime;         // as cudaRuntimeGetVersion gives it
    uint32_t shared_bytes;   // largest shared memory of a job
    uint32_t reserved;
    char gpu[96];            // name, ends with a zero
    char message[160];       // ends with a zero
};

struct JobHeader {
    uint32_t magic;  // JOB
    uint16_t maps;
    uint16_t more_cores;  // beside core 0
    uint32_t commands;
    uint32_t shared_bytes;  // a multiple of 16
    uint64_t global_bytes;
};

// A tensor map in the arguments of the driver's two functions, whose rules it may break.
struct MapRecord {
    uint64_t address;     // in the job's global memory, which starts at a multiple of 2 MiB
    uint64_t size[5];     // elements
    uint64_t stride[4];   // bytes of dimensions 1 to 4
    uint32_t box[5];      // elements; tile
    uint32_t step[5];     // traversal strides
    int32_t lower[3], upper[3];   // im2col
    uint32_t channels, pixels;    // im2col
    uint32_t im2col;      // 0 or 1
    uint32_t type;        // CUtensorMapDataType
    uint32_t rank;
    uint32_t interleave;  // CUtensorMapInterleave
    uint32_t swizzle;     // CUtensorMapSwizzle
    uint32_t promotion;   // CUtensorMapL2promotion
    uint32_t fill;        // CUtensorMapFloatOOBfill
    uint32_t reserved;
};

enum class Op : uint16_t {
    NOTHING = 0,  // groups and waits: every command is complete before the next one starts
    LOAD,
    STORE,
    REDUCE,
    PREFETCH,
    GLOBAL_TO_SHARED,
    SHARED_TO_GLOBAL,
    SHARED_TO_SHARED,
    REDUCE_TO_GLOBAL,
    REDUCE_TO_SHARED,
    PREFETCH_BLOCK,
    ARRIVE,  // of some cores at the barrier of one
};

enum class Reduction : uint32_t { NONE = 0, ADD, MIN, MAX, INC, DEC, AND, OR, XOR };

// Type of the elements that a block copy reduces.
enum class Type : uint32_t { NONE = 0, U32, S32, U64, S64, F16, BF16, F32 };

struct CommandRecord {
    uint64_t source, destination;  // of blocks: in the job's global or shared memory
    uint32_t size;                 // of blocks, bytes; arrivals of each arriving core
    uint16_t op;                   // Op
    uint8_t core;                  // which issues it; core of the barrier at which others arrive
    uint8_t receiver;              // core of the destination, of copies and reductions within shared memories
    uint32_t map;                  // of tensors: index of its MapRecord
    int32_t coords[5];
    uint16_t offsets[3];
    uint16_t multicast;            // of copies from global to shared memory: mask of cores; 0: the issuer alone.
                                   // Of arrivals: mask of the cores that arrive
    uint32_t shared;               // of tensors: address in shared memory
    uint32_t reduction;            // Reduction
    uint32_t type;                 // Type, of blocks
    uint32_t expected;             // of copies to shared memory: bytes to count at each barrier, below 2^20.
                                   // Of arrivals: those that complete a phase of the barrier, 1 to 2^20 - 1
};

struct ReplyHeader {
    uint32_t magic;   // REPLY
    uint32_t status;  // Status; FAILED: a command broke the GPU's context
    uint32_t command; // FAILED: its index
    uint32_t reserved;
    char message[160];  // FAILED: CUDA's name of the error; ends with a zero
};

struct MapReply {
    int32_t result;  // CUresult of the driver's function: 0 or the error
};

enum class Outcome : uint32_t {
    DONE = 0,
    REFUSED = 1,    // the driver had refused its map
    NO_SUCH = 2,    // there is no such instruction
    UNFINISHED = 3, // no number of bytes let its barrier's phase end
};

// Of one command, by one core: each watches its own barrier, also where nothing shall come.
struct CommandReply {
    uint32_t outcome;  // Outcome
    uint32_t counted;  // 1: `bytes` was measured at the barrier
    int64_t bytes;     // or arrivals, modulo those of two phases
};

}  // namespace tilewright
