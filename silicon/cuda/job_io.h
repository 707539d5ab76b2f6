// Reads jobs from standard input and writes records to standard output.
#pragma once
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

#include "job.h"

namespace tilewright {

// What a job breaks, in a sentence.
class Malformed : public std::runtime_error {
public:
    using std::runtime_error::runtime_error;
};

// Reads `size` bytes. Returns false if the input ends before the first and that is where it may end.
inline bool read_bytes(void* bytes, uint64_t size, bool may_end = false)
{
    uint8_t* next = static_cast<uint8_t*>(bytes);
    for (uint64_t left = size; left;) {
        const ssize_t got = read(STDIN_FILENO, next, left);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) throw Malformed(std::string("cannot read a job: ") + std::strerror(errno));
        if (got == 0 && may_end && left == size) return false;
        if (got == 0) throw Malformed("the input ends inside a job");
        next += got;
        left -= got;
    }
    return true;
}

inline void write_bytes(const void* bytes, uint64_t size)
{
    const uint8_t* next = static_cast<const uint8_t*>(bytes);
    while (size) {
        const ssize_t put = write(STDOUT_FILENO, next, size);
        if (put < 0 && errno == EINTR) continue;
        if (put < 0) throw std::runtime_error(std::string("cannot write a reply: ") + std::strerror(errno));
        next += put;
        size -= put;
    }
}

// Whether a command names a tensor map.
inline bool uses_map(const CommandRecord& command)
{
    const Op op = static_cast<Op>(command.op);
    return op == Op::LOAD || op == Op::STORE || op == Op::REDUCE || op == Op::PREFETCH;
}

// A job without its memories, which follow it in the input.
struct Job {
    JobHeader header;
    std::vector<MapRecord> maps;
    std::vector<CommandRecord> commands;
};

// Returns false at the end of the input. `shared_bytes` is the largest shared memory, `expected` the most bytes that a
// barrier counts.
inline bool read_job(Job& job, uint32_t shared_bytes, uint32_t expected)
{
    constexpr uint32_t MOST_RECORDS = 1 << 20;
    if (!read_bytes(&job.header, sizeof job.header, true)) return false;
    const JobHeader& header = job.header;
    if (header.magic != JOB) throw Malformed("a job does not begin with its magic number");
    if (header.commands > MOST_RECORDS) {
        throw Malformed("a job has " + std::to_string(header.commands) + " commands, more than " +
                        std::to_string(MOST_RECORDS));
    }
    if (header.more_cores >= MOST_CORES) {
        throw Malformed("a job has " + std::to_string(header.more_cores + 1) + " cores, more than " +
                        std::to_string(MOST_CORES));
    }
    if (header.shared_bytes % 16 || header.shared_bytes > shared_bytes) {
        throw Malformed("a job has " + std::to_string(header.shared_bytes) +
                        " bytes of shared memory, which is no multiple of 16 up to " + std::to_string(shared_bytes));
    }
    job.maps.resize(header.maps);
    job.commands.resize(header.commands);
    read_bytes(job.maps.data(), job.maps.size() * sizeof(MapRecord));
    read_bytes(job.commands.data(), job.commands.size() * sizeof(CommandRecord));
    for (const CommandRecord& command : job.commands) {
        if (uses_map(command) && command.map >= header.maps) {
            throw Malformed("a command uses map " + std::to_string(command.map) + " of " + std::to_string(header.maps));
        }
        if (command.core > header.more_cores || command.receiver > header.more_cores) {
            throw Malformed("a command is of core " + std::to_string(command.core) + " for core " +
                            std::to_string(command.receiver) + ", and the last one is " +
                            std::to_string(header.more_cores));
        }
        if (command.op == static_cast<uint16_t>(Op::ARRIVE) && !command.expected) {
            throw Malformed("a command expects no arrivals");
        }
        if (command.expected > expected) {
            throw Malformed("a command expects " + std::to_string(command.expected) + " bytes, more than " +
                            std::to_string(expected));
        }
    }
    return true;
}

}  // namespace tilewright
