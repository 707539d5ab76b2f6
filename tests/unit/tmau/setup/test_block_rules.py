"""Every element of every field of a descriptor, and what is none; tests of the setup show the rules."""

from tilewright.hw.tmau.setup.block_rules import FieldLocator
from tilewright.spec import DESCRIPTOR
from tilewright.verify.pysim.simulate import simulate


def test_all_fields_and_indices():
    dut = FieldLocator()

    async def run(ctx):
        for number in range(256):
            field = DESCRIPTOR.fields[number] if number < len(DESCRIPTOR.fields) else None
            for index in range(8):
                ctx.set(dut.field, number)
                ctx.set(dut.index, index)
                place = ctx.get(dut.place)
                assert place.no_field == (field is None)
                if field:
                    assert place.no_index == (index >= max(field.count, 1))
                    if not place.no_index:
                        assert 64 * place.word + place.lsb == field.lsbs[index]
                        assert place.ones == (1 << field.width) - 1
                        assert place.lsb + field.width <= 64, "an element lies in one word"
        await ctx.tick()

    simulate(dut, run)
