"""The C library under sanitizers, in C++ and with clang."""

import importlib.util
import subprocess

import pytest

from support.c_library import STRICT
from tilewright.network import compile as compile_network
from tilewright.network.container import container
from tilewright.network.drawn import NetworkMaker
from tilewright.tools.package.library import library_files

FUZZ = r"""
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tilewright.h"

static uint64_t state = 59;

static uint64_t draw(void)
{
    state ^= state << 13;
    state ^= state >> 7;
    return state ^= state << 17;
}

/* Random bits, with most of them cleared in half of the words, so that small numbers are frequent. */
static void fill(void *data, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        ((uint8_t *)data)[i] = (uint8_t)(draw() & draw() & (draw() & 1 ? 0xFF : draw() & draw()));
}

static void mend(uint32_t *container)
{
    uint32_t first = 0, second = 0;

    for (uint32_t i = 4; i < container[2] / 4; i++) {
        first += container[i];
        second += first;
    }
    container[3] = first ^ (second << 16 | second >> 16);
}

int main(int count, char **names)
{
    static uint32_t registers[4][128];
    tw_core core = {registers[0], registers[1], registers[2], registers[3], 0, 0, 0, 0, {0}};
    FILE *file = fopen(names[1], "rb");
    uint32_t *whole = malloc(1 << 20), bytes, loaded = 0, codes[32] = {0};
    size_t size = fread(whole, 1, 1 << 20, file);
    void *memory = aligned_alloc(4096, bytes = (tw_model_memory(whole, size) | 4095) + 1);

    (void)count;
    for (int i = 0; i < 100000; i++) {
        uint64_t words[16], program[4][8];
        struct tw_descriptor map;
        struct tw_convolution job;
        tw_program made = {program, 4, 0};

        fill(&core.hardware, sizeof core.hardware);
        core.hardware.addr_width = 1 + (uint32_t)(draw() & 63);
        core.hardware.smem_bytes = 128u << (draw() & 15);
        fill(&map, sizeof map);
        fill(&job, sizeof job);
        if (!tw_tensor_map(words, &map) && tw_check_descriptor(words, ~0u))
            return 1;
        fill(words, sizeof words);
        words[0] = (words[0] & ~(uint64_t)0xFF) | 1;
        tw_check_job(words, &core.hardware);
        tw_check_descriptor(words, core.hardware.features);
        tw_check_command(words + 8, words, &core.hardware);
        tw_convolution_pack(words, &job);
        tw_program_job(&made, words);
        tw_program_command(&made, words);
        tw_program_put(&made, TW_PE_PUT_PAGE, (uint32_t)draw() & 0xFFFFF, words);
        if (!tw_sentence((tw_status)draw()))
            return 2;
    }
    /* Containers with wrong numbers and a right checksum: they load, or they are refused. */
    for (int i = 0; i < 3000; i++) {
        uint32_t *copy = malloc(size);
        tw_model model;
        tw_status status;

        memcpy(copy, whole, size);
        for (uint64_t changes = draw() % 3; changes; changes--) {
            uint64_t place = 4 + draw() % (draw() & 1 ? 28 : 300);
            copy[place] = draw() & 1 ? copy[place] ^ 1u << (draw() & 31) : (uint32_t)draw();
        }
        mend(copy);
        for (int r = 0; r < 8; r++)
            core.hardware.built[r] = copy[14 + 2 * r];
        core.hardware.features = ~0u;
        core.hardware.smem_bytes = copy[12];
        status = tw_model_load(&model, &core, copy, size, memory, bytes, draw() << 12);
        codes[TW_STATUS_CODE(status) & 31]++;
        if (!status) {
            tw_model_tensor tensor;

            loaded++;
            for (uint32_t number = 0; !tw_model_describe(&model, 0, number, &tensor) && number < 4; number++)
                if (tensor.bytes < 1 << 20) {
                    uint8_t *data = calloc(1, tensor.bytes + 1);
                    tw_model_input(&model, number, data, tensor.bytes);
                    free(data);
                }
        }
        free(copy);
    }
    free(whole);
    free(memory);
    fclose(file);
    printf("%u loaded, %u refused\n", loaded, codes[TW_LIBRARY_CHECKSUM] + codes[TW_LIBRARY_MEMORY]);
    return loaded < 100 || codes[TW_LIBRARY_CHECKSUM] < 100;
}
"""


@pytest.fixture
def sources(tmp_path):
    for name, text in library_files().items():
        (tmp_path / name).write_text(text)
    return [name for name in library_files() if name.endswith(".c")]


def test_random_words_and_containers_under_sanitizers(tmp_path, sources):
    maker = NetworkMaker(59)
    graph = maker.graph(maker.conv(maker.input((1, 5, 9, 7)), 12, 3))
    (tmp_path / "model.twm").write_bytes(container(compile_network(graph, "unit")))
    (tmp_path / "fuzz.c").write_text(FUZZ)
    options = ["-std=c11", "-O1", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
    subprocess.run(["gcc", *options, "-o", "fuzz", "fuzz.c", *sources], cwd=tmp_path, check=True)
    done = subprocess.run(["./fuzz", "model.twm"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_cplusplus_includes_the_header(tmp_path, sources):
    (tmp_path / "main.cc").write_text('#include "tilewright.h"\nint main() { return (int)tw_sentence(0)[0]; }\n')
    subprocess.run(["g++", "-std=c++11", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", "main.cc"], cwd=tmp_path,
                   check=True)  # fmt: skip


@pytest.mark.skipif(importlib.util.find_spec("ziglang") is None, reason="needs pip install 'tilewright[soc]'")
def test_clang_has_no_warning(tmp_path, sources):
    from tilewright.system.build import CLANG, TARGET

    subprocess.run([*CLANG, *TARGET, *STRICT, "-c", *sources], cwd=tmp_path, check=True)
