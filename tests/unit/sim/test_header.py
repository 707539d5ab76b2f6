"""The C header, compiled."""

import shutil
import subprocess

import pytest

from tilewright.golden.spec import BARRIER, DESCRIPTOR, Element, Error, Swizzle
from tilewright.sim.cli import main
from tilewright.sim.header import header_text, member_docs

PROGRAM = r"""
#include <stdio.h>
#include "tilewright.h"

#define PUT(field, value) tw_put(d, TW_DESCRIPTOR_##field##_LSB, TW_DESCRIPTOR_##field##_WIDTH, value)
#define PUT_AT(field, i, value) tw_put(d, TW_DESCRIPTOR_##field##_LSB + (i) * TW_DESCRIPTOR_##field##_PITCH, \
    TW_DESCRIPTOR_##field##_WIDTH, (uint64_t)(value) - TW_DESCRIPTOR_##field##_BIAS)

int main(void)
{
    uint64_t d[TW_DESCRIPTOR_WORDS] = {0};
    uint64_t b[TW_BARRIER_WORDS] = {0};

    PUT(VERSION, TW_DESCRIPTOR_LAYOUT_VERSION);
    PUT(RANK, 5);
    PUT(ELEMENT, TW_ELEMENT_BF16);
    PUT(SWIZZLE, TW_SWIZZLE_B64);
    PUT(ADDRESS, UINT64_MAX - 15);
    for (int i = 0; i < TW_DESCRIPTOR_SIZE_COUNT; i++) {
        PUT_AT(SIZE, i, UINT64_C(1) << (32 - i));
        PUT_AT(BOX, i, 256 - i);
        PUT_AT(TRAVERSAL, i, 8 - i);
    }
    for (int i = 0; i < TW_DESCRIPTOR_STRIDE_COUNT; i++)
        PUT_AT(STRIDE, i, (UINT64_C(1) << 40) - 16 * (i + 1));
    for (int i = 0; i < TW_DESCRIPTOR_LOWER_COUNT; i++)
        PUT_AT(LOWER, i, -1 - i);
    for (int i = 0; i < TW_DESCRIPTOR_WORDS; i++)
        printf("%016llx\n", (unsigned long long)d[i]);

    tw_put(b, TW_BARRIER_EXPECTED_LSB, TW_BARRIER_EXPECTED_WIDTH, 77);
    tw_put(b, TW_BARRIER_PENDING_LSB, TW_BARRIER_PENDING_WIDTH, 0xfffff);
    tw_put(b, TW_BARRIER_EXPECTED_LSB, TW_BARRIER_EXPECTED_WIDTH, 3);
    printf("%016llx\n", (unsigned long long)b[0]);
    printf("%llu\n", (unsigned long long)tw_get(b, TW_BARRIER_EXPECTED_LSB, TW_BARRIER_EXPECTED_WIDTH));
    printf("%d\n", TW_ERROR_STRIDE);
    printf("%x %x\n", TW_REG_ERROR_COUNT, TW_REG_ID_VALUE);
    printf("%d %d\n", TW_REG_STATUS_QUEUE_LEVEL_LSB, TW_REG_STATUS_QUEUE_LEVEL_WIDTH);
    return 0;
}
"""


@pytest.fixture
def printed(tmp_path):
    (tmp_path / "tilewright.h").write_text(header_text())
    (tmp_path / "program.cc").write_text(PROGRAM)
    options = ["-std=c++11", "-Wall", "-Wextra", "-pedantic", "-Werror", "-o", "program", "program.cc"]
    subprocess.run([shutil.which("g++"), *options], cwd=tmp_path, check=True)
    return subprocess.run([tmp_path / "program"], capture_output=True, text=True, check=True).stdout.split()


def test_a_driver_in_c_packs_what_python_packs(printed):
    word = DESCRIPTOR.pack(
        version=1,
        rank=5,
        element=Element.BF16,
        swizzle=Swizzle.B64,
        address=2**64 - 16,
        size=[2 ** (32 - i) for i in range(5)],
        box=[256 - i for i in range(5)],
        traversal=[8 - i for i in range(5)],
        stride=[2**40 - 16 * (i + 1) for i in range(4)],
        lower=[-1, -2, -3],
    )
    *words, barrier, expected, error, offset, identity, lsb, width = printed
    assert [int(text, 16) for text in words] == [word >> 64 * i & 2**64 - 1 for i in range(16)]
    assert int(barrier, 16) == BARRIER.pack(pending=0xFFFFF, expected=3)
    assert int(expected) == 3
    assert int(error) == Error.STRIDE
    assert (offset, identity, lsb, width) == ("3c", "54575254", "8", "8")


def test_comments_of_members_are_found():
    assert member_docs(Element) == {"TF32": "32 bits in memory, rounded to ten mantissa bits by a load"}


def test_command_writes_the_header(tmp_path):
    out = tmp_path / "include" / "tilewright.h"
    assert main(["header", "--out", str(out)]) == 0
    assert out.read_text() == header_text()
