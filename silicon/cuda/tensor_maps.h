// Tensor maps by the driver, whose functions are found when the program runs: building it takes no driver.
#pragma once
#include <cuda.h>
#include <dlfcn.h>

#include <stdexcept>

#include "job.h"

namespace tilewright {

class Driver {
public:
    // Throws a sentence if there is no driver that can make tensor maps.
    Driver()
    {
        void* library = dlopen("libcuda.so.1", RTLD_NOW);
        if (!library) throw std::runtime_error("there is no CUDA driver: libcuda.so.1 cannot be loaded");
        tiled = reinterpret_cast<decltype(tiled)>(dlsym(library, "cuTensorMapEncodeTiled"));
        im2col = reinterpret_cast<decltype(im2col)>(dlsym(library, "cuTensorMapEncodeIm2col"));
        if (!tiled || !im2col) throw std::runtime_error("the CUDA driver has no functions for tensor maps");
    }

    // Makes the map of a record, for a job whose global memory is at `global`; returns what the driver says of it.
    CUresult encode(const MapRecord& record, uint64_t global, CUtensorMap* map) const
    {
        void* address = reinterpret_cast<void*>(global + record.address);
        const auto type = static_cast<CUtensorMapDataType>(record.type);
        const auto interleave = static_cast<CUtensorMapInterleave>(record.interleave);
        const auto swizzle = static_cast<CUtensorMapSwizzle>(record.swizzle);
        const auto promotion = static_cast<CUtensorMapL2promotion>(record.promotion);
        const auto fill = static_cast<CUtensorMapFloatOOBfill>(record.fill);
        if (record.im2col) {
            return im2col(map, type, record.rank, address, record.size, record.stride, record.lower, record.upper,
                          record.channels, record.pixels, record.step, interleave, swizzle, promotion, fill);
        }
        return tiled(map, type, record.rank, address, record.size, record.stride, record.box, record.step,
                     interleave, swizzle, promotion, fill);
    }

private:
    decltype(&cuTensorMapEncodeTiled) tiled;
    decltype(&cuTensorMapEncodeIm2col) im2col;
};

}  // namespace tilewright
